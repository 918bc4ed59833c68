import { time, whole, words } from '../options/kinds.js';
import type { OptionRows } from '../options/option-row.js';
import type { Duration } from '../options/values.js';

/** The rate options of most algorithms. */
export const rateOptions = {
  rate: { kind: whole(), text: 'The number of units that are allowed per interval or period.', required: true },
  interval: {
    kind: time,
    text: "The interval of the rate: milliseconds or a duration such as '10s', at most 1 year.",
    required: true,
    isLong: true,
  },
} as const satisfies OptionRows;

/** The rate options of algorithms that allow bursts. */
export const burstOptions = {
  ...rateOptions,
  burst: { kind: whole(), text: 'The maximum burst: units that may be used at once.', usual: 'the rate' },
} as const satisfies OptionRows;

const LAPSES = ['charge', 'release'] as const;

/**
 * The effect on held units when their hold lapses.
 * @useDeclaredType
 */
export type OnLapse = (typeof LAPSES)[number];

/** The options of limits whose units can be held: reserved as an estimate, and settled with the actual number. */
export interface HoldOptions {
  /**
   * Allows `reserve`, and sets the time for which it holds units that are not settled, for example because their process died: milliseconds
   * or a duration such as `'5m'`, at most 1 year.
   * @default units cannot be reserved
   */
  hold?: Duration | undefined;
  /**
   * Determines the effect on units whose hold lapses: `'charge'` keeps them charged, `'release'` refunds them. Settling them later corrects
   * either.
   * @default 'charge'
   */
  onLapse?: OnLapse | undefined;
}

export const holdOptions = {
  hold: {
    kind: time,
    text: "How long unsettled units stay reserved, such as '5m'.",
    usual: "'5m' of a budget, else no reservations",
    isLong: true,
    // A block resets the counter, including held units. Units that were taken for several requests belong to none of them.
    excludes: ['blockFor', 'prefetch'],
  },
  onLapse: {
    kind: words(LAPSES),
    text: "What happens when a hold expires: 'charge' keeps its units charged, 'release' returns them.",
    default: 'charge',
    needs: { hold: "the time after which held units lapse, such as '5m'" },
  },
} as const satisfies OptionRows;
