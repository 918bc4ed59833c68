import type { Algorithm, Parameters } from '../algorithms/algorithm.js';
import type { HoldTerms } from '../algorithms/hold-terms.js';
import type { AlgorithmOptions } from '../algorithms/index.js';
import { borrowMessages } from '../errors/messages/borrow.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';

/** A share of a quota in whole units, rounded up without floating-point error: 0.55 of 100 is 55. */
export function unitsOf(share: number, quota: number): number {
  return Math.min(quota, Math.ceil(Number((share * quota).toPrecision(12))));
}

/** The options of an algorithm whose quota is its rate. */
export interface Rated {
  readonly rate: number;
}

/** What lapses without a request comes off the record later: holds are remembered as long as that is kept. */
export function knownFor(hold: HoldTerms | undefined, keep: number): HoldTerms | undefined {
  return hold?.releases === true ? { ...hold, known: Math.max(hold.known, hold.duration + keep) } : hold;
}

/** What a limit may use including what it borrows: parameters of a larger rate, for the same counter. */
export function withCeiling(
  algorithm: Algorithm,
  options: AlgorithmOptions,
  ceiling: number,
  location: string,
): Parameters {
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
