import { EventEmitter, once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { TestingModule } from '@nestjs/testing';
import type { Job } from 'bullmq';
import type { DecisionEvent, LimiterService, RateLimitModuleOptions } from '../../../lib/index.js';
import { rateLimited } from '../../../lib/integrations/bullmq/index.js';
import type { RateLimitedOptions } from '../../../lib/integrations/bullmq/index.js';
import { startLimiters } from '../outbound/upstream.js';
import { startRedis } from '../../support/redis/redis-servers.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { JobQueue, NEWEST, versions } from './job-queues.js';

const DEFINE = {
  paced: { algo: 'gcra', rate: 1, interval: '60ms', burst: 1 },
  // Longer than any machine takes from one job to the next.
  spaced: { algo: 'gcra', rate: 1, interval: '3s', burst: 1 },
  slow: { algo: 'gcra', rate: 1, interval: '1h', burst: 1 },
  bucket: { algo: 'token-bucket', rate: 1, interval: '60ms', burst: 2 },
  queue: { algo: 'leaky-bucket', rate: 1, interval: '60ms', queue: 10 },
  window: { algo: 'fixed-window', rate: 2, interval: '200ms' },
  day: { algo: 'fixed-window', rate: 1, interval: '1d' },
  kept: { algo: 'gcra', rate: 5, interval: '1h', reserveFor: { critical: 0.4 } },
  one: { algo: 'concurrency', limit: 1, ttl: '10m' },
  renewed: { algo: 'concurrency', limit: 1, ttl: '300ms' },
} as const satisfies RateLimitModuleOptions['define'];
type Name = keyof typeof DEFINE;

const loseConnection = () => Promise.reject(new Error('connection is lost'));
const key = (job: Job) => `shop:${job.data.shop}`;

describe.each(Object.entries(versions))('jobs of %s', (version, load) => {
  let app: TestingModule;
  let limiters: LimiterService;
  let jobs: JobQueue;
  /** Whose jobs were started, when, in their order. */
  let started: { shop: string; at: number; id: string }[];
  let charged: DecisionEvent[];

  beforeEach(async () => {
    ({ app, limiters } = await startLimiters({
      define: DEFINE,
      redis: process.env['TEST_REDIS_URL']!,
      prefix: freshPrefix(),
      onStoreError: 'deny',
    }));
    jobs = new JobQueue(await load());
    started = [];
    charged = [];
    limiters.decisions$.subscribe((event) => event.outcome === 'allowed' && charged.push(event));
  });

  afterEach(async () => {
    await jobs.close();
    await app.close();
  });

  const note = async (job: Job): Promise<unknown> => {
    started.push({ shop: job.data.shop, at: Date.now(), id: job.id! });
    return job.data.shop;
  };
  const limit = (
    names: Name | Name[],
    work: (job: Job, token?: string, signal?: AbortSignal) => Promise<unknown> = note,
    options: Partial<RateLimitedOptions<Job>> = {},
  ) => {
    const limiter = [names].flat().map((name) => limiters.for(name));
    return rateLimited<Job, unknown>(work, { limiter, key, ...options });
  };
  const completed = (count: number) => until(async () => (await jobs.counts('completed')) === count);
  const left = async (name: Name, shop = 'shop:a') => (await limiters.for(name).peek(shop)).remaining;

  const endOf = async (name: Name) => Date.now() + (await limiters.for(name).peek('shop:a')).resetAfterMs;

  const hoursOwed = async () => Math.round((await limiters.for('slow').peek('shop:a')).resetAfterMs / 3_600_000);

  it('leave what is kept for others', async () => {
    jobs.work(limit('kept'));
    await jobs.add('a', 'a', 'a', 'a', 'a');
    await until(async () => (await jobs.counts('completed')) === 3 && (await jobs.counts('delayed')) === 2);
    expect(started).toHaveLength(3);
  });

  it.each(['paced', 'bucket', 'queue'] as const)('wait for a time of their own by %s', async (name) => {
    const since = Date.now();
    for (let workers = 0; workers < 2; workers++) jobs.work(limit(name));
    const added = await jobs.add('a', 'a', 'a', 'a');
    await completed(4);
    const burst = name === 'bucket' ? 2 : 1;
    const times = started.map(({ at }) => at - since);
    for (const [index, time] of times.entries()) {
      expect(time).toBeGreaterThanOrEqual(60 * (index + 1 - burst));
    }
    for (const job of await Promise.all(added.map((each) => jobs.again(each)))) {
      expect(job.attemptsMade).toBe(1);
      expect(job.attemptsStarted).toBeLessThanOrEqual(2);
    }
    expect(charged).toHaveLength(4);
  });

  it('are delayed without an attempt, also when there is only one', async () => {
    jobs.work(limit('spaced'));
    const [, late] = await jobs.queue.addBulk(
      ['a', 'a'].map((shop) => ({ name: 'sync', data: { shop }, opts: { attempts: 1 } })),
    );
    await completed(2);
    expect(await jobs.again(late!)).toMatchObject({ attemptsMade: 1, attemptsStarted: 2, returnvalue: 'a' });
    expect(await jobs.counts('failed')).toBe(0);
  });

  it('are charged anew when they are tried again', async () => {
    let tries = 0;
    jobs.work(
      limit('paced', async () => {
        tries++;
        if (tries === 1) throw new Error('no answer');
      }),
    );
    await jobs.queue.add('sync', { shop: 'a' }, { attempts: 2 });
    await completed(1);
    expect([tries, charged.length]).toEqual([2, 2]);
  });

  it('that stalled are taken over with their own units', async () => {
    let runs = 0;
    const work = limit('slow', async (job) => {
      runs++;
      if (runs === 1) await new Promise(() => undefined);
      return note(job);
    });
    jobs.work(work, { skipLockRenewal: true, skipStalledCheck: true, lockDuration: 50 });
    await jobs.add('a');
    await until(() => runs === 1);
    jobs.work(work, { stalledInterval: 60 });
    await completed(1);
    expect([runs, charged.length]).toEqual([2, 1]);
  });

  it('give their units back when they are removed', async () => {
    const limited = limit('slow');
    limited.follow(await jobs.events());
    jobs.work(limited);
    const [, second, third] = await jobs.add('a', 'a', 'a');
    await until(async () => (await jobs.counts('delayed')) === 2);
    expect(await hoursOwed()).toBe(3);
    await (await jobs.again(third!)).remove();
    await until(async () => (await hoursOwed()) === 2);
    await limited.giveBack(await jobs.again(second!));
    expect(await hoursOwed()).toBe(1);
  });

  it('hold units of concurrency while they are processed, and no longer', async () => {
    let running = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
    };
    for (let workers = 0; workers < 2; workers++) jobs.work(limit('one', work, { recheck: 30 }), { concurrency: 3 });
    await jobs.add('a', 'a', 'a', 'a', 'a');
    await completed(5);
    expect(most).toBe(1);
    expect(await left('one')).toBe(1);
  });

  it('that cannot ever start fail for good, and take nothing', async () => {
    jobs.work(limit(['paced', 'slow'], note, { cost: (_, name) => (name === 'slow' ? 2 : 1) }));
    const job = await jobs.queue.add('sync', { shop: 'a' }, { attempts: 5 });
    await until(async () => (await jobs.counts('failed')) === 1);
    const { failedReason, attemptsMade } = await jobs.again(job);
    expect(failedReason).toBe(
      "rateLimited: limit 'slow' never lets this job start: it costs 2 units of at most 1, or is denied permanently",
    );
    expect([attemptsMade, await left('paced'), started.length]).toEqual([1, 1, 0]);
  });

  it('pass on what processors take', async () => {
    let got: unknown[] = [];
    const limited = limit('paced', async (...all) => void (got = all));
    expect(limited).toHaveLength(0);
    expect(limit('paced', async (job, token, signal) => [job, token, signal])).toHaveLength(3);
    const [job] = await jobs.add('a');
    const { signal } = new AbortController();
    await limited(job!, 'token', signal);
    expect(got).toEqual([job, 'token', signal]);
  });

  // What follows is ours, and the same for all versions.
  if (version !== NEWEST) return;

  it('do not hold up those of others', async () => {
    jobs.work(limit('slow'));
    await jobs.add('a', 'a', 'a', 'b', 'a', 'c');
    await completed(3);
    expect(started.map(({ shop }) => shop)).toEqual(['a', 'b', 'c']);
    expect(await jobs.counts('delayed')).toBe(3);
  });

  it('have one reservation, however often their workers die', async () => {
    const limited = limit('slow');
    const [first, second] = await jobs.add('a', 'a');
    const lost = Object.assign(Object.create(second!) as Job, { moveToDelayed: loseConnection });
    await limited(first!, 'token');
    for (let workers = 0; workers < 3; workers++) {
      await expect(limited(lost, 'token')).rejects.toThrow('connection is lost');
    }
    expect(charged).toHaveLength(2);
    const [other] = await jobs.add('a');
    const moved: number[] = [];
    const watched = Object.assign(Object.create(other!) as Job, {
      moveToDelayed: async (timestamp: number) => void moved.push(timestamp - Date.now()),
    });
    await expect(limited(watched, 'token')).rejects.toMatchObject({ name: 'DelayedError' });
    // Two hours: that of the job whose workers died, and its own.
    expect(moved[0]! / 3_600_000).toBeCloseTo(2, 1);
  });

  it('give back nothing once their work has begun', async () => {
    const limited = limit('slow');
    jobs.work(limited);
    const [job] = await jobs.add('a');
    await completed(1);
    await limited.giveBack(await jobs.again(job!));
    expect(await left('slow')).toBe(0);
  });

  it('renew what they hold', async () => {
    const work = new EventEmitter();
    jobs.work(limit('renewed', () => once(work, 'end')));
    await jobs.add('a');
    await until(async () => (await left('renewed')) === 0);
    const first = await endOf('renewed');
    await until(async () => (await endOf('renewed')) > first + 400);
    work.emit('end');
    await completed(1);
    await until(async () => (await left('renewed')) === 1);
  });

  it('release what they hold if they fail', async () => {
    jobs.work(limit('one', () => Promise.reject(new Error('no answer'))));
    await jobs.add('a');
    await until(async () => (await jobs.counts('failed')) === 1);
    expect(await left('one')).toBe(1);
  });

  it('ask again when a window is over', async () => {
    const since = Date.now();
    jobs.work(limit('window'));
    await jobs.add('a', 'a', 'a', 'a', 'a');
    await completed(5);
    const times = started.map(({ at }) => at - since);
    for (const [index, time] of times.entries()) expect(time).toBeGreaterThanOrEqual(200 * Math.floor(index / 2) - 1);
    expect(charged).toHaveLength(5);
  });

  it('start with the units of all limits, or take none that cannot wait', async () => {
    const limited = limit(['paced', 'day', 'one'], note, { cost: (_, name) => (name === 'day' ? 1 : 1) });
    jobs.work(limited);
    await jobs.add('a');
    await completed(1);
    await jobs.add('a');
    await until(async () => (await jobs.counts('delayed')) === 1);
    await until(async () => Math.round(((await jobs.queue.getDelayed())[0]?.delay ?? 0) / 3_600_000) >= 23);
    expect([await left('day'), await left('one'), started.length]).toEqual([0, 1, 1]);
  });

  it('ask the limit with the longest wait first', async () => {
    const limited = limit(['paced', 'slow']);
    jobs.work(limited);
    await jobs.add('a', 'a', 'a');
    await until(async () => (await jobs.counts('delayed')) === 2);
    // Both wait for hours, and have taken nothing of what would be there sooner.
    expect(charged.map(({ limit: name }) => name).toSorted()).toEqual(['paced', 'slow', 'slow', 'slow']);
  });

  it('of several limits start when each has let them', async () => {
    const since = Date.now();
    jobs.work(limit(['paced', 'bucket', 'queue']));
    await jobs.add('a', 'a', 'a');
    await completed(3);
    for (const [index, { at }] of started.entries()) expect(at - since).toBeGreaterThanOrEqual(60 * index);
    expect(charged).toHaveLength(9);
  });

  it.each([
    [
      { key: () => '' },
      "rateLimited.key for limit 'paced': expected the function to return a string that is not empty, received ''",
    ],
    [
      { cost: () => 1.5 },
      "rateLimited.cost for limit 'paced': expected the function to return a whole number >= 0, received 1.5",
    ],
  ])('whose function gives what is wrong fail: %p', async (options, message) => {
    jobs.work(limit('paced', note, options));
    const [job] = await jobs.add('a');
    await until(async () => (await jobs.counts('failed')) === 1);
    expect((await jobs.again(job!)).failedReason).toBe(message);
  });

  it('that wait need the token of their lock', async () => {
    const limited = limit('slow');
    const [first, second] = await jobs.add('a', 'a');
    await limited(first!);
    await expect(limited(second!)).rejects.toThrow('the job came without the token of its lock');
  });
});

