import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { ThrottlerStorageService } from '@nestjs/throttler';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { RateLimitArgumentError } from '../../../lib/index.js';
import { SluiceThrottlerStorage } from '../../../lib/integrations/throttler-storage/index.js';
import { PATIENCE } from '../../support/redis/patience.mjs';
import { freshPrefix } from '../../support/limits/stores.js';
import { expectEqual, propertyRuns } from '../../support/limits/property-runs.js';

interface Hit {
  /** Milliseconds since the hit before. */
  readonly after: number;
  readonly key: string;
  readonly ttl: number;
  readonly limit: number;
  readonly block: number;
  /** Throttler's storage looks for keys that it can forget. */
  readonly sweeps: boolean;
}

const START = Date.UTC(2030, 0);
/** Near the ends of what lasts 1, 3 or 10 seconds, and anywhere. */
const passing = fc.oneof(
  fc.constantFrom(0, 0, 0, 1, 999, 1000, 1001, 2000, 3000, 10_000, 60_000),
  fc.integer({ min: 0, max: 4000 }),
);
const lasting = fc.constantFrom(1, 400, 1000, 3000, 10_000);

/**
 * Hits whose terms come from functions of the request may have different ones for one key. Those of a throttler all block, or none does:
 * for a mix of both, the result of throttler's storage depends on when it last looked for keys that it can forget.
 */
const histories = (sameTerms: boolean) =>
  fc.boolean().chain((blocks) => {
    const limit = fc.integer({ min: 1, max: 4 });
    const terms = fc.record({ ttl: lasting, limit, block: blocks ? lasting : fc.constant(0) });
    const hit = fc.record({ after: passing, key: fc.constantFrom('a', 'b'), terms, sweeps: fc.boolean() });
    return fc
      .tuple(terms, fc.array(hit, { minLength: 1, maxLength: 40 }))
      .map(([common, hits]) =>
        hits.map(({ terms: own, ...rest }): Hit => ({ ...rest, ...(sameTerms ? common : own) })),
      );
  });

describe.each(['on Redis', 'in process'])('SluiceThrottlerStorage %s', (place) => {
  let now = START;
  let count = 0;
  let storage: SluiceThrottlerStorage;

  beforeAll(async () => {
    storage = new SluiceThrottlerStorage({
      redis: process.env['TEST_REDIS_URL']!,
      prefix: freshPrefix(),
      timeout: PATIENCE,
      // Redis removes keys by its own clock, which is behind this one.
      clock: { now: () => now * 1000, slackMs: 3_600_000 },
    });
    if (place === 'in process') await storage.close();
    else await storage.onModuleInit();
  });
  afterEach(() => void jest.restoreAllMocks());
  afterAll(() => storage.close());

  it.each([
    ['ttl', NaN, 1, 1000, 'NaN'],
    ['ttl', undefined, 1, 1000, 'undefined'],
    ['limit', 1000, NaN, 1000, 'NaN'],
    ['blockDuration', 1000, 1, 'long', "'long'"],
    ['blockDuration', 1000, 1, 10n, '10n'],
  ])('rejects a wrong %s, and goes on counting where it counted', async (name, ttl, limit, block, shown) => {
    const logged = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const wrong = storage.increment('wrong', ttl as number, limit, block as number, 'x');
    const message = `increment: expected a number as ${name}, received ${shown}`;
    await expect(wrong).rejects.toThrow(new RateLimitArgumentError(message));
    expect(logged).not.toHaveBeenCalled();
  });

  async function expectSame(hits: readonly Hit[]): Promise<void> {
    const theirs = new ThrottlerStorageService();
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => now);
    const history = `history-${count++}`;
    try {
      for (const [index, { after, key, ttl, limit, block, sweeps }] of hits.entries()) {
        now += after;
        if (sweeps) (theirs as unknown as { evictIdleRecords(): void }).evictIdleRecords();
        const name = `${key}-name`;
        const expected = await theirs.increment(`${history}:${key}`, ttl, limit, block, name);
        const actual = await storage.increment(`${history}:${key}`, ttl, limit, block, name);
        // Of a hit that isn't blocked, it returns how long ago the last block ended.
        const timeToBlockExpire = expected.isBlocked ? expected.timeToBlockExpire : 0;
        expectEqual({ index, ...actual }, { index, ...expected, timeToBlockExpire });
      }
    } finally {
      clock.mockRestore();
      theirs.onApplicationShutdown();
    }
  }

  it.each([
    ['the terms of a throttler', true],
    ['terms that change with each hit', false],
  ])('returns what throttler returns with %s', async (_, sameTerms) => {
    await fc.assert(fc.asyncProperty(histories(sameTerms), expectSame), { numRuns: propertyRuns(200) });
  });

  it('lets nothing pass at a limit of 0, also after a block', async () => {
    for (const block of [0, 1000]) {
      for (let i = 0; i < 3; i++) {
        const record = await storage.increment(`none-${block}`, 3000, 0, block, 'default');
        expect(record).toEqual({
          totalHits: 1,
          timeToExpire: 3 - i,
          isBlocked: true,
          timeToBlockExpire: block / 1000 || 3 - i,
        });
        now += 1000;
      }
    }
  });

  it('counts each key of each throttler separately', async () => {
    const ask = async (key: string, name: string) => (await storage.increment(key, 1000, 10, 1000, name)).totalHits;
    expect(await ask('key', 'short')).toBe(1);
    expect(await ask('key', 'long')).toBe(1);
    expect(await ask('key:', 'short')).toBe(1);
    expect(await ask('a key with { and }', 'a name with { and }')).toBe(1);
    expect(await ask('a key with { and }', 'a name with {')).toBe(1);
    expect(await ask('key', 'short')).toBe(2);
  });
});

it('leaves no key that lives for ever, and replaces values of another type', async () => {
  const redis = new Redis(process.env['TEST_REDIS_URL']!);
  const prefix = freshPrefix();
  const storage = new SluiceThrottlerStorage({ redis: process.env['TEST_REDIS_URL']!, prefix, timeout: PATIENCE });
  try {
    await storage.onModuleInit();
    const hit = (ttl: number, block: number) => storage.increment('key', ttl, 1, block, 'default');
    for (const [ttl, block] of [
      [60_000, 0],
      [60_000, 0],
      [90_000, 300_000],
      [90_000, 300_000],
    ] as const) {
      const { isBlocked } = await hit(ttl, block);
      const lasts = isBlocked && block > 0 ? block : 60_000;
      const [key, ...others] = await redis.keys(`${prefix}:*`);
      expect(others).toEqual([]);
      // Half of a `ttl` longer than needed, and a second.
      const lives = await redis.pttl(key!);
      expect(lives).toBeGreaterThan(lasts - 60_000);
      expect(lives).toBeLessThanOrEqual(lasts + 1.5 * ttl + 1000);
    }
    await redis.set(`${prefix}:{key}:throttler=default`, 'text');
    expect(await hit(60_000, 0)).toMatchObject({ totalHits: 1, isBlocked: false });
    expect(await redis.pttl(`${prefix}:{key}:throttler=default`)).toBeGreaterThan(0);
  } finally {
    await storage.close();
    redis.disconnect();
  }
});
