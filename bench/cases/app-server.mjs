/**
 * A Nest app of 20 routes in a process of its own, with a limit of the module and one of each route:
 * `node app-server.mjs <unguarded | sluice | throttler> <redis url>`.
 */
import { createRequire } from 'node:module';
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis';
import { RateLimit, RateLimitModule } from 'nestjs-sluice';
import { pathsOf } from './app-paths.mjs';
import { handle, serve } from '../served-app.mjs';

const { Throttle, ThrottlerGuard, ThrottlerModule } = createRequire(import.meta.url)('@nestjs/throttler');

const [variant, url] = process.argv.slice(2);

/** Of one address, so much that nobody is refused, and so little that the counters are alive: 125 to 170 come back in a second. */
const RATE = 1_000_000;
const OF_MODULE = 6_000_000;
const OF_ROUTES = 8_000_000;

const VARIANTS = {
  unguarded: { imports: () => [], decorators: () => [], providers: [] },
  sluice: {
    imports: () => [
      RateLimitModule.forRoot({
        redis: url,
        limits: [{ name: 'all', algo: 'token-bucket', rate: RATE, interval: OF_MODULE }],
      }),
    ],
    decorators: () => [RateLimit({ name: 'route', algo: 'token-bucket', rate: RATE, interval: OF_ROUTES })],
    providers: [],
  },
  throttler: {
    imports: () => [
      ThrottlerModule.forRoot({
        throttlers: [
          { name: 'all', limit: RATE, ttl: OF_MODULE },
          { name: 'route', limit: RATE, ttl: OF_MODULE },
        ],
        storage: new ThrottlerStorageRedisService(url),
      }),
    ],
    decorators: () => [Throttle({ route: { limit: RATE, ttl: OF_ROUTES } })],
    providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
  },
};

const { imports, decorators, providers } = VARIANTS[variant];

class AppController {}
for (const [index, path] of pathsOf().entries()) {
  const name = `route${index}`;
  AppController.prototype[name] = () => 'hello';
  handle(AppController, name, Get(path), ...decorators());
}
Controller()(AppController);

class AppModule {}
Module({ imports: imports(), controllers: [AppController], providers })(AppModule);

await serve(AppModule, 'Express');
