import type { PrefetchTerms } from '../limits/compiled-limit.js';
import { duration, givenOptions, wholeNumber } from '../algorithms/options.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import type { CommonLimitOptions } from '../config/common-limit-options.js';

/** The longest time for which units can be taken in advance, in microseconds. */
const MAX_PREFETCH = 60_000_000;

/** Reads a limit's `prefetch`. */
export function prefetchTerms(
  { prefetch, blockFor, scope }: CommonLimitOptions,
  location: string,
): PrefetchTerms | undefined {
  if (prefetch === undefined) return undefined;
  const within = `${location}.prefetch`;
  if (typeof prefetch !== 'object' || prefetch === null) {
    throw new RateLimitConfigError(
      messages.wrongOption(location, 'prefetch', prefetch, "{ units, ttl } such as { units: 100, ttl: '100ms' }"),
    );
  }
  for (const name of Object.keys(prefetch)) {
    if (name !== 'units' && name !== 'ttl') {
      throw new RateLimitConfigError(messages.unknownOption(within, name, ['units', 'ttl']));
    }
  }
  const given = givenOptions(prefetch, ['units', 'ttl']);
  const units = wholeNumber(within, 'units', given.units);
  const ttl = duration(within, 'ttl', given.ttl);
  if (ttl > MAX_PREFETCH)
    throw new RateLimitConfigError(messages.wrongOption(within, 'ttl', prefetch.ttl, 'at most 1 minute'));
  // Who holds units would go on while all others refuse; and in process there is nothing to take them from.
  if (blockFor !== undefined) throw new RateLimitConfigError(messages.prefetchWith(location, 'blockFor'));
  if (scope === 'instance') throw new RateLimitConfigError(messages.prefetchWith(location, "scope: 'instance'"));
  return { units, ttl };
}
