import { fieldOf } from './override-address.js';
import { asRecord, readRecord, type StoredRecord } from './override-record.js';
import { isKnownKind, type RecordPage, RecordReader, type StoreState } from './overrides-reply.js';
import type { OverrideUpdate, StoredChange } from './override-store.js';

/** Identifies a change. If histories diverge, changes with the same number have different times. */
export type Known = Pick<StoredChange, 'version' | 'at'>;

/** The maximum number of changes whose times are kept. An unknown older change causes one more read. */
const MOST_LATEST = 1000;

type Records = Map<string, StoredRecord | undefined>;

/** Records and their fields, some of which may appear twice. */
interface Loaded {
  readonly fields: readonly string[];
  readonly records: readonly StoredRecord[];
}

/** The local copy of the overrides on Redis. It follows their changes one by one and reports each once. */
export class OverrideReplica {
  /** The last change that was reported; `undefined` until all records have been reported. */
  known: Known | undefined;
  /** The rates for all keys as JSON, by limit. An earlier release changes them without increasing the version. */
  private rates: ReadonlyMap<string, string> = new Map();

  /** The times of the latest changes, by version. Their messages may still arrive. */
  private readonly latest = new Map<number, number>();

  constructor(private readonly publish: (update: OverrideUpdate) => void) {}

  /** Processes a change. Returns false if the store has to be read, because changes were missed or Redis lost the known ones. */
  hear(change: StoredChange, now: number): boolean {
    const { known } = this;
    if (known === undefined) return false;
    if (change.version <= known.version) return this.latest.get(change.version) === change.at;
    if (change.version !== known.version + 1 || change.changes.length === 0) return false;
    if (change.previousAt !== undefined && change.previousAt !== known.at) return false;
    this.advance(change);
    this.publish({ now, complete: false, records: recordsOf([change]) });
    return true;
  }

  /**
   * Processes the changes since `asked`, the last known change at the time of the request. Returns 'done', 'again' if newer changes are
   * known by now, or 'load' if all records have to be read.
   */
  follow(state: StoreState, asked: Known | undefined): 'done' | 'again' | 'load' {
    const missed = asked && since(state, asked);
    if (missed === undefined || this.known === undefined) return 'load';
    // A message arrived before the reply.
    if (state.version < this.known.version) return 'again';
    const records = recordsOf(missed);
    this.addRates(records, state.rates);
    for (const change of missed) this.advance(change);
    this.known = { version: state.version, at: state.at };
    this.publish({ now: state.now, complete: false, records });
    return 'done';
  }

  /** Starts reading all records. No changes are processed until it is finished. */
  load(start: StoreState): {
    known: Known;
    add(page: Pick<RecordPage, 'fields' | 'values'>): void;
    finish(end: StoreState): boolean;
  } {
    // Thousands of records aren't collected in a map first, since applying them puts them into other maps.
    const pages: Loaded[] = [];
    const reader = new RecordReader();
    const known = { version: start.version, at: start.at };
    this.known = undefined;
    this.latest.clear();
    return {
      known,
      add: ({ fields, values }) => void pages.push({ fields, records: values.map((json) => reader.read(json)) }),
      finish: (end) => {
        const missed = since(end, known);
        if (missed === undefined) return false;
        const records = recordsOf(missed);
        this.rates = new Map();
        this.addRates(records, end.rates);
        for (const change of [known, ...missed]) this.advance(change);
        this.known = { version: end.version, at: end.at };
        this.publish({ now: end.now, complete: true, records: inOrder(pages, records) });
        return true;
      },
    };
  }

  private advance({ version, at }: Known): void {
    this.known = { version, at };
    this.latest.set(version, at);
    this.latest.delete(version - MOST_LATEST);
  }

  /** Adds the rates for all keys that differ from the known ones. */
  private addRates(records: Records, rates: ReadonlyMap<string, string>): void {
    for (const [limit, json] of rates) {
      if (this.rates.get(limit) !== json) records.set(rateField(limit), readRecord(json));
    }
    for (const limit of this.rates.keys()) if (!rates.has(limit)) records.set(rateField(limit), undefined);
    this.rates = rates;
  }
}

/** The changes after a given one, if the store's history reaches that far back and includes it. */
function since({ version, at, changes }: StoreState, known: Known): readonly StoredChange[] | undefined {
  if (version === known.version && at === known.at) return [];
  const [first, ...later] = changes;
  const [before, missed] = known.version === 0 ? [known, changes] : [first, later];
  if (before?.version !== known.version || before.at !== known.at) return undefined;
  const isWhole = missed.every((change, index) => change.version === known.version + 1 + index);
  return isWhole && missed.length === version - known.version ? missed : undefined;
}

/** The records of pages, followed by others, which replace them. */
function* inOrder(pages: readonly Loaded[], others: Records): OverrideUpdate['records'] {
  for (const { fields, records } of pages) {
    for (let index = 0; index < fields.length; index++) {
      if (fields[index] !== VERSION_FIELD) yield [fields[index]!, records[index]];
    }
  }
  yield* others;
}

function recordsOf(changes: readonly StoredChange[]): Records {
  const records: Records = new Map();
  for (const { changes: changed } of changes) {
    for (const each of changed.filter(isKnownKind)) {
      records.set(fieldOf(each), each.after === null ? undefined : asRecord(each.after));
    }
  }
  return records;
}

/** The field of the hash that contains the version of the last change. */
const VERSION_FIELD = 'version';

const rateField = (limit: string) => fieldOf({ kind: 'rate', limit, key: '' });
