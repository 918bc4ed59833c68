import { decimal, resetAfterMs, retryAfterMs, textOf, units } from '../../../engine/limit-headers/field-values.js';
import { rateLimitFields, xRateLimitFields } from '../../../engine/limit-headers/rate-limit-fields.js';
import type {
  UpstreamLimit,
  UpstreamParser,
  UpstreamReport,
  UpstreamResponse,
} from '../../../engine/limit-headers/upstream-report.js';

/** How an upstream reports its limits. */
export interface Upstream {
  /** Link to the upstream's documentation of its limits. */
  readonly documentation: string;
  /** The headers, or the part of the body, that are read. */
  readonly reads: readonly string[];
  /**
   * True if the parser needs the body as parsed JSON.
   * @default false
   */
  readonly readsBody?: boolean;
  /** Reads a response. */
  readonly parse: UpstreamParser;
}

/** OpenAI reports the tokens of a project in addition to those of the organization. */
const PROJECT_TOKENS = 'project-tokens';

/** Limits whose unit is part of the field name: `x-ratelimit-remaining-tokens`. */
function ofUnits(
  response: UpstreamResponse,
  names: readonly string[],
  field: (what: 'limit' | 'remaining' | 'reset', name: string) => string,
): UpstreamLimit[] {
  return names.flatMap((name): UpstreamLimit[] => {
    const remaining = units(textOf(response.headers, field('remaining', name)));
    if (remaining === undefined) return [];
    const quota = units(textOf(response.headers, field('limit', name)));
    const reset = resetAfterMs(response, field('reset', name));
    const unit = name === PROJECT_TOKENS ? 'tokens' : name;
    return [{ name, unit, quota, remaining, resetAfterMs: reset, refill: 'gradual' }];
  });
}

const openai = (response: UpstreamResponse) =>
  ofUnits(response, ['requests', 'tokens', PROJECT_TOKENS], (what, name) => `x-ratelimit-${what}-${name}`);

const anthropic = (response: UpstreamResponse) =>
  ofUnits(
    response,
    ['requests', 'tokens', 'input-tokens', 'output-tokens'],
    (what, name) => `anthropic-ratelimit-${name}-${what}`,
  );

/** The bucket of the REST API, such as `32/40`: used units, and the size of the bucket. */
function shopify({ headers }: UpstreamResponse): UpstreamLimit[] {
  const [used, quota, ...rest] = (textOf(headers, 'x-shopify-shop-api-call-limit') ?? '').split('/').map(decimal);
  if (used === undefined || quota === undefined || rest.length > 0) return [];
  return [{ name: '', unit: 'requests', quota, remaining: Math.max(0, quota - used), refill: 'gradual' }];
}

/** The wait after a rejection that has none: until the reset if nothing is left, otherwise a minute. */
const GITHUB_WAIT_MS = 60_000;

function github(response: UpstreamResponse): UpstreamReport {
  const { status, headers } = response;
  const wait = retryAfterMs(response);
  const isEmpty = textOf(headers, 'x-ratelimit-remaining') === '0';
  // GitHub also rejects with 403, along with a wait or a remaining count of 0.
  const refused = status === 403 ? textOf(headers, 'retry-after') !== undefined || isEmpty : undefined;
  const reset = isEmpty ? resetAfterMs(response, 'x-ratelimit-reset') : undefined;
  const usual = (refused ?? status === 429) ? (reset ?? GITHUB_WAIT_MS) : undefined;
  return {
    limits: xRateLimitFields(response, textOf(headers, 'x-ratelimit-resource')),
    retryAfterMs: wait ?? usual,
    refused,
  };
}

function reading(limitsOf: (response: UpstreamResponse) => UpstreamLimit[]): UpstreamParser {
  return (response) => ({ limits: limitsOf(response), retryAfterMs: retryAfterMs(response) });
}

/** The name of a known upstream. */
export type UpstreamName =
  | 'rate-limit'
  | 'x-rate-limit'
  | 'github'
  | 'openai'
  | 'anthropic'
  | 'shopify'
  | 'shopify-graphql'
  | 'stripe'
  | 'slack'
  | 'discord';

