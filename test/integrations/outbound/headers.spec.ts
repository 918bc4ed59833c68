import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Item, parseDictionary, parseList, Token } from 'structured-headers';
import { parseUpstream, type UpstreamResponse, upstreams } from '../../../lib/integrations/outbound/index.js';
import { rateLimitFields, xRateLimitFields } from '../../../lib/engine/limit-headers/rate-limit-fields.js';
import { resetAfterMs, retryAfterMs } from '../../../lib/engine/limit-headers/field-values.js';
import { dictionaryOf, itemsOf } from '../../../lib/engine/limit-headers/structured-fields.js';

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
    ['microseconds since the epoch', `${NOW + 1234}000`, 1234],
    ['nanoseconds since the epoch', `${NOW + 1234}000000`, 1234],
    ['seconds until the end of the year 9999', '253402300799', 253402300799000 - NOW],
    ['milliseconds until the end of the year 9999', '253402300799999', 253402300799999 - NOW],
    ['never, as the largest integer of 64 bits', '18446744073709551615', 2 ** 64 * 1e-6 - NOW],
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
    [{ 'Retry-After': '18446744073709551615' }, 2 ** 64 * 1000],
    [{ 'Retry-After-Ms': '18446744073709551615' }, 2 ** 64],
    [{ 'Retry-After': '-1' }, undefined],
    [{ 'Retry-After': 'later' }, undefined],
    [{}, undefined],
  ])('%j is %p ms', (headers, ms) => {
    expect(retryAfterMs(response(headers as unknown as Record<string, string>, 429))).toBe(ms);
  });
});

/** The examples of the appendices of draft 11, by their headings. */
const EXAMPLES: [heading: string, fields: string, limits: object[]][] = [
  ['no policy', '"default";r=0;t=50', [{ name: 'default', remaining: 0, resetAfterMs: 50_000 }]],
  ['no policy, later', '"default";r=0;t=48', [{ name: 'default', remaining: 0, resetAfterMs: 48_000 }]],
  [
    'the tightest of several policies',
    '"dayLimit";r=100;t=36000',
    [{ name: 'dayLimit', remaining: 100, resetAfterMs: 10 * HOUR }],
  ],
  [
    'limited concurrency',
    '"basic";r=60;t=58 / "basic";q=100;w=60',
    [{ name: 'basic', quota: 100, remaining: 60, resetAfterMs: 58_000, windowMs: 60_000 }],
  ],
  [
    'limited concurrency, later',
    '"basic";r=20;t=56 / "basic";q=100;w=60',
    [{ name: 'basic', quota: 100, remaining: 20, resetAfterMs: 56_000, windowMs: 60_000 }],
  ],
  ['a rejection', '"default";r=0;t=5', [{ name: 'default', remaining: 0, resetAfterMs: 5000 }]],
  [
    'a window',
    '"fixedwindow";r=99;t=50 / "fixedwindow";q=100;w=60',
    [{ name: 'fixedwindow', quota: 100, remaining: 99, resetAfterMs: 50_000, windowMs: 60_000 }],
  ],
  [
    'a dynamic limit',
    '"dynamic";r=9;t=50 / "dynamic";q=100;w=60',
    [{ name: 'dynamic', quota: 100, remaining: 9, resetAfterMs: 50_000, windowMs: 60_000 }],
  ],
  [
    'a limit that was lowered',
    '"dynamic";r=0;t=20 / "dynamic";q=15;w=20',
    [{ name: 'dynamic', quota: 15, remaining: 0, resetAfterMs: 20_000, windowMs: 20_000 }],
  ],
  [
    'a rejection with units left',
    '"dynamic";r=15;t=40 / "dynamic";q=100;w=60',
    [{ name: 'dynamic', quota: 100, remaining: 15, resetAfterMs: 40_000, windowMs: 60_000 }],
  ],
  ['nothing about what is left', 'quota;t=1 / quota;q=100;w=1', []],
  ['nothing about what is left or the window', 'quota;t=1 / quota;q=10', []],
  [
    'several windows',
    '"day";r=100;t=36000 / "hour";q=1000;w=3600, "day";q=5000;w=86400',
    [{ name: 'day', quota: 5000, remaining: 100, resetAfterMs: 10 * HOUR, windowMs: 24 * HOUR }],
  ],
  ['no space after the name', '"default";r=50;t=60', [{ name: 'default', remaining: 50, resetAfterMs: 60_000 }]],
  [
    'parameters of a server',
    '"sliding";r=50;t=44 / "sliding";q=100;w=60;burst=1000, "fixed";q=5000;w=3600;burst=0',
    [{ name: 'sliding', quota: 100, remaining: 50, resetAfterMs: 44_000, windowMs: 60_000 }],
  ],
  [
    'the quota in both fields',
    '"sliding";q=12;r=6;t=1 / "sliding";q=12;w=1',
    [{ name: 'sliding', quota: 12, remaining: 6, resetAfterMs: 1000, windowMs: 1000 }],
  ],
  [
    'the quota in both fields, later',
    '"sliding";q=12;r=1;t=1 / "sliding";q=12;w=1',
    [{ name: 'sliding', quota: 12, remaining: 1, resetAfterMs: 1000, windowMs: 1000 }],
  ],
  [
    'the names of draft 12',
    '"burst";a=80;w=45;c=2 / "burst";q=100;w=60',
    [{ name: 'burst', quota: 100, remaining: 80, resetAfterMs: 45_000, windowMs: 60_000 }],
  ],
];

