import { duration, percent, spaced, whole } from './figures.js';

/** Characters that move a cursor, or colour, hide or reorder text: control, format and separator characters, lone surrogates. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** Text for a log that is safe for a terminal: on one line, without control characters, and shortened. */
export function printable(text: string, most = 60): string {
  const short = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  return short.replaceAll(UNPRINTABLE, escaped);
}

/** Lines of a program's output, safe for a terminal. */
export function printableLines(lines: readonly string[]): string {
  return lines.map((line) => `${printable(line, Infinity)}\n`).join('');
}

/** JSON with all characters escaped that a terminal interprets. It parses to the same value. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value, undefined, 2).replaceAll(UNPRINTABLE, (character) =>
    character === '\n' ? character : escaped(character),
  );
}

function escaped(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}

/** Formats rows as columns: those listed in `left` aligned to the left, the others to the right. */
export function columns(rows: readonly (readonly string[])[], left: readonly number[] = [0]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length);
  }
  return rows.map((row) =>
    row
      .map((cell, index) => (left.includes(index) ? cell.padEnd(widths[index]!) : cell.padStart(widths[index]!)))
      .join('  ')
      .trimEnd(),
  );
}

export { whole as showCount };

/** A part as a percentage, in the format of the console. */
export function showShare(part: number, all: number): string {
  return spaced(percent(part, all));
}

/** Milliseconds in the format of the console: the two largest units. */
export function showMs(ms: number): string {
  return spaced(duration(ms));
}
