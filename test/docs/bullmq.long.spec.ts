import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { BullModule, Processor, WorkerHost } from '@nestjs/bullmq';
import { Injectable, type INestApplicationContext, type Type } from '@nestjs/common';
import { NestFactory as Factory } from '@nestjs/core';
import * as bullmq from 'bullmq';
import type { Job } from 'bullmq';
import { LimiterService, RateLimitModule as Limits, type RateLimitModuleOptions } from '../../lib/index.js';
import { JobRateLimit, jobLimitsOf, rateLimited } from '../../lib/integrations/bullmq/index.js';
import { freshPrefix } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';
import { PATIENCE } from '../support/redis/patience.mjs';
import { untriedCode } from './rows.js';

const redis = process.env['TEST_REDIS_URL']!;
const connection = { url: redis };
let prefix: string;

/** The options of the guide. */
const options = ((RateLimitModule: { forRoot: (given: RateLimitModuleOptions) => RateLimitModuleOptions }) =>
  RateLimitModule.forRoot({
    redis: 'redis://localhost:6379',
    define: { shopify: { algo: 'gcra', rate: 2, interval: '1s', burst: 40 } },
  }))({ forRoot: (given) => given });

/** Those of BullMQ and Nest, of the server and the prefix of a test. */
class Worker extends bullmq.Worker<{ shop: string }> {
  constructor(name: string, processor: bullmq.Processor<{ shop: string }>, settings: bullmq.WorkerOptions) {
    super(name, processor, { ...settings, prefix });
  }
}
class QueueEvents extends bullmq.QueueEvents {
  constructor(name: string, settings: bullmq.QueueEventsOptions) {
    super(name, { ...settings, prefix });
  }
}
const NestFactory = {
  createApplicationContext: (module: object) =>
    Factory.createApplicationContext(module as Type, { logger: false, abortOnError: false }),
};

const synced: string[] = [];

@Injectable()
class Shops {
  async sync(shop: string): Promise<void> {
    synced.push(shop);
    await Promise.resolve();
  }
}

const syncShop = (shop: string) => new Shops().sync(shop);

@Processor('sync')
@JobRateLimit('shopify', { key: (job: Job<{ shop: string }>) => `shop:${job.data.shop}` })
class SyncProcessor extends WorkerHost {
  constructor(private readonly shops: Shops) {
    super();
  }

  async process(job: Job<{ shop: string }>) {
    await this.shops.sync(job.data.shop);
  }
}

/** A class of the same name. */
function ofSeveralLimits(): Type {
  @Processor('sync')
  @JobRateLimit(['shopify', { name: 'parallel', algo: 'concurrency', limit: 3, ttl: '1m' }], {
    key: (job: Job<{ shop: string }>, limit) => (limit === 'shopify' ? `shop:${job.data.shop}` : 'all'),
  })
  class SyncProcessor extends WorkerHost {
    async process(job: Job<{ shop: string }>) {
      await syncShop(job.data.shop);
    }
  }
  return SyncProcessor;
}

const moduleOf = (...providers: Type[]) => ({
  module: class {},
  imports: [
    Limits.forRoot({ ...options, redis, prefix, timeout: PATIENCE }),
    BullModule.forRoot({ connection, prefix }),
    BullModule.registerQueue({ name: 'sync' }),
  ],
  providers,
});
describe('the guide of jobs', () => {
  let queue: bullmq.Queue;
  let contexts: INestApplicationContext[];

  beforeEach(() => {
    prefix = freshPrefix();
    synced.length = 0;
    contexts = [];
    queue = new bullmq.Queue('sync', { connection, prefix });
  });
  afterEach(async () => {
    for (const context of contexts) await context.close();
    await queue.obliterate({ force: true });
    await queue.close();
  });

  it.each([
    ['a class', () => [SyncProcessor, Shops]],
    ['a class with several limits', () => [ofSeveralLimits()]],
  ])('limits the jobs of %s', async (_, providers) => {
    const app = await NestFactory.createApplicationContext(moduleOf(...providers()));
    contexts.push(app);
    const decided: string[] = [];
    const subscription = app.get(LimiterService).decisions$.subscribe(({ limit }) => decided.push(limit));
    await queue.add('sync', { shop: 'acme' });
    await until(async () => (await queue.getCompletedCount()) === 1);
    subscription.unsubscribe();
    expect(decided).toContain('shopify');
  });

  it('limits a function, and gives back what jobs have reserved that are removed', async () => {
    const AppModule = moduleOf(SyncProcessor, Shops);
    const app = await NestFactory.createApplicationContext(AppModule);
    const limiters = app.get(LimiterService);

    const sync = rateLimited((job: Job<{ shop: string }>) => syncShop(job.data.shop), {
      limiter: limiters.for('shopify'),
      key: (job) => `shop:${job.data.shop}`,
    });
    const worker = new Worker('sync', sync, { connection });

    contexts.push(app);
    const events = new QueueEvents('sync', { connection });
    sync.follow(events); // with a class: jobLimitsOf(app.get(SyncProcessor)).follow(events)
    jobLimitsOf(app.get(SyncProcessor)).follow(events);
    await events.waitUntilReady();
    await limiters.for('shopify').penalize('shop:acme', 1000);
    const job = await queue.add('sync', { shop: 'acme' });
    await until(async () => (await queue.getDelayedCount()) === 1);
    const reserved = await limiters.for('shopify').peek('shop:acme');

    await sync.giveBack(job);
    await job.remove();

    const { retryAfterMs } = await limiters.for('shopify').peek('shop:acme');
    expect(reserved.retryAfterMs - retryAfterMs).toBeGreaterThanOrEqual(500);
    await worker.close();
    await events.close();
    expect(synced).toEqual([]);
  });

  it('has no other code', () =>
    expect([
      ...untriedCode('docs/guides/bullmq.md', 'test/docs/bullmq.long.spec.ts', 'started'),
      ...untriedCode('docs/reference/bullmq.md', 'test/docs/bullmq.long.spec.ts', 'started'),
    ]).toEqual([]));
});
