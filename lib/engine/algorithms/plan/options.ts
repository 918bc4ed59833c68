import { configError } from '../../errors/errors.js';
import type { OptionKind, OptionRows } from '../../options/option-row.js';
import { MOST_UNITS } from '../scale.js';

const tooManyUnits = (location: string, received: number) =>
  `${location}: expected at most ${MOST_UNITS} units for a limit with 'rollover' or 'credits', received ${received}`;

/** The denominator of shares. */
export const MILLION = 1_000_000;

/** The options of calendar windows that turn them into plans. */
export interface PlanOptions {
  /**
   * The share of a window's remaining units that is carried over to the next window: more than 0, at most 1, to a millionth. Carried-over
   * units are used first, and are not carried over again. Nothing is carried over for a key that is idle for two whole windows. Adding or
   * removing the option starts new counters. Not available with `prefetch` or `blockFor`.
   * @default nothing moves
   */
  rollover?: number | undefined;
  /**
   * Accepts prepaid units, which `Limiter.credit` adds. They are used once the window is used up, and do not expire with it. Adding or
   * removing the option starts new counters. Not available with `prefetch`, `blockFor` or `candidate`.
   * @default no credits
   */
  credits?: true | undefined;
}

const part: OptionKind<number> = {
  expected: 'a number > 0 and <= 1, such as 0.5, of at least a millionth',
  isValid: (value) => typeof value === 'number' && Math.round(value * MILLION) >= 1 && value <= 1,
  schema: { type: 'number', minimum: 0.0000005, maximum: 1 },
};

export const planOptions = {
  rollover: {
    kind: part,
    text: "The share of a window's unused units that rolls over into the next window, once.",
    usual: 'none',
    // A block resets the counter, including credits.
    excludes: ['blockFor'],
  },
  credits: {
    kind: { expected: 'true', isValid: (value) => value === true, schema: { const: true } },
    text: 'Uses prepaid units once a window is used up.',
    usual: 'there are none',
    needsName: true,
    // A second version would have its own credits, which nobody adds.
    excludes: ['blockFor', 'candidate'],
  },
} as const satisfies OptionRows;

/** The parsed options. */
export interface PlanTerms {
  /** In millionths. */
  readonly rollover: number;
  readonly credits: boolean;
}

/** The terms of a plan whose options have been checked. Throws `RateLimitConfigError`. */
export function planTerms({ rollover, credits }: PlanOptions, quota: number, location: string): PlanTerms {
  if (quota > MOST_UNITS) throw configError('SLUICE_INEXACT_RATE', tooManyUnits(location, quota));
  return { rollover: Math.round((rollover ?? 0) * MILLION), credits: credits === true };
}
