import type { CheckEntry } from '../../../engine/limits/counter.js';
import type { Lesson, RateLesson } from '../../../storage/stores/lesson.js';
import type { ReadReport } from '../headers/read-upstream.js';
import type { UpstreamLimit } from '../../../engine/limit-headers/upstream-report.js';
import type { OutboundSettings } from '../outbound-options.js';
import type { Flights } from './flights.js';

type LearnTerms = Pick<OutboundSettings<never, never>, 'learn' | 'cost' | 'maxLearnedWaitMs'>;

/** The unit of limits that count calls. A cost of our own is never in this unit. */
const REQUESTS = 'requests';
/** Units of the upstream that never count the cost of a call of ours. */
const UNLIKE = new Set([REQUESTS, 'concurrent-requests', 'content-bytes']);

/**
 * Chooses which of the upstream's limits one of ours follows: the one with the given name if names are given. Otherwise, of those that
 * count the cost of a call, the one with the fewest units left.
 */
function chooseLimit(
  limits: readonly UpstreamLimit[],
  name: string,
  { learn, cost }: LearnTerms,
): UpstreamLimit | undefined {
  const reported = limits.filter(({ remaining }) => remaining !== undefined);
  if (typeof learn === 'object') {
    const wanted = Object.hasOwn(learn, name) ? learn[name] : undefined;
    return reported.find((limit) => limit.name === wanted);
  }
  // With a cost of their own, calls don't count as requests.
  const counts = (unit: string) => (cost === undefined ? unit === REQUESTS : !UNLIKE.has(unit));
  const alike = reported.filter(({ unit }) => unit === undefined || counts(unit));
  const tokens = alike.filter(({ unit }) => unit === 'tokens');
  return (tokens.length > 0 ? tokens : alike).reduce<UpstreamLimit | undefined>(
    (least, limit) => (least === undefined || limit.remaining! < least.remaining! ? limit : least),
    undefined,
  );
}

/** An id that distinguishes the upstream's limits: the FNV-1a hash of their names. */
function windowOf({ name }: UpstreamLimit): number {
  let hash = 0x811c9dc5;
  for (const character of name) hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193) >>> 0;
  return hash;
}

/** Applies the state that an upstream reports to our limits, for all instances of the app. */
export class Learner {
  constructor(
    private readonly flights: Flights,
    private readonly terms: LearnTerms,
  ) {}

  /** Called before units are requested from limits. */
  async ask(entries: readonly CheckEntry[]): Promise<void> {
    await Promise.all(entries.filter(isCounted).map((entry) => this.flights.ask(entry, entry.cost)));
  }

  /** Called after limits have decided. */
  asked(entries: readonly CheckEntry[]): void {
    for (const entry of entries) if (isCounted(entry)) this.flights.storeAnswered(entry, entry.cost);
  }

  /** Called when a call is sent. */
  sent(entries: readonly CheckEntry[]): void {
    for (const entry of entries) if (isCounted(entry)) this.flights.begin(entry, entry.cost);
  }

  /** Called when a call fails, which teaches nothing. */
  failed(entries: readonly CheckEntry[]): void {
    for (const entry of entries) if (isCounted(entry)) this.flights.end(entry, entry.cost, { ageMs: 0 });
  }

  /** Called when a call is answered, `ageMs` milliseconds after it was sent. */
  answered(entries: readonly CheckEntry[], { limits, retryAfterMs, refused }: ReadReport, ageMs: number): void {
    const blockMs = refused ? retryAfterMs : undefined;
    for (const entry of entries) {
      if (entry.limit.off) continue;
      const units = isCounted(entry) ? entry.cost : 0;
      const limit = units === 0 ? undefined : chooseLimit(limits, entry.limit.name, this.terms);
      const { quota, windowMs } = quotaOf(limit);
      const rate = { quota, windowMs, accepted: refused ? 0 : units, refused };
      this.flights.end(entry, units, { ...this.lessonOf(limit, entry), quota, ageMs, blockMs, rate });
    }
  }

  /**
   * The units left in the upstream's limit, and until when. Without a reset, the missing units come back at the rate of our limit. If that
   * takes longer than the longest accepted wait, they all come back after that wait.
   */
  private lessonOf(
    limit: UpstreamLimit | undefined,
    entry: CheckEntry,
  ): Pick<Lesson, 'remaining' | 'resetAfterMs' | 'window'> {
    if (limit === undefined) return {};
    const { remaining, resetAfterMs, refill } = limit;
    const ends = refill !== 'gradual' && resetAfterMs !== undefined;
    const { maxLearnedWaitMs } = this.terms;
    if (!ends && emptyForMs(entry) > maxLearnedWaitMs) {
      return { remaining, resetAfterMs: resetAfterMs ?? maxLearnedWaitMs, window: windowOf(limit) };
    }
    return { remaining, resetAfterMs, window: refill === 'gradual' ? undefined : windowOf(limit) };
  }
}

/** Milliseconds until a counter that is emptied now has units for another call. */
function emptyForMs({ limit, cost }: CheckEntry): number {
  const { algorithm, parameters } = limit;
  const state = algorithm.open(parameters, undefined, Date.now() * 1000);
  algorithm.take(parameters, state, Math.max(0, algorithm.remaining(parameters, state)));
  return algorithm.retryAfter(parameters, state, Math.min(cost, limit.quota)) / 1000;
}

/** Larger products of units and milliseconds aren't a plausible rate. */
const MOST_WEIGHT = 2 ** 51;
/** The time until all units are back reveals the rate if at least this share of the quota is missing. */
const TELLING_SHARE = 1 / 10;

/** The quota of the upstream, and the time in which all of it comes back, if reported. */
function quotaOf(limit: UpstreamLimit | undefined): Pick<RateLesson, 'quota' | 'windowMs'> {
  const { quota = 0, remaining = 0, resetAfterMs = 0, windowMs = 0, refill } = limit ?? {};
  const used = quota - remaining;
  let window = windowMs;
  if (window <= 0 && refill === 'gradual' && used >= TELLING_SHARE * quota) window = (resetAfterMs * quota) / used;
  if (quota < 1 || quota * Math.max(window, resetAfterMs) > MOST_WEIGHT) return {};
  return { quota, windowMs: window > 0 ? window : undefined };
}

/** Concurrency limits don't follow an upstream's count. */
function isCounted({ limit }: CheckEntry): boolean {
  return !limit.off && limit.algorithm.leases === undefined;
}
