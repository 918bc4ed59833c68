import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  parseUpstream,
  type UpstreamParser,
  type UpstreamResponse,
  upstreams,
} from '../../../lib/integrations/outbound/index.js';
import { type ReadReport, readUpstream } from '../../../lib/integrations/outbound/headers/read-upstream.js';
import { propertyRuns } from '../../support/limits/property-runs.js';

const RUNS = { numRuns: propertyRuns(400) };
const MOST_MS = 3_600_000;

const FIELDS = [
  'date',
  'retry-after',
  'retry-after-ms',
  'ratelimit',
  'ratelimit-policy',
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-ratelimit-reset-after',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-reset-tokens',
  'anthropic-ratelimit-tokens-remaining',
  'anthropic-ratelimit-tokens-reset',
  'x-shopify-shop-api-call-limit',
  'x-github-request-id',
];

const value = fc.oneof(
  fc.string(),
  fc.string({ unit: 'grapheme', maxLength: 6000 }),
  fc.integer().map(String),
  fc.double().map(String),
  fc.bigInt().map(String),
  fc.date({ noInvalidDate: false }).map((date) => (Number.isNaN(date.getTime()) ? 'Invalid' : date.toUTCString())),
  fc.tuple(fc.integer(), fc.integer()).map(([r, t]) => `"default";r=${r};t=${t}`),
  fc.tuple(fc.integer(), fc.integer()).map(([r, t]) => `limit=5, remaining=${r}, reset=${t}`),
  fc.tuple(fc.nat(), fc.constantFrom('s', 'm', 'h', 'd', 'ms', 'x')).map(([n, unit]) => `${n}${unit}`),
  fc.tuple(fc.integer(), fc.integer()).map((parts) => parts.join('/')),
);

const responses = fc
  .record({
    status: fc.constantFrom(200, 403, 429, 503, 529),
    headers: fc.dictionary(fc.constantFrom(...FIELDS), value),
    body: fc.oneof(fc.jsonValue(), fc.anything()),
    receivedAt: fc.integer({ min: 0, max: 4e12 }),
  })
  .map(({ headers, ...rest }): UpstreamResponse => ({ ...rest, headers: { get: (name) => headers[name] ?? null } }));

const isWait = (ms: number | undefined) => ms === undefined || (ms >= 0 && ms <= MOST_MS);
const isCount = (units: number | undefined) => units === undefined || (Number.isSafeInteger(units) && units >= 0);

function expectSensible({ limits, retryAfterMs, refused }: ReadReport): void {
  expect(isWait(retryAfterMs)).toBe(true);
  expect(typeof refused).toBe('boolean');
  for (const { name, quota, remaining, resetAfterMs } of limits) {
    expect(typeof name).toBe('string');
    expect([quota, remaining].every(isCount)).toBe(true);
    expect(isWait(resetAfterMs)).toBe(true);
  }
}

describe('whatever an upstream says', () => {
  it.each([
    ['no name', parseUpstream],
    ...Object.entries(upstreams).map(([name, { parse }]) => [name, parse] as const),
  ])('is read without an error, and no wait is longer than the longest one (%s)', (_name, parse) => {
    fc.assert(
      fc.property(responses, (response) => expectSensible(readUpstream(parse, response, MOST_MS))),
      RUNS,
    );
  });

  it('is read by any parser, also one that fails', () => {
    const parsers = fc.oneof(
      fc.anything().map((told) => () => told),
      fc
        .record({ limits: fc.array(fc.anything()), retryAfterMs: fc.double(), refused: fc.anything() })
        .map((told) => () => told),
      fc.constant(() => {
        throw new Error('of the user');
      }),
    );
    fc.assert(
      fc.property(parsers, responses, (parse, response) =>
        expectSensible(readUpstream(parse as UpstreamParser, response, MOST_MS)),
      ),
      RUNS,
    );
  });
});
