import { time, words } from '../options/kinds.js';
import type { OptionRows } from '../options/option-row.js';
import type { Duration } from '../options/values.js';

/** What happens to held units when their hold lapses. */
const LAPSES = ['charge', 'release'] as const;

/**
 * What happens to held units when their hold lapses.
 * @useDeclaredType
 */
export type OnLapse = (typeof LAPSES)[number];

/** The options of limits whose units can be held: reserved at an estimate, and settled at what was really used. */
export interface HoldOptions {
  /**
   * Allows `reserve`, and sets how long it holds units that are not settled, for example because their process died: milliseconds
   * or a duration such as `'5m'`, at most 1 year.
   * @default units cannot be reserved
   */
  hold?: Duration | undefined;
  /**
   * What happens to units whose hold lapses: `'charge'` keeps them charged, `'release'` gives them back. Settling them later
   * corrects either.
   * @default 'charge'
   */
  onLapse?: OnLapse | undefined;
}

export const holdOptions = {
  hold: {
    kind: time,
    text: "How long reserved units are held that nobody settles, such as '5m'.",
    usual: "'5m' of a budget, else no reservations",
    isLong: true,
    // A block forgets what was used, held or not; and units that were taken for several requests are those of none.
    excludes: ['blockFor', 'prefetch'],
  },
  onLapse: {
    kind: words(LAPSES),
    text: "What becomes of held units then: 'charge' or 'release'.",
    default: 'charge',
    needs: { hold: "the time after which held units lapse, such as '5m'" },
  },
} as const satisfies OptionRows;