/** The known upstreams, by the names that the option `parser` takes. */
export const upstreams: Readonly<Record<UpstreamName, Upstream>> = {
  'rate-limit': {
    documentation: 'https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/',
    reads: [
      'RateLimit',
      'RateLimit-Policy',
      'RateLimit-Limit',
      'RateLimit-Remaining',
      'RateLimit-Reset',
      'Retry-After',
    ],
    parse: reading(rateLimitFields),
  },
  'x-rate-limit': {
    documentation: 'https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/',
    reads: ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'Retry-After'],
    parse: reading((response) => xRateLimitFields(response)),
  },
  github: {
    documentation: 'https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api',
    reads: ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'X-RateLimit-Resource', 'Retry-After'],
    parse: github,
  },
  openai: {
    documentation: 'https://platform.openai.com/docs/guides/rate-limits',
    reads: [
      'X-RateLimit-Limit-Requests',
      'X-RateLimit-Remaining-Requests',
      'X-RateLimit-Reset-Requests',
      'X-RateLimit-Limit-Tokens',
      'X-RateLimit-Remaining-Tokens',
      'X-RateLimit-Reset-Tokens',
      'X-RateLimit-{Limit,Remaining,Reset}-Project-Tokens',
      'Retry-After-Ms',
      'Retry-After',
    ],
    parse: reading(openai),
  },
  anthropic: {
    documentation: 'https://platform.claude.com/docs/en/api/rate-limits',
    reads: [
      'Anthropic-RateLimit-Requests-{Limit,Remaining,Reset}',
      'Anthropic-RateLimit-Tokens-{Limit,Remaining,Reset}',
      'Anthropic-RateLimit-Input-Tokens-{Limit,Remaining,Reset}',
      'Anthropic-RateLimit-Output-Tokens-{Limit,Remaining,Reset}',
      'Retry-After',
    ],
    parse: (response) => ({
      limits: anthropic(response),
      retryAfterMs: retryAfterMs(response),
      // Overloaded.
      refused: response.status === 529 ? true : undefined,
    }),
  },
  shopify: {
    documentation: 'https://shopify.dev/docs/api/admin-rest/usage/rate-limits',
    reads: ['X-Shopify-Shop-Api-Call-Limit', 'Retry-After'],
    parse: reading(shopify),
  },
  'shopify-graphql': {
    documentation: 'https://shopify.dev/docs/api/usage/limits',
    reads: ['extensions.cost.throttleStatus', 'errors[].extensions.code'],
    readsBody: true,
    parse: (response) => ({ ...shopifyGraphqlLimits(response), retryAfterMs: retryAfterMs(response) }),
  },
  stripe: {
    documentation: 'https://docs.stripe.com/rate-limits',
    // Stripe-Rate-Limited-Reason has the reason of a rejection, but Stripe sends neither a wait nor the remaining units.
    reads: ['Retry-After'],
    parse: reading(() => []),
  },
  slack: {
    documentation: 'https://docs.slack.dev/apis/web-api/rate-limits',
    reads: ['Retry-After'],
    parse: reading(() => []),
  },
  discord: {
    documentation: 'https://docs.discord.com/developers/topics/rate-limits',
    reads: [
      'X-RateLimit-Limit',
      'X-RateLimit-Remaining',
      'X-RateLimit-Reset-After',
      'X-RateLimit-Bucket',
      'Retry-After',
    ],
    parse: reading((response) => xRateLimitFields(response, textOf(response.headers, 'x-ratelimit-bucket'))),
  },
};

/**
 * Reads the limits that any upstream reports in its headers: the `RateLimit` fields and the own fields of known upstreams. This is the
 * default parser.
 */
export const parseUpstream: UpstreamParser = (response) => {
  const known = [rateLimitFields, anthropic, openai, shopify];
  for (const read of known) {
    const limits = read(response);
    if (limits.length > 0) return { limits, retryAfterMs: retryAfterMs(response) };
  }
  if (textOf(response.headers, 'x-github-request-id') !== undefined) return github(response);
  return { limits: xRateLimitFields(response), retryAfterMs: retryAfterMs(response) };
};

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
function shopifyGraphqlLimits({ body }: UpstreamResponse): Pick<UpstreamReport, 'limits' | 'refused'> {
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
