import type { FeaturedLimit, LimitFeature } from '../../../engine/limits/limit-feature.js';
import { unitsOf } from '../../../engine/algorithms/share.js';
import { bare } from '../../../engine/util/objects.js';
import { decidesTogether } from './decide-together.js';
import {
  BORROWING,
  type BorrowingOptions,
  type BorrowingTerms,
  borrowingTerms,
  type LimitUnits,
  limitUnitsOf,
} from './terms.js';
import type { Feature } from '../feature.js';
import { wrongOption } from '../../../engine/options/check-options.js';

/** The messages of limits that borrow from their parents, and of limits that lend. */
const borrowMessages = {
  ceilingExpected: (rate: number) => `a whole number >= ${rate}, the 'rate'`,
} as const;

/** The options of an algorithm whose quota is its rate. */
interface Rated {
  readonly rate: number;
}

/** The borrowing and lending of one limit. Throws `RateLimitConfigError` if the ceiling is below the rate. */
function limitBorrowing(
  { algorithm, options, declared }: FeaturedLimit,
  { ceiling, lends }: BorrowingTerms,
  location: string,
): LimitFeature & LimitUnits {
  const { rate } = options as Rated;
  // A limit without a ceiling may have no rate.
  if (ceiling !== undefined && (!Number.isSafeInteger(ceiling) || ceiling < rate)) {
    throw wrongOption(location, 'ceiling', ceiling, borrowMessages.ceilingExpected(rate));
  }
  // The parameters including borrowed units: those of a larger rate, for the same counter.
  const raised = ceiling === undefined ? declared : algorithm.compile({ ...options, rate: ceiling } as never, location);
  const above = raised.quota - declared.quota;
  const kept = unitsOf(1 - (lends ?? 1), declared.quota);
  return bare<LimitFeature & LimitUnits>({
    name: BORROWING,
    above,
    kept,
    // Because of borrowed units, and those kept from borrowers, a cost may never fit.
    withholds: above + kept,
    together: above > 0 ? decidesTogether : undefined,
    parameters: () => raised,
    // The terms for one of several instances: its share of the ceiling, and at least its rate.
    ofPart(part, own) {
      if (ceiling === undefined) return { lends };
      return { ceiling: Math.max((own as Rated).rate, Math.floor(ceiling * part)), lends };
    },
  });
}

/** The algorithms that support borrowing: their counts don't depend on their rate. */
type BorrowingAlgorithm = 'fixed-window' | 'calendar-window' | 'sliding-window' | 'sliding-log';

/** Nothing can be borrowed outside a hierarchy. */
type Borrowing = { ceiling?: never } | (Required<BorrowingOptions> & { within: string });

/** Options of algorithms, some of which support borrowing. */
export type WithBorrowing<Options> = Options extends { algo: BorrowingAlgorithm } ? Options & Borrowing : Options;

/** Limits borrow units from their parents. */
export const borrowing: Feature<BorrowingTerms> = {
  terms: borrowingTerms,
  of: limitBorrowing,
  shown(limit) {
    const { above, kept } = limitUnitsOf(limit);
    return above === 0 && kept === 0 ? undefined : { above, kept };
  },
};
