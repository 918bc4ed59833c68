import type { LimitFeature } from '../../../engine/limits/limit-feature.js';

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
