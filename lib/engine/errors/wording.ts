import { inspect } from 'node:util';

const MOST_NAMES = 12;

/** Formats a value for a message: short, on one line. */
export function show(value: unknown): string {
  const text = inspect(value, { depth: 1, breakLength: Infinity, maxArrayLength: 5, maxStringLength: 80 });
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}

/** A number of things: `1 unit`, `3 units`. */
export function counted(count: number, thing: string): string {
  return `${count} ${count === 1 ? thing : `${thing}s`}`;
}

/** Formats a list of words for a sentence: `a, b or c`. */
export function listOf(words: readonly string[], conjunction: 'and' | 'or'): string {
  const last = words.at(-1) ?? '';
  return words.length > 1 ? `${words.slice(0, -1).join(', ')} ${conjunction} ${last}` : last;
}

/** Names in quotes as a list: `'a', 'b' or 'c'`; without a conjunction `'a', 'b', 'c'`. */
export function quoted(names: readonly string[], conjunction?: 'and' | 'or'): string {
  const words = names.map((name) => `'${name}'`);
  return conjunction === undefined ? words.join(', ') : listOf(words, conjunction);
}

/** The message for an invalid value: `limits[0].interval: expected a duration such as '10s', received '10x'`. */
export function wrongInput(place: string, expected: string, received: unknown): string {
  return `${place}: expected ${expected}, received ${show(received)}`;
}

/** The message for a missing value: `limits[0].interval: missing, expected a duration such as '10s'`. */
export function missingInput(place: string, expected: string): string {
  return `${place}: missing, expected ${expected}`;
}

/** The suggestion after an unknown name: the most similar known name; empty if none is similar. */
export function didYouMean(name: unknown, known: readonly string[]): string {
  const near = typeof name === 'string' ? nearest(name, known) : undefined;
  return near === undefined ? '' : `. Did you mean '${near}'?`;
}

/**
 * The message for an unknown name: `unknown option 'brust'. Did you mean 'burst'?`. If no known name is similar and there are only a few,
 * it lists them: `unknown option 'size', expected one of rate, interval, burst`.
 */
export function unknownName(thing: string, name: unknown, known: readonly string[]): string {
  const listed = known.length === 0 || known.length > MOST_NAMES ? '' : `, expected one of ${known.join(', ')}`;
  return `unknown ${thing} ${show(name)}${didYouMean(name, known) || listed}`;
}

/**
 * The most similar word in a list, which was probably meant; `undefined` if none is similar. If more than one letter is wrong, the first
 * letter has to be right.
 */
export function nearest(word: string, list: readonly string[]): string | undefined {
  let least = Math.round(word.length * 0.4) + 1;
  let found: string | undefined;
  for (const each of list) {
    const edits =
      Math.abs(each.length - word.length) < least ? editsBetween(word.toLowerCase(), each.toLowerCase()) : least;
    const isFar = edits > 1 && each[0]?.toLowerCase() !== word[0]?.toLowerCase();
    if (edits >= least || isFar) continue;
    least = edits;
    found = each;
  }
  return found;
}

/** The number of letters to insert, delete, replace or swap to turn one word into another (Damerau-Levenshtein distance). */
export function editsBetween(one: string, other: string): number {
  let before: number[] = [];
  let last: number[] = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1];
      let edits = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (isSame ? 0 : 1));
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (isSwapped) edits = Math.min(edits, before[j - 2]! + 1);
      row.push(edits);
    }
    before = last;
    last = row;
  }
  return last[other.length]!;
}

/** A route as people read it: `GET /users`, or `GET /users version 2` if its version isn't in the path. */
export function shownRoute({ route, version }: { readonly route: string; readonly version?: string }): string {
  return version === undefined ? route : `${route} version ${version}`;
}

/** A route with its method: `GET /users (UsersController.list)`. */
export function routeAndMethod(
  route: Parameters<typeof shownRoute>[0] & { readonly controller: string; readonly handler: string },
): string {
  return `${shownRoute(route)} (${route.controller}.${route.handler})`;
}
