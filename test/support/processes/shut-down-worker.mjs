/** An app, of the built package, that is closed while much is under way. It has to end by itself afterwards. */
import 'reflect-metadata';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { LimiterService, RateLimitModule } from '../../../dist/index.js';
import { OwnTime } from '../time/own-time.mjs';
import { runTask } from './process-task.mjs';

await runTask(async ({ inFlight, waiting, ...options }, startTogether, stopped) => {
  class AppModule {}
  Module({ imports: [RateLimitModule.forRoot(options)] })(AppModule);
  const app = await NestFactory.create(AppModule, new ExpressAdapter(), { logger: false });
  await app.listen(0, '127.0.0.1');
  const limiters = app.get(LimiterService);
  const many = limiters.for({ name: 'many', algo: 'gcra', rate: 1000, interval: '1h' });
  const few = limiters.for({ name: 'few', algo: 'fixed-window', rate: 1, interval: '1h' });
  const slots = limiters.for({ name: 'slots', algo: 'concurrency', limit: 10, ttl: '1m' });
  await few.consume('user:1');
  const held = await slots.consume('user:1');
  await many.consume('user:1');
  await startTogether();
  await stopped;
  const calls = [
    ...Array.from({ length: inFlight }, (_, index) => many.consume(`user:${index}`)),
    ...Array.from({ length: waiting }, () => few.acquire('user:1', { timeout: '2h' })),
  ];
  const time = new OwnTime();
  const start = time.now();
  const closing = app.close();
  const results = await Promise.allSettled(calls);
  await closing;
  await held.lease.release().catch(() => undefined);
  const closed = time.now();
  // The channel to the parent is all that stays.
  while (process.getActiveResourcesInfo().some((kind) => kind !== 'PipeWrap')) await nextTurn();
  return {
    settled: results.map(({ reason, value }) => reason?.name ?? value.source),
    closedMs: closed - start,
    quietMs: time.now() - closed,
  };
});
