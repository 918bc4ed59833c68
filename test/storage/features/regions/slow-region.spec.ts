import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LimiterService, RateLimitModule, RateLimitStoreError } from '../../../../lib/index.js';
import { HomeClock } from '../../../../lib/storage/features/regions/home-clock.js';
import { OwnTime } from '../../../support/time/own-time.mjs';
import { type RedisServer, startRedis } from '../../../support/redis/redis-servers.js';
import { freshPrefix } from '../../../support/limits/stores.js';
import { TcpProxy } from '../../../support/redis/tcp-proxy.js';
import { until } from '../../../support/time/until.js';

const TIMEOUT_MS = 250;
/** How long a packet takes to the region's server: a call takes twice as long. */
const DELAY_MS = 90;

let [home, region]: RedisServer[] = [];
const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  [home, region] = await Promise.all([startRedis(), startRedis()]);
}, 300_000);
afterAll(() => Promise.all([home!.stop(), region!.stop()]));
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function start(redis: string): Promise<INestApplicationContext> {
  const options = {
    redis,
    regions: { name: 'us', home: home!.url },
    prefix: freshPrefix(),
    timeout: TIMEOUT_MS,
    define: { plan: { algo: 'sliding-window', rate: 100, interval: '1m', scope: 'world' } },
  } as const;
  const module = await Test.createTestingModule({ imports: [RateLimitModule.forRoot(options)] }).compile();
  cleanups.push(() => module.close());
  return module.init();
}

it('a check waits for the home no longer than the timeout, the time of its own region included', async () => {
  const proxy = await TcpProxy.start(region!, 0, DELAY_MS);
  cleanups.push(() => proxy.close());
  const set = jest.spyOn(HomeClock.prototype, 'set');
  const limiter = (await start(proxy.url)).get(LimiterService).for('plan');
  await limiter.consume('first').catch(() => undefined);
  // The home is asked again until its time is known.
  await until(() => set.mock.contexts.some((clock) => (clock as HomeClock).latest() > 0));
  const time = new OwnTime();
  const before = time.now();
  await expect(limiter.consume('second')).rejects.toThrow(RateLimitStoreError);
  expect(time.now() - before).toBeLessThan(TIMEOUT_MS + DELAY_MS);
  time.stop();
});
