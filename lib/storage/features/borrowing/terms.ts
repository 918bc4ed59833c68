import { number, whole } from '../../../engine/options/kinds.js';
import type { Able, OptionRows } from '../../../engine/options/option-row.js';
import type { LimitFeature } from '../../../engine/limits/limit-feature.js';

/** The `ceiling` option of limits that borrow from their parents. */
export interface BorrowingOptions {
  /**
   * The maximum number of units per interval, including borrowed ones: a whole number >= `rate`. Beyond its own rate a limit may use units
   * of its parent (`within`), as long as the parent has units to lend (`lends`). A decision's `quota` and `remaining` are based on the
   * ceiling. Only for `fixed-window`, `calendar-window`, `sliding-window` and `sliding-log`; not with `blockFor`, `reserveFor`,
   * `candidate`, `prefetch` or `share`.
   * @default the rate, so that nothing is borrowed
   */
  ceiling?: number | undefined;
}

/** The `lends` option of limits that lend to the limits below them. */
export interface LendingLimitOptions {
  /**
   * The share of the quota (of the rate, if the limit has a `ceiling`) that limits below this one may borrow: 0 to 1. The rest is kept for
   * requests within their own rates. Not with `blockFor`, `reserveFor`, `candidate`, `prefetch` or `share`.
   * @default 1, all of it
   */
  lends?: number | undefined;
}

/** The maximum that a limit borrows, and the share that it lends. */
export interface BorrowingTerms {
  readonly ceiling?: number | undefined;
  readonly lends?: number | undefined;
}

const notAdapting = ({ adapting }: Able) => adapting === undefined;

/** Options that borrowing excludes, because they keep or block units themselves, or count separately from the limit. */
const excludes = ['prefetch', 'share', 'reserveFor', 'blockFor', 'candidate'] as const;

export const borrowingOptions = {
  ceiling: {
    kind: whole(),
    text: 'Maximum number of units of an interval, including those borrowed from the parent limit.',
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

/** The terms for validated options. */
export function borrowingTerms({ ceiling, lends }: BorrowingTerms): BorrowingTerms | undefined {
  return ceiling === undefined && lends === undefined ? undefined : { ceiling, lends };
}

/** The name of the feature, and of its script. */
export const BORROWING = 'borrowing';

/** The units that a limit may borrow, and those that it keeps from borrowers. */
export interface LimitUnits {
  /**
   * The difference between its ceiling and its rate; 0 if it never borrows. The counter uses the ceiling, and its own rate is lower by this
   * number.
   */
  readonly above: number;
  /** The units of its quota that limits below it may not borrow. */
  readonly kept: number;
}

const NO_UNITS: LimitUnits = { above: 0, kept: 0 };

/** The units of a limit, with or without features. */
export function limitUnitsOf({ features }: { readonly features: readonly LimitFeature[] | undefined }): LimitUnits {
  const own = features?.find(({ name }) => name === BORROWING);
  return own === undefined ? NO_UNITS : (own as LimitFeature & LimitUnits);
}
