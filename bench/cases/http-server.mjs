/**
 * A Nest app in a process of its own: `node http-server.mjs <variant> <redis url>`. Tells its port, and whenever it is asked the
 * processor time that it has used.
 */
import { createRequire } from 'node:module';
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis';
import { RateLimitModule } from 'nestjs-sluice';

const { ThrottlerGuard, ThrottlerModule } = createRequire(import.meta.url)('@nestjs/throttler');

const [variant, url] = process.argv.slice(2);
const started = performance.now();

const RATE = 1_000_000_000;
const INTERVALS = [60_000, 3_600_000, 86_400_000];

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
  if (variant === 'unguarded') return [];
  const limits = intervals.map((interval, index) => ({
    name: `limit-${index}`,
    algo: 'token-bucket',
    rate: RATE,
    interval,
  }));
  return [RateLimitModule.forRoot({ redis: variant.startsWith('memory') ? undefined : url, limits })];
}

class AppModule {}
Module({
  imports: imports(),
  controllers: [HelloController],
  providers: variant.startsWith('throttler') ? [{ provide: APP_GUARD, useClass: ThrottlerGuard }] : [],
})(AppModule);

const app = await NestFactory.create(AppModule, { logger: false });
await app.listen(0, '127.0.0.1');
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send({ cpuMicros: user + system });
});
process.send({ url: await app.getUrl(), startMs: performance.now() - started });
