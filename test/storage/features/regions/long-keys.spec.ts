import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { LimitDefinition } from '../../../../lib/index.js';
import { freshPrefix } from '../../../support/limits/stores.js';
import { type AppInRegion, World } from './world.js';

const define = {
  small: { algo: 'fixed-window', rate: 3, interval: '1h', scope: 'world' },
} satisfies Record<string, LimitDefinition>;

/** So long that a server keeps its hash. */
const KEY = 'k'.repeat(1000);

describe('a long key of a limit over several regions', () => {
  let world: World;
  let redis: Redis;
  let us: AppInRegion;

  beforeAll(async () => {
    world = await World.start();
    redis = new Redis(world.home.url);
    us = await world.app('us', { limits: { prefix: freshPrefix(), define } });
    // The first call says what the time is.
    await us.limiters.for('small').peek('other');
  }, 300_000);
  afterAll(async () => {
    await redis.quit();
    await world.stop();
  });

  const calls = async () => {
    const stats = await redis.info('commandstats');
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)![1]);
  };
  /** How often the home was called meanwhile, but for calls that are made each second. */
  const callsDuring = async (work: () => Promise<void>) => {
    const before = await calls();
    const since = performance.now();
    await work();
    return (await calls()) - before - Math.floor((2 * (performance.now() - since)) / 1000);
  };

  it('asks the home now and then once it refuses', async () => {
    const limiter = us.limiters.for('small');
    while ((await limiter.consume(KEY)).allowed);
    const calls = await callsDuring(async () => {
      for (let refused = 0; refused < 200; refused++) expect((await limiter.consume(KEY)).allowed).toBe(false);
    });
    expect(calls).toBeLessThan(6);
  });
});
