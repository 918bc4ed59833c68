import { messages } from '../../engine/errors/messages/general.js';
import { readWholeNumber } from '../../storage/redis/errors.js';
import { type OverrideAddress, VALUE_FIELDS } from './override-address.js';
import { isDamaged, type OverrideRecord, readRecord, type StoredRecord } from './override-record.js';
import type { StoredChange } from './override-store.js';

/** The store's state in the script's reply: the last change, the rates for all keys, and the missed changes. */
export interface StoreState {
  readonly now: number;
  readonly version: number;
  readonly at: number;
  /** As JSON, by the names of limits. */
  readonly rates: ReadonlyMap<string, string>;
  readonly changes: readonly StoredChange[];
}

/** Reads the reply to `read`. This and the following functions throw a `TypeError` if the reply cannot come from the script. */
export function readState(reply: unknown): StoreState {
  const { now, version, at, rest } = head(reply, 6);
  const changes = listOf(reply, rest[1]).flatMap((json) => readChange(json) ?? []);
  return { now, version, at, rates: new Map(pairs(reply, rest[0])), changes };
}

/** A page of all records. */
export interface RecordPage {
  /** The cursor of the next page; `'0'` after the last one. */
  readonly cursor: string;
  readonly fields: readonly string[];
  /** The records of the fields, as JSON. */
  readonly values: readonly string[];
}

/** Separates the texts of a page, which rarely contain this character. */
export const SEPARATOR = '\0';

/** Reads the reply to `page` with joined texts; `undefined` if some contain the separator. */
export function readJoinedPage(reply: unknown): RecordPage | undefined {
  const { rest } = head(reply, 8);
  const [cursor, length, ...joined] = rest.map(String);
  if (length === '0') return { cursor: cursor!, fields: [], values: [] };
  const [fields, values] = joined.map((texts) => texts.split(SEPARATOR));
  const isWhole = String(fields!.length) === length && String(values!.length) === length;
  return isWhole ? { cursor: cursor!, fields: fields!, values: values! } : undefined;
}

/** Reads the reply to `page`. */
export function readPage(reply: unknown): RecordPage {
  const { rest } = head(reply, 6);
  const found = pairs(reply, rest[1]);
  return { cursor: String(rest[0]), fields: found.map(([field]) => field), values: found.map(([, json]) => json) };
}

/** Reads the reply to a change. */
export function readChanged(reply: unknown) {
  const { done, now, version, rest } = head(reply, 4);
  return { done: done === 1, now, version, change: done === 1 ? readChange(String(rest[0])) : undefined };
}

/** Reads a change from the history or the channel; `undefined` if it is not one. */
export function readChange(json: string): StoredChange | undefined {
  try {
    const change = JSON.parse(json) as Partial<StoredChange> | null;
    const { version, at, changes } = change ?? {};
    const isChange = Number.isSafeInteger(version) && Number.isSafeInteger(at) && Array.isArray(changes);
    return isChange && changes.every(isAddress) ? (change as StoredChange) : undefined;
  } catch {
    // Instances of an earlier release publish only the name of a limit.
    return undefined;
  }
}

/** An override is also valid if only a later release knows its kind. */
function isAddress(changed: unknown): boolean {
  const { kind, limit, key } = (changed ?? {}) as Partial<OverrideAddress>;
  return [kind, limit, key].every((part) => typeof part === 'string');
}

/** Returns true if this release knows the kind of a change. */
export function isKnownKind({ kind }: OverrideAddress): boolean {
  return Object.hasOwn(VALUE_FIELDS, kind);
}

function head(reply: unknown, length: number) {
  const isReply = Array.isArray(reply) && reply.length >= length;
  const [done, now, version, at] = isReply ? reply.slice(0, 4).map(readWholeNumber) : [];
  if (done === undefined || now === undefined || version === undefined || at === undefined) {
    throw new TypeError(messages.noReply(reply));
  }
  return { done, now, version, at, rest: (reply as unknown[]).slice(4) };
}

function listOf(reply: unknown, list: unknown): string[] {
  if (!Array.isArray(list)) throw new TypeError(messages.noReply(reply));
  return list.map(String);
}

function pairs(reply: unknown, list: unknown): [string, string][] {
  const flat = listOf(reply, list);
  if (flat.length % 2 > 0) throw new TypeError(messages.noReply(reply));
  return Array.from({ length: flat.length / 2 }, (_, index) => [flat[2 * index]!, flat[2 * index + 1]!]);
}

const VERSION = '"version":';
/** The maximum number of texts to keep, before a version and after it. */
const MOST_STARTS = 1000;
const MOST_ENDS = 8;
/** Numbers with up to this many digits are exact. */
const MOST_DIGITS = 15;

/** Records whose texts differ only in the version. */
interface Likeness {
  /** The text after the version. */
  readonly end: string;
  readonly record: OverrideRecord;
}

/**
 * Reads many records efficiently. Most have the same text as an earlier one, apart from the version. These aren't parsed, and share their
 * other members with the earlier record.
 */
export class RecordReader {
  /** By the text before the version. */
  private readonly known = new Map<string, Likeness[]>();

  read(json: string): StoredRecord {
    const start = json.indexOf(VERSION) + VERSION.length;
    const likes = this.known.get(json.slice(0, start));
    if (likes !== undefined) {
      for (const { end, record } of likes) {
        const version = json.endsWith(end) ? wholeNumber(json, start, json.length - end.length) : undefined;
        if (version !== undefined) return new LikeRecord(record, version);
      }
    }
    const record = readRecord(json);
    if (!isDamaged(record)) this.remember(json, start, record);
    return record;
  }

  private remember(json: string, start: number, record: OverrideRecord): void {
    const end = json.slice(start + String(record.version).length);
    const before = json.slice(0, start);
    const likes = this.known.get(before) ?? [];
    if (likes.length === MOST_ENDS || this.known.size === MOST_STARTS) return;
    // Another member may have that name. So the text with a different version has to be a record with that version.
    const other = record.version + 1;
    const changed = readRecord(before + String(other) + end);
    if (isDamaged(changed) || changed.version !== other || before + String(record.version) + end !== json) return;
    this.known.set(before, [...likes, { end, record }]);
  }
}

/** A record that differs from another one only in its version. */
class LikeRecord implements OverrideRecord {
  constructor(
    private readonly like: OverrideRecord,
    readonly version: number,
  ) {}

  get patch() {
    return this.like.patch;
  }

  get mode() {
    return this.like.mode;
  }

  get list() {
    return this.like.list;
  }

  get generation() {
    return this.like.generation;
  }

  get inherit() {
    return this.like.inherit;
  }

  get expiresAt() {
    return this.like.expiresAt;
  }

  get quota() {
    return this.like.quota;
  }

  get previousQuota() {
    return this.like.previousQuota;
  }

  get by() {
    return this.like.by;
  }

  get reason() {
    return this.like.reason;
  }
}

/** The whole number in a part of a text, as JSON writes it; `undefined` if there is anything else. */
function wholeNumber(text: string, start: number, end: number): number | undefined {
  const digits = end - start;
  if (digits < 1 || digits > MOST_DIGITS) return undefined;
  let number = 0;
  for (let index = start; index < end; index++) {
    const digit = text.charCodeAt(index) - ZERO;
    if (digit < 0 || digit > 9 || (number === 0 && index > start)) return undefined;
    number = 10 * number + digit;
  }
  return number;
}

/** The code of the digit 0. */
const ZERO = 48;
