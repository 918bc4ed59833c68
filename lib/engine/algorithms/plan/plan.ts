import { readOptions } from '../../options/check-options.js';
import type { Algorithm, Variant } from '../algorithm.js';
import type { CalendarWindow } from '../calendar.js';
import type { CalendarWindowParameters, CalendarWindowState } from '../window-state.js';
import { inProportion, MOST_UNITS } from '../scale.js';
import { MILLION, type PlanOptions, planOptions, type PlanTerms, planTerms } from './options.js';

export interface PlanParameters extends CalendarWindowParameters {
  readonly plan: PlanTerms;
}

export interface PlanState extends CalendarWindowState {
  /** Units that were carried over from the previous window. */
  moved: number;
  /**
   * The rate with which it was last charged, and the credits used in its window. A caller that refunds units may have an older rate, which
   * must not be used to compute credits.
   */
  rate: number;
  spent: number;
  /** The smallest rate with which it was charged in its window. Remaining units are computed with it. */
  least: number;
  /** The credits, including those used in this window; and the part of them that has already been subtracted from the balance. */
  gross: number;
  taken: number;
  /** The number of windows since it was charged, 0 to 2; `undefined` if the key is unknown. For a stored state: 0 or `undefined`. */
  age: number | undefined;
  /** For a stored state: units of holds that lapsed before its window ended, without a request since then. */
  returned: number;
  /**
   * The stored state of a finished window. It stays stored until a request is charged. A refund, credit or settlement doesn't count as a
   * request, so it affects neither the units that are carried over nor how long the key is known.
   */
  kept: PlanState | undefined;
}

/**
 * The windows before and after another one. The units that are carried over depend on the starts of the previous ones, a wait on the ends
 * of the next ones.
 */
interface Around {
  readonly window: CalendarWindow;
  /** The start of the previous window, and of the one before it. */
  readonly before: number;
  readonly earlier: number;
  /** The end of the next window, and of the one after it. */
  readonly next: number;
  readonly after: number;
}

type Windowed = Algorithm<PlanOptions, CalendarWindowParameters, CalendarWindowState>;

/** The time for which credits are stored on Redis: ten years. */
const CREDITS_KEPT_FOR = 10 * 366 * 86_400 * 1e6;

const arounds = new WeakMap<PlanParameters['plan'], Around>();

/** Computed once per window. */
function aroundOf({ calendar, plan }: PlanParameters, now: number): Around {
  const known = arounds.get(plan);
  if (known !== undefined && now >= known.window.start && now < known.window.end) return known;
  const window = calendar.windowAt(now);
  const before = calendar.windowAt(window.start - 1).start;
  const earlier = calendar.windowAt(before - 1).start;
  const next = calendar.windowAt(window.end).end;
  const around = { window, before, earlier, next, after: calendar.windowAt(next).end };
  arounds.set(plan, around);
  return around;
}

/** The full rate, including the part that is reserved for some requests. */
function wholeOf({ quota, kept = 0 }: PlanParameters): number {
  return quota + kept;
}

/** The part of units that is carried over, rounded down. */
function moving({ plan }: PlanParameters, units: number): number {
  return units - inProportion(units, MILLION - plan.rollover, MILLION);
}

/** The remaining units of a window's own rate. Units that were carried over to it are used first. */
function leftOf(rate: number, { count, moved }: Pick<PlanState, 'count' | 'moved'>): number {
  return Math.max(0, rate - Math.max(0, count - moved));
}

function spentUnder(rate: number, { count, moved, gross }: PlanState): number {
  return Math.max(0, Math.min(gross, count - rate - moved));
}

function creditsOf(parameters: PlanParameters, state: PlanState): number {
  return state.gross - spentUnder(wholeOf(parameters), state);
}

function capacityOf({ quota }: PlanParameters, { moved, gross }: PlanState): number {
  return quota + moved + gross;
}

function open(base: Windowed, parameters: PlanParameters, stored: PlanState | undefined, now: number): PlanState {
  const { follows, plan } = parameters;
  const counted = stored !== undefined && stored.count > 0 ? stored : undefined;
  const window = base.open(parameters, counted ?? (stored && { ...stored, count: 0 }), now);
  const state: PlanState = {
    ...window,
    moved: 0,
    rate: wholeOf(parameters),
    spent: 0,
    least: wholeOf(parameters),
    gross: 0,
    taken: 0,
    age: undefined,
    returned: 0,
    kept: undefined,
  };
  // It was saved for finished windows that can still be read. Nothing was charged since the key started fresh.
  if (stored?.age === undefined) return state;
  if (now < stored.end) {
    const runs = now >= stored.start || stored.last - now < stored.end - stored.start;
    if (follows && runs && counted === undefined) {
      state.start = stored.start;
      state.end = stored.end;
    }
    state.moved = stored.moved;
    state.taken = stored.spent;
    state.rate = stored.rate;
    state.least = stored.least;
    state.age = 0;
    return state;
  }
  const { moved } = stored;
  const count = Math.max(0, stored.count - stored.returned);
  // Credits that were refunded with these are still subtracted from the balance.
  const spent = Math.max(0, Math.min(stored.spent, count - stored.rate - moved));
  state.taken = stored.spent - spent;
  if (plan.rollover === 0) return state;
  const { before, earlier } = aroundOf(parameters, now);
  const rate = wholeOf(parameters);
  if (stored.end > before) {
    state.moved = moving(parameters, leftOf(Math.min(rate, stored.least), { count, moved }));
    state.age = 1;
  } else if (stored.end > earlier) {
    state.moved = moving(parameters, Math.min(rate, stored.rate));
    state.age = 2;
  }
  if (state.age === undefined) return state;
  state.rate = state.least = stored.rate;
  state.kept = { ...stored, count, spent, returned: 0 };
  return state;
}