it.each(EXAMPLES)('reads the example with %s', (_heading, fields, limits) => {
  const [state = '', policy = ''] = fields.split(' / ');
  const headers = { RateLimit: state, ...(policy !== '' && { 'RateLimit-Policy': policy }) };
  expect(rateLimitFields(response(headers))).toEqual(limits);
});

describe('structured fields', () => {
  const key = fc.stringMatching(/^[a-z*][a-z0-9_.*-]{0,3}$/);
  const bare = fc.oneof(
    fc.integer({ min: -1e15, max: 1e15 }).map(String),
    fc.double({ min: -1000, max: 1000, noNaN: true }).map((value) => value.toFixed(3)),
    fc.stringMatching(/^[ !#-[\]-~]{0,5}$/).map((text) => `"${text}"`),
    fc.constantFrom(
      '"a\\"b"',
      '"\\\\"',
      '"\\a"',
      ':YQ==:',
      ':a b:',
      '?1',
      '?2',
      '%"a%c3%bc"',
      '%"%zz"',
      '1.',
      '.5',
      '1.2345',
      '--1',
    ),
    fc.stringMatching(/^[A-Za-z*][\w!#$%&'*+.^`|~:/-]{0,4}$/),
  );
  const parameters = fc
    .array(fc.tuple(fc.constantFrom(';', '; ', ' ;'), key, fc.constantFrom('', '=', '= '), bare), { maxLength: 3 })
    .map((all) =>
      all.map(([mark, name, equals, value]) => `${mark}${name}${equals}${equals === '' ? '' : value}`).join(''),
    );
  const item = fc.tuple(bare, parameters).map((parts) => parts.join(''));
  const inner = fc.array(item, { maxLength: 2 }).map((items) => `(${items.join(' ')})`);
  const member = fc.oneof(
    { weight: 5, arbitrary: item },
    inner,
    fc.tuple(key, fc.constant('='), item).map((parts) => parts.join('')),
  );
  const comma = fc.constantFrom(',', ', ', ' ,\t', ' ');
  const text = fc.array(fc.tuple(member, comma), { minLength: 1, maxLength: 3 }).chain((members) =>
    fc.boolean().map((isCut) =>
      members
        .flat()
        .slice(0, isCut ? -1 : undefined)
        .join(''),
    ),
  );

  const plain = (value: unknown) =>
    value instanceof Token
      ? { token: value.toString() }
      : typeof value === 'number' || typeof value === 'string'
        ? value
        : undefined;
  const attempt = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch {
      return undefined;
    }
  };

  // Except for dates, behind which that parser accepts nothing.
  it('are read as a full parser reads them', () => {
    let lists = 0;
    const property = fc.property(
      fc.oneof({ weight: 9, arbitrary: text }, fc.string({ unit: 'binary-ascii' })),
      (field) => {
        const list = attempt(() => parseList(field));
        if (list !== undefined) lists++;
        const items = list?.filter((each): each is Item => !Array.isArray(each[0]));
        expect(itemsOf(field)).toEqual(
          (items ?? []).map(([value, parameters]) => ({
            value: plain(value),
            parameters: new Map([...parameters].map(([name, each]) => [name, plain(each)])),
          })),
        );
        const dictionary = attempt(() => parseDictionary(field)) ?? new Map<string, [unknown]>();
        expect(dictionaryOf(field)).toEqual(
          new Map([...dictionary].map(([name, [value]]) => [name, Array.isArray(value) ? undefined : plain(value)])),
        );
      },
    );
    fc.assert(property, { numRuns: 2000 });
    expect(lists).toBeGreaterThan(100);
  });
});

describe('X-RateLimit', () => {
  it.each(['X-RateLimit', 'X-Rate-Limit', 'x-ratelimit'])('reads %s', (prefix) => {
    const headers = { [`${prefix}-Limit`]: '60', [`${prefix}-Remaining`]: '12', [`${prefix}-Reset`]: '30' };
    expect(xRateLimitFields(response(headers))).toEqual([{ name: '', quota: 60, remaining: 12, resetAfterMs: 30_000 }]);
  });

  it('reads the largest integer of 64 bits, which stands for "unlimited"', () => {
    const [limit] = xRateLimitFields(response({ 'X-RateLimit-Remaining': '18446744073709551615' }));
    expect(limit).toMatchObject({ remaining: 2 ** 64 });
  });

  it.each(['-1', '', 'many', '1e3', '1,2', '999999999999999999999'])('ignores %j left', (remaining) => {
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
