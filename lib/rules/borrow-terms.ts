import type { CommonLimitOptions } from '../config/common-limit-options.js';
import type { BorrowingOptions } from '../config/limit-definition.js';
import { borrowMessages } from '../errors/messages/borrow.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { check } from './option-checks.js';

type Options = CommonLimitOptions & BorrowingOptions & { readonly share?: unknown };

/** What excludes that units are borrowed or lent: it keeps or blocks units by itself, or counts beside the limit. */
const EXCLUDED = ['prefetch', 'share', 'reserveFor', 'blockFor', 'candidate'] as const;

/** Reads a limit's `ceiling` and `lends`: that the former is no less than the rate is the limit's to check. */
export function borrowTerms(
  options: Options,
  location: string,
): { ceiling: number | undefined; lends: number | undefined } {
  const { ceiling, lends, within } = options;
  check(location, 'lends', lends, borrowMessages.lendsWants(), isLent);
  if (ceiling !== undefined && within === undefined) {
    throw new RateLimitConfigError(borrowMessages.ceilingAlone(location));
  }
  for (const option of ['ceiling', 'lends'] as const) {
    if (options[option] === undefined) continue;
    const other = EXCLUDED.find((each) => options[each] !== undefined);
    if (other !== undefined) throw new RateLimitConfigError(borrowMessages.exclude(location, option, other));
  }
  return { ceiling, lends };
}

const isLent = (value: unknown) => typeof value === 'number' && value >= 0 && value <= 1;
