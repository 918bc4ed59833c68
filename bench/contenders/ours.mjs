/** Ours, as an app has it: the module with its default options, and `LimiterService`. */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LimiterService, RateLimitModule } from 'nestjs-sluice';

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

/** A decision that Redis did not make is not what is timed. */
function assertSource({ source }, expected) {
  if (!expected.includes(source)) throw new Error(`decided by ${source} instead of ${expected.join(' or ')}`);
}

function checkOf(limiters, limits, sources) {
  const bound = limits.map((limit, index) => limiters.for(definitionOf(limit, index)));
  if (bound.length === 1) {
    const [limiter] = bound;
    return async (key) => {
      const decision = await limiter.consume(key);
      assertSource(decision, sources);
      return decision.allowed;
    };
  }
  return async (key) => {
    const { allowed, tightest } = await limiters.check(bound.map((limit) => ({ limit, key })));
    assertSource(tightest, sources);
    return allowed;
  };
}

const contender = (name, optionsOf, sources, change = (limit) => limit) => ({
  name,
  async make(url, limits) {
    const { limiters, close } = await startApp(optionsOf(url));
    return { check: checkOf(limiters, limits.map(change), sources), close };
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
export const oursInProcess = contender(
  'nestjs-sluice',
  () => ({ maxKeys: 2_000_000 }),
  ['memory'],
  (limit) => ({ ...limit, algo: 'fixed-window' }),
);

/** Ours with another algorithm. */
export const oursWith = (name, limit) => ({ name, unlimited: true, make: (url) => ours.make(url, [limit]) });
