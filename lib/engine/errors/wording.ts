import { inspect } from 'node:util';
import { nearest } from '../util/nearest.js';

/** The maximum number of names in a message. */
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
