import { hashOf } from '../../telemetry/decision-event.js';
import { type Frequent, mergeFrequent, SpaceSaving, type Summary } from './space-saving.js';

/** The keys of a limit to count at the same time, in each of its two lists. */
const COUNTED = 256;
/** The keys that each instance publishes. */
const PUBLISHED = 50;
/** Counts cover the last one to two periods of this length. */
const PERIOD_MS = 300_000;

/** Longer identities are kept as hashes, behind a marker. */
const LONGEST_KEPT = 256;
const HASHED = '\r';

/** The hash of an identity that was counted, and the identity itself if it was kept. */
export function namesOf(key: string): { id: string; identity?: string } {
  return key.startsWith(HASHED) ? { id: key.slice(HASHED.length) } : { id: hashOf(key), identity: key };
}

/** One published list of keys. */
export interface PublishedKeys {
  readonly refused: Summary;
  readonly used: Summary;
  /** In milliseconds since the epoch. */
  readonly since: number;
}

/** The top keys of one limit: those refused most, and those that use most units. */
export class TopKeyCounts {
  private refused = new SpaceSaving(COUNTED);
  private used = new SpaceSaving(COUNTED);
  private before: { refused: SpaceSaving; used: SpaceSaving; since: number } | undefined;

  constructor(private since: number) {}

  /** Counts the units that an identity was granted; 0 if it was refused. */
  seen(identity: string, units: number): void {
    const key = identity.length > LONGEST_KEPT || identity.startsWith(HASHED) ? HASHED + hashOf(identity) : identity;
    if (units === 0) this.refused.add(key);
    else this.used.add(key, units);
  }

  /** Starts a new period when the current one is over; the counts of the last one are still published. */
  turn(now: number): void {
    if (now - this.since < PERIOD_MS) return;
    const { refused, used, since } = this;
    this.before = { refused, used, since };
    this.refused = new SpaceSaving(COUNTED);
    this.used = new SpaceSaving(COUNTED);
    this.since = now;
  }

  /** The counts of this period and the one before. */
  published(): PublishedKeys {
    const { before } = this;
    return {
      refused: summarize([this.refused, before?.refused]),
      used: summarize([this.used, before?.used]),
      since: before?.since ?? this.since,
    };
  }
}

/** The first keys, and the upper bound of all others. */
function summarize(sketches: readonly (SpaceSaving | undefined)[]): Summary {
  const summaries = sketches
    .flatMap((each) => each ?? [])
    .map((each) => ({ frequent: each.frequent(), floor: each.floor }));
  const all: Frequent[] = mergeFrequent(summaries, Infinity);
  const floor = summaries.reduce((sum, each) => sum + each.floor, 0);
  return { frequent: all.slice(0, PUBLISHED), floor: Math.max(floor, all[PUBLISHED]?.count ?? 0) };
}
