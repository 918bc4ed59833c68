import { describe, expect, it } from '@jest/globals';
import { parseUpstream, type UpstreamResponse, upstreams } from '../../../lib/integrations/outbound/index.js';
import { rateLimitFields } from '../../../lib/integrations/outbound/headers/rate-limit-fields.js';
import { resetAfterMs, retryAfterMs } from '../../../lib/integrations/outbound/headers/reset-time.js';
import { xRateLimitFields } from '../../../lib/integrations/outbound/headers/x-rate-limit.js';

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);
const HOUR = 3_600_000;

function response(headers: Record<string, string>, status = 200, body?: unknown): UpstreamResponse {
  return { status, headers: new Headers(headers), body, receivedAt: NOW };
}

describe('RateLimit and RateLimit-Policy', () => {
  it.each([
    [
      'drafts 8 to 11',
      { RateLimit: '"default";r=50;t=30', 'RateLimit-Policy': '"default";q=100;w=60;qu="requests"' },
      [{ name: 'default', unit: 'requests', quota: 100, remaining: 50, resetAfterMs: 30_000, windowMs: 60_000 }],
    ],
    [
      'drafts 8 to 11, several limits',
      { RateLimit: '"burst";r=0;t=1, daily;r=900', 'RateLimit-Policy': '"burst";q=10;w=1, "daily";q=1000;w=86400' },
      [
        { name: 'burst', quota: 10, remaining: 0, resetAfterMs: 1000, windowMs: 1000 },
        { name: 'daily', quota: 1000, remaining: 900, windowMs: 86_400_000 },
      ],
    ],
    [
      'draft 8 with a partition key, and no policy',
      { RateLimit: '"default";r=5;t=2;pk=:c2x1aWNl:' },
      [{ name: 'default', remaining: 5, resetAfterMs: 2000 }],
    ],
    [
      'draft 7',
      { RateLimit: 'limit=100, remaining=40, reset=7', 'RateLimit-Policy': '100;w=60, 5000;w=3600' },
      [{ name: '', quota: 100, remaining: 40, resetAfterMs: 7000, windowMs: 60_000 }],
    ],
    [
      'drafts 5 and 6',
      {
        'RateLimit-Limit': '100',
        'RateLimit-Remaining': '3',
        'RateLimit-Reset': '12',
        'RateLimit-Policy': '10;w=1, 100;w=60',
      },
      [{ name: '', quota: 100, remaining: 3, resetAfterMs: 12_000, windowMs: 60_000 }],
    ],
    [
      'drafts 3 and 4, policies behind the limit',
      {
        'RateLimit-Limit': '100, 100;w=60;comment="fixed window"',
        'RateLimit-Remaining': '3',
        'RateLimit-Reset': '12',
      },
      [{ name: '', quota: 100, remaining: 3, resetAfterMs: 12_000, windowMs: 60_000 }],
    ],
  ])('%s', (_draft, headers, limits) => {
    expect(rateLimitFields(response(headers as unknown as Record<string, string>))).toEqual(limits);
  });

  it.each(['', '"default', 'r=', '50', '(1 2);r=5', '"a";r=-1', '"a";r="5"', 'limit=9, remaining=?1', '☃'])(
    'reads nothing of %j',
    (value) => {
      const headers = { get: (name: string) => (name === 'ratelimit' ? value : null) };
      const limits = rateLimitFields({ status: 200, headers, receivedAt: NOW });
      expect(limits.filter(({ remaining }) => remaining !== undefined)).toEqual([]);
    },
  );
});

describe('the time of a reset', () => {
  it.each([
    ['seconds', '30', 30_000],
    ['parts of a second', '1.25', 1250],
    ['nothing left to wait', '0', 0],
    ['a day in seconds', '86400', 86_400_000],
    ['more seconds than a day has are milliseconds', '90000', 90_000],
    ['seconds since the epoch', String(NOW / 1000 + 60), 60_000],
    ['seconds since the epoch with a part', String(NOW / 1000 + 0.5), 500],
    ['milliseconds since the epoch', String(NOW + 1234), 1234],
    ['a time that is over', String(NOW / 1000 - 60), 0],
    ['RFC 3339', new Date(NOW + 5000).toISOString(), 5000],
    ['RFC 3339 with an offset', '2026-01-02T04:04:10+01:00', 5000],
    ['an HTTP date', new Date(NOW + 5000).toUTCString(), 5000],
    ['the HTTP date of RFC 850', 'Friday, 02-Jan-26 03:04:10 GMT', 5000],
    ['the HTTP date of asctime', 'Fri Jan  2 03:04:10 2026', 5000],
    ['a length of time', '1h2m3.5s', HOUR + 123_500],
    ['milliseconds with their unit', '120ms', 120],
  ])('%s', (_form, value, ms) => {
    expect(resetAfterMs(response({ 'x-reset': value }), 'x-reset')).toBeCloseTo(ms, 3);
  });

  it.each(['-5', 'soon', '1e9', '0x10', 'Infinity', '5 s', '1', 'Jan'])(
    'says nothing of %j but what it means',
    (value) => {
      const read = resetAfterMs(response({ 'x-reset': value }), 'x-reset');
      expect(read).toBe(value === '1' ? 1000 : undefined);
    },
  );

  it('goes by the clock of an upstream whose clock is another one', () => {
    const theirs = NOW - HOUR;
    const headers = { Date: new Date(theirs).toUTCString(), 'x-reset': String(theirs / 1000 + 60) };
    expect(resetAfterMs(response(headers), 'x-reset')).toBe(60_000);
  });

  it('goes by our clock where the upstream says the same to a second or two', () => {
    const headers = { Date: new Date(NOW - 2000).toUTCString(), 'x-reset': String(NOW + 500) };
    expect(resetAfterMs(response(headers), 'x-reset')).toBe(500);
  });
});