/** Records the rate with which it is charged. */
function noteRate(parameters: PlanParameters, state: PlanState): void {
  state.rate = wholeOf(parameters);
  state.least = state.count === 0 ? state.rate : Math.min(state.least, state.rate);
}

/** The end of the window after the one of a state, or of the one after that. */
function endAfter(parameters: PlanParameters, { end, now }: PlanState, which: 'next' | 'after'): number {
  const around = aroundOf(parameters, now);
  return end + around[which] - around.window.end;
}

/** The time from which a key is no longer known, unless a request is charged before: after two windows without any. */
function endOfKnown(parameters: PlanParameters, state: PlanState): number {
  // Without the anchor, the ends of the key's windows are unknown.
  if (state.age === 0 || parameters.follows) return endAfter(parameters, state, 'after');
  return state.age === 1 ? endAfter(parameters, state, 'next') : state.end;
}

/**
 * A calendar window of a plan: a share of its remaining units is carried over once, and credits are used when the window is used up.
 *
 *     allowed      count + cost <= rate + moved + credits
 *     moved        floor(rollover x (rate - max(0, count - moved))) of the window before, by its smallest rate
 *     spent        max(0, count - rate - moved), which is taken off the credits
 */
export const plan: Variant = {
  options: planOptions,
  of: (algorithm) =>
    algorithm.planning && (planned(algorithm as unknown as Windowed, algorithm.planning.code) as never),
};

function planned(base: Windowed, code: string): Algorithm<PlanOptions, PlanParameters, PlanState> {
  const { prefetch: _, following: _following, ...rest } = base;
  const rows = { ...base.options, ...planOptions };
  const takeSettled = (parameters: PlanParameters, state: PlanState, cost: number): void => {
    base.take(parameters, state, cost);
    state.age = 0;
  };
  return {
    ...({ ...rest, reopen: undefined } as unknown as Algorithm<PlanOptions, PlanParameters, PlanState>),
    code,
    scriptPrefix: 'plan+',
    compile(options, location) {
      readOptions(location, options, rows);
      const parameters = base.compile(options, location);
      return { ...parameters, plan: planTerms(options, parameters.quota, location) };
    },
    scriptParameters(parameters, now) {
      const { window, before, earlier, next, after } = aroundOf(parameters, now);
      const { retain, plan, follows } = parameters;
      const own = [plan.rollover, plan.credits ? 1 : 0, follows ? 1 : 0];
      return [window.start, window.end, retain, before, earlier, next, after, ...own];
    },
    work: ({ plan }) => (plan.credits ? 2 : 1),

    open: (parameters, stored, now) => open(base, parameters, stored, now),
    fits: (parameters, state, cost) => state.count + cost <= capacityOf(parameters, state),
    take(parameters, state, cost) {
      noteRate(parameters, state);
      takeSettled(parameters, state, cost);
    },
    ...(base.holds && {
      holds: {
        ...base.holds,
        take: takeSettled,
        ended: (_parameters, stored, now, holds, windows) =>
          now < stored.end ? stored : { ...stored, returned: holds.unitsWithin(stored, windows) },
        keepsEnded: (state) => state.kept !== undefined,
        // The credits of lapsed holds are refunded with the next request.
        keepFor: (_parameters, state, holds, windows) =>
          spentUnder(state.rate, state) > 0 && holds.isWithin(state, windows) ? CREDITS_KEPT_FOR : 0,
      },
    }),
    save: (_, state) =>
      state.kept !== undefined && state.age !== 0
        ? { ...state.kept, finished: state.finished }
        : { ...state, spent: spentUnder(state.rate, state), kept: undefined },
    remaining: (parameters, state) => capacityOf(parameters, state) - state.count,
    retryAfter(parameters, { ...state }, cost, returned = 0) {
      const { quota, plan } = parameters;
      const { end, now, age } = state;
      state.count = Math.max(0, state.count - returned);
      const credits = creditsOf(parameters, state);
      const whole = wholeOf(parameters);
      const ofSilence = Math.min(whole, state.rate);
      const left = age === 0 ? leftOf(Math.min(whole, state.least), state) : age === 1 ? ofSilence : 0;
      if (cost <= quota + moving(parameters, left) + credits) return end - now;
      const isLater = age === 0 && plan.rollover > 0 && cost <= quota + moving(parameters, ofSilence) + credits;
      return isLater ? endAfter(parameters, state, 'next') - now : Infinity;
    },
    keepFor(parameters, state) {
      const needed = base.keepFor!(parameters, state);
      if (parameters.plan.rollover === 0 || state.age === undefined) return needed;
      return Math.max(needed, endOfKnown(parameters, state) - state.now);
    },
    varying: {
      quota: capacityOf,
      takesCredits: ({ plan }) => plan.credits,
      credits: (parameters, state) => (parameters.plan.credits ? creditsOf(parameters, state) : undefined),
      balance: (state) => state.gross - spentUnder(state.rate, state),
      bring(_, state, balance) {
        state.gross = balance + state.taken;
      },
      credit(parameters, state, units) {
        const left = creditsOf(parameters, state);
        // After a reset, the counter has the credits that remain with the current rate.
        if (units === 0) noteRate(parameters, state);
        state.gross += units > 0 ? Math.min(units, MOST_UNITS - left) : -Math.min(-units, left);
      },
    },
  };
}
