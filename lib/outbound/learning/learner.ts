import type { CheckEntry } from '../../limits/counter.js';
import type { Lesson, RateLesson } from '../../stores/lesson.js';
import type { ReadReport } from '../headers/read-upstream.js';
import type { UpstreamLimit } from '../headers/upstream-report.js';
import { chooseLimit, type LearnTerms, windowOf } from './choose-limit.js';
import type { Flights } from './flights.js';

/** Has limits learn what an upstream says of its own, for all instances of the app. */
export class Learner {
  constructor(
    private readonly flights: Flights,
    private readonly terms: LearnTerms,
  ) {}

  /** Limits are about to be asked for so many units. */
  async ask(entries: readonly CheckEntry[]): Promise<void> {
    await Promise.all(entries.filter(isCounted).map((entry) => this.flights.ask(entry, entry.cost)));
  }

  /** Limits have answered. */
  asked(entries: readonly CheckEntry[]): void {
    for (const entry of entries) if (isCounted(entry)) this.flights.asked(entry, entry.cost);
  }

  /** A call goes out now. */
  sent(entries: readonly CheckEntry[]): void {
    for (const entry of entries) if (isCounted(entry)) this.flights.begin(entry, entry.cost);
  }

  /** A call failed: nothing is known of it. */
  failed(entries: readonly CheckEntry[]): void {
    for (const entry of entries) if (isCounted(entry)) this.flights.end(entry, entry.cost, { ageMs: 0 });
  }

  /** A call was answered, which was sent so many milliseconds ago. */
  answered(entries: readonly CheckEntry[], { limits, retryAfterMs, refused }: ReadReport, ageMs: number): void {
    const blockMs = refused ? retryAfterMs : undefined;
    for (const entry of entries) {
      if (entry.limit.off) continue;
      const units = isCounted(entry) ? entry.cost : 0;
      const limit = units === 0 ? undefined : chooseLimit(limits, entry.limit.name, this.terms);
      const rate = { ...quotaOf(limit), accepted: refused ? 0 : units, refused };
      this.flights.end(entry, units, { ...lessonOf(limit), ageMs, blockMs, rate });
    }
  }
}

function lessonOf(limit: UpstreamLimit | undefined): Pick<Lesson, 'remaining' | 'resetAfterMs' | 'window'> {
  if (limit === undefined) return {};
  const { remaining, resetAfterMs, refill } = limit;
  return { remaining, resetAfterMs, window: refill === 'gradual' ? undefined : windowOf(limit) };
}

/** Larger products of units and milliseconds are no sensible rate. */
const MOST_WEIGHT = 2 ** 51;
/** From which share of the quota on the time until all of it is there again says how fast it comes back. */
const TELLING_SHARE = 1 / 10;

/** The quota of the upstream, and in which time all of it comes back, where that is told. */
function quotaOf(limit: UpstreamLimit | undefined): Pick<RateLesson, 'quota' | 'windowMs'> {
  const { quota = 0, remaining = 0, resetAfterMs = 0, windowMs = 0, refill } = limit ?? {};
  const used = quota - remaining;
  let window = windowMs;
  if (window <= 0 && refill === 'gradual' && used >= TELLING_SHARE * quota) window = (resetAfterMs * quota) / used;
  if (quota < 1 || quota * Math.max(window, resetAfterMs) > MOST_WEIGHT) return {};
  return { quota, windowMs: window > 0 ? window : undefined };
}

/** Units that are held follow no upstream's count. */
function isCounted({ limit }: CheckEntry): boolean {
  return !limit.off && limit.algorithm.holding === undefined;
}
