import { afterEach, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { LimiterService } from '../../../../lib/index.js';
import { startRedis } from '../../../support/redis/redis-servers.js';
import { until } from '../../../support/time/until.js';
import { patientApp } from './world.js';

const RATE = 20;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  jest.restoreAllMocks();
});

async function server(): Promise<string> {
  const started = await startRedis();
  cleanups.push(() => started.stop());
  return started.url;
}

async function limiterOf(name: string, redis: string, home: string) {
  const api = { algo: 'sliding-log', rate: RATE, interval: '1h', scope: 'world', onStoreError: 'deny' } as const;
  const app = await patientApp({ redis, regions: { name, home }, define: { api } }).compile();
  app.useLogger(false);
  await app.init();
  cleanups.push(() => app.close());
  return app.get(LimiterService).for('api');
}

it('two names on one server, as when a region is renamed, use a limit once, and take none for lost', async () => {
  const [home, us, ap] = [await server(), await server(), await server()];
  const limiters = [
    await limiterOf('us', us, home),
    await limiterOf('ap', ap, home),
    await limiterOf('ap-south', ap, home),
  ];
  let used = 0;
  const take = async () => {
    for (const limiter of limiters) {
      const decision = await limiter.consume('user:1').catch(() => undefined);
      if (decision?.allowed === true) used++;
    }
    return used >= RATE;
  };
  await until(take);
  for (let i = 0; i < 5; i++) await take();
  expect(used).toBe(RATE);
});

it('a value of another type in the place of what a region knows of its home counts as none', async () => {
  const [home, us] = [await server(), await server()];
  const limiter = await limiterOf('us', us, home);
  const redis = new Redis(us);
  cleanups.push(() => redis.disconnect());
  await redis.set('sluice:home:us', 'text');
  await until(async () => (await limiter.consume('user:1').catch(() => undefined))?.allowed === true);
  expect(await redis.type('sluice:home:us')).toBe('hash');
});

it('nothing is asked for, and the home says what is left', async () => {
  const [home, us] = [await server(), await server()];
  const limiter = await limiterOf('us', us, home);
  await until(async () => (await limiter.consume('user:1', 0).catch(() => undefined))?.remaining === RATE);
});

it.each(['\x90', '\x91\xa1x', '\x01', 'text'])('damaged records of a region count as none: %j', async (damaged) => {
  const [home, us] = [await server(), await server()];
  const limiter = await limiterOf('us', us, home);
  await until(async () => (await limiter.consume('user:1').catch(() => undefined))?.allowed === true);
  const [atHome, here] = [new Redis(home), new Redis(us)];
  cleanups.push(() => [atHome, here].forEach((redis) => redis.disconnect()));
  const records = await atHome.keys('*:region:us');
  expect(records).toHaveLength(1);
  await atHome.set(records[0]!, Buffer.from(damaged, 'latin1'));
  await here.hset('sluice:home:us', { calls: damaged, at: damaged });
  // More than the region has: it asks its home.
  await until(async () => (await limiter.consume('user:1', 15).catch(() => undefined))?.allowed === true);
});
