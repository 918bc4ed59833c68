import { inspect } from 'node:util';
import { nearest } from '../util/nearest.js';

/** The longest list of names that a message shows. */
const MOST_NAMES = 12;

/** Shows a value in a message: short, on one line. */
export function show(value: unknown): string {
  const text = inspect(value, { depth: 1, breakLength: Infinity, maxArrayLength: 5, maxStringLength: 80 });
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}

/** A number of things: `1 unit`, `3 units`. */
export function counted(count: number, thing: string): string {
  return `${count} ${count === 1 ? thing : `${thing}s`}`;
}

/** Words as a sentence lists them: `a, b or c`. */
export function listOf(words: readonly string[], conjunction: 'and' | 'or'): string {
  const last = words.at(-1) ?? '';
  return words.length > 1 ? `${words.slice(0, -1).join(', ')} ${conjunction} ${last}` : last;
}

/** A wrong value: `limits[0].interval: expected a duration such as '10s', received '10x'`. */
export function wrongInput(place: string, expected: string, received: unknown): string {
  return `${place}: expected ${expected}, received ${show(received)}`;
}

/** A missing value: `limits[0].interval: missing, expected a duration such as '10s'`. */
export function missingInput(place: string, expected: string): string {
  return `${place}: missing, expected ${expected}`;
}

/** After an unknown name: the known name that is nearest to it; empty if none is near. */
export function didYouMean(name: unknown, known: readonly string[]): string {
  const near = typeof name === 'string' ? nearest(name, known) : undefined;
  return near === undefined ? '' : `. Did you mean '${near}'?`;
}

/**
 * An unknown name: `unknown option 'brust'. Did you mean 'burst'?`. If no known name is near and there are only a few, it lists them:
 * `unknown option 'size', expected one of rate, interval, burst`.
 */
export function unknownName(thing: string, name: unknown, known: readonly string[]): string {
  const listed = known.length === 0 || known.length > MOST_NAMES ? '' : `, expected one of ${known.join(', ')}`;
  return `unknown ${thing} ${show(name)}${didYouMean(name, known) || listed}`;
}
