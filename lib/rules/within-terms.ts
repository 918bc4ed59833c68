import type { CommonLimitOptions } from '../config/common-limit-options.js';
import type { SharedLimitOptions } from '../config/limit-definition.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { withinMessages } from '../errors/messages/within.js';
import { check, isName } from './option-checks.js';

/** What excludes that a limit is within another one: units that are taken in advance, or are somebody else's. */
const EXCLUDED = ['prefetch', 'share'] as const;

/** Reads a limit's `within`: the name of the limit that it is within. */
export function parentName(options: CommonLimitOptions & SharedLimitOptions, location: string): string | undefined {
  const { within } = options;
  check(location, 'within', within, withinMessages.wants(), isName);
  if (within === undefined) return undefined;
  for (const other of EXCLUDED) {
    if (options[other] === undefined) continue;
    throw new RateLimitConfigError(withinMessages.withinWith(location, other));
  }
  return within;
}
