import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { TestingModule } from '@nestjs/testing';
import type { Job } from 'bullmq';
import { rateLimited } from '../../lib/bullmq/index.js';
import type { LimiterService } from '../../lib/nest/limiter.service.js';
import { startLimiters } from '../outbound/upstream.js';
import { freshPrefix } from '../support/stores.js';
import { until } from '../support/until.js';
import { JobQueue, versions } from './job-queues.js';
import { expectWithinRate, type Pass } from './passes.js';

const LIMIT = { algo: 'gcra', rate: 10, interval: 1000, burst: 1 } as const;

describe.each(Object.entries(versions))('jobs of %s whose time has come', (_, load) => {
  let app: TestingModule;
  let limiters: LimiterService;
  let jobs: JobQueue;
  let passes: Pass[];
  let started: string[];

  beforeEach(async () => {
    ({ app, limiters } = await startLimiters({
      define: { api: LIMIT },
      redis: process.env['TEST_REDIS_URL']!,
      prefix: freshPrefix(),
      timeout: '5s',
    }));
    jobs = new JobQueue(await load());
    passes = [];
    started = [];
  });
  afterEach(async () => {
    await jobs.close();
    await app.close();
  });

  const limited = () => {
    const came = new Map<string, number>();
    const process = rateLimited<Job, void>(
      async (job) => {
        passes.push({ from: came.get(job.id!)!, to: performance.now() });
        started.push(job.data.shop);
      },
      { limiter: limiters.for('api'), key: 'one' },
    );
    return (job: Job, token?: string) => {
      came.set(job.id!, performance.now());
      return process(job, token);
    };
  };
  const add = (count: number, options = {}, shop = 'a') =>
    jobs.queue.addBulk(Array.from({ length: count }, () => ({ name: 'sync', data: { shop }, opts: options })));
  const all = (count: number) => until(async () => (await jobs.counts('completed')) === count, 20_000);

  it('start no faster than the limit, however late they come', async () => {
    jobs.work(limited(), { concurrency: 10 });
    await add(6);
    await until(async () => (await jobs.counts('delayed')) >= 4);
    await jobs.queue.pause();
    // Until the time of all of them has come.
    await sleep(600);
    await jobs.queue.resume();
    await all(6);
    expectWithinRate(passes, LIMIT);
    expect(passes).toHaveLength(6);
  });

  it('come before those that wait with a priority, and keep their own', async () => {
    jobs.work(limited());
    await add(2, { priority: 5 });
    await until(async () => (await jobs.counts('delayed')) === 1);
    await jobs.queue.pause();
    const [due] = (await jobs.queue.getDelayed()) as [Job];
    expect([due.priority, due.opts.priority]).toEqual([0, 5]);
    await add(3, { priority: 1 }, 'b');
    await sleep(150);
    await jobs.queue.resume();
    await all(5);
    expect(started.slice(0, 2)).toEqual(['a', 'a']);
  });

  it('leave it to others while they are stuck behind many', async () => {
    const early = { timestamp: Date.now() - 60_000 };
    const process = limited();
    await add(2, early);
    jobs.work(process);
    await until(async () => (await jobs.counts('delayed')) === 1);
    await jobs.queue.pause();
    await sleep(150);
    const [fresh] = await add(1, early, 'b');
    // It stands before the one whose time has come, which takes the next time.
    await process(fresh as Job, 'token');
    expect(started).toEqual(['a', 'b']);
    await jobs.queue.resume();
    await all(2);
    expectWithinRate(passes, LIMIT);
  });
});
