import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { TestingModule } from '@nestjs/testing';
import type { Job } from 'bullmq';
import type { DecisionEvent, LimiterService } from '../../../lib/index.js';
import { rateLimited } from '../../../lib/integrations/bullmq/index.js';
import { startLimiters } from '../outbound/upstream.js';
import { startRedis } from '../../support/redis/redis-servers.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { type Bullmq, connection, JobQueue, NEWEST, versions } from './job-queues.js';

const DEFINE = {
  paced: { algo: 'gcra', rate: 1, interval: '80ms', burst: 1 },
  slow: { algo: 'gcra', rate: 1, interval: '1h', burst: 1 },
} as const;

describe.each(Object.entries(versions))('jobs of %s', (version, load) => {
  let app: TestingModule;
  let limiters: LimiterService;
  let bullmq: Bullmq;
  let jobs: JobQueue;
  let started: string[];
  let charged: DecisionEvent[];

  const open = async (redis = process.env['TEST_REDIS_URL']!) => {
    const options = { define: DEFINE, redis, prefix: freshPrefix(), onStoreError: 'deny' } as const;
    ({ app, limiters } = await startLimiters(options));
    charged = [];
    limiters.decisions$.subscribe((event) => event.outcome === 'allowed' && charged.push(event));
  };

  beforeEach(async () => {
    bullmq = await load();
    jobs = new JobQueue(bullmq);
    started = [];
    await open();
  });
  afterEach(async () => {
    await jobs.close();
    await app.close();
  });

  const limited = (name: keyof typeof DEFINE, work: (job: Job) => Promise<unknown> = async () => 'done') =>
    rateLimited<Job, unknown>(
      (job) => {
        started.push(job.id!);
        return work(job);
      },
      { limiter: limiters.for(name), key: (job) => `shop:${job.data.shop}`, recheck: 30 },
    );
  const completed = (count: number) => until(async () => (await jobs.counts('completed')) === count);
  const delayed = (count: number) => until(async () => (await jobs.counts('delayed')) === count);
  const hoursUntil = async (job: Job) => Math.round(((await jobs.again(job)).delay ?? 0) / 3_600_000);

  it.each([
    ['promoted', (job: Job) => job.promote()],
    ['moved to an earlier time', (job: Job) => job.changeDelay(1)],
  ])('do not start early if they are %s', async (_how, interfere) => {
    jobs.work(limited('slow'));
    const [, second] = await jobs.add('a', 'a');
    await delayed(1);
    const { attemptsStarted } = await jobs.again(second!);
    await interfere(await jobs.again(second!));
    await until(async () => (await jobs.again(second!)).attemptsStarted === attemptsStarted + 1);
    await delayed(1);
    expect([started.length, await hoursUntil(second!), charged.length]).toEqual([1, 1, 2]);
  });

  it('that stalled are reserved once if two workers have them', async () => {
    const process = limited('slow');
    const [first, second] = await jobs.add('a', 'a');
    await process(first!, 'token');
    const worker = new bullmq.Worker(jobs.name, null, { connection, prefix: jobs.prefix });
    await worker.getNextJob('one');
    const [one, other] = [await worker.getNextJob('two'), await jobs.again(second!)];
    const ends = await Promise.allSettled([process(one, 'two'), process(other, 'three')]);
    await worker.close();
    const reasons = ends.map((end) => (end.status === 'rejected' ? (end.reason as Error) : undefined));
    expect(reasons[0]).toMatchObject({ name: 'DelayedError' });
    expect(reasons[1]?.name).not.toBe('DelayedError');
    expect([charged.length, started.length, await hoursUntil(second!)]).toEqual([2, 1, 1]);
  });

  it('all end after a worker that was closed in the middle', async () => {
    const first = jobs.work(limited('paced'), { concurrency: 50 });
    const added = await jobs.add(...Array.from({ length: 40 }, (_unused, index) => `${index % 20}`));
    await until(() => started.length > 0);
    await first.close();
    expect(await jobs.counts('active')).toBe(0);
    jobs.work(limited('paced'), { concurrency: 50 });
    await completed(40);
    expect(started.toSorted()).toEqual(added.map(({ id }) => id!).toSorted());
    expect(charged).toHaveLength(40);
  });

  it('have their priority back when they are tried again', async () => {
    jobs.work(limited('slow', () => Promise.reject(new Error('no answer'))));
    const options = { priority: 7, attempts: 2, backoff: 3_600_000 };
    const job = await jobs.queue.add('sync', { shop: 'a' }, options);
    await until(async () => (await jobs.again(job)).attemptsMade === 1);
    await delayed(1);
    expect(await jobs.again(job)).toMatchObject({ priority: 7, attemptsMade: 1 });
  });

  it('of a flow start when their children have ended', async () => {
    const flow = new bullmq.FlowProducer({ connection, prefix: jobs.prefix });
    jobs.work(limited('paced'));
    const child = { name: 'child', queueName: jobs.name, data: { shop: 'a' } };
    const { job } = await flow.add({
      name: 'parent',
      queueName: jobs.name,
      data: { shop: 'a' },
      children: [child, child],
    });
    await completed(3);
    await flow.close();
    expect([started.length, started.at(-1)]).toEqual([3, job.id]);
  });

  it('of a scheduler come once each, though they are delayed', async () => {
    jobs.work(limited('paced'));
    await jobs.queue.upsertJobScheduler('every', { every: 30, limit: 4 }, { name: 'sync', data: { shop: 'a' } });
    await completed(4);
    expect(new Set(started).size).toBe(4);
    expect([started.length, await jobs.counts('delayed', 'waiting', 'active', 'failed')]).toEqual([4, 0]);
  });

  // What follows is ours, and the same for all versions.
  if (version !== NEWEST) return;

  it('all end after the counters were lost', async () => {
    const server = await startRedis();
    await app.close();
    await open(server.url);
    try {
      jobs.work(limited('paced'));
      const added = await jobs.add('a', 'a', 'a', 'a', 'b');
      await until(() => started.length >= 2);
      await server.kill();
      await server.start();
      await completed(5);
      expect(started.toSorted()).toEqual(added.map(({ id }) => id!).toSorted());
    } finally {
      await app.close();
      await server.stop();
      await open();
    }
  });
});
