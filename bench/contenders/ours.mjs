/** Ours, as an app has it: the module with its default options, and `LimiterService`. */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LimiterService, RateLimitModule } from 'nestjs-sluice';

/** What an app can do without: nothing is measured or remembered, and a failing store fails the check. */
export const BARE = { telemetry: false, refusalCache: false, onStoreError: 'deny' };

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
function asking(limiters, limits, sources) {
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
  const one = async (key) => {
    try {
      const decision = await bound[0].consume(key);
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
  return { check: bound.length === 1 ? one : several, takeStrays };
}

const contender = (name, optionsOf, sources, change = (limit) => limit) => ({
  name,
  async make(url, limits) {
    const { limiters, close } = await startApp(optionsOf(url));
    return { ...asking(limiters, limits.map(change), sources), close };
  },
});

const ON_REDIS = ['redis', 'cache', 'prefetch'];

export const ours = contender('nestjs-sluice', (redis) => ({ redis, prefix: 'ours' }), ON_REDIS);

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

/** The algorithm of the peer. */
const inProcess = (name, options) =>
  contender(
    name,
    () => options,
    ['memory'],
    (limit) => ({ ...limit, algo: 'fixed-window' }),
  );
export const oursInProcess = inProcess('nestjs-sluice', {});
export const oursInProcessBare = inProcess('nestjs-sluice, everything off', BARE);

/** Ours with another algorithm. */
export const oursWith = (name, limit) => ({ name, unlimited: true, make: (url) => ours.make(url, [limit]) });
