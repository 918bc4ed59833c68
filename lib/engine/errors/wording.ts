import { inspect } from 'node:util';

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
