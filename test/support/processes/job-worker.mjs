/**
 * A process with a BullMQ worker whose jobs are limited, with the built package, until it is told to stop or killed. Its input
 * says which queue and which limit. Each job records when it came to this worker and when it was started, by the time of Redis.
 */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { rateLimited } from '../../../dist/bullmq/index.js';
import { LimiterService, RateLimitModule } from '../../../dist/index.js';
import { runTask, tell } from './process-task.mjs';

const RECORD = `
local time = redis.call('TIME')
return redis.call('RPUSH', KEYS[1], cjson.encode({ time[1] * 1000000 + time[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]) }))
`;

await runTask(async ({ url, prefix, queue, limit }, startTogether, stopped) => {
  const redis = new Redis(url);
  const { hostname: host, port } = new URL(url);
  const module = RateLimitModule.forRoot({ redis: url, prefix, timeout: '1m', define: { tenant: limit } });
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  const record = (event, job) =>
    redis.eval(RECORD, 1, `${prefix}-events`, event, job.id, job.data.tenant, worker.id, job.delay);

  const limiter = app.get(LimiterService).for('tenant');
  const limited = rateLimited((job) => record('started', job), { limiter, key: (job) => job.data.tenant });
  const processor = async (job, token) => {
    await record('came', job);
    try {
      return await limited(job, token);
    } catch (error) {
      if (error.name === 'DelayedError') await record('delayed', job);
      throw error;
    }
  };
  const worker = new Worker(queue, processor, {
    connection: { host, port: Number(port) },
    prefix,
    autorun: false,
    // Those of a killed worker are taken by the test.
    lockDuration: 600_000,
    stalledInterval: 200,
  });
  worker.on('error', () => undefined);
  await worker.waitUntilReady();
  tell(worker.id);
  await startTogether();
  void worker.run();
  await stopped;
  await worker.close();
  await app.close();
  redis.disconnect();
});
