import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { OutgoingHttpHeaders } from 'node:http';
import type { TestingModule } from '@nestjs/testing';
import fc from 'fast-check';
import type { OutboundLimiter, FetchOptions, OutboundLimits } from '../../../lib/integrations/outbound/index.js';
import { type LimiterService, RateLimitConfigError, RateLimitTimeoutError } from '../../../lib/index.js';
import { LearnedRule } from '../../../lib/integrations/outbound/learning/learned-rules.js';
import { createTestingStore, TestClock } from '../../../lib/testing/index.js';
import { propertyRuns } from '../../support/limits/property-runs.js';
import { ask, compile, freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { startLimiters, Upstream } from './upstream.js';
import { atPlace } from '../../support/limits/at-place.js';

const PARTNER = { algo: 'learned', name: 'partner' } as const;
const ADOPTED = { RateLimit: '"default";r=90;t=30', 'RateLimit-Policy': '"default";q=100;w=60' };

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

describe('a limit without a configured rate', () => {
  let clock: TestClock;
  let app: TestingModule;
  let limiters: LimiterService;
  let outbound: OutboundLimiter;
  let upstream: Upstream;
  let headers: OutgoingHttpHeaders;
  let status: number;

  beforeEach(async () => {
    clock = new TestClock();
    const define = {
      known: { algo: 'gcra', rate: 1, interval: '1s' },
      ceiling: { algo: 'fixed-window', rate: 2, interval: '1h' },
    } as const;
    ({ app, limiters, outbound } = await startLimiters({ define, store: createTestingStore({ clock }) }));
    [headers, status] = [{}, 200];
    upstream = await Upstream.start((_, response) => void response.writeHead(status, headers).end());
  });

  afterEach(async () => {
    await upstream.close();
    await app.close();
  });

  const client = (options: FetchOptions = {}) => outbound.fetch(PARTNER, { learn: true, timeout: 0, ...options });
  const call = async (options?: FetchOptions) => (await client(options)(upstream.url)).arrayBuffer();
  /** Milliseconds until another call may go out. */
  async function waitMs(options?: FetchOptions): Promise<number> {
    const error = (await call(options).catch((reason: unknown) => reason)) as RateLimitTimeoutError;
    expect(error).toBeInstanceOf(RateLimitTimeoutError);
    return error.decision!.retryAfterMs;
  }
  /** The answer of the last call has been learnt, though nobody was asked for it. */
  const learnt = (ms: number, options?: FetchOptions) => until(async () => (await waitMs(options)) === ms);

  it('lets one call go out, and doubles its rate each second', async () => {
    await call();
    await learnt(500);
    clock.advance('500ms');
    await call();
    await learnt(334);
  });

  it('asks for calls that cost more than one unit', async () => {
    const options = { cost: 500 };
    await call(options);
    await learnt(500, options);
  });

  it.each([429, 503])('waits after a %d, and goes on at half of the rate', async (refusal) => {
    status = refusal;
    await call();
    // The pause is over after a second, and the next call there after two.
    await learnt(2000);
    status = 200;
    clock.advance('2s');
    await call();
    // From 30 a minute it grew by a sixteenth of that, to 33 in whole units.
    await learnt(1819);
  });

  it('holds below a configured rate that is too high', async () => {
    const both = outbound.fetch(['ceiling', PARTNER], { learn: true, timeout: 0 });
    const send = async () => (await both(upstream.url)).arrayBuffer();
    const refusal = () => send().catch((reason: unknown) => reason as RateLimitTimeoutError);
    await send();
    await until(async () => {
      const { decision } = (await refusal()) as RateLimitTimeoutError;
      return decision!.limit === 'partner' && decision!.retryAfterMs === 500;
    });
    expect((await limiters.for('ceiling').peek('global')).remaining).toBe(1);
    clock.advance('500ms');
    await send();
    // The configured rate is the ceiling.
    clock.advance('5s');
    expect(((await refusal()) as RateLimitTimeoutError).decision!.limit).toBe('ceiling');
  });

  it('waits as long as a refusal says', async () => {
    [status, headers] = [429, { 'Retry-After': '20' }];
    await call();
    await learnt(20_000);
  });

  it('takes over the quota and the window that headers tell', async () => {
    headers = ADOPTED;
    await call();
    const calls = await Promise.allSettled(Array.from({ length: 30 }, () => call()));
    expect(calls.filter((each) => each.status === 'rejected')).toEqual([]);
  });

  it('believes no upstream for longer than the longest wait', async () => {
    const options = { maxLearnedWait: '5s' } as const;
    headers = { RateLimit: '"default";r=0;t=99999999', 'RateLimit-Policy': '"default";q=1;w=99999999' };
    await call(options);
    await learnt(5000, options);
    for (let refusal = 0; refusal < 12; refusal++) {
      clock.advance('5s');
      [status, headers] = [429, {}];
      await call(options);
      expect(await waitMs(options)).toBeLessThanOrEqual(5000);
    }
  });

  it('is the same for each client of its name, and apart for each key', async () => {
    await call();
    await waitMs();
    await call({ key: 'another' });
  });

  it.each<[string, unknown, FetchOptions, string]>([
    ['without learn', PARTNER, {}, "the rate of the limit 'partner' is learned, which needs the option 'learn'"],
    ['without a name', { algo: 'learned' }, { learn: true }, 'name: missing, expected the name of the learned limit'],
    [
      'of a defined name',
      { algo: 'learned', name: 'known' },
      { learn: true },
      "the limit 'known' is defined with a rate",
    ],
    [
      'of a wrong name',
      { algo: 'learned', name: 5 },
      { learn: true },
      'name: expected 1 to 128 printable ASCII characters, received 5',
    ],
    ['with a rate', { ...PARTNER, rate: 5 }, { learn: true }, "unknown option 'rate', expected one of algo, name"],
    ['twice in a list', [PARTNER, PARTNER], { learn: true }, "the limit 'partner' is in the list twice. List it once"],
  ])('is refused %s', (_what, limits, options, message) => {
    const make = () => outbound.fetch(limits as OutboundLimits, options);
    expect(make).toThrow(RateLimitConfigError);
    expect(make).toThrow(atPlace('OutboundLimiter.fetch', message));
  });

  it('takes over any rate that a store may say', () => {
    const rate = fc.integer({ min: 1, max: 6e10 });
    const runs = { numRuns: propertyRuns(300) };
    fc.assert(
      fc.property(
        fc.record({ rate, intervalMs: fc.integer({ min: 1, max: 1e12 }), burst: fc.integer({ min: 1, max: 2 ** 50 }) }),
        fc.integer({ min: 1, max: 2 ** 50 }),
        (learned, cost) => {
          const rule = new LearnedRule(compile({ algo: 'gcra', rate: 60, interval: 60_000, burst: 1 }, 'any'));
          rule.noteCost('a', cost);
          rule.learn('a', learned);
          const limit = rule.usualLimit('a');
          expect(limit.quota).toBeLessThanOrEqual(Math.max(learned.burst, cost));
          expect(rule.usualLimit('b').quota).toBe(1);
        },
      ),
      runs,
    );
  });
});

it('never waits longer than the longest wait, whatever it is told, and in whatever order', async () => {
  const most = 5000;
  const ms = fc.oneof(fc.constantFrom(0, most), fc.integer({ min: 0, max: most }));
  const units = fc.oneof(fc.constantFrom(0, 1), fc.nat(1000), fc.integer({ min: 0, max: 2 ** 40 }));
  const step = fc.record({
    advance: ms,
    cost: fc.integer({ min: 1, max: 50 }),
    taken: fc.nat(5),
    told: fc.record({
      remaining: maybe(units),
      resetAfterMs: maybe(ms),
      ageMs: ms,
      window: maybe(fc.constant(1)),
      inFlight: units,
      instance: fc.nat(2),
      blockMs: maybe(ms),
    }),
    rate: fc.record({ quota: maybe(units), windowMs: maybe(ms), accepted: units, refused: fc.boolean() }),
  });
  const histories = fc.array(step, { minLength: 1, maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(histories, async (steps) => {
      const clock = new TestClock();
      const store = createTestingStore({ clock });
      const rule = new LearnedRule(compile({ algo: 'gcra', rate: 60, interval: 60_000, burst: 1 }, 'any'));
      rule.waitAtMost(most);
      const identity = 'account';
      let largest = 1;
      for (const { advance, cost, taken, told, rate } of steps) {
        clock.advance(advance);
        rule.noteCost(identity, cost);
        largest = Math.max(largest, cost);
        const counter = () => ({ limit: rule.usualLimit(identity), identity });
        rule.learn(
          identity,
          (await store.learn(counter(), { ...told, rate: { ...rate, ...rule.lessonOf(identity) } }))!,
        );
        for (let call = 0; call < taken; call++) await ask(store, counter().limit, { identity, cost });
        const { retryAfterMs } = await ask(store, counter().limit, { identity, cost: largest, peek: true });
        expect(retryAfterMs).toBeLessThanOrEqual(most);
      }
      await store.close();
    }),
    { numRuns: propertyRuns(200) },
  );
});

it('shares what it learnt among all instances on Redis', async () => {
  const options = { redis: process.env['TEST_REDIS_URL']!, prefix: freshPrefix() } as const;
  const [one, other] = [await startLimiters(options), await startLimiters(options)];
  const upstream = await Upstream.start((_, response) => void response.writeHead(200, ADOPTED).end());
  try {
    await one.outbound.fetch(PARTNER, { learn: true })(upstream.url);
    await one.app.close();
    const calls = Array.from({ length: 30 }, () =>
      other.outbound.fetch(PARTNER, { learn: true, timeout: '5s' })(upstream.url),
    );
    expect((await Promise.all(calls)).map((response) => response.status)).toEqual(calls.map(() => 200));
  } finally {
    await upstream.close();
    await other.app.close();
  }
});
