import { isDamaged, type OverrideRecord, readRecord, type StoredRecord } from './override-record.js';

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
