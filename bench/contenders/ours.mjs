/** Ours, as an app has it: the module with its default options, and `LimiterService`. */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LimiterService, RateLimitModule } from 'nestjs-sluice';
import { SluiceThrottlerStorage } from 'nestjs-sluice/throttler-storage';
import { inTurn, throttlerChecks } from './combine.mjs';

/** What an app can do without: nothing is measured or remembered, and a failing store fails the check. */
const BARE = { telemetry: false, refusalCache: false, onStoreError: 'deny' };

export function definitionOf({ rate, intervalMs, algo = 'token-bucket', ...parameters }, index = 0) {
  const definition = { name: `limit-${index}`, algo, rate, ...parameters };
  return intervalMs === undefined ? definition : { ...definition, interval: intervalMs };
}

/** Starts an app with these options of the module. */
export async function startApp(options) {
  class BenchModule {}
  Module({ imports: [RateLimitModule.forRoot(options)] })(BenchModule);
  const app = await NestFactory.createApplicationContext(BenchModule, { logger: ['warn', 'error'] });
  return { limiters: app.get(LimiterService), close: () => app.close() };
}

/**
 * `check(key)` asks; `takeStrays()` tells how many decisions since it was asked the last time came from elsewhere than is timed,
 * or failed, and the last failure.
 */
function asking(limiters, limits, sources, combine, byCheck) {
  const bound = limits.map((limit, index) => limiters.for(definitionOf(limit, index)));
  let strays = { count: 0 };
  const countIfStray = ({ source }) => {
    if (!sources.includes(source)) strays.count++;
  };
  const fail = (error) => {
    strays.count++;
    strays.error = error;
    return false;
  };
  const checkOf = (limit) => async (key) => {
    try {
      const decision = await limit.consume(key);
      countIfStray(decision);
      return decision.allowed;
    } catch (error) {
      return fail(error);
    }
  };
  const several = async (key) => {
    try {
      const { allowed, tightest } = await limiters.check(bound.map((limit) => ({ limit, key })));
      countIfStray(tightest);
      return allowed;
    } catch (error) {
      return fail(error);
    }
  };
  const takeStrays = () => {
    const taken = strays;
    strays = { count: 0 };
    return taken;
  };
  const checks = bound.map(checkOf);
  if (combine !== undefined) return { check: combine(checks), takeStrays };
  return { check: checks.length === 1 && !byCheck ? checks[0] : several, takeStrays };
}

/** One limit is asked by `consume`, or `byCheck` as several are. */
const contender = (name, optionsOf, sources, change = (limit) => limit, byCheck = false) => ({
  name,
  async make(url, limits, combine) {
    const { limiters, close } = await startApp(optionsOf(url));
    return { ...asking(limiters, limits.map(change), sources, combine, byCheck), close };
  },
});

const ON_REDIS = ['redis', 'cache', 'prefetch'];

export const ours = contender('nestjs-sluice', (redis) => ({ redis, prefix: 'ours' }), ON_REDIS);

/** The algorithm of the peers. */
const asPeers = (limit) => ({ ...limit, algo: 'fixed-window' });

/** Like with like: the peers have fixed windows alone. */
export const oursFixed = contender(
  'nestjs-sluice, fixed windows',
  (redis) => ({ redis, prefix: 'fixed' }),
  ON_REDIS,
  asPeers,
);

/** For fleets: an instance that asks much waits up to 1 ms for more checks. */
export const oursGathering = contender(
  'nestjs-sluice, fixed windows, with gather',
  (redis) => ({ redis, prefix: 'gathering', gather: true }),
  ON_REDIS,
  asPeers,
);

export const oursBare = contender(
  'nestjs-sluice, everything off',
  (redis) => ({ redis, prefix: 'bare', ...BARE }),
  ON_REDIS,
);

/** 10,000 units for 100 ms; where so many are not left, fewer are taken. */
export const oursLeased = contender(
  'nestjs-sluice with a prefetch',
  (redis) => ({ redis, prefix: 'prefetched' }),
  ON_REDIS,
  (limit) => ({ ...limit, algo: 'fixed-window', prefetch: { units: 10_000, ttl: '100ms' } }),
);

const inProcess = (name, options, byCheck) => contender(name, () => options, ['memory'], asPeers, byCheck);
export const oursInProcess = inProcess('nestjs-sluice', {});
export const oursInProcessByCheck = inProcess('nestjs-sluice, check', {}, true);
export const oursInProcessBare = inProcess('nestjs-sluice, everything off', BARE);

/** Decides without a promise; what times it is the same loop that awaits the others. */
export const oursAtOnce = {
  name: 'nestjs-sluice, consumeSync',
  async make(_, [limit]) {
    const { limiters, close } = await startApp({});
    const bound = limiters.for(definitionOf({ ...limit, algo: 'fixed-window' }));
    return { check: (key) => bound.consumeSync(key).allowed, close };
  },
};

/** Ours with another algorithm. */
export const oursWith = (name, limit) => ({ name, unlimited: true, make: (url) => ours.make(url, [limit]) });

/** Our storage for throttler's guard, which asks it for one limit after the other. */
export const ourThrottlerStorage = {
  name: 'SluiceThrottlerStorage of nestjs-sluice',
  async make(url, limits, combine = inTurn) {
    const storage = new SluiceThrottlerStorage({ redis: typeof url === 'string' ? url : { nodes: url.nodes } });
    await storage.onModuleInit();
    return { check: combine(throttlerChecks(storage, limits)), close: () => storage.close() };
  },
};
