import { afterEach, describe, expect, it } from '@jest/globals';
import type { TestingModule } from '@nestjs/testing';
import { startLimiters } from '../../integrations/outbound/upstream.js';
import { freshPrefix } from '../../support/limits/stores.js';

const CALLS = 200;

const define = {
  queue: { algo: 'leaky-bucket', rate: 400, interval: '1s', queue: 20 },
  nested: { algo: 'leaky-bucket', rate: 400, interval: '1s', queue: 20, within: 'all' },
  all: { algo: 'fixed-window', rate: 10_000, interval: '1m' },
} as const;

describe('calls of a process that wait for a leaky-bucket on Redis', () => {
  const apps: TestingModule[] = [];
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
  });

  async function start(prefix: string) {
    const options = { define, redis: process.env['TEST_REDIS_URL']!, prefix, timeout: '5s' } as const;
    const { app, limiters } = await startLimiters(options);
    apps.push(app);
    return limiters;
  }
  it.each([
    ['queue', 1],
    ['queue', 2],
    ['nested', 1],
    ['nested', 2],
  ] as const)('go on in order, of %s and %d processes', async (name, processes) => {
    const prefix = freshPrefix();
    const limiters = [];
    for (let i = 0; i < processes; i++) limiters.push((await start(prefix)).for(name));
    const count = CALLS / processes;
    const orders = limiters.map(async (limiter) => {
      const order: number[] = [];
      const calls = Array.from({ length: count }, async (_, index) => {
        await limiter.acquire('a', name === 'nested' ? { within: { all: 'us' } } : {});
        order.push(index);
      });
      await Promise.all(calls);
      return order;
    });
    const expected = Array.from({ length: count }, (_, index) => index);
    expect(await Promise.all(orders)).toEqual(limiters.map(() => expected));
  });
});
