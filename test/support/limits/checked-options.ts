import { checkLimit } from '../../../lib/app/config/limit-options.js';

/** Checks all options of a limit, also those that say more than how it counts, as for a limit of an app. Throws `RateLimitConfigError`. */
export function checkOptions(options: object): void {
  checkLimit(options, 'test');
}
