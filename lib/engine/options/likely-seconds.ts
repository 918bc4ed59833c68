import { dataOf, type OptionRows, ownKind, ownRows } from './option-row.js';
import { givenOptions, isObject } from './values.js';

/** An option whose number is most likely meant as seconds, although numbers are milliseconds. */
export interface LikelySeconds {
  readonly option: string;
  readonly got: number;
}

/** Whether a long duration is written as a whole number of less than a second. */
export function isLikelySeconds(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0 && (value as number) < 1000;
}

/** The long durations among some options, and among the options of these, that are most likely meant as seconds. */
export function likelySeconds(given: object, rows: OptionRows, parent = ''): LikelySeconds[] {
  const values = givenOptions(given as Record<string, unknown>, Object.keys(rows));
  return Object.entries(ownRows(rows)).flatMap(([name, { kind, isLong }]) => {
    const option = parent + name;
    const value = values[name];
    // Some options are read by a later step, and only their data has rows.
    const { options } = ownKind(dataOf(kind) ?? kind);
    if (options !== undefined && isObject(value)) return likelySeconds(value, options, `${option}.`);
    if (isLong !== true) return [];
    if (!Array.isArray(value)) return isLikelySeconds(value) ? [{ option, got: value }] : [];
    return value.flatMap((got: unknown, index) =>
      isLikelySeconds(got) ? [{ option: `${option}[${index}]`, got }] : [],
    );
  });
}
