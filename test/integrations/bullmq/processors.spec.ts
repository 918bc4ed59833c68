import 'reflect-metadata';
import { BullModule, Processor, WorkerHost } from '@nestjs/bullmq';
import { Injectable, Scope, type Type } from '@nestjs/common';
import { EventEmitter, once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import * as bullmq from 'bullmq';
import { type Limiter, LimiterService, RateLimitConfigError, RateLimitModule } from '../../../lib/index.js';
import { JobRateLimit, jobLimitsOf, rateLimited } from '../../../lib/integrations/bullmq/index.js';
import { startLimiters } from '../outbound/upstream.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { PATIENCE } from '../../support/redis/patience.mjs';
import { connection, JobQueue } from './job-queues.js';

const SLOW = { algo: 'gcra', rate: 1, interval: '1h', burst: 1 } as const;
const ONE = { algo: 'concurrency', limit: 1, ttl: '1m' } as const;

let jobs: JobQueue;
let app: TestingModule | undefined;
let prefix: string;

beforeEach(() => {
  jobs = new JobQueue(bullmq);
  prefix = freshPrefix();
});

afterEach(async () => {
  await app?.close();
  app = undefined;
  await jobs.close();
});

async function start(processor: Type): Promise<TestingModule> {
  const redis = process.env['TEST_REDIS_URL']!;
  app = await Test.createTestingModule({
    imports: [
      RateLimitModule.forRoot({ redis, prefix, define: { slow: SLOW, one: ONE }, timeout: PATIENCE }),
      BullModule.forRoot({ connection, prefix: jobs.prefix }),
      BullModule.registerQueue({ name: jobs.name }),
    ],
    providers: [processor],
  }).compile();
  app.useLogger(false);
  app.enableShutdownHooks([]);
  return app.init();
}

/** Whose jobs a processor has had. */
abstract class Shops extends WorkerHost {
  readonly had: string[] = [];

  async process(job: bullmq.Job): Promise<void> {
    this.had.push(job.data.shop);
    await Promise.resolve();
  }
}

const host = (...decorators: ClassDecorator[]) => {
  @Injectable()
  class SyncProcessor extends Shops {}
  for (const decorate of decorators) decorate(SyncProcessor);
  Processor('sync')(SyncProcessor);
  return SyncProcessor;
};

describe('@JobRateLimit', () => {
  it('gives each job of a processor a time of its own', async () => {
    @Processor('sync')
    @JobRateLimit('slow', { key: (job) => `shop:${job.data.shop}` })
    class SyncProcessor extends Shops {}

    await start(SyncProcessor);
    await jobs.add('a', 'a', 'b', 'a', 'c');
    await until(async () => (await jobs.counts('completed')) === 3);
    expect(app!.get(SyncProcessor).had).toEqual(['a', 'b', 'c']);
    await until(async () => (await jobs.counts('delayed')) === 2);
    const delays = (await jobs.queue.getDelayed()).map(({ delay }) => Math.round(delay / 3_600_000));
    expect(delays.toSorted((one, other) => one - other)).toEqual([1, 2]);
  });

  it('takes several limits, defined and its own', async () => {
    const OWN = { ...SLOW, name: 'own' };
    @Processor('sync')
    @JobRateLimit(['one', OWN], { key: (job, limit) => `${limit}:${job.data.shop}`, cost: 1 })
    class SyncProcessor extends Shops {}

    await start(SyncProcessor);
    await jobs.add('a', 'a');
    await until(async () => (await jobs.counts('completed')) === 1);
    await until(async () => (await jobs.counts('delayed')) === 1);
    const left = (limit: string | typeof OWN, key: string) => app!.get(LimiterService).for(limit).peek(key);
    expect((await left(OWN, 'own:a')).resetAfterMs).toBeGreaterThan(3_600_000);
    expect((await left('one', 'one:a')).remaining).toBe(1);
  });

  it('holds for processors that are made for each job', async () => {
    const had: string[] = [];
    @Processor({ name: 'sync', scope: Scope.REQUEST })
    @JobRateLimit<bullmq.Job<{ shop: string }>>('slow', { key: (job) => `shop:${job.data.shop}` })
    class SyncProcessor extends WorkerHost {
      async process(job: bullmq.Job): Promise<void> {
        had.push(job.data.shop);
        await Promise.resolve();
      }
    }

    await start(SyncProcessor);
    await jobs.add('a', 'a', 'b');
    await until(async () => (await jobs.counts('completed')) === 2);
    expect(had).toEqual(['a', 'b']);
  });

  it('leaves hooks, names and what a processor takes as they are', async () => {
    const hooks: string[] = [];
    @Processor('sync')
    @JobRateLimit('slow', { key: 'all' })
    class SyncProcessor extends WorkerHost {
      onModuleInit(): void {
        hooks.push('init');
      }

      async process(_job: bullmq.Job, _token?: string, signal?: AbortSignal): Promise<boolean> {
        return signal instanceof AbortSignal;
      }
    }

    await start(SyncProcessor);
    const [job] = await jobs.add('a');
    await until(async () => (await jobs.counts('completed')) === 1);
    expect([hooks, (await jobs.again(job!)).returnvalue]).toEqual([['init'], true]);
  });

  it('gives back what removed jobs had', async () => {
    @Processor('sync')
    @JobRateLimit('slow', { key: (job) => `shop:${job.data.shop}` })
    class SyncProcessor extends Shops {}

    await start(SyncProcessor);
    const units = jobLimitsOf(app!.get(SyncProcessor));
    units.follow(await jobs.events());
    const [, second, third] = await jobs.add('a', 'a', 'a');
    await until(async () => (await jobs.counts('delayed')) === 2);
    await (await jobs.again(third!)).remove();
    const hours = async () => (await app!.get(LimiterService).for('slow').peek('shop:a')).resetAfterMs / 3_600_000;
    await until(async () => Math.round(await hours()) === 2);
    await units.giveBack(await jobs.again(second!));
    expect(Math.round(await hours())).toBe(1);
  });

  it('lets jobs end when the app closes, with what they hold', async () => {
    const work = new EventEmitter();
    @Processor('sync')
    @JobRateLimit(['one', 'slow'], { key: 'all' })
    class SyncProcessor extends WorkerHost {
      async process(): Promise<void> {
        work.emit('begun');
        await once(work, 'end');
      }
    }

    const begun = once(work, 'begun');
    await start(SyncProcessor);
    await jobs.add('a', 'a');
    await begun;
    const closed = app!.close();
    app = undefined;
    work.emit('end');
    await closed;
    expect(await jobs.counts('completed')).toBe(1);
    const { limiters, app: other } = await startLimiters({
      redis: process.env['TEST_REDIS_URL']!,
      prefix,
      define: { one: ONE },
    });
    expect((await limiters.for('one').peek('all')).remaining).toBe(1);
    await other.close();
  });

  it.each([
    [
      'unknown',
      { key: 'all' },
      "@JobRateLimit of SyncProcessor: unknown limit 'unknown', expected a defined limit: 'slow', 'one'",
    ],
    [
      [SLOW, SLOW],
      { key: 'all' },
      "@JobRateLimit of SyncProcessor: the limit 'gcra:1/1h' is in the list twice. List it once",
    ],
    [{ ...SLOW, rate: 0 }, { key: 'all' }, 'rate'],
  ])('with wrong limits %p ends the start of the app', async (limits, options, message) => {
    const failed = await start(host(JobRateLimit(limits as string, options))).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(RateLimitConfigError);
    expect((failed as Error).message).toContain(message);
  });

  it.each([
    ['', { key: 'all' }, /@JobRateLimit of SyncProcessor: expected the name of a defined limit.+, received ''/],
    [[], { key: 'all' }, /@JobRateLimit of SyncProcessor: expected the name of a defined limit.+, received \[\]/],
    ['slow', undefined, '@JobRateLimit of SyncProcessor: expected an object of options, received undefined'],
    ['slow', {}, '@JobRateLimit of SyncProcessor.key: missing, expected a string that is not empty, or a function'],
    [
      'slow',
      { key: class ByName {} },
      /key: expected a string that is not empty, or a function of the job, received .*ByName/,
    ],
    ['slow', { key: '' }, "key: expected a string that is not empty, or a function of the job, received ''"],
    ['slow', { key: 'all', cost: -1 }, 'cost: expected a whole number >= 0, or a function of the job, received -1'],
    ['slow', { key: 'all', recheck: 0 }, /recheck: expected milliseconds or a duration.+, received 0/],
    ['slow', { key: 'all', keepFor: 'long' }, /keepFor: expected milliseconds or a duration.+, received 'long'/],
    ['slow', { key: 'all', limiter: 'x' }, "unknown option 'limiter', expected one of key, cost, recheck, keepFor"],
  ])('refuses %p with %p at once', (limits, options, message) => {
    expect(() => host(JobRateLimit(limits as string, options as { key: string }))).toThrow(RateLimitConfigError);
    expect(() => host(JobRateLimit(limits as string, options as { key: string }))).toThrow(message);
  });

  it('refuses a class that processes nothing, and processors that Nest did not make', async () => {
    const decorate = JobRateLimit('slow', { key: 'all' });
    expect(() => decorate(class Nothing {})).toThrow("@JobRateLimit of Nothing: the class has no method 'process'");
    expect(() => jobLimitsOf({})).toThrow(
      'jobLimitsOf: expected a processor whose class has @JobRateLimit, received {}',
    );
    const Made = host(decorate);
    expect(() => jobLimitsOf(new Made())).toThrow('LimiterService was not injected');
  });
});

const work = async () => undefined;

describe('rateLimited', () => {
  it('refuses what is wrong at once', async () => {
    const one = await startLimiters({ define: { slow: SLOW } });
    const two = await startLimiters({ define: { one: ONE } });
    const limiter = one.limiters.for('slow');
    const refusal = (processor: unknown, options: unknown) => {
      try {
        rateLimited(processor as typeof work, options as { limiter: Limiter; key: string });
      } catch (error) {
        expect(error).toBeInstanceOf(RateLimitConfigError);
        return (error as Error).message;
      }
      return undefined;
    };
    expect([
      refusal('work', { limiter, key: 'all' }),
      refusal(work, undefined),
      refusal(work, { key: 'all' }),
      refusal(work, { limiter: [], key: 'all' }),
      refusal(work, { limiter: 'slow', key: 'all' }),
      refusal(work, { limiter: [limiter, limiter], key: 'all' }),
      refusal(work, { limiter: [limiter, two.limiters.for('one')], key: 'all' }),
      refusal(work, { limiter, key: 7 }),
      refusal(work, { limiter, key: 'all', wait: 1 }),
    ]).toEqual([
      "rateLimited: expected the function that processes jobs, received 'work'",
      'rateLimited: expected an object of options, received undefined',
      expect.stringContaining(
        "rateLimited.limiter: expected a Limiter such as limiters.for('api'), or a list of these, received undefined",
      ),
      "rateLimited.limiter: expected a Limiter such as limiters.for('api'), or a list of these, received []",
      expect.stringContaining(
        "rateLimited.limiter: expected a Limiter such as limiters.for('api'), or a list of these, received 'slow'",
      ),
      "rateLimited: the limit 'slow' is in the list twice. List it once",
      "rateLimited.limiter: 'slow' and 'one' belong to two apps. Use limiters of one LimiterService",
      'rateLimited.key: expected a string that is not empty, or a function of the job, received 7',
      "rateLimited: unknown option 'wait', expected one of limiter, key, cost, recheck, keepFor",
    ]);
    const limited = rateLimited(work, { limiter, key: 'all' });
    await expect(limited.giveBack(undefined as never)).rejects.toThrow(
      'rateLimited.giveBack: expected a job of a queue, received undefined',
    );
    await expect(limited.giveBack('7' as never)).rejects.toThrow(
      "rateLimited.giveBack: expected a job of a queue, received '7'",
    );
    for (const events of [undefined, {}, jobs.queue]) {
      expect(() => limited.follow(events as never)).toThrow(
        /^rateLimited\.follow: expected a QueueEvents of BullMQ.+, received /s,
      );
    }
    await one.app.close();
    await two.app.close();
  });
});
