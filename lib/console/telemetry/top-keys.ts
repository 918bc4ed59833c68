import { hashOf } from '../../storage/telemetry/decision-event.js';
import { type Frequent, type KeyBudget, mergeFrequent, type SpaceSaving, type Summary } from './space-saving.js';

/** A published key: hash, count, error, and the identity if it was kept. Consoles with hashed identities don't display the identity. */
export type PublishedKey = readonly [id: string, count: number, error: number, identity?: string];

/** The keys of a limit as an instance publishes them. */
export type PublishedLimit = readonly [
  label: string,
  since: number,
  refused: readonly PublishedKey[],
  refusedFloor: number,
  used: readonly PublishedKey[],
  usedFloor: number,
  /** `null` if used units are not counted. Instances of the previous release count them since `since`. */
  usedSince?: number | null,
];

export type PublishedLimits = readonly PublishedLimit[];

/** The merged keys of a limit from all instances. */
interface MergedKeys {
  readonly refused: readonly Summary[];
  readonly used: readonly Summary[];
  /** When the first instance began to count; `null` if none does. */
  readonly since: number | null;
  readonly usedSince: number | null;
  /** The identities of hashes, if they were kept. */
  readonly identities: ReadonlyMap<string, string>;
}

/** Merges the published keys of one limit. */
export function mergePublished(published: readonly PublishedLimits[], label: string): MergedKeys {
  const identities = new Map<string, string>();
  const read = (keys: readonly PublishedKey[]): Frequent[] =>
    keys.map(([id, count, error, identity]) => {
      if (identity !== undefined) identities.set(id, identity);
      return { key: id, count, error };
    });
  const refused: Summary[] = [];
  const used: Summary[] = [];
  let since: number | null = null;
  let usedSince: number | null = null;
  for (const limits of published) {
    for (const [name, begun, refusedKeys, refusedFloor, usedKeys, usedFloor, usedBegun = begun] of limits) {
      if (name !== label) continue;
      refused.push({ frequent: read(refusedKeys), floor: refusedFloor });
      since = Math.min(since ?? begun, begun);
      if (usedBegun === null) continue;
      used.push({ frequent: read(usedKeys), floor: usedFloor });
      usedSince = Math.min(usedSince ?? usedBegun, usedBegun);
    }
  }
  return { refused, used, since, usedSince, identities };
}

/** Reads the keys that another instance published; `undefined` if they are malformed, for example from another release. */
export function readLimits(reply: unknown): PublishedLimits | undefined {
  try {
    const published = JSON.parse(String(reply)) as unknown;
    return Array.isArray(published) && published.every(isLimit) ? (published as PublishedLimits) : undefined;
  } catch {
    return undefined;
  }
}

function isLimit(limit: unknown): boolean {
  if (!Array.isArray(limit)) return false;
  const [label, since, refused, refusedFloor, used, usedFloor, usedSince = null] = limit as unknown[];
  const areNumbers = [since, refusedFloor, usedFloor, usedSince ?? 0].every((each) => Number.isFinite(each));
  return typeof label === 'string' && areNumbers && [refused, used].every(areKeys);
}

function areKeys(keys: unknown): boolean {
  return Array.isArray(keys) && keys.every(isKey);
}

function isKey(key: unknown): boolean {
  if (!Array.isArray(key)) return false;
  const [id, count, error, identity] = key as unknown[];
  const areNumbers = Number.isFinite(count) && Number.isFinite(error);
  return typeof id === 'string' && areNumbers && (identity === undefined || typeof identity === 'string');
}

/** Longer identities are kept as hashes after a marker. */
const LONGEST_KEPT = 256;
const HASHED = '\r';

/** The hash of a counted identity, and the identity itself if it was kept. */
export function namesOf(key: string): { id: string; identity?: string } {
  return key.startsWith(HASHED) ? { id: key.slice(HASHED.length) } : { id: hashOf(key), identity: key };
}

/** The counts of keys in this period and the previous one. Without keys it takes no counters. */
export class KeyCounts {
  private sketch: SpaceSaving | undefined;
  private before: Summary | undefined;
  private added = 0;
  private addedBefore = 0;

  constructor(
    /** Creates and releases the counters of a period. */
    private readonly counters: Pick<KeyBudget, 'open' | 'close'>,
    /** When counting began, in milliseconds since the epoch. */
    readonly since: number,
  ) {}

  get total(): number {
    return this.added + this.addedBefore;
  }

  add(identity: string, weight: number): void {
    const isKept = identity.length <= LONGEST_KEPT && !identity.startsWith(HASHED);
    this.added += weight;
    (this.sketch ??= this.counters.open()).add(isKept ? identity : HASHED + hashOf(identity), weight);
  }

  /** Starts a new period. Remembers the keys with the highest counts of the last one, at most `most`. */
  turn(most: number): void {
    this.before = this.sketch && cut(summaryOf(this.sketch), most);
    this.addedBefore = this.added;
    this.added = 0;
    this.close();
  }

  close(): void {
    if (this.sketch !== undefined) this.counters.close(this.sketch);
    this.sketch = undefined;
  }

  /** The keys with the highest counts, and the upper bound of all others. */
  summary(most: number): Summary {
    const periods = [
      ...(this.sketch === undefined ? [] : [summaryOf(this.sketch)]),
      ...(this.before ? [this.before] : []),
    ];
    const floor = periods.reduce((sum, each) => sum + each.floor, 0);
    return cut({ frequent: mergeFrequent(periods, Infinity), floor }, most);
  }
}

export interface TopKeyCounts {
  /** The number of rejections of each key. */
  readonly refused: KeyCounts;
  /** The units granted to each key; only while somebody views the limit, since every request counts. */
  used: KeyCounts | undefined;
}

function summaryOf(sketch: SpaceSaving): Summary {
  return { frequent: sketch.frequent(), floor: sketch.floor };
}

function cut({ frequent, floor }: Summary, most: number): Summary {
  return { frequent: frequent.slice(0, most), floor: Math.max(floor, frequent[most]?.count ?? 0) };
}
