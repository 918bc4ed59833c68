/**
 * Starts an app of 1,000 routes with three limits each, from its first decorator until it serves:
 * `node --expose-gc start-up-process.mjs <plain | sluice | throttler> <redis url>`.
 */
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import '@nestjs/platform-express';
import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis';
import { RateLimit, RateLimitModule } from 'nestjs-sluice';
import { handle } from '../../served-app.mjs';
import { costsOf } from './costs.mjs';

const { Throttle, ThrottlerGuard, ThrottlerModule } = createRequire(import.meta.url)('@nestjs/throttler');

const [variant, url] = process.argv.slice(2);

const CONTROLLERS = 50;
const ROUTES_OF_EACH = 20;
/** What an app puts off until it has started counts, too. */
const SETTLED_AFTER_MS = 300;
const LIMITS = { short: [10, 1000], medium: [100, 60_000], long: [1000, 3_600_000] };

const VARIANTS = {
  plain: { imports: () => [], decorators: () => [], providers: [] },
  sluice: {
    imports: () => [RateLimitModule.forRoot({ redis: url })],
    decorators: () => [
      RateLimit(
        ...Object.entries(LIMITS).map(([name, [rate, interval]]) => ({ name, algo: 'token-bucket', rate, interval })),
      ),
    ],
    providers: [],
  },
  throttler: {
    imports: () => {
      const throttlers = Object.keys(LIMITS).map((name) => ({ name, limit: 1, ttl: 1000 }));
      return [ThrottlerModule.forRoot({ throttlers, storage: new ThrottlerStorageRedisService(url) })];
    },
    decorators: () => [
      Throttle(Object.fromEntries(Object.entries(LIMITS).map(([name, [limit, ttl]]) => [name, { limit, ttl }]))),
    ],
    providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
  },
};

const { imports, decorators, providers } = VARIANTS[variant];

function controller(index) {
  class RoutesController {}
  for (let i = 0; i < ROUTES_OF_EACH; i++) {
    const name = `route${i}`;
    RoutesController.prototype[name] = () => 'hello';
    handle(RoutesController, name, Get(name), ...decorators());
  }
  Controller(`controller-${index}`)(RoutesController);
  return RoutesController;
}

let ready;
const costs = await costsOf(async () => {
  const start = performance.now();
  class AppModule {}
  const controllers = Array.from({ length: CONTROLLERS }, (_, index) => controller(index));
  Module({ imports: imports(), controllers, providers })(AppModule);
  const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] });
  await app.listen(0, '127.0.0.1');
  ready = performance.now() - start;
  const response = await fetch(`${await app.getUrl()}/controller-0/route0`);
  if (!response.ok) throw new Error(`the app answers with ${response.status}`);
  const isLimited = [...response.headers.keys()].some((name) => name.includes('ratelimit'));
  if (isLimited !== (variant !== 'plain')) throw new Error(`${variant} ${isLimited ? 'limits' : 'does not limit'}`);
  await sleep(SETTLED_AFTER_MS);
});
console.log(JSON.stringify({ ...costs, ms: ready }));
process.exit();
