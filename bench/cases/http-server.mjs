/**
 * A Nest app of one route in a process of its own: `node http-server.mjs <Express | Fastify> <variant> <redis url>`.
 */
import { createRequire } from 'node:module';
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis';
import { RateLimitModule } from 'nestjs-sluice';
import { handle, serve } from '../served-app.mjs';

const { ThrottlerGuard, ThrottlerModule } = createRequire(import.meta.url)('@nestjs/throttler');

const [framework, variant, url] = process.argv.slice(2);

/** Of one address, so much that nobody is refused, and so little that the counters are alive: 125 to 170 come back in a second. */
const RATE = 1_000_000;
const INTERVALS = [6_000_000, 7_000_000, 8_000_000];

class HelloController {
  hello() {
    return 'hello';
  }
}
Controller()(HelloController);
handle(HelloController, 'hello', Get());

function imports() {
  const count = Number(/\d/.exec(variant)?.[0] ?? 0);
  const intervals = INTERVALS.slice(0, count);
  if (variant.startsWith('throttler')) {
    const throttlers = intervals.map((ttl, index) => ({ name: `limit-${index}`, ttl, limit: RATE }));
    return [ThrottlerModule.forRoot({ throttlers, storage: new ThrottlerStorageRedisService(url) })];
  }
  if (variant === 'unguarded' || variant === 'headers') return [];
  const limits = intervals.map((interval, index) => ({
    name: `limit-${index}`,
    algo: 'token-bucket',
    rate: RATE,
    interval,
  }));
  const redis = variant.startsWith('memory') ? undefined : url;
  return [RateLimitModule.forRoot({ redis, limits })];
}

/** What is left of a rate limit if nothing is counted. */
const headersOnly = {
  canActivate(context) {
    const response = context.switchToHttp().getResponse();
    const set = framework === 'Fastify' ? 'header' : 'setHeader';
    response[set]('RateLimit-Policy', '"limit-0";q=1000000;w=6000');
    response[set]('RateLimit', '"limit-0";r=999999;t=1');
    return true;
  },
};

function providers() {
  if (variant === 'headers') return [{ provide: APP_GUARD, useValue: headersOnly }];
  return variant.startsWith('throttler') ? [{ provide: APP_GUARD, useClass: ThrottlerGuard }] : [];
}

class AppModule {}
Module({
  imports: imports(),
  controllers: [HelloController],
  providers: providers(),
})(AppModule);

await serve(AppModule, framework);
