/**
 * The peers as their documentation sets them up, each asked in the same way: `check(key)` says whether a request of that key is
 * allowed. A limit is `{ rate, intervalMs }`; several limits are those of one request, unless `combine` makes another check of
 * the checks of each.
 */
import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis';
import { RedisThrottlerStorage } from '@nestjs-redis/throttler-storage';
import { Cluster, Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';
import { RedisStore } from 'rate-limit-redis';
import { createClient } from 'redis';
import { inTurn, throttlerChecks } from './combine.mjs';

const RETURN_ONE = 'return 1';

/** A server's URL, or `{ nodes }` of a Cluster. */
function connect(target, options = {}) {
  return typeof target === 'string' ? new Redis(target, options) : new Cluster(target.nodes, options);
}

export const throttler = {
  name: '@nestjs/throttler on Redis',
  make(url, limits, combine = inTurn) {
    const redis = connect(url);
    const storage = new ThrottlerStorageRedisService(redis);
    return { check: combine(throttlerChecks(storage, limits)), close: () => redis.quit() };
  },
};

export const throttlerOnNodeRedis = {
  name: '@nestjs-redis/throttler-storage',
  async make(url, limits, combine = inTurn) {
    const redis = await createClient({ url }).connect();
    const storage = new RedisThrottlerStorage(redis);
    return { check: combine(throttlerChecks(storage, limits)), close: () => redis.close() };
  },
};

/** A refusal of this one is a rejection. */
const flexible = (limiters, combine) =>
  combine(
    limiters.map((limiter) => async (key) => {
      try {
        await limiter.consume(key);
        return true;
      } catch (reason) {
        if (reason instanceof Error) throw reason;
        return false;
      }
    }),
  );

const flexibleOnRedis = (name, prefix, options) => ({
  name,
  make(target, limits, combine = inTurn) {
    const redis = connect(target);
    const limiters = limits.map(({ rate, intervalMs }, index) => {
      const own = { storeClient: redis, points: rate, duration: intervalMs / 1000, keyPrefix: `${prefix}${index}` };
      return new RateLimiterRedis({ ...own, ...options(rate) });
    });
    return { check: flexible(limiters, combine), close: () => redis.quit() };
  },
});

export const rateLimiterFlexible = flexibleOnRedis('rate-limiter-flexible on Redis', 'f', () => ({}));

/** With the option that its documentation has for floods: what is refused is refused in process. */
export const rateLimiterFlexibleBlocking = flexibleOnRedis(
  'rate-limiter-flexible, inMemoryBlockOnConsumed',
  'b',
  (rate) => ({
    inMemoryBlockOnConsumed: rate + 1,
  }),
);

export const rateLimiterFlexibleInMemory = {
  name: 'rate-limiter-flexible in memory',
  make(_, limits, combine = inTurn) {
    const limiters = limits.map(
      ({ rate, intervalMs }) => new RateLimiterMemory({ points: rate, duration: intervalMs / 1000 }),
    );
    return { check: flexible(limiters, combine), close: () => undefined };
  },
};

export const rateLimitRedis = {
  name: 'rate-limit-redis',
  async make(url, limits, combine = inTurn) {
    const redis = new Redis(url);
    const checks = await Promise.all(
      limits.map(async ({ rate, intervalMs }, index) => {
        const store = new RedisStore({ prefix: `e${index}:`, sendCommand: (...args) => redis.call(...args) });
        await store.init({ windowMs: intervalMs });
        return async (key) => (await store.increment(key)).totalHits <= rate;
      }),
    );
    return { check: combine(checks), close: () => redis.quit() };
  },
};

/** What is possible at all: an answer that is known, a counter without an end, and a script that does nothing. They limit nothing. */
export const knownAnswer = {
  name: 'a promise of what is known',
  unlimited: true,
  make() {
    const limiter = { consume: () => Promise.resolve({ allowed: true }) };
    return { check: async (key) => (await limiter.consume(key)).allowed, close: () => undefined };
  },
};

export const increment = {
  name: 'INCR, autopipelined',
  unlimited: true,
  make(url) {
    const redis = new Redis(url, { enableAutoPipelining: true });
    return { check: async (key) => (await redis.incr(`i:${key}`)) > 0, close: () => redis.quit() };
  },
};

export const emptyScript = {
  name: "EVALSHA 'return 1'",
  unlimited: true,
  async make(url) {
    const redis = new Redis(url);
    const sha = await redis.script('LOAD', RETURN_ONE);
    return { check: async (key) => (await redis.evalsha(sha, 1, `s:${key}`)) === 1, close: () => redis.quit() };
  },
};
