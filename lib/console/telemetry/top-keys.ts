import { hashOf } from '../../storage/telemetry/decision-event.js';
import { mergeFrequent, type SpaceSaving, type Summary } from './space-saving.js';

/** Longer identities are kept as hashes, behind a marker. */
const LONGEST_KEPT = 256;
const HASHED = '\r';

/** The hash of an identity that was counted, and the identity itself if it was kept. */
export function namesOf(key: string): { id: string; identity?: string } {
  return key.startsWith(HASHED) ? { id: key.slice(HASHED.length) } : { id: hashOf(key), identity: key };
}

/** Where the counters of a period come from, and go to. */
export interface Counters {
  open(): SpaceSaving;
  close(sketch: SpaceSaving): void;
}

/** What keys did in this period and the one before. Without any it takes no counters. */
export class KeyCounts {
  private sketch: SpaceSaving | undefined;
  private before: Summary | undefined;
  private added = 0;
  private addedBefore = 0;

  constructor(
    private readonly counters: Counters,
    /** When counting began, in milliseconds since the epoch. */
    readonly since: number,
  ) {}

  /** The sum of all weights. */
  get total(): number {
    return this.added + this.addedBefore;
  }

  add(identity: string, weight: number): void {
    const isKept = identity.length <= LONGEST_KEPT && !identity.startsWith(HASHED);
    this.added += weight;
    (this.sketch ??= this.counters.open()).add(isKept ? identity : HASHED + hashOf(identity), weight);
  }

  /** Starts a new period. The keys of the last one that were counted most, at most that number, are remembered. */
  turn(most: number): void {
    this.before = this.sketch && cut(summaryOf(this.sketch), most);
    this.addedBefore = this.added;
    this.added = 0;
    this.close();
  }

  /** Gives the counters back. */
  close(): void {
    if (this.sketch !== undefined) this.counters.close(this.sketch);
    this.sketch = undefined;
  }

  /** The first keys, and the upper bound of all others. */
  summary(most: number): Summary {
    const periods = [
      ...(this.sketch === undefined ? [] : [summaryOf(this.sketch)]),
      ...(this.before ? [this.before] : []),
    ];
    const floor = periods.reduce((sum, each) => sum + each.floor, 0);
    return cut({ frequent: mergeFrequent(periods, Infinity), floor }, most);
  }
}

/** The counts of one limit's keys. */
export interface TopKeyCounts {
  /** How often each was refused. */
  readonly refused: KeyCounts;
  /** The units that each was granted; only while somebody views the limit, since it concerns every request. */
  used: KeyCounts | undefined;
}

function summaryOf(sketch: SpaceSaving): Summary {
  return { frequent: sketch.frequent(), floor: sketch.floor };
}

function cut({ frequent, floor }: Summary, most: number): Summary {
  return { frequent: frequent.slice(0, most), floor: Math.max(floor, frequent[most]?.count ?? 0) };
}
