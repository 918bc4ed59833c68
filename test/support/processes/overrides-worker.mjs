/**
 * One of two processes, each an app with the built package, that change a rate and see it change, round by round. One gives the
 * moments at which its `setRate` resolved, the other those at which it first decided by the new rate.
 */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LimiterService, RateLimitModule } from '../../../dist/index.js';
import { runTask } from './process-task.mjs';
import { PATIENCE } from '../redis/patience.mjs';

class AppModule {}

await runTask(async ({ url, prefix, rounds, sets }, startTogether) => {
  const define = { login: { algo: 'gcra', rate: 10, interval: '1h' } };
  Module({ imports: [RateLimitModule.forRoot({ redis: url, prefix, define, timeout: PATIENCE })] })(AppModule);
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  const service = app.get(LimiterService);
  const login = service.for('login');
  const moments = [];
  for (let round = 1; round <= rounds; round++) {
    await startTogether();
    if (sets) await service.setRate('login', { rate: 10 + round });
    else while ((await login.peek('user:1')).quota !== 10 + round);
    moments.push(Date.now());
  }
  await app.close();
  return moments;
});
