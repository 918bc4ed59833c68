import { holdOptions } from '../../../engine/algorithms/common-options.js';
import { ownRows } from '../../../engine/options/option-row.js';
import { readOptions } from '../../../engine/options/check-options.js';
import type { FeaturedLimit, FeatureInScript, LimitFeature } from '../../../engine/limits/limit-feature.js';
import type { State } from '../../../engine/algorithms/algorithm.js';
import { newIdentifier } from '../../../engine/algorithms/concurrency.js';
import type {
  DecidingLimit,
  Estimates,
  OpenCounter,
  ReturnedUnits,
  Settlement,
} from '../../../engine/limits/estimates.js';
import { noteCorrection } from '../../stores/memory/kept-by-features.js';
import { Bare } from '../../../engine/util/objects.js';
import { type Hold, Holds, MOST_AT_ONCE, MOST_WHERE_CHARGED } from './held-units.js';
import type { Feature } from '../feature.js';
import { heldNow, type HoldersKept } from '../held-now.js';

/** The terms by which the units of a limit are held; times are in microseconds. */
export interface HoldTerms {
  /** The time after which a hold lapses. */
  readonly duration: number;
  /** True if the units of a lapsed hold are returned. */
  readonly releases: boolean;
  /** The minimum time to remember a hold. */
  readonly known: number;
  /** Distinguishes its windows from those that other options would have. */
  readonly windows: number;
}

/** The terms of a limit's `hold`, which may be the default of its algorithm; `undefined` if its units can't be held. */
export function holdTerms(
  { algorithm, options, declared }: FeaturedLimit,
  others: readonly LimitFeature[],
  location: string,
): HoldTerms | undefined {
  const { holds } = algorithm;
  if (holds === undefined || others.some(({ withoutEstimates }) => withoutEstimates === true)) return undefined;
  const { hold = ownRows(algorithm.options)['hold']?.default, onLapse } = options as Record<string, unknown>;
  if (hold === undefined) return undefined;
  const read = readOptions(location, { hold, onLapse }, holdOptions);
  const duration = read.hold!;
  const releases = read.onLapse === 'release';
  // A lapse reduces records of other features afterwards, so holds are remembered as long as these records.
  const keptFor = releases ? Math.max(0, ...others.map(({ keepsFor = 0 }) => duration + keepsFor)) : 0;
  const known = Math.max(duration, holds.known?.(declared) ?? 0, keptFor);
  return { duration, releases, known, windows: hashOf(holds.windows(declared)) };
}

/** A 32-bit hash of a text (FNV-1a). */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** The suffix of a counter's key in the key of its holds. */
export const HOLDS_END = 'holds';
/** The load of holds on the server. */
const WORK = 8;

/** A counter and its holds. */
interface HoldingCounter extends OpenCounter {
  estimates: Holds | undefined;
}

/** Holds units of a limit that are reserved at an estimate. `lua/features/holds.lua` does the same on Redis. */
export class LimitHolds extends Bare implements LimitFeature, Estimates {
  readonly name = 'holds';
  readonly ofOptions = true;
  readonly estimates = this;
  readonly script: FeatureInScript = {
    keys: 1,
    ends: [HOLDS_END],
    work: WORK,
    numbers: () => {
      const { duration, releases, known, windows } = this.terms;
      return [duration, releases ? 1 : 0, known, newIdentifier(), windows];
    },
  };

  constructor(readonly terms: HoldTerms) {
    super();
  }

  stored({ algorithm, parameters }: DecidingLimit, state: State, holds: Holds, now: number): State {
    return algorithm.holds!.ended?.(parameters, state, now, holds, this.terms.windows) ?? state;
  }

  opened(counter: HoldingCounter, all: boolean): void {
    const { limit, state } = counter;
    const holds = counter.estimates!;
    const most = all || limit.algorithm.holds!.keepsEnded?.(state) === true ? Infinity : MOST_AT_ONCE;
    holds.look(state.now, most);
    for (const hold of holds.lapsed) if (this.comesBack(hold)) change(counter, -hold.units, hold.chargedAt);
    // There may be more to process.
    if (holds.lapsed.length === most) state.migrated = true;
  }

  untilFits({ limit, state, estimates }: HoldingCounter, cost: number): number {
    const holds = estimates!;
    const { algorithm, parameters, varies } = limit;
    const { releases } = this.terms;
    if (releases && holds.lapsed.length === MOST_AT_ONCE) return 1;
    // If more than the whole quota is missing, a lapse doesn't make room immediately.
    const fitsLater = !varies || cost <= algorithm.varying!.quota(parameters, state);
    const excess = fitsLater ? cost - algorithm.remaining(parameters, state) : Infinity;
    let returned = 0;
    // If a limit charges lapsed holds, only units that were reserved before `onLapse` was changed are returned.
    const running = holds.running(state.now, releases ? MOST_AT_ONCE : MOST_WHERE_CHARGED);
    for (const hold of running) {
      const { units, chargedAt, end } = hold;
      if (this.comesBack(hold) && algorithm.holds!.counts(parameters, state, chargedAt, end)) returned += units;
      if (returned >= excess) return end - state.now;
    }
    // If there are too many, the next check is when the last of the examined holds lapses.
    if (releases && running.length === MOST_AT_ONCE) return running.at(-1)!.end - state.now;
    return varies && returned > 0 ? algorithm.retryAfter(parameters, state, cost, returned) : Infinity;
  }

