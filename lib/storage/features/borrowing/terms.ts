import { number, whole } from '../../../engine/options/kinds.js';
import type { Able, OptionRows } from '../../../engine/options/option-row.js';

/** The `ceiling` option of limits that borrow from the limit they are within. */
export interface BorrowingOptions {
  /**
   * The most units of an interval including borrowed ones, a whole number >= `rate`. Beyond its own rate a limit may use units of
   * the limit that it is within (`within`), as long as that one has units to lend (`lends`). A decision's `quota` and `remaining`
   * are those of the ceiling. Only for `fixed-window`, `calendar-window`, `sliding-window` and `sliding-log`; not with
   * `blockFor`, `reserveFor`, `candidate`, `prefetch` or `share`.
   * @default the rate: nothing is borrowed
   */
  ceiling?: number | undefined;
}

/** The `lends` option of limits from which those within them borrow. */
export interface LendingLimitOptions {
  /**
   * The share of the quota (of the rate, if the limit has a `ceiling`) that limits within this one may borrow, 0 to 1. The rest
   * is kept for what they use within their own rates. Not with `blockFor`, `reserveFor`, `candidate`, `prefetch` or `share`.
   * @default 1, all of it
   */
  lends?: number | undefined;
}

/** What a limit borrows at most, and what it lends. */
export interface BorrowingTerms {
  readonly ceiling?: number | undefined;
  readonly lends?: number | undefined;
}

const notAdapting = ({ adapting }: Able) => adapting === undefined;

/** What borrowing excludes: it keeps or blocks units by itself, or counts beside the limit. */
const excludes = ['prefetch', 'share', 'reserveFor', 'blockFor', 'candidate'] as const;

export const borrowingOptions = {
  ceiling: {
    kind: whole(),
    text: 'The most units of an interval with what is borrowed of the limit that it is within.',
    usual: 'the rate',
    live: 'rate',
    for: ({ borrowing }) => borrowing !== undefined,
    needs: { within: 'the name of the limit whose units are borrowed' },
    excludes,
  },
  lends: {
    kind: number('a number >= 0 and <= 1, the share of the quota that borrowers may use', { minimum: 0, maximum: 1 }),
    text: 'The share of the quota that limits within this one may borrow.',
    usual: '1',
    live: 'rate',
    for: notAdapting,
    excludes,
  },
} as const satisfies OptionRows;

/** The terms of options that were checked. */
export function borrowingTerms({ ceiling, lends }: BorrowingTerms): BorrowingTerms | undefined {
  return ceiling === undefined && lends === undefined ? undefined : { ceiling, lends };
}