describe('Retry-After', () => {
  it.each([
    [{ 'Retry-After': '120' }, 120_000],
    [{ 'Retry-After': '2.0' }, 2000],
    [{ 'Retry-After': new Date(NOW + 9000).toUTCString() }, 9000],
    [{ 'Retry-After': new Date(NOW - 9000).toUTCString() }, 0],
    [{ 'Retry-After-Ms': '350', 'Retry-After': '1' }, 350],
    [{ 'Retry-After': '-1' }, undefined],
    [{ 'Retry-After': 'later' }, undefined],
    [{}, undefined],
  ])('%j is %p ms', (headers, ms) => {
    expect(retryAfterMs(response(headers as unknown as Record<string, string>, 429))).toBe(ms);
  });
});

describe('X-RateLimit', () => {
  it.each(['X-RateLimit', 'X-Rate-Limit', 'x-ratelimit'])('reads %s', (prefix) => {
    const headers = { [`${prefix}-Limit`]: '60', [`${prefix}-Remaining`]: '12', [`${prefix}-Reset`]: '30' };
    expect(xRateLimitFields(response(headers))).toEqual([{ name: '', quota: 60, remaining: 12, resetAfterMs: 30_000 }]);
  });

  it.each(['-1', '', 'many', '1e3', '1,2', '99999999999999999999'])('says nothing where %j is left', (remaining) => {
    expect(xRateLimitFields(response({ 'X-RateLimit-Remaining': remaining }))).toEqual([]);
  });
});

/** What each upstream's documentation shows. */
const DOCUMENTED = {
  'rate-limit': {
    response: response({ RateLimit: '"default";r=50;t=30' }),
    limits: [{ name: 'default', remaining: 50, resetAfterMs: 30_000 }],
  },
  'x-rate-limit': {
    response: response({ 'X-RateLimit-Limit': '60', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '15' }),
    limits: [{ name: '', quota: 60, remaining: 0, resetAfterMs: 15_000 }],
  },
  github: {
    response: response({
      'x-github-request-id': 'C0FF:EE',
      'x-ratelimit-limit': '5000',
      'x-ratelimit-remaining': '4987',
      'x-ratelimit-used': '13',
      'x-ratelimit-resource': 'core',
      'x-ratelimit-reset': String(NOW / 1000 + 1350),
    }),
    limits: [{ name: 'core', quota: 5000, remaining: 4987, resetAfterMs: 1_350_000 }],
  },
  openai: {
    response: response({
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-limit-tokens': '150000',
      'x-ratelimit-remaining-requests': '59',
      'x-ratelimit-remaining-tokens': '149984',
      'x-ratelimit-reset-requests': '1s',
      'x-ratelimit-reset-tokens': '6m0s',
      'x-ratelimit-limit-project-tokens': '60000',
      'x-ratelimit-remaining-project-tokens': '57000',
      'x-ratelimit-reset-project-tokens': '3s',
    }),
    limits: [
      { name: 'requests', unit: 'requests', quota: 60, remaining: 59, resetAfterMs: 1000, refill: 'gradual' },
      { name: 'tokens', unit: 'tokens', quota: 150_000, remaining: 149_984, resetAfterMs: 360_000, refill: 'gradual' },
      {
        name: 'project-tokens',
        unit: 'tokens',
        quota: 60_000,
        remaining: 57_000,
        resetAfterMs: 3000,
        refill: 'gradual',
      },
    ],
  },
  anthropic: {
    response: response({
      'anthropic-ratelimit-requests-limit': '50',
      'anthropic-ratelimit-requests-remaining': '49',
      'anthropic-ratelimit-requests-reset': '2026-01-02T03:04:07Z',
      'anthropic-ratelimit-input-tokens-limit': '40000',
      'anthropic-ratelimit-input-tokens-remaining': '39000',
      'anthropic-ratelimit-input-tokens-reset': '2026-01-02T03:04:09Z',
    }),
    limits: [
      { name: 'requests', unit: 'requests', quota: 50, remaining: 49, resetAfterMs: 2000, refill: 'gradual' },
      {
        name: 'input-tokens',
        unit: 'input-tokens',
        quota: 40_000,
        remaining: 39_000,
        resetAfterMs: 4000,
        refill: 'gradual',
      },
    ],
  },
  shopify: {
    response: response({ 'X-Shopify-Shop-Api-Call-Limit': '32/40' }),
    limits: [{ name: '', unit: 'requests', quota: 40, remaining: 8, refill: 'gradual' }],
  },
  'shopify-graphql': {
    response: response({}, 200, {
      data: {},
      extensions: {
        cost: {
          requestedQueryCost: 101,
          actualQueryCost: 46,
          throttleStatus: { maximumAvailable: 1000, currentlyAvailable: 954, restoreRate: 50 },
        },
      },
    }),
    limits: [{ name: '', unit: 'points', quota: 1000, remaining: 954, resetAfterMs: 920, refill: 'gradual' }],
  },
  stripe: { response: response({ 'Stripe-Rate-Limited-Reason': 'global-rate' }, 429), limits: [] },
  slack: { response: response({ 'Retry-After': '30' }, 429), limits: [] },
  discord: {
    response: response({
      'X-RateLimit-Limit': '5',
      'X-RateLimit-Remaining': '0',
      'X-RateLimit-Reset': String(NOW / 1000 + 1.5),
      'X-RateLimit-Reset-After': '1.25',
      'X-RateLimit-Bucket': 'abcd1234',
    }),
    limits: [{ name: 'abcd1234', quota: 5, remaining: 0, resetAfterMs: 1250 }],
  },
} satisfies Record<keyof typeof upstreams, { response: UpstreamResponse; limits: object[] }>;

