import { duration, oneOf, wholeNumber, refuseUnknown, wrongOption } from '../../engine/options/check-options.js';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { isObjectOfOptions } from '../../engine/options/values.js';
import { type ChangeCause, causeOf } from './change-cause.js';
import { MAX_CHANGES } from './override-store.js';
import { isOverrideKey, KEY_EXPECTED } from './override-address.js';
import { LIMIT_MODES, type LimitMode } from '../../engine/limits/limit-settings.js';
import {
  type ChangesOptions,
  INHERIT_MODES,
  type InheritMode,
  type ListOverridesOptions,
  type OverrideOptions,
  type OverrideQuery,
  type SetRateOptions,
} from './override.js';

export const CAUSE = ['by', 'reason'];
const LONGEST_TEXT = 200;
/** Characters that would break a line, or reorder text: control characters, line separators, directional marks. */
const UNSHOWN = '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069';
/** The author of a change, or the reason for it, as a regular expression. */
export const CAUSE_PATTERN = `^[^${UNSHOWN}]{1,${LONGEST_TEXT}}$`;
const CAUSE_TEXT = new RegExp(CAUSE_PATTERN, 'u');
/** This also matches unpaired surrogates. */
const ALL_UNSHOWN = new RegExp(`[${UNSHOWN}\\p{Cs}]`, 'gu');
export const CAUSE_EXPECTED = `a string of 1 to ${LONGEST_TEXT} characters on one line, without control characters and marks of direction`;
export const MOST_OF_A_PAGE = 1000;

/** The options of a change, in the form that stores expect. */
export interface ReadOptions extends ChangeCause {
  /** Empty for all keys. */
  readonly key: string;
  readonly ends: string;
}

/** Reads the options of an override. */
export function readOptions(options: unknown, location: string, more: readonly string[] = []): ReadOptions {
  assertOptions(options, location, ['key', 'expiresIn', ...more, ...CAUSE]);
  const { key, expiresIn } = options as OverrideOptions;
  if (key !== undefined && !isOverrideKey(key)) {
    throw wrongOption(location, 'key', key, KEY_EXPECTED);
  }
  return { key: key ?? '', ends: readEnd(expiresIn, location), ...readCause(options as ChangeCause, location) };
}

/** Reads the time until a change expires, into the form that stores expect. */
export function readEnd(expiresIn: unknown, location: string): string {
  const lastsMs = expiresIn === undefined ? 0 : Math.ceil(duration(location, 'expiresIn', expiresIn) / 1000);
  return lastsMs === 0 ? 'null' : `+${lastsMs}`;
}

export function readRateOptions(options: unknown, location: string): ReadOptions & { inherit: InheritMode } {
  const read = readOptions(options, location, ['inherit']);
  const { inherit = 'keep' } = options as SetRateOptions;
  return { ...read, inherit: oneOf(location, 'inherit', inherit, INHERIT_MODES) };
}

export function readClearOptions(options: unknown, location: string): ReadOptions {
  assertOptions(options, location, ['key', ...CAUSE]);
  return readOptions(options, location);
}

export function readMode(mode: unknown, location: string): LimitMode {
  return oneOf(location, 'mode', mode, LIMIT_MODES);
}

/** Returns true if a value is a valid author or reason of a change. */
export function isCauseText(text: unknown): text is string {
  return typeof text === 'string' && text.length <= LONGEST_TEXT && CAUSE_TEXT.test(text) && !/\p{Cs}/u.test(text);
}

/** Turns a name from elsewhere into a valid author of a change. */
export function asCauseText(text: string): string {
  return text.replace(ALL_UNSHOWN, '\ufffd').slice(0, LONGEST_TEXT).replace(ALL_UNSHOWN, '');
}

/** Reads the author of a change and the reason for it. */
export function readCause(options: ChangeCause, location: string): ChangeCause {
  for (const option of ['by', 'reason'] as const) {
    const text: unknown = options[option];
    if (text === undefined || isCauseText(text)) continue;
    throw wrongOption(location, option, text, CAUSE_EXPECTED);
  }
  return causeOf(options);
}

/** Reads the key that a call queries. */
export function readQuery(options: unknown, location: string): string | undefined {
  assertOptions(options, location, ['key']);
  const { key } = options as OverrideQuery;
  if (key === undefined || (typeof key === 'string' && key !== '')) return key;
  throw wrongOption(location, 'key', key, 'a string that is not empty');
}

export function readPageOptions(options: unknown, location: string): { cursor: string | undefined; count: number } {
  assertOptions(options, location, ['cursor', 'count']);
  const { cursor, count = 100 } = options as ListOverridesOptions;
  if (cursor !== undefined && typeof cursor !== 'string') {
    throw wrongOption(location, 'cursor', cursor, "the 'next' of a page");
  }
  return { cursor, count: wholeNumber(location, 'count', count, { max: MOST_OF_A_PAGE }) };
}

export function readChangesOptions(options: unknown, location: string): { limit: string | undefined; last: number } {
  assertOptions(options, location, ['limit', 'last']);
  const { limit, last = 100 } = options as ChangesOptions;
  if (limit !== undefined && typeof limit !== 'string') {
    throw wrongOption(location, 'limit', limit, "a limit's name");
  }
  return { limit, last: wholeNumber(location, 'last', last, { max: MAX_CHANGES }) };
}

/** Reads the author of a rollback and the reason for it. */
export function readRollbackOptions(options: unknown, location: string): ChangeCause {
  assertOptions(options, location, CAUSE);
  return readCause(options as ChangeCause, location);
}

/** Throws unless the options are an object with known properties only. */
export function assertOptions(options: unknown, location: string, known: readonly string[]): void {
  if (!isObjectOfOptions(options)) throw new RateLimitConfigError(messages.notOptions(location, options));
  refuseUnknown(location, options, known);
}
