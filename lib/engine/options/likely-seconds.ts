import { listsOf, type OptionRows } from './option-row.js';
import { givenOptions, isObject } from './values.js';

/** An option whose number is most likely meant as seconds, although numbers are milliseconds. */
export interface LikelySeconds {
  readonly option: string;
  readonly got: number;
}

const HALF_AN_HOUR = 1800;
/** 30 days and 365 days in seconds. */
const MONTH_AND_YEAR: readonly number[] = [2_592_000, 31_536_000];

/**
 * Returns true if a long duration looks like seconds: a whole number below 1000, or the seconds of half an hour, one or more hours or days,
 * unless it's also a number of whole seconds in milliseconds.
 */
export function isLikelySeconds(value: unknown): value is number {
  if (isBelowSecond(value)) return true;
  if (typeof value !== 'number' || !Number.isInteger(value) || value <= 0) return false;
  return (value % HALF_AN_HOUR === 0 && value % 1000 > 0) || MONTH_AND_YEAR.includes(value);
}

/** The same for a duration that is often a second or two, such as a timeout: there, 1800 and 3600 are taken for milliseconds. */
export function isBelowSecond(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 1000;
}

/** The long durations among some options, including nested ones, that are most likely meant as seconds. */
export function likelySeconds(given: object, rows: OptionRows, parent = ''): LikelySeconds[] {
  const { names, timed } = listsOf(rows);
  const values = givenOptions(given as Record<string, unknown>, names);
  const found: LikelySeconds[] = [];
  for (const { option: name, options, isLong } of timed) {
    const value = values[name];
    if (value === undefined) continue;
    const option = parent + name;
    if (options !== undefined && isObject(value)) found.push(...likelySeconds(value, options, `${option}.`));
    else if (!isLong) continue;
    else if (!Array.isArray(value)) note(found, option, value);
    else for (const [index, item] of value.entries()) note(found, `${option}[${index}]`, item);
  }
  return found;
}

function note(found: LikelySeconds[], option: string, value: unknown): void {
  if (isLikelySeconds(value)) found.push({ option, got: value });
}
