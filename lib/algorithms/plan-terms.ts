import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { planMessages } from '../errors/messages/plan.js';

/** The most units that a plan allows a window, and the most credits that it keeps: their sum is counted exactly. */
export const MOST_UNITS = 2 ** 51;

/** What a share is a part of. */
const MILLION = 1_000_000;

/** Options of calendar windows that are plans. */
export interface PlanOptions {
  /**
   * The share of what is left of a window that moves into the next one, once: more than 0, at most 1, to a millionth. What moved is
   * used first, and does not move again. Of a key that is silent for two whole windows nothing moves. With or without, the limit
   * has other counters. Not with `prefetch` or `blockFor`.
   * @default nothing moves
   */
  rollover?: number;
  /**
   * Takes prepaid units, which `Limiter.credit` adds, once the window is used up. They do not lapse with it. With or without, the limit
   * has other counters. Not with `prefetch`, `blockFor` or `candidate`.
   * @default there are none
   */
  credits?: true;
}

/** What was read of these. */
export interface PlanTerms {
  /** In millionths. */
  readonly rollover: number;
  readonly credits: boolean;
  readonly mostCredits: number;
}

/** Reads the options of a plan whose `quota` was read. Throws `RateLimitConfigError`. */
export function planTerms({ rollover, credits }: PlanOptions, quota: number, location: string): PlanTerms {
  const refuse = (option: string, got: unknown, wants: string): never => {
    throw new RateLimitConfigError(messages.wrongOption(location, option, got, wants));
  };
  if (rollover !== undefined && !isRollover(rollover)) refuse('rollover', rollover, planMessages.rolloverWants());
  const given: unknown = credits;
  if (given !== undefined && given !== true) refuse('credits', credits, planMessages.creditsWants());
  if (quota > MOST_UNITS) throw new RateLimitConfigError(planMessages.tooManyUnits(location, quota, MOST_UNITS));
  return { rollover: Math.round((rollover ?? 0) * MILLION), credits: credits === true, mostCredits: MOST_UNITS };
}

/** Whether a value is a share that can move on. */
export function isRollover(value: unknown): value is number {
  return typeof value === 'number' && Math.round(value * MILLION) >= 1 && value <= 1;
}
