import { hashOf } from '../../telemetry/decision-event.js';
import { type Frequent, mergeFrequent, SpaceSaving, type Summary } from './space-saving.js';

/** Keys that are counted of a limit at the same time, in each of its two lists. */
const COUNTED = 256;
/** Keys that each instance tells. */
const TOLD = 50;
/** Counts are of the last one to two of these. */
const PERIOD_MS = 300_000;

/** Longer identities are kept as their hashes, behind a sign. */
const LONGEST_KEPT = 256;
const HASHED = '\r';

/** The hash of an identity that was counted, and the identity if it was kept. */
export function namesOf(key: string): { id: string; identity?: string } {
  return key.startsWith(HASHED) ? { id: key.slice(HASHED.length) } : { id: hashOf(key), identity: key };
}

/** What is told of one list of keys. */
export interface ToldKeys {
  readonly refused: Summary;
  readonly used: Summary;
  /** In milliseconds since the epoch. */
  readonly since: number;
}

/** Who asks of one limit: who is refused most, and who uses most units. */
export class TopKeyCounts {
  private refused = new SpaceSaving(COUNTED);
  private used = new SpaceSaving(COUNTED);
  private before: { refused: SpaceSaving; used: SpaceSaving; since: number } | undefined;

  constructor(private since: number) {}

  /** Somebody was allowed so many units; 0 if he was refused. */
  seen(identity: string, units: number): void {
    const key = identity.length > LONGEST_KEPT || identity.startsWith(HASHED) ? HASHED + hashOf(identity) : identity;
    if (units === 0) this.refused.add(key);
    else this.used.add(key, units);
  }

  /** Begins anew when its period is over; what was counted in the last one is still told. */
  turn(now: number): void {
    if (now - this.since < PERIOD_MS) return;
    const { refused, used, since } = this;
    this.before = { refused, used, since };
    this.refused = new SpaceSaving(COUNTED);
    this.used = new SpaceSaving(COUNTED);
    this.since = now;
  }

  /** What was counted in this period and the one before. */
  told(): ToldKeys {
    const { before } = this;
    return {
      refused: told([this.refused, before?.refused]),
      used: told([this.used, before?.used]),
      since: before?.since ?? this.since,
    };
  }
}

/** The first keys, and what each other one has at most. */
function told(sketches: readonly (SpaceSaving | undefined)[]): Summary {
  const summaries = sketches
    .flatMap((each) => each ?? [])
    .map((each) => ({ frequent: each.frequent(), floor: each.floor }));
  const all: Frequent[] = mergeFrequent(summaries, Infinity);
  const floor = summaries.reduce((sum, each) => sum + each.floor, 0);
  return { frequent: all.slice(0, TOLD), floor: Math.max(floor, all[TOLD]?.count ?? 0) };
}
