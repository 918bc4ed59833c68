/**
 * One of several processes of an app with ThrottlerModule, whose storage is the built package's. Its input says which limit, and how many
 * requests it sends to itself at once; its result is how many each status had.
 */
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { SluiceThrottlerStorage } from '../../../dist/throttler-storage/index.js';
import { runTask } from './process-task.mjs';
import { PATIENCE_MS } from '../redis/patience.mjs';

class Routes {
  get() {
    return 'ok';
  }
}
Controller()(Routes);
Get()(Routes.prototype, 'get', Object.getOwnPropertyDescriptor(Routes.prototype, 'get'));

class App {}

await runTask(async ({ redis, prefix, limit, requests }, startTogether) => {
  const storage = new SluiceThrottlerStorage({ redis, prefix, timeout: PATIENCE_MS });
  Module({
    imports: [ThrottlerModule.forRoot({ throttlers: [{ ttl: 3_600_000, limit }], storage })],
    controllers: [Routes],
    providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
  })(App);
  const app = await NestFactory.create(App, { logger: false });
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  await startTogether();
  const statuses = await Promise.all(
    Array.from({ length: requests }, async () => {
      const response = await fetch(url);
      await response.text();
      return response.status;
    }),
  );
  app.getHttpServer().closeAllConnections();
  await app.close();
  const count = (status) => statuses.filter((each) => each === status).length;
  return { allowed: count(200), refused: count(429), requests: statuses.length };
});
