/**
 * The limiters, each asked in the same way: `check(key)` says whether a request of that key is allowed. A limit is
 * `{ rate, intervalMs }`; several limits are those of one request.
 */
import { once } from 'node:events';
import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis';
import { Redis } from 'ioredis';
import { MemoryStore, RedisStore } from '../../dist/index.js';
import { CompiledLimit } from '../../dist/algorithms/limit.js';
import { createStore } from '../../dist/stores/create-store.js';
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible';
import { RedisStore as ExpressRedisStore } from 'rate-limit-redis';

const RETURN_ONE = 'return 1';
/** 10,000 units for 100 ms; where so many are not left, fewer are taken. */
const LEASE = { units: 10_000, ttl: 100_000 };

function compiled({ rate, intervalMs, algo = 'gcra', lease, remembersRefusals, ...options }, index = 0) {
  const parameters = { algo, rate, interval: intervalMs, ...options };
  return new CompiledLimit(parameters, { place: 'bench', name: `limit-${index}`, lease, remembersRefusals });
}

/** Asks a store of ours for all limits of a request at once. */
function checkOf(store, limits) {
  const entriesOf = limits.map(compiled);
  return async (identity) => {
    const [decisions] = await store.check([{ entries: entriesOf.map((limit) => ({ limit, identity, cost: 1 })) }]);
    return decisions.every(({ allowed }) => allowed);
  };
}

/** Asks one limiter after the other, as the guards of the peers do. */
function inTurn(checks) {
  return async (key) => {
    for (const check of checks) if (!(await check(key))) return false;
    return true;
  };
}

export const ours = {
  name: 'nestjs-sluice',
  async make(url, limits) {
    const redis = new Redis(url);
    const store = new RedisStore(redis, { prefix: 'ours', timeoutMs: 60_000 });
    await store.open();
    return { check: checkOf(store, limits), close: () => redis.quit() };
  },
};

/** The store as an app has it: refusals are remembered. */
export const oursInApp = {
  name: 'nestjs-sluice, refusals remembered',
  async make(url, limits) {
    const redis = new Redis(url, { autoResendUnfulfilledCommands: false });
    await once(redis, 'ready');
    const common = { prefix: 'app', timeoutMs: 60_000, maxKeys: 100_000, report: console.error };
    const store = await createStore({ ...common, redis, refusalCache: true });
    await store.open();
    const check = checkOf(
      store,
      limits.map((limit) => ({ ...limit, remembersRefusals: true })),
    );
    return { check, close: () => store.close().then(() => redis.quit()) };
  },
};

/** The same with units taken in advance. */
export const oursLeased = {
  name: 'nestjs-sluice with a lease',
  make: (url, limits) =>
    oursInApp.make(
      url,
      limits.map((limit) => ({ ...limit, algo: 'fixed-window', lease: LEASE })),
    ),
};

export const oursInMemory = {
  name: 'nestjs-sluice',
  make(_, limits) {
    const store = new MemoryStore({ maxKeys: 2_000_000 });
    // The algorithm of the peer.
    const windows = limits.map((limit) => ({ ...limit, algo: 'fixed-window' }));
    return { check: checkOf(store, windows), close: () => store.close() };
  },
};

export const throttler = {
  name: '@nestjs/throttler on Redis',
  make(url, limits) {
    const redis = new Redis(url);
    const storage = new ThrottlerStorageRedisService(redis);
    const checks = limits.map(({ rate, intervalMs }, index) => async (key) => {
      const { isBlocked } = await storage.increment(`t:${key}`, intervalMs, rate, intervalMs, `limit-${index}`);
      return !isBlocked;
    });
    return { check: inTurn(checks), close: () => redis.quit() };
  },
};

/** A refusal of this one is a rejection. */
const flexible = (limiters) =>
  inTurn(
    limiters.map(
      (limiter) => (key) =>
        limiter.consume(key).then(
          () => true,
          (reason) => {
            if (reason instanceof Error) throw reason;
            return false;
          },
        ),
    ),
  );

export const rateLimiterFlexible = {
  name: 'rate-limiter-flexible on Redis',
  make(url, limits) {
    const redis = new Redis(url);
    const limiters = limits.map(
      ({ rate, intervalMs }, index) =>
        new RateLimiterRedis({ storeClient: redis, points: rate, duration: intervalMs / 1000, keyPrefix: `f${index}` }),
    );
    return { check: flexible(limiters), close: () => redis.quit() };
  },
};

export const rateLimiterFlexibleInMemory = {
  name: 'rate-limiter-flexible in memory',
  make(_, limits) {
    const limiters = limits.map(
      ({ rate, intervalMs }) => new RateLimiterMemory({ points: rate, duration: intervalMs / 1000 }),
    );
    return { check: flexible(limiters), close: () => undefined };
  },
};

export const rateLimitRedis = {
  name: 'rate-limit-redis',
  async make(url, limits) {
    const redis = new Redis(url);
    const checks = await Promise.all(
      limits.map(async ({ rate, intervalMs }, index) => {
        const store = new ExpressRedisStore({ prefix: `e${index}:`, sendCommand: (...args) => redis.call(...args) });
        await store.init({ windowMs: intervalMs });
        return async (key) => (await store.increment(key)).totalHits <= rate;
      }),
    );
    return { check: inTurn(checks), close: () => redis.quit() };
  },
};

/** What is possible at all: a counter without an end, and a script that does nothing. They limit nothing. */
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
