import type { UpstreamReport, UpstreamResponse } from './upstream-report.js';

/** Looks up a path in parsed JSON of unknown shape. */
function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      typeof inner === 'object' && inner !== null && Object.hasOwn(inner, key)
        ? (inner as Record<string, unknown>)[key]
        : undefined,
    value,
  );
}

function amount(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value < Infinity ? value : undefined;
}

/** Reads the calculated cost of Shopify's GraphQL APIs from the body: the points left, and how fast they are restored. */
export function shopifyGraphqlLimits({ body }: UpstreamResponse): Pick<UpstreamReport, 'limits' | 'refused'> {
  const status = at(body, 'extensions', 'cost', 'throttleStatus');
  const quota = amount(at(status, 'maximumAvailable'));
  const left = amount(at(status, 'currentlyAvailable'));
  const errors = at(body, 'errors');
  const refused = Array.isArray(errors) && errors.some((each) => at(each, 'extensions', 'code') === 'THROTTLED');
  if (left === undefined) return { limits: [], refused: refused || undefined };
  const rate = amount(at(status, 'restoreRate'));
  const missing = quota === undefined ? undefined : Math.max(0, quota - left);
  const resetAfterMs = missing === undefined || !rate ? undefined : (missing / rate) * 1000;
  const limit = {
    name: '',
    unit: 'points',
    quota,
    remaining: Math.floor(left),
    resetAfterMs,
    refill: 'gradual' as const,
  };
  return { limits: [limit], refused: refused || undefined };
}
