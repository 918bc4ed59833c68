import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { ExecutionContext } from '@nestjs/common';
import { Redis } from 'ioredis';
import type { LimitDefinition, ModuleLimit } from '../../../lib/index.js';
import { HttpApp } from '../../e2e/http-app.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-servers.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { headerOf, OpenController, reported } from './dynamic-app.js';

const hour = { interval: '1h', key: 'global' } as const;
const fixed: LimitDefinition = { ...hour, name: 'fixed', algo: 'sliding-window', rate: 100 };
const rateOf = async (context: ExecutionContext) => Number(headerOf(context, 'x-rate') ?? 5);

let server: RedisServer;
let redis: Redis;
const apps: HttpApp[] = [];
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url, { lazyConnect: true });
  await redis.connect();
});
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});
afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});

async function start(limits: ModuleLimit[], prefix = freshPrefix()): Promise<HttpApp> {
  const app = await HttpApp.start('express', {
    controllers: [OpenController],
    limits: { store: undefined, redis: server.url, prefix, limits },
  });
  apps.push(app);
  return app;
}
const calls = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
const rated = (algo: string) => ({ ...hour, name: 'plan', algo, rate: rateOf }) as ModuleLimit;

it.each<[string, ModuleLimit]>([
  ['a function', async (context) => ({ ...hour, name: 'plan', algo: 'fixed-window', rate: await rateOf(context) })],
  ['a rate', rated('fixed-window')],
])('%s is decided with the other limits in one call, all or none', async (_, limit) => {
  const app = await start([fixed, limit]);
  await app.get('/open');
  const before = await calls();
  expect(reported(await app.get('/open'))).toEqual([
    ['fixed', 100, 98],
    ['plan', 5, 3],
  ]);
  expect(await calls()).toBe(before + 1);
  expect(await app.statuses(5, '/open')).toEqual([200, 200, 200, 429, 429]);
  expect(reported(await app.get('/open'))[0]).toEqual(['fixed', 100, 95]);
});

async function left(app: HttpApp, rate: string): Promise<number | undefined> {
  return reported(await app.get('/open', { 'x-rate': rate }))[0]?.[2];
}

it.each(['gcra', 'token-bucket', 'fixed-window'] as const)(
  'a rate that changes keeps what was used, on all instances: %s',
  async (algo) => {
    const prefix = freshPrefix();
    const [one, other] = [await start([rated(algo)], prefix), await start([rated(algo)], prefix)];
    expect([await left(one, '10'), await left(other, '10'), await left(one, '10')]).toEqual([9, 8, 7]);
    const grown = await left(other, '20');
    // A bucket keeps its tokens when it grows, and what was taken when it shrinks; all others keep what was used.
    expect(grown).toBe(algo === 'token-bucket' ? 6 : 16);
    expect(await left(one, '10')).toBe(algo === 'token-bucket' ? 0 : 5);
  },
);
