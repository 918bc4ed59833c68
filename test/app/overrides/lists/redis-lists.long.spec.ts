import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { RateLimit, RateLimitModule, type RateLimitModuleOptions, RateLimitStoreError } from '../../../../lib/index.js';
import { TriedApp } from '../../../docs/tried-app.js';
import { startRedis } from '../../../support/redis/redis-servers.js';
import { connectRedis, freshPrefix, overrideKeys } from '../../../support/limits/stores.js';
import { PATIENCE } from '../../../support/redis/patience.mjs';
import { exceptReadings, login, RatesApp, until } from '../overrides-app.js';

const ACME = { identity: 'tenant:acme' };

const said = async (app: RatesApp, identity = 'tenant:acme') => {
  const { allowed, source } = await app.service.for('login').peek(identity);
  return source === 'list' ? (allowed ? 'allow' : 'deny') : undefined;
};

describe('lists on Redis', () => {
  const url = process.env['TEST_REDIS_URL'] as string;
  const apps: RatesApp[] = [];
  const cleanups: (() => unknown)[] = [];
  let redis: Redis;
  let prefix: string;
  let warn: jest.SpiedFunction<(message: unknown) => void>;

  const start = async (options: RateLimitModuleOptions = {}): Promise<RatesApp> => {
    const app = await RatesApp.start({ redis: url, prefix, ...options });
    apps.push(app);
    return app;
  };
  const [OVERRIDES, CHANGES] = [1, 3] as const;
  const key = (index: number): string => overrideKeys(prefix)[index]!;
  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(async () => {
    await redis.quit();
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

  it('reach other instances, and those that start later', async () => {
    const [one, two] = [await start(), await start()];
    for (const { service } of [one, two]) await service.listEntries();
    const evalsha = jest.spyOn(Redis.prototype, 'evalsha');
    for (let round = 0; round < 10; round++) {
      await one.service.deny(ACME);
      await until(() => said(two), 'deny');
      await two.service.allow(ACME, { limit: 'login', expiresIn: '1h' });
      await two.service.allow(ACME);
      await until(() => said(one), 'allow');
      await one.service.unlist(ACME);
      await one.service.unlist(ACME, { limit: 'login' });
      await until(() => said(two), undefined);
    }
    expect(evalsha.mock.calls.filter((call) => call.includes('read') || call.includes('page'))).toEqual([]);
    evalsha.mockRestore();
    await one.service.deny({ pattern: 'tenant:*' }, { by: 'eva' });
    const three = await start();
    expect(await said(three)).toBe('deny');
    expect((await three.service.listEntries()).entries).toEqual((await one.service.listEntries()).entries);
  });

  it('reach an app that has no limit with a name', async () => {
    const one = await start();
    const two = await start({ define: {}, limits: [{ algo: 'gcra', rate: 7, interval: '1s' }] });
    await one.service.deny({ ip: '10.0.0.0/8' });
    await until(async () => (await two.service.listEntries({ ip: '10.0.0.1' })).entries[0]?.list, 'deny');
  });

  it('of a request that is refused send Redis nothing', async () => {
    const server = await startRedis();
    cleanups.push(() => server.stop());
    @Controller()
    class ApiController {
      @Get()
      @RateLimit('login')
      get() {}
    }
    const module = RateLimitModule.forRoot({ define: { login }, redis: server.url, timeout: PATIENCE });
    const app = await TriedApp.start({ imports: [module], controllers: [ApiController] }, { ownStore: true });
    cleanups.push(() => app.close());
    expect(await app.statuses(1)).toEqual([200]);
    await app.limiters.deny({ ip: '127.0.0.0/8' }, { limit: 'login' });
    await app.limiters.deny(ACME);
    const sent = jest.spyOn(Redis.prototype, 'sendCommand');
    expect(await app.statuses(20)).toEqual(Array.from({ length: 20 }, () => 403));
    for (let count = 0; count < 20; count++) await app.limiters.for('login').consume('tenant:acme');
    expect(sent).not.toHaveBeenCalled();
    await app.limiters.deny({ ip: '127.0.0.1' });
    sent.mockClear();
    expect(await app.statuses(20)).toEqual(Array.from({ length: 20 }, () => 403));
    expect(sent).not.toHaveBeenCalled();
    await app.limiters.allow({ ip: '127.0.0.1' });
    await app.limiters.unlist({ ip: '127.0.0.0/8' }, { limit: 'login' });
    sent.mockClear();
    expect(await app.statuses(20)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(sent).not.toHaveBeenCalled();
  });

  it('hold while Redis is away, where they cannot be changed', async () => {
    const server = await startRedis();
    cleanups.push(() => server.stop());
    const app = await start({ redis: server.url });
    const timers = jest.spyOn(globalThis, 'setTimeout');
    await app.service.deny(ACME);
    await app.service.deny({ identity: 'short' }, { expiresIn: '1h' });
    await server.kill();
    expect([await said(app), await said(app, 'short')]).toEqual(['deny', 'deny']);
    await expect(app.service.allow(ACME)).rejects.toThrow(RateLimitStoreError);
    const [end] = timers.mock.calls.findLast(([, ms]) => ms! > 3_500_000)!;
    const now = performance.now.bind(performance);
    jest.spyOn(performance, 'now').mockImplementation(() => now() + 3_600_000);
    end();
    expect(await said(app, 'short')).toBeUndefined();
    expect(await said(app)).toBe('deny');
    expect((await app.service.listEntries()).entries).toMatchObject([{ entry: ACME, list: 'deny' }]);
  });

  it('leave Redis when they end', async () => {
    const { service } = await start();
    await service.deny(ACME);
    await service.deny({ ip: '::FFFF:10.0.0.0/104' }, { limit: 'login' });
    expect((await redis.hkeys(key(OVERRIDES))).toSorted()).toEqual([
      'list\n\nkey:tenant:acme',
      'list\nlogin\nip:10.0.0.0/8',
      'version',
    ]);
    await service.unlist(ACME);
    await service.unlist({ ip: '10.0.0.0/8' }, { limit: 'login' });
    expect(await redis.hkeys(key(OVERRIDES))).toEqual(['version']);
  });

  it.each<[string, string, string]>([
    ['no JSON', 'key:x', '{'],
    ['no record', 'key:x', '{}'],
    ['a record of a rate', 'key:x', recordOf({ patch: { rate: 1 } })],
    ['a record of two kinds', 'key:x', recordOf({ patch: { rate: 1 }, list: 'deny' })],
    ['an unknown list', 'key:x', recordOf({ list: 'block' })],
    ['no network', 'ip:10.0.0.0/33', recordOf({ list: 'deny' })],
    ['a network written otherwise', 'ip:::ffff:a00:0/104', recordOf({ list: 'deny' })],
    ['a pattern for all', 'key:*', recordOf({ list: 'deny' })],
    ['an entry of another form', 'country:XX', recordOf({ list: 'deny' })],
    ['no entry', '', recordOf({ list: 'deny' })],
  ])('that are damaged, as %s, are logged once and ignored', async (_, entry, json) => {
    const one = await start();
    await one.service.deny(ACME);
    await redis.hset(key(OVERRIDES), { [`list\n\n${entry}`]: json, [`list\nlogin\n${entry}`]: json });
    const two = await start();
    for (let count = 0; count < 3; count++) {
      expect([await said(two), await said(two, 'x')]).toEqual(['deny', undefined]);
      await two.service.listEntries();
    }
    expect((await two.service.listEntries()).entries).toMatchObject([{ entry: ACME }]);
    const ignored = warn.mock.calls
      .map(([message]) => String(message))
      .filter((each) => each.includes('of the lists of'));
    expect(ignored.toSorted()).toEqual([
      expect.stringContaining(`the entry '${entry}' of the lists of all limits is ignored: `),
      expect.stringContaining(`the entry '${entry}' of the lists of limit 'login' is ignored: `),
    ]);
  });

  it('load in great numbers', async () => {
    const [one, count] = [await start(), 100_000];
    await one.service.deny(ACME);
    const record = (await redis.hget(key(OVERRIDES), 'list\n\nkey:tenant:acme'))!;
    for (let from = 0; from < count; from += 10_000) {
      const networks = Array.from({ length: 10_000 }, (_, index) => [networkOf(from + index), record] as const);
      await redis.hset(key(OVERRIDES), Object.fromEntries(networks));
    }
    const two = await start();
    await two.service.allow({ ip: '10.0.0.9' });
    for (const index of [0, 77_777, count - 1]) {
      const ip = networkOf(index).split('ip:')[1]!;
      const found = (await two.service.listEntries({ ip: ip.replace(/0\/\d+$/, '1').replace('::/64', '::1') }))
        .entries[0];
      expect(found?.entry).toEqual({ ip });
    }
    expect((await two.service.listEntries({ ip: '10.0.0.9' })).entries[0]?.list).toBe('allow');
    expect((await two.service.listEntries({ ip: '192.0.2.1' })).entries[0]).toBeUndefined();
    let [listed, cursor]: [number, string | undefined] = [0, undefined];
    do {
      const page = await two.service.listEntries({ count: 1000, ...(cursor !== undefined && { cursor }) });
      listed += page.entries.length;
      cursor = page.next;
    } while (cursor !== undefined);
    expect(listed).toBe(count + 2);
  });

  it('are undone by no instance that does not know them', async () => {
    const { service } = await start();
    await service.setRate('login', { rate: 20 });
    const known = (await redis.lindex(key(CHANGES), 0))!;
    // As an instance of this release sees kinds of a later one, one of an earlier release sees lists.
    const later = { kind: 'later', limit: '', key: 'ip:10.0.0.1', before: null, after: { later: 1 } };
    const change = { ...(JSON.parse(known) as object), version: 2, at: 2, changes: [later] };
    await redis.rpush(key(CHANGES), JSON.stringify(change));
    await redis.hset(key(OVERRIDES), 'version', '2 2');
    await redis.hset(key(OVERRIDES), 'later\n\nip:10.0.0.1', '{"later":1}');
    await redis.publish(key(0), JSON.stringify(change));
    const two = await start();
    expect((await two.service.changes())[0]).toMatchObject({ version: 2, overrides: [] });
    await expect(two.service.rollback(0)).rejects.toThrow(
      'change 2 comes from a later release, and only that release can undo it',
    );
    expect(await two.service.listEntries()).toEqual({ entries: [], next: undefined });
  });
});

/** A network of either family. */
function networkOf(index: number): string {
  const [high, low] = [index >> 8, index & 0xff];
  const ip =
    index % 2 === 0
      ? `${11 + (high >> 8)}.${high & 0xff}.${low}.0/24`
      : `2001:db8:${(high + 1).toString(16)}:${low.toString(16)}::/64`;
  return `list\n\nip:${ip}`;
}

function recordOf(value: object): string {
  const numbers = { version: 1, generation: 0, expiresAt: null, quota: 0, previousQuota: 0 };
  return JSON.stringify({ ...value, inherit: 'keep', ...numbers });
}
