import type { Parameters } from '../../../engine/algorithms/algorithm.js';
import type { AlgorithmOptions } from '../../../engine/algorithms/index.js';
import { RateLimitConfigError } from '../../../engine/errors/errors.js';
import { messages } from '../../../engine/errors/messages/general.js';
import type { DecidesTogether, FeaturedLimit, LimitFeature } from '../../../engine/limits/limit-feature.js';
import { unitsOf } from '../../../engine/algorithms/share.js';
import { Bare } from '../../../engine/util/objects.js';
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

/** The messages of limits that borrow from their parents, and of limits that lend. */
const borrowMessages = {
  ceilingExpected: (rate: number) => `a whole number >= ${rate}, the 'rate'`,
} as const;

/** The options of an algorithm whose quota is its rate. */
interface Rated {
  readonly rate: number;
}

/** The borrowing and lending of one limit. */
export class LimitBorrowing extends Bare implements LimitFeature, LimitUnits {
  readonly name = BORROWING;
  readonly above: number;
  readonly kept: number;
  /** Because of borrowed units, and those kept from borrowers, a cost may never fit. */
  readonly withholds: number;
  readonly together: DecidesTogether | undefined;
  /** The parameters including borrowed units: those of a larger rate, for the same counter. */
  private readonly raised: Parameters;

  /** Throws `RateLimitConfigError` if the ceiling is below the rate. */
  constructor(
    { algorithm, options, declared }: FeaturedLimit,
    private readonly terms: BorrowingTerms,
    location: string,
  ) {
    super();
    const { ceiling, lends = 1 } = terms;
    const { rate } = options as Rated;
    // A limit without a ceiling may have no rate.
    if (ceiling !== undefined && (!Number.isSafeInteger(ceiling) || ceiling < rate)) {
      throw new RateLimitConfigError(
        messages.wrongOption(location, 'ceiling', ceiling, borrowMessages.ceilingExpected(rate)),
      );
    }
    this.raised =
      ceiling === undefined ? declared : algorithm.compile({ ...options, rate: ceiling } as never, location);
    this.above = this.raised.quota - declared.quota;
    this.kept = unitsOf(1 - lends, declared.quota);
    this.withholds = this.above + this.kept;
    this.together = this.above > 0 ? decidesTogether : undefined;
  }

  parameters(): Parameters {
    return this.raised;
  }

  /** The terms for one of several instances: its share of the ceiling, and at least its rate. */
  ofPart(part: number, options: AlgorithmOptions): BorrowingTerms {
    const { ceiling, lends } = this.terms;
    if (ceiling === undefined) return { lends };
    return { ceiling: Math.max((options as Rated).rate, Math.floor(ceiling * part)), lends };
  }
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
  of: (limit, terms, location) => new LimitBorrowing(limit, terms, location),
  shown(limit) {
    const { above, kept } = limitUnitsOf(limit);
    return above === 0 && kept === 0 ? undefined : { above, kept };
  },
};
