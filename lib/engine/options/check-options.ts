import { configError, RateLimitConfigError, type RateLimitErrorCode } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { codeOfWrong, optionMessages } from '../errors/messages/options.js';
import { show } from '../errors/wording.js';
import { time, whole, words } from './kinds.js';
import { bare } from '../util/objects.js';
import {
  type Exclusion,
  listsOf,
  type OptionKind,
  type OptionRow,
  type OptionRows,
  ownParts,
  ownRows,
} from './option-row.js';
import { givenOptions, isObject, isObjectOfOptions } from './values.js';

/** The result of `readOptions`: `undefined` for an option that was not set and has no default. */
export type ReadOptions<Rows> = {
  readonly [Option in keyof Rows]: Rows[Option] extends OptionRow<infer T>
    ? Rows[Option] extends { readonly required: true } | { readonly default: unknown }
      ? T
      : T | undefined
    : never;
};

/** The error for an option with an invalid value. */
export function wrongOption(
  location: string,
  option: string,
  received: unknown,
  expected: string,
  code?: RateLimitErrorCode,
): RateLimitConfigError {
  return new RateLimitConfigError(messages.wrongOption(location, option, received, expected), code && { code });
}

/** Throws for unknown options. `ownerOf` returns the owner of an option that is known in another place. */
export function refuseUnknown(
  location: string,
  given: object,
  known: readonly string[],
  ownerOf?: (option: string) => string | undefined,
): void {
  for (const option of Object.keys(given)) {
    if (known.includes(option)) continue;
    const owner = ownerOf?.(option);
    if (owner !== undefined)
      throw configError('SLUICE_MISPLACED_OPTION', messages.misplacedOption(location, option, owner, known));
    throw configError('SLUICE_UNKNOWN_OPTION', messages.unknownOption(location, option, known));
  }
}

/** The options that code passes, if all of them are known. Throws `RateLimitConfigError`. */
export function knownOptions<T extends object>(
  location: string,
  given: unknown,
  known: readonly (keyof T & string)[],
): T {
  if (!isObjectOfOptions(given)) throw new RateLimitConfigError(messages.notOptions(location, given));
  refuseUnknown(location, given, known);
  return givenOptions(given as T, known);
}

/** Throws for a missing or invalid value. */
export function checkValue(location: string, option: string, value: unknown, kind: OptionKind): void {
  if (value === undefined)
    throw configError('SLUICE_MISSING_OPTION', messages.missingOption(location, option, kind.expected));
  const { each, options } = ownParts(kind);
  if (each !== undefined && Array.isArray(value)) {
    // This includes the holes of a sparse list.
    for (const [index, item] of value.entries()) checkValue(location, `${option}[${index}]`, item, each);
  } else if (options !== undefined && isObject(value)) {
    const within = `${location}.${option}`;
    refuseUnknown(within, value, listsOf(options).names);
    checkGiven(within, value, options);
  }
  if (!kind.isValid(value)) throw wrongOption(location, option, value, kind.expected, codeOfWrong(kind.expected));
}

/** The given options of some rows, without properties that other code added to `Object.prototype`. */
function ownOptions(given: object, rows: OptionRows): Readonly<Record<string, unknown>> {
  return givenOptions(given as Record<string, unknown>, listsOf(rows).names);
}

/** Throws for missing and invalid options. */
export function checkGiven(location: string, given: object, rows: OptionRows): void {
  const values = ownOptions(given, rows);
  const { names, required } = listsOf(rows);
  const own = ownRows(rows);
  // Few options are given, in the order of their rows. A missing one is reported when its row's turn comes.
  const isComplete = required.every((option) => values[option] !== undefined);
  for (const option of isComplete ? Object.keys(values) : names) {
    const row = own[option]!;
    const value = values[option];
    if (value !== undefined || row.required === true) checkValue(location, option, value, row.kind);
  }
}

/**
 * Throws for options that exclude each other, and for those that need others. A default counts as if it was set.
 * @param mayBeElsewhere true if a needed option may be set elsewhere; by default all options are given
 */
export function checkTogether(
  location: string,
  given: object,
  rows: OptionRows,
  mayBeElsewhere?: (option: string) => boolean,
): void {
  checkRelated(location, ownOptions(given, rows), rows, mayBeElsewhere);
}

function checkRelated(
  location: string,
  options: Readonly<Record<string, unknown>>,
  rows: OptionRows,
  mayBeElsewhere?: (option: string) => boolean,
): void {
  const own = ownRows(rows);
  const valueOf = (option: string) => (options[option] === undefined ? own[option]?.default : options[option]);
  for (const { option, usual, excludes, needs } of listsOf(rows).related) {
    const isGiven = options[option] !== undefined;
    if (!isGiven && usual === undefined) continue;
    for (const other of excludes) {
      if (!isThat(valueOf(other.option), other)) continue;
      throw configError(
        'SLUICE_EXCLUDED_OPTIONS',
        optionMessages.at(location, optionMessages.exclude(option, shown(other), other.expected)),
      );
    }
    for (const [needed, what] of isGiven ? needs : []) {
      if (valueOf(needed) !== undefined || mayBeElsewhere?.(needed) === true) continue;
      throw configError(
        'SLUICE_MISSING_OPTION',
        optionMessages.at(location, optionMessages.needs(option, needed, what)),
      );
    }
  }
}

function isThat(got: unknown, { value, asFunction }: Exclusion): boolean {
  if (asFunction === true) return typeof got === 'function';
  return value === undefined ? got !== undefined : got === value;
}

function shown({ option, value, asFunction }: Exclusion): string {
  if (value !== undefined) return `${option}: ${show(value)}`;
  return asFunction === true ? `'${option}', a function,` : `'${option}'`;
}

/** Checks the options of some rows, and reads them. Throws `RateLimitConfigError`. */
export function readOptions<const Rows extends OptionRows>(
  location: string,
  given: object,
  rows: Rows,
): ReadOptions<Rows> {
  const options = ownOptions(given, rows);
  checkRelated(location, options, rows);
  const read: Record<string, unknown> = {};
  for (const [option, { kind, required, default: usual }] of listsOf(rows).all) {
    const value = options[option] === undefined ? usual : options[option];
    if (value === undefined && required !== true) continue;
    checkValue(location, option, value, kind);
    read[option] = converted(value, kind);
  }
  return bare(read) as ReadOptions<Rows>;
}

function read<T>(location: string, option: string, value: unknown, kind: OptionKind<T>): T {
  checkValue(location, option, value, kind);
  return converted(value, kind);
}

function converted<T>(value: unknown, kind: OptionKind<T>): T {
  const { read: convert } = ownParts(kind);
  return convert === undefined ? (value as T) : convert(value);
}

/** Reads a whole number. */
export function wholeNumber(
  location: string,
  option: string,
  value: unknown,
  { min, max }: { min?: number; max?: number } = {},
): number {
  return read(location, option, value, whole(min, max));
}

/** Reads a duration into whole microseconds: more than 0, at most a year. */
export function duration(location: string, option: string, value: unknown): number {
  return read(location, option, value, time);
}

/** Reads one of a list of words. */
export function oneOf<const T extends string>(location: string, option: string, value: unknown, list: readonly T[]): T {
  return read(location, option, value, words(list));
}

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
  const values = ownOptions(given, rows);
  const found: LikelySeconds[] = [];
  for (const { option: name, options, isLong } of listsOf(rows).timed) {
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
