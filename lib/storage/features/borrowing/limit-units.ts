import type { LimitFeature } from '../../../engine/limits/limit-feature.js';

/** The name of the feature, and of its fragment of the script. */
export const BORROWING = 'borrowing';

/** What a limit may borrow, and what it keeps from borrowers. */
export interface LimitUnits {
  /**
   * How much its ceiling is above its rate; 0 if it never borrows. It counts under its ceiling, and its own rate is lower by these
   * units.
   */
  readonly above: number;
  /** The units of its quota that limits within it may not borrow. */
  readonly kept: number;
}

const NO_UNITS: LimitUnits = { above: 0, kept: 0 };

/** The units of a limit, which may have other features or none. */
export function limitUnitsOf({ features }: { readonly features: readonly LimitFeature[] | undefined }): LimitUnits {
  const own = features?.find(({ name }) => name === BORROWING);
  return own === undefined ? NO_UNITS : (own as LimitFeature & LimitUnits);
}
