import { textOf, units } from './field-values.js';
import { resetAfterMs } from './reset-time.js';
import type { UpstreamLimit, UpstreamResponse } from './upstream-report.js';

/** The prefixes that different upstreams give these fields. */
const PREFIXES = ['x-ratelimit', 'x-rate-limit'];

/** Reads `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the spelling `X-Rate-Limit`, and the more precise `-Reset-After`. */
export function xRateLimitFields(response: UpstreamResponse, name = ''): UpstreamLimit[] {
  for (const prefix of PREFIXES) {
    const remaining = units(textOf(response.headers, `${prefix}-remaining`));
    if (remaining === undefined) continue;
    return [
      {
        name,
        quota: units(textOf(response.headers, `${prefix}-limit`)),
        remaining,
        resetAfterMs: resetAfterMs(response, `${prefix}-reset-after`) ?? resetAfterMs(response, `${prefix}-reset`),
      },
    ];
  }
  return [];
}
