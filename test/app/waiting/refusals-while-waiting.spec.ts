import { afterEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import {
  type LimitDefinition,
  LimiterService,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { createTestingStore, TestClock } from '../../../lib/testing/index.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

const KEY = 'user:1';
const within = { org: 'acme' };
const hour = { rate: 1, interval: '1h' } as const;
const define = {
  org: { algo: 'fixed-window', rate: 1000, interval: '1h' },
  level: { algo: 'fixed-window', ...hour, blockFor: '1d', within: 'org' },
  strikes: { algo: 'fixed-window', ...hour, blockFor: '2h', strike: true, within: 'org' },
  tries: { algo: 'sliding-window', ...hour, countRefused: true, within: 'org' },
  slots: { algo: 'concurrency', limit: 1, ttl: '1h', blockFor: '1d' },
  spent: { algo: 'fixed-window', ...hour, hold: '5m' },
  blocking: { algo: 'fixed-window', ...hour, blockFor: '1d' },
} satisfies Record<string, LimitDefinition>;

const HOUR = 3_600_000;

const opened: { close(): Promise<unknown> }[] = [];
afterEach(() => Promise.all(opened.splice(0).map((app) => app.close())));

async function serviceOf(options: RateLimitModuleOptions): Promise<LimiterService> {
  const app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ define, ...options })] }).compile();
  opened.push(app);
  await app.init();
  return app.get(LimiterService);
}

const places: Record<string, () => RateLimitModuleOptions> = {
  'in process': () => ({ store: createTestingStore({ clock: new TestClock() }) }),
  'on Redis': () => ({ redis: process.env['TEST_REDIS_URL']!, prefix: freshPrefix(), timeout: PATIENCE }),
};

describe.each(Object.entries(places))('a call that waits in vain, %s', (_, place) => {
  it('begins no block of a limit within others', async () => {
    const limiter = (await serviceOf(place())).for('level');
    await limiter.consume(KEY, { within });
    await expect(limiter.acquire(KEY, { within, timeout: 20 })).rejects.toThrow('allowed nothing within');
    expect((await limiter.peek(KEY, { within })).retryAfterMs).toBeLessThanOrEqual(HOUR);
    // One that does not wait is a try.
    await limiter.consume(KEY, { within });
    expect((await limiter.peek(KEY, { within })).retryAfterMs).toBeGreaterThan(HOUR);
  });

  it('is not counted as a try', async () => {
    const limiter = (await serviceOf(place())).for('tries');
    await limiter.consume(KEY, { within });
    await expect(limiter.acquire(KEY, { within, timeout: 20 })).rejects.toThrow('allowed nothing within');
    expect(await limiter.peek(KEY, { within })).toMatchObject({ tried: 1 });
  });

  it('begins no block of a slot', async () => {
    const limiter = (await serviceOf(place())).for('slots');
    const { lease } = await limiter.consume(KEY);
    await expect(limiter.acquire(KEY, { timeout: 20 })).rejects.toThrow('allowed nothing within');
    await lease!.release();
    await expect(limiter.acquire(KEY)).resolves.toMatchObject({ allowed: true });
  });
});

it('a call that waits in vain prolongs no block', async () => {
  const clock = new TestClock();
  const limiter = (await serviceOf({ store: createTestingStore({ clock }) })).for('strikes');
  await limiter.consume(KEY, { within });
  await limiter.consume(KEY, { within });
  clock.advance('1h');
  await expect(limiter.acquire(KEY, { within, timeout: 20 })).rejects.toThrow('allowed nothing within');
  expect(await limiter.peek(KEY, { within })).toMatchObject({ retryAfterMs: HOUR });
});

it('a refusal that begins no block is not remembered for a try that does', async () => {
  const service = await serviceOf(places['on Redis']!());
  const both = ['spent', 'blocking'].map((limit) => ({ limit, key: KEY }));
  await service.check(both);
  // Once this instance listens, it remembers refusals.
  await service.for('org').consume('other', 1000);
  await until(async () => (await service.for('org').consume('other')).source === 'cache');
  expect((await service.reserve(both)).allowed).toBe(false);
  expect((await service.for('blocking').peek(KEY)).retryAfterMs).toBeLessThanOrEqual(HOUR);
  await service.check(both);
  expect((await service.for('blocking').peek(KEY)).retryAfterMs).toBeGreaterThan(HOUR);
});
