import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import keySlot from 'cluster-key-slot';
import { Cluster, Redis } from 'ioredis';
import type { RateLimitModuleOptions } from '../../../lib/index.js';
import { withOwnRedis } from '../../support/redis/own-redis.js';
import { type RedisCluster, startCluster, startRedis } from '../../support/redis/redis-servers.js';
import { freshPrefix, overrideKeys } from '../../support/limits/stores.js';
import { exceptReadings, RatesApp, until } from './overrides-app.js';

const set = (app: RatesApp, tenant: string, rate: number, options = {}) =>
  app.service.setRate('login', { rate }, { key: `tenant:${tenant}`, ...options });
const quota = (app: RatesApp, tenant: string) => app.quota('login', `tenant:${tenant}`);

describe('rates of single keys on Redis', () => {
  const apps: RatesApp[] = [];
  const cleanups: (() => unknown)[] = [];
  let redis: Redis;
  let url: string;
  let prefix: string;
  let warn: jest.SpiedFunction<(message: unknown) => void>;

  const start = async (options: RateLimitModuleOptions = {}): Promise<RatesApp> => {
    const app = await RatesApp.start({ redis: url, prefix, ...options });
    apps.push(app);
    return app;
  };
  const [RATES, OVERRIDES, EXPIRIES, CHANGES] = [0, 1, 2, 3] as const;
  const key = (index: number): string => overrideKeys(prefix)[index]!;
  const warnings = () => warn.mock.calls.map(([message]) => String(message));

  withOwnRedis((client, { url: ofServer }) => {
    [redis, url] = [client, ofServer];
  });
  beforeEach(() => {
    prefix = freshPrefix();
    warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    // Instances are told of changes, and do not read them by and by.
    jest.spyOn(globalThis, 'setTimeout').mockImplementation(exceptReadings);
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await Promise.all(apps.splice(0).map((app) => app.close()));
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  });

  it('reach other instances without another reading, and those that start later', async () => {
    const [one, two] = [await start(), await start()];
    // What they read when they began to listen is over.
    for (const { service } of [one, two]) await service.listRates();
    const evalsha = jest.spyOn(Redis.prototype, 'evalsha');
    const rounds = 20;
    for (let round = 1; round <= rounds; round++) {
      await set(one, 'acme', 10 + round);
      await set(one, '*', 100 + round);
      await until(() => quota(two, 'other'), 100 + round);
      expect(await quota(two, 'acme')).toBe(10 + round);
    }
    const readings = evalsha.mock.calls.filter((call) => call.includes('read') || call.includes('page'));
    expect(readings).toEqual([]);
    evalsha.mockRestore();
    const three = await start();
    expect([await quota(three, 'acme'), await quota(three, 'other')]).toEqual([10 + rounds, 100 + rounds]);
    expect(await three.service.clearRate('login', { key: 'tenant:*' })).toBe(true);
    await until(() => quota(one, 'other'), 10);
  });

  it('are read from the history by an instance that missed some changes', async () => {
    const [one, two] = [await start(), await start()];
    await set(one, 'gone', 50);
    await until(() => quota(two, 'gone'), 50);
    const evalsha = jest.spyOn(Redis.prototype, 'evalsha');
    await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    for (let tenant = 0; tenant < 20; tenant++) await set(one, String(tenant), 20 + tenant);
    await one.service.clearRate('login', { key: 'tenant:gone' });
    await until(() => quota(two, '19'), 39);
    await until(() => quota(two, 'gone'), 10);
    expect(await quota(two, '0')).toBe(20);
    expect(evalsha.mock.calls.filter((call) => call.includes('page'))).toEqual([]);
  });

  it('are read as a whole where the history does not reach so far back', async () => {
    const one = await start();
    for (let tenant = 0; tenant < 30; tenant++) await set(one, String(tenant), 20 + tenant);
    const two = await start();
    await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await set(one, 'late', 60);
    await one.service.clearRate('login', { key: 'tenant:7' });
    await redis.ltrim(key(CHANGES), -1, -1);
    await two.service.getRate('login');
    expect([await quota(two, 'late'), await quota(two, '7'), await quota(two, '29')]).toEqual([60, 10, 49]);
    // Changes that follow are heard.
    await set(one, 'late', 61);
    await until(() => quota(two, 'late'), 61);
  });

  it('are those of a server that lost some changes', async () => {
    const server = await startRedis();
    cleanups.push(() => server.stop());
    const [one, two] = [await start({ redis: server.url }), await start({ redis: server.url })];
    await set(one, 'acme', 20);
    await until(() => quota(two, 'acme'), 20);
    await server.kill();
    await server.start();
    const admin = new Redis(server.url);
    cleanups.push(() => admin.quit());
    await until(() => quota(two, 'acme'), 10);
    await until(() => quota(one, 'acme'), 10);
    // As many changes as before, but others.
    await set(one, 'other', 30);
    await until(() => quota(two, 'other'), 30);
    expect(await quota(two, 'acme')).toBe(10);
  });

  it('leave Redis when they end, but for the number of their resets', async () => {
    const app = await start();
    await set(app, 'long', 20, { expiresIn: '1h' });
    await set(app, 'ever', 20);
    await set(app, 'reset', 20, { expiresIn: 50, inherit: 'reset' });
    await set(app, 'short', 20, { expiresIn: 50 });
    for (const tenant of ['short', 'reset']) await until(() => quota(app, tenant), 10);
    await set(app, 'ever', 30);
    expect((await redis.hkeys(key(OVERRIDES))).toSorted()).toEqual(
      ['ever', 'long', 'reset'].map((tenant) => `rate\nlogin\ntenant:${tenant}`).concat('version'),
    );
    expect(await redis.zrange(key(EXPIRIES), '0', '-1')).toEqual(['rate\nlogin\ntenant:long']);
    await set(app, 'long', 30);
    expect(await redis.exists(key(EXPIRIES))).toBe(0);
    expect(await redis.exists(key(RATES))).toBe(0);
  });

  it.each<[string, string]>([
    ['no JSON', '{'],
    ['no object', '7'],
    ['no record', '{}'],
    ['a patch of another algorithm', recordOf({ queue: 20 })],
    ['a wrong rate', recordOf({ rate: -1 })],
    ['a rate that cannot be counted', recordOf({ rate: 2 ** 53 - 1, interval: 123.457 })],
  ])('that are %s are logged once and ignored, and the others hold', async (_, json) => {
    const one = await start();
    await set(one, 'acme', 20);
    await set(one, '*', 30);
    const fields = ['rate\nlogin\ntenant:broken', 'rate\nlogin\nuser:*', 'other\nlogin\nx', 'strange', 'rate\nnone\nx'];
    await redis.hset(key(OVERRIDES), Object.fromEntries(fields.map((field) => [field, json] as const)));
    const two = await start();
    for (let count = 0; count < 3; count++) {
      expect([await quota(two, 'acme'), await quota(two, 'broken'), await two.quota()]).toEqual([20, 30, 10]);
    }
    const ignored = warnings().filter((message) => message.includes("limit 'login'"));
    expect(ignored.toSorted()).toEqual([
      expect.stringContaining("the rate of limit 'login' for the key 'tenant:broken' is ignored: "),
      expect.stringContaining("the rate of limit 'login' for the key 'user:*' is ignored: "),
    ]);
    await set(one, 'broken', 40);
    await until(() => quota(two, 'broken'), 40);
  });

  it('go on beside the rates that an instance of an earlier release changes', async () => {
    const [one, two] = [await start(), await start()];
    await set(one, 'acme', 20);
    for (let round = 1; round <= 5; round++) {
      // Earlier releases write without a history, and tell the name alone.
      await redis.hset(key(RATES), 'login', recordOf({ rate: 30 + round }));
      await redis.publish(key(RATES), 'login');
      await until(() => two.quota(), 30 + round);
      await until(() => one.quota(), 30 + round);
      expect([await quota(one, 'acme'), await quota(two, 'acme')]).toEqual([20, 20]);
    }
    await one.service.setRate('login', { rate: 50 });
    await until(() => two.quota(), 50);
    expect((await two.service.changes({ last: 1 }))[0]).toMatchObject({
      version: 2,
      overrides: [{ before: { patch: { rate: 35 } }, after: { patch: { rate: 50 } } }],
    });
  });

  it('load page by page, while changes come', async () => {
    const one = await start();
    await set(one, 'first', 50);
    const record = (await redis.hget(key(OVERRIDES), 'rate\nlogin\ntenant:first'))!;
    const many = Array.from({ length: 5000 }, (_, tenant) => [`rate\nlogin\ntenant:${tenant}`, record] as const);
    await redis.hset(key(OVERRIDES), Object.fromEntries(many));
    const starting = start();
    for (let round = 0; round < 50; round++) await set(one, String(round), 100 + round);
    const two = await starting;
    expect(await quota(two, '4999')).toBe(50);
    for (let round = 0; round < 50; round++) await until(() => quota(two, String(round)), 100 + round);
  });

  it('load though keys or values contain what separates them in a page', async () => {
    const one = await start();
    await set(one, 'a\0b', 40);
    await set(one, 'plain', 50);
    await redis.hset(key(OVERRIDES), 'rate\nlogin\ntenant:broken', 'not\0a record');
    const two = await start();
    expect([await quota(two, 'a\0b'), await quota(two, 'plain'), await quota(two, 'broken')]).toEqual([40, 50, 10]);
  });

  it.each(['', 'app:', '{app}:'])('lie in one slot of a Cluster, behind the prefix %j of a connection', (keyPrefix) => {
    const slots = overrideKeys('sluice', keyPrefix).map((each) => keySlot(keyPrefix + each));
    expect(new Set(slots).size).toBe(1);
    expect(overrideKeys('sluice')).toEqual([
      'sluice:rates',
      'sluice:{sluice:rates}:overrides',
      'sluice:{sluice:rates}:expiries',
      'sluice:{sluice:rates}:changes',
    ]);
  });

  describe('on a Cluster', () => {
    let cluster: RedisCluster;

    beforeAll(async () => {
      cluster = await startCluster();
    });
    afterAll(async () => {
      await cluster?.stop();
    });

    it.each([undefined, 'app:'])('reach other instances, behind the prefix %p of a connection', async (keyPrefix) => {
      const client = new Cluster(cluster.nodes, keyPrefix === undefined ? {} : { keyPrefix });
      cleanups.push(() => client.quit());
      const [one, two] = [await start({ redis: client }), await start({ redis: client })];
      for (let round = 1; round <= 5; round++) {
        await set(one, 'acme', 10 + round);
        await until(() => quota(two, 'acme'), 10 + round);
      }
      expect(await quota(await start({ redis: client }), 'acme')).toBe(15);
      expect(await two.service.clearRate('login', { key: 'tenant:acme' })).toBe(true);
      await until(() => quota(one, 'acme'), 10);
    });
  });
});

function recordOf(patch: object): string {
  const numbers = { version: 1, generation: 0, expiresAt: null, quota: 10, previousQuota: 10 };
  return JSON.stringify({ patch, inherit: 'keep', ...numbers });
}
