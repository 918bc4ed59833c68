import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { planMessages } from '../errors/messages/plan.js';

/** The most units that a plan allows per window, and the most credits that it keeps: their sum is exact. */
export const MOST_UNITS = 2 ** 51;

/** What a share is a part of. */
const MILLION = 1_000_000;

/** The options of calendar windows that are plans. */
export interface PlanOptions {
  /**
   * The share of a window's remaining units that moves into the next window, once: more than 0, at most 1, to a millionth. Units
   * that have moved are used first, and do not move again. Nothing moves for a key that is idle for two whole windows. Adding or
   * removing the option starts new counters. Not with `prefetch` or `blockFor`.
   * @default nothing moves
   */
  rollover?: number;
  /**
   * Accepts prepaid units, which `Limiter.credit` adds. They are used once the window is used up, and do not expire with it.
   * Adding or removing the option starts new counters. Not with `prefetch`, `blockFor` or `candidate`.
   * @default no credits
   */
  credits?: true;
}

/** These options after reading. */
export interface PlanTerms {
  /** In millionths. */
  readonly rollover: number;
  readonly credits: boolean;
  readonly mostCredits: number;
}

/** Reads the options of a plan with this `quota`. Throws `RateLimitConfigError`. */
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

/** Whether a value is a valid `rollover`. */
export function isRollover(value: unknown): value is number {
  return typeof value === 'number' && Math.round(value * MILLION) >= 1 && value <= 1;
}