describe.each(['deny', 'allow', 'local'] as const)('while Redis of the limits fails, by %s,', (onStoreError) => {
  it('jobs are not lost', async () => {
    const server = await startRedis();
    const { app, limiters } = await startLimiters({ define: DEFINE, redis: server.url, onStoreError, timeout: '50ms' });
    const jobs = new JobQueue(await versions[NEWEST]!());
    const errors = jest.spyOn(Logger.prototype, 'error').mockReturnValue(undefined);
    const had: unknown[] = [];
    const work = async ({ data }: Job) => void had.push(data.shop);
    jobs.work(rateLimited(work, { limiter: limiters.for('slow'), key, recheck: 20 }));
    server.pause();
    const [job] = await jobs.add('a');
    if (onStoreError === 'deny') {
      await until(async () => (await jobs.again(job!)).attemptsStarted >= 3);
      expect(had).toEqual([]);
      expect(errors.mock.calls.map(([text]) => text)).toContain(
        'rateLimited: the store failed, and a limit rejects jobs until it recovers: ' +
          `jobs of ${jobs.prefix}:sync are delayed by 20 ms, then checked again`,
      );
      server.resume();
    }
    await until(async () => (await jobs.counts('completed')) === 1);
    expect(had).toEqual(['a']);
    server.resume();
    errors.mockRestore();
    await jobs.close();
    await app.close();
    await server.stop();
  });
});
