import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import type { Job, Worker } from 'bullmq';
import { rateLimited } from '../../../lib/integrations/bullmq/index.js';
import { LimiterService, RateLimitModule } from '../../../lib/index.js';
import { createTestingStore, RateLimitTesting, TestClock } from '../../../lib/testing/index.js';
import { type Bullmq, connection, JobQueue, NEWEST, versions } from './job-queues.js';

const MINUTE = 60_000;
/** Of jobs that wait for long. */
const LONG_AGO = { timestamp: Date.now() - MINUTE };

describe.each(Object.entries(versions))('jobs of %s that come late', (version, load) => {
  let app: TestingModule;
  let clock: TestClock;
  let bullmq: Bullmq;
  let jobs: JobQueue;
  /** Takes jobs when it is told. */
  let worker: Worker;
  let process: (job: Job, token: string) => Promise<unknown>;
  let taken: number;

  beforeEach(async () => {
    clock = new TestClock();
    const define = { api: { algo: 'gcra', rate: 1, interval: '1m', burst: 1 } } as const;
    const builder = Test.createTestingModule({ imports: [RateLimitModule.forRoot({ define })] });
    app = await RateLimitTesting.useStore(builder, createTestingStore({ clock })).compile();
    const limiter = app.get(LimiterService).for('api');
    process = rateLimited<Job, unknown>(async () => 'done', { limiter, key: 'one' });
    bullmq = await load();
    jobs = new JobQueue(bullmq);
    worker = new bullmq.Worker(jobs.name, null, { connection, prefix: jobs.prefix });
    taken = 0;
  });
  afterEach(async () => {
    await worker.close();
    await jobs.close();
    await app.close();
  });

  const add = async (options: object = {}) => jobs.queue.add('sync', {}, options);

  /** Processes the next job; says which one, and whether it started. */
  const next = async (): Promise<[id: string, what: string]> => {
    const token = `token-${taken++}`;
    const job = await worker.getNextJob(token);
    try {
      await job.moveToCompleted(await process(job, token), token, false);
      return [job.id!, 'started'];
    } catch (error) {
      return [job.id!, (error as Error).name];
    }
  };

  /** What becomes of the next ones. */
  const ends = async (count: number) => {
    const all: string[] = [];
    for (let index = 0; index < count; index++) all.push((await next())[1]);
    return all.toSorted();
  };

  /** The time of all comes in BullMQ, too. */
  const pass = async (ms: number) => {
    clock.advance(ms);
    for (const job of await jobs.queue.getDelayed()) await job.promote();
  };

  it('start no faster than the limit', async () => {
    for (let count = 0; count < 4; count++) await add();
    expect(await ends(4)).toEqual(['DelayedError', 'DelayedError', 'DelayedError', 'started']);
    await pass(10 * MINUTE);
    expect(await ends(3)).toEqual(['DelayedError', 'DelayedError', 'started']);
    await pass(MINUTE);
    expect(await ends(2)).toEqual(['DelayedError', 'started']);
    await pass(MINUTE);
    expect(await ends(1)).toEqual(['started']);
  });

  it('come before those that wait with a priority', async () => {
    const [first, second] = [await add({ priority: 5 }), await add({ priority: 5 })];
    expect([await next(), await next()]).toEqual([
      [first.id, 'started'],
      [second.id, 'DelayedError'],
    ]);
    await add({ priority: 1 });
    await pass(MINUTE);
    expect(await next()).toEqual([second.id, 'started']);
  });

  // What follows is ours, and the same for all versions.
  if (version !== NEWEST) return;

  it('may be late by as long as a wait in the worker', async () => {
    const [first, second, third] = [await add(), await add(), await add()];
    expect([await next(), await next(), await next()]).toEqual([
      [first.id, 'started'],
      [second.id, 'DelayedError'],
      [third.id, 'DelayedError'],
    ]);
    await pass(MINUTE + 20);
    expect(await next()).toEqual([second.id, 'started']);
    await next();
    await pass(MINUTE - 20);
    expect(await next()).toEqual([third.id, 'started']);
  });

  it('leave their time to those behind which they are stuck', async () => {
    const [first, second] = [await add(LONG_AGO), await add(LONG_AGO)];
    expect([await next(), await next()]).toEqual([
      [first.id, 'started'],
      [second.id, 'DelayedError'],
    ]);
    const third = await add(LONG_AGO);
    await pass(MINUTE);
    expect([await next(), await next()]).toEqual([
      [third.id, 'started'],
      [second.id, 'DelayedError'],
    ]);
    await pass(MINUTE);
    expect(await next()).toEqual([second.id, 'started']);
  });

  it('do not overtake if they have not waited', async () => {
    await add();
    await add();
    await next();
    await next();
    const third = await add();
    await pass(MINUTE);
    expect(await next()).toEqual([third.id, 'DelayedError']);
  });
});
