import type { Feature } from '../feature.js';
import { LimitBorrowing } from './limit-borrowing.js';
import { limitUnitsOf } from './limit-units.js';
import { type BorrowingOptions, type BorrowingTerms, borrowingTerms } from './terms.js';

/** The algorithms that support borrowing: their counts don't depend on their rate. */
type BorrowingAlgorithm = 'fixed-window' | 'calendar-window' | 'sliding-window' | 'sliding-log';

/** Nothing can be borrowed outside a hierarchy. */
type Borrowing = { ceiling?: never } | (Required<BorrowingOptions> & { within: string });

/** Options of algorithms, some of which support borrowing. */
export type WithBorrowing<Options> = Options extends { algo: BorrowingAlgorithm } ? Options & Borrowing : Options;

/** Limits borrow units from their parents. */
export const borrowing: Feature<BorrowingTerms> = {
  terms: borrowingTerms,
  of: (limit, terms, location) => new LimitBorrowing(limit, terms, location),
  shown(limit) {
    const { above, kept } = limitUnitsOf(limit);
    return above === 0 && kept === 0 ? undefined : { above, kept };
  },
};
