/**
 * A Nest app in a process of its own: `node http-server.mjs <Express | Fastify> <variant> <redis url>`. Tells its port, and when it is asked the
 * processor time that it has used, or where that goes.
 */
import { createRequire } from 'node:module';
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis';
import { RateLimitModule } from 'nestjs-sluice';
import { BARE } from '../contenders/ours.mjs';
import { profiled } from '../profile.mjs';

const { ThrottlerGuard, ThrottlerModule } = createRequire(import.meta.url)('@nestjs/throttler');

const [framework, variant, url] = process.argv.slice(2);
const started = performance.now();

/** Of one address, so much that nobody is refused, and so little that the counters are alive: 125 to 170 come back in a second. */
const RATE = 1_000_000;
const INTERVALS = [6_000_000, 7_000_000, 8_000_000];

/** Without decorators, since this file is not compiled. */
class HelloController {
  hello() {
    return 'hello';
  }
}
Controller()(HelloController);
Get()(HelloController.prototype, 'hello', Object.getOwnPropertyDescriptor(HelloController.prototype, 'hello'));

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
  return [RateLimitModule.forRoot({ redis, limits, ...(variant.startsWith('bare') ? BARE : {}) })];
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

const adapter = framework === 'Fastify' ? [new FastifyAdapter()] : [];
const app = await NestFactory.create(AppModule, ...adapter, { logger: false });
await app.listen(0, '127.0.0.1');
let stopProfile;
let profile;

async function answer(question) {
  if (question === 'profile') {
    profile = profiled(() => new Promise((resolve) => (stopProfile = resolve)));
    return {};
  }
  if (question === 'profiled') {
    stopProfile();
    return { profile: await profile };
  }
  const { user, system } = process.cpuUsage();
  return { cpuMicros: user + system };
}

process.on('message', (question) => void answer(question).then((told) => process.send(told)));
process.send({ url: await app.getUrl(), startMs: performance.now() - started });