describe('the table of upstreams', () => {
  const names = Object.keys(upstreams) as (keyof typeof upstreams)[];
  it.each(names)('reads what the documentation of %s shows', (name) => {
    const { response: documented, limits } = DOCUMENTED[name];
    expect(upstreams[name].parse(documented)?.limits).toEqual(limits);
  });

  it.each(names.filter((name) => upstreams[name].readsBody !== true))(
    'reads %s without being told its name',
    (name) => {
      const { response: documented, limits } = DOCUMENTED[name];
      const unnamed = name === 'discord' ? limits.map((limit) => ({ ...limit, name: '' })) : limits;
      expect(parseUpstream(documented)).toMatchObject({
        limits: unnamed,
        ...(name === 'slack' ? { retryAfterMs: 30_000 } : {}),
      });
    },
  );

  it.each([
    ['github', response({ 'x-ratelimit-remaining': '0' }, 403), true],
    ['github', response({ 'retry-after': '60' }, 403), true],
    ['github', response({ 'x-ratelimit-remaining': '7' }, 403), false],
    ['github', response({}, 200), undefined],
    ['anthropic', response({ 'retry-after': '5' }, 529), true],
    ['shopify-graphql', response({}, 200, { errors: [{ extensions: { code: 'THROTTLED' } }] }), true],
    ['shopify-graphql', response({}, 200, { errors: 'none' }), undefined],
  ] as const)('%s says whether it refused (%#)', (name, told, refused) => {
    expect(upstreams[name].parse(told)?.refused).toBe(refused);
  });

  it.each([
    [response({ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW / 1000 + 90) }, 403), 90_000],
    [response({ 'x-ratelimit-remaining': '0' }, 429), 60_000],
    [response({ 'x-ratelimit-remaining': '7' }, 429), 60_000],
    [response({ 'x-ratelimit-remaining': '7', 'retry-after': '5' }, 429), 5000],
    [response({ 'x-ratelimit-remaining': '7' }, 403), undefined],
    [response({ 'x-ratelimit-remaining': '0' }, 200), undefined],
  ])('waits as GitHub wants it after a refusal (%#)', (told, ms) => {
    expect(upstreams.github.parse(told)?.retryAfterMs).toBe(ms);
  });

  it.each(['', '32', '32/', '32/40/50', '-1/40', 'a/b'])('reads no bucket of Shopify in %j', (value) => {
    expect(upstreams.shopify.parse(response({ 'X-Shopify-Shop-Api-Call-Limit': value }))?.limits).toEqual([]);
  });

  it('has nothing left of a bucket that was overdrawn', () => {
    const told = upstreams.shopify.parse(response({ 'X-Shopify-Shop-Api-Call-Limit': '45/40' }));
    expect(told?.limits).toMatchObject([{ quota: 40, remaining: 0 }]);
  });
});
