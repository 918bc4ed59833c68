import type { LeaseTerms } from '../limits/compiled-limit.js';
import { duration, givenOptions, wholeNumber } from '../algorithms/options.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import type { CommonLimitOptions } from '../config/limit-definition.js';

/** The longest time for which units can be taken in advance, in microseconds. */
const MAX_LEASE = 60_000_000;

/** Reads a limit's `lease`. */
export function leaseTerms({ lease, blockFor, scope }: CommonLimitOptions, place: string): LeaseTerms | undefined {
  if (lease === undefined) return undefined;
  const at = `${place}.lease`;
  if (typeof lease !== 'object' || lease === null) {
    throw new RateLimitConfigError(
      messages.wrongOption(place, 'lease', lease, "{ units, ttl } such as { units: 100, ttl: '100ms' }"),
    );
  }
  for (const option of Object.keys(lease)) {
    if (option !== 'units' && option !== 'ttl') {
      throw new RateLimitConfigError(messages.unknownOption(at, option, ['units', 'ttl']));
    }
  }
  const given = givenOptions(lease, ['units', 'ttl']);
  const units = wholeNumber(at, 'units', given.units);
  const ttl = duration(at, 'ttl', given.ttl);
  if (ttl > MAX_LEASE) throw new RateLimitConfigError(messages.wrongOption(at, 'ttl', lease.ttl, 'at most 1 minute'));
  // Who holds units would go on while all others refuse; and in process there is nothing to take them from.
  if (blockFor !== undefined) throw new RateLimitConfigError(messages.leaseWith(place, 'blockFor'));
  if (scope === 'instance') throw new RateLimitConfigError(messages.leaseWith(place, "scope: 'instance'"));
  return { units, ttl };
}
