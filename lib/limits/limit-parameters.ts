import type { Algorithm, Parameters } from '../algorithms/algorithm.js';
import type { ShareParameters } from '../algorithms/fair-share.js';
import type { HoldTerms } from '../algorithms/hold-terms.js';
import { algorithms, type AlgorithmOptions } from '../algorithms/index.js';
import { wholeShare } from '../algorithms/share.js';
import { SHARE_SLICES } from '../algorithms/tenant-record.js';
import { borrowMessages } from '../errors/messages/borrow.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { shareMessages } from '../errors/messages/share.js';
import type { PrefetchTerms, ShareTerms } from './limit-settings.js';

/** A share of a quota in whole units, without what a product of fractions has too much: 0.55 of 100 is 55. */
export function unitsOf(share: number, quota: number): number {
  return Math.min(quota, Math.ceil(Number((share * quota).toPrecision(12))));
}

/** The options of an algorithm whose quota is its rate. */
export interface Rated {
  readonly rate: number;
}

/** What lapses while nobody asks comes off the record later: it is known as long as that is kept. */
export function knownFor(hold: HoldTerms | undefined, keep: number): HoldTerms | undefined {
  return hold?.releases === true ? { ...hold, known: Math.max(hold.known, hold.duration + keep) } : hold;
}

/** What a limit may use with what it borrows: parameters of a larger rate, for the same counter. */
export function withCeiling(
  algorithm: Algorithm,
  options: AlgorithmOptions,
  ceiling: number,
  location: string,
): Parameters {
  if (algorithm.borrowing === undefined) {
    throw new RateLimitConfigError(
      borrowMessages.notBorrowing(location, algorithm.name, algorithms.withAny('borrowing')),
    );
  }
  const { rate } = options as Rated;
  if (!Number.isSafeInteger(ceiling) || ceiling < rate) {
    throw new RateLimitConfigError(
      messages.wrongOption(location, 'ceiling', ceiling, borrowMessages.ceilingWants(rate)),
    );
  }
  return algorithm.compile({ ...options, rate: ceiling } as never, location);
}

/** The same parameters with another quota. */
export function withQuota(algorithm: Algorithm, parameters: Parameters, quota: number): Parameters {
  return algorithm.withQuota?.(parameters, quota) ?? { ...parameters, quota };
}

/** What the limit of a counter needs whose units are shared among tenants. */
export function shareParameters(
  algorithm: Algorithm,
  declared: Parameters,
  { floor }: ShareTerms,
  location: string,
): ShareParameters {
  // What counts in the place of its algorithm where an option is given has no shares.
  const option = algorithms.optionOf(algorithm);
  if (option !== undefined) throw new RateLimitConfigError(shareMessages.shareWith(location, option));
  if (algorithm.sharing === undefined) {
    throw new RateLimitConfigError(shareMessages.notShareable(location, algorithm.name, algorithms.withAny('sharing')));
  }
  if (declared.hold !== undefined) throw new RateLimitConfigError(shareMessages.shareWith(location, 'hold'));
  const terms = algorithm.sharing.terms(declared);
  if (terms === undefined) throw new RateLimitConfigError(shareMessages.shareWith(location, "refill: 'intervally'"));
  const { units, span } = terms;
  const length = Math.max(1, Math.ceil(span / (SHARE_SLICES + 1)));
  return { ...declared, shareLength: length, shareUnits: units, floor: wholeShare(units, floor) };
}

/** Stricter parameters, by which units may be used a little after they were charged. */
export function prefetched(
  algorithm: Algorithm,
  declared: Parameters,
  { ttl }: PrefetchTerms,
  location: string,
): Parameters {
  if (algorithm.prefetch === undefined) {
    // What counts in its place where an option is given may not be able to.
    const option = algorithms.get(algorithm.name)!.prefetch && algorithms.optionOf(algorithm);
    if (option !== undefined) throw new RateLimitConfigError(messages.prefetchWith(location, option));
    throw new RateLimitConfigError(messages.notPrefetchable(location, algorithm.name, algorithms.withAny('prefetch')));
  }
  const parameters = algorithm.prefetch.parameters(declared, ttl);
  if (parameters === undefined) throw new RateLimitConfigError(messages.prefetchTooLong(location, ttl / 1000));
  return parameters;
}