  reserved(counter: HoldingCounter, units: number): number {
    const { algorithm, parameters } = counter.limit;
    const { duration, known, windows, releases } = this.terms;
    const { now } = counter.state;
    const id = newIdentifier();
    const needed = algorithm.keepFor?.(parameters, counter.state) ?? algorithm.resetAfter(parameters, counter.state);
    const holds = this.own(counter) ?? new Holds();
    counter.estimates = holds;
    const hold = { id, units, windows, releases, chargedAt: now, end: now + duration };
    const keepsLapsed = releases || holds.lapsed.length === MOST_AT_ONCE;
    holds.add(hold, now, now + Math.max(needed, known), keepsLapsed);
    return id;
  }

  settled(counter: HoldingCounter, { units, ticket, chargedAt, actual = 0 }: Settlement): boolean {
    const holds = counter.estimates;
    const found = holds?.find(ticket!, units, chargedAt!, this.terms.windows);
    if (holds === undefined || found === undefined) return false;
    const { hold, isReleased } = found;
    const cameBack = this.comesBack(hold) && (isReleased || holds.lapsed.includes(hold));
    change(counter, actual - (cameBack ? 0 : units), hold.chargedAt);
    holds.remove(hold);
    return true;
  }

  saved(counter: HoldingCounter): number {
    const holds = this.own(counter);
    counter.estimates = holds;
    if (holds === undefined) return 0;
    holds.release();
    const { algorithm, parameters } = counter.limit;
    return algorithm.holds!.keepFor?.(parameters, counter.state, holds, this.terms.windows) ?? 0;
  }

  setOf(key: string): string {
    return `${key}:${HOLDS_END}`;
  }

  returnedBy(member: string): ReturnedUnits | undefined {
    const [, units, chargedAt, terms] = member.split(':').map(Number);
    return terms === 2 * this.terms.windows + 1 ? { units: units!, chargedAt: chargedAt! } : undefined;
  }

  /**
   * The holds of a counter that is being written. Holds of other windows are dropped, because the counter may no longer contain their
   * units.
   */
  private own({ estimates }: HoldingCounter): Holds | undefined {
    return estimates?.areOf(this.terms.windows) === true ? estimates : undefined;
  }

  /** Returns true if units come back when their hold lapses. Those of other windows don't, since the windows may be long over. */
  private comesBack({ releases, windows }: Hold): boolean {
    return releases && windows === this.terms.windows;
  }
}

/** Changes the count of the window in which it was charged, never of a later one. */
function change(counter: OpenCounter, difference: number, chargedAt: number): void {
  const { limit, state } = counter;
  // Units that the quota keeps for others may also have been used.
  const { algorithm, parameters, quota } = limit.whole;
  const holds = algorithm.holds!;
  noteCorrection(counter, difference, chargedAt);
  if (!holds.counts(parameters, state, chargedAt, state.now)) {
    holds.correct?.(parameters, state, chargedAt, difference);
  } else if (difference < 0) {
    algorithm.give(parameters, state, -difference, undefined, chargedAt);
  } else if (difference > 0) {
    const most = holds.most?.(parameters) ?? Number.MAX_SAFE_INTEGER;
    const counted = quota - algorithm.remaining(parameters, state);
    const units = Math.max(0, Math.min(difference, most - counted));
    if (holds.take === undefined) algorithm.take(parameters, state, units);
    else holds.take(parameters, state, units);
  }
}

/** `lua/features/holds.lua` documents the stored data. */
const HOLDS: HoldersKept = {
  name: 'holds',
  inMemory: ({ estimates }, now) => (estimates as Holds | undefined)?.running(now, Infinity) ?? [],
  key: (counterKey) => `${counterKey}:${HOLDS_END}`,
};

/** Holds units that are reserved at an estimate, until they are settled or lapse. */
export const holds: Feature = {
  ofOptions(limit, others, location) {
    const terms = holdTerms(limit, others, location);
    return terms && new LimitHolds(terms);
  },
  explained: (store, counter) =>
    counter.limit.features?.some((feature) => feature instanceof LimitHolds) === true
      ? heldNow(store, counter, HOLDS).then((found) => found && { holds: found })
      : undefined,
};
