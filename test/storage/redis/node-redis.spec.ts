import type { EventEmitter } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { RESP_TYPES } from 'redis';
import {
  LimiterService,
  type NodeRedisClient,
  RateLimitConfigError,
  type RateLimitModuleOptions,
  RateLimitStoreError,
  RedisStore,
} from '../../../lib/index.js';
import { ConsoleApp } from '../../console/console-app.js';
import { RatesApp, READ_EVERY_MS, until } from '../../app/overrides/overrides-app.js';
import { algorithmNames } from '../../support/limits/arbitraries.js';
import { type Client, nodeRedis, openClient } from '../../support/redis/node-redis.js';
import { PATIENCE, PATIENCE_MS } from '../../support/redis/patience.mjs';
import { freePort } from '../../support/processes/ports.mjs';
import { holdUp } from '../../support/time/hold-up.js';
import { stopTimersFrom } from '../../support/time/long-timers.js';
import { variants } from '../../support/tier.js';
import { startRedis } from '../../support/redis/redis-servers.js';
import { ask, compile, connectRedis, freshPrefix } from '../../support/limits/stores.js';
import { TcpProxy } from '../../support/redis/tcp-proxy.js';

const url = process.env['TEST_REDIS_URL']!;

const examples = {
  'fixed-window': { algo: 'fixed-window', rate: 2, interval: '1h' },
  'calendar-window': { algo: 'calendar-window', rate: 2, period: 'year', retain: '1d' },
  'sliding-window': { algo: 'sliding-window', rate: 2, interval: '1h' },
  'sliding-log': { algo: 'sliding-log', rate: 2, interval: '1h' },
  'token-bucket': { algo: 'token-bucket', rate: 2, interval: '1h' },
  'leaky-bucket': { algo: 'leaky-bucket', rate: 2, interval: '1h', queue: 1 },
  gcra: { algo: 'gcra', rate: 2, interval: '1h' },
} as const;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  jest.restoreAllMocks();
});

/** How many listeners each event of a client has. */
const listeners = (client: EventEmitter) =>
  Object.fromEntries(client.eventNames().map((name) => [String(name), client.listenerCount(name)]));

async function startApp(options: RateLimitModuleOptions): Promise<RatesApp> {
  const app = await RatesApp.start({ timeout: PATIENCE, ...options });
  cleanups.push(() => app.close());
  return app;
}

describe.each(variants(Object.entries(nodeRedis)))('a client of %s', (_, version) => {
  let client: Client;
  let prefix: string;
  beforeAll(async () => {
    client = await openClient(version);
  });
  afterAll(() => client.close());
  beforeEach(() => {
    prefix = freshPrefix();
  });

  it.each(algorithmNames)('allows the quota of %s and no more', async (algo) => {
    const store = new RedisStore(client, { prefix, timeoutMs: PATIENCE_MS });
    const limit = compile(examples[algo]);
    const outcomes = await Promise.all([1, 2, 3].map(() => ask(store, limit)));
    expect(outcomes.map(({ allowed }) => allowed)).toEqual([true, true, false]);
    expect(outcomes.map(({ remaining }) => remaining)).toEqual([1, 0, 0]);
    await store.close();
    expect(client.isReady).toBe(true);
  });

  it('is given a script that its server has lost', async () => {
    const server = await startRedis();
    cleanups.push(() => server.stop());
    const own = await openClient(version, server.url);
    cleanups.push(() => own.destroy());
    const store = new RedisStore(own, { prefix, timeoutMs: PATIENCE_MS });
    await store.open();
    await own.sendCommand(['SCRIPT', 'FLUSH']);
    await expect(ask(store, compile(examples.gcra))).resolves.toMatchObject({ allowed: true, source: 'redis' });
  });

  it('delivers changed rates and lists to other instances', async () => {
    // No app reads the rates on its own: they have to be delivered.
    stopTimersFrom(READ_EVERY_MS);
    const [one, two] = await Promise.all([startApp({ redis: client, prefix }), startApp({ redis: url, prefix })]);
    await one.service.setRate('login', { rate: 30 }, { by: 'ops' });
    await until(() => two.quota(), 30);
    await two.service.setRate('login', { rate: 40 });
    await until(() => one.quota(), 40);
    await two.service.deny({ identity: 'user:1' }, { reason: 'abuse' });
    const isDenied = async () => (await one.service.for('login').consume('user:1')).allowed;
    await until(isDenied, false);
    expect((await one.service.changes()).length).toBeGreaterThanOrEqual(3);
  });

  it('delivers units that come back, which end refusals that others remember', async () => {
    const [one, two] = await Promise.all([startApp({ redis: client, prefix }), startApp({ redis: client, prefix })]);
    await one.service.for('login').consume('user:1', 10);
    const isAllowed = async () => (await two.service.for('login').consume('user:1')).allowed;
    expect(await isAllowed()).toBe(false);
    await one.service.for('login').refund('user:1', 5);
    await until(isAllowed, true);
  });

  it('counts usage, and holds that lapse', async () => {
    const define = {
      tokens: { algo: 'budget', period: 'day', limit: 100, usage: '30d', hold: '1m' },
    } as const;
    const app = await startApp({ redis: client, prefix, define });
    const tokens = app.service.for('tokens');
    await tokens.consume('tenant:a', 7);
    await tokens.consume('tenant:b', 5);
    expect((await tokens.usage('tenant:a')).total).toBe(7);
    const exported = [];
    for await (const { key } of tokens.exportUsage()) exported.push(key);
    expect(exported.toSorted()).toEqual(['tenant:a', 'tenant:b']);
  });

  it('shows a console what it needs', async () => {
    const app = await ConsoleApp.start({ limits: { redis: client, prefix, timeout: PATIENCE } });
    cleanups.push(() => app.close());
    await app.service.for('things').consume('anna', 3);
    await app.console.recorder.flush();
    const { totals, redis, problem } = await app.overview();
    expect(totals['things']).toMatchObject({ allowed: 1 });
    expect(redis).toMatchObject({ up: true, mode: 'standalone', version: expect.stringMatching(/^(redis|valkey) \d/) });
    expect(problem).toBeUndefined();
  });

  it('stays open when apps close, without their listeners', async () => {
    await (await RatesApp.start({ redis: client, prefix })).close();
    const before = listeners(client);
    for (let i = 0; i < 3; i++) {
      const app = await RatesApp.start({ redis: client, prefix });
      await app.service.for('login').consume('user:1');
      await app.close();
    }
    expect(listeners(client)).toEqual(before);
    await expect(client.ping()).resolves.toBe('PONG');
  });

  it('is closed by a store that owns it', async () => {
    const own = await openClient(version);
    const store = new RedisStore(own, { prefix, timeoutMs: PATIENCE_MS, ownsClient: true });
    await ask(store, compile(examples.gcra));
    await store.close();
    expect(own.isOpen).toBe(false);
  });

  it('is used whatever protocol and types the app has set for its own commands', async () => {
    const buffers = { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String, [RESP_TYPES.MAP]: Map };
    for (const RESP of [2, 3] as const) {
      const own = version.createClient({ url, RESP, commandOptions: { typeMapping: buffers } });
      await own.connect();
      cleanups.push(() => own.close());
      for (const client of [own, own.withTypeMapping(buffers)]) {
        const current = freshPrefix();
        const define = { daily: { algo: 'fixed-window', rate: 3, interval: '1d', usage: '2d' } } as const;
        const app = await startApp({ redis: client, prefix: current, define });
        const daily = app.service.for('daily');
        expect(await daily.consume('user:1', 2)).toMatchObject({ allowed: true, remaining: 1, source: 'redis' });
        expect(await daily.usage('user:1')).toMatchObject({ total: 2 });
        await app.service.setRate('daily', { rate: 4 });
        expect((await app.service.changes()).length).toBe(1);
        const page = await ConsoleApp.start({
          limits: { redis: client, prefix: current, timeout: PATIENCE },
        });
        await page.console.recorder.flush();
        expect((await page.overview()).redis).toMatchObject({ up: true });
        await page.close();
      }
    }
  });

  it('counts with another connection under the same keys', async () => {
    const redis = await connectRedis();
    cleanups.push(() => redis.disconnect());
    const limit = compile(examples['fixed-window']);
    const [ours, theirs] = [client, redis].map((each) => new RedisStore(each, { prefix, timeoutMs: PATIENCE_MS }));
    expect((await ask(ours!, limit)).remaining).toBe(1);
    expect((await ask(theirs!, limit)).remaining).toBe(0);
    expect((await ask(ours!, limit)).allowed).toBe(false);
  });

  describe('that has its connection cut', () => {
    it('is not asked, and asked again once it is back', async () => {
      const server = await startRedis();
      cleanups.push(() => server.stop());
      const own = await openClient(version, server.url);
      cleanups.push(() => own.destroy());
      jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
      const app = await startApp({ redis: own, prefix, timeout: '1s' });
      const source = async () => (await app.service.for('login').consume('user:1')).source;
      await until(source, 'redis');
      await server.kill();
      await until(source, 'fallback');
      await server.start();
      await until(source, 'redis');
      // What it listens to is back, too.
      const other = await startApp({ redis: server.url, prefix });
      await other.service.setRate('login', { rate: 50 });
      await until(() => app.quota(), 50);
    });
  });

  describe('that holds commands back', () => {
    const limit = compile({ algo: 'fixed-window', rate: 100, interval: '1h' });

    async function openByProxy() {
      const server = await startRedis();
      cleanups.push(() => server.stop());
      const proxy = await TcpProxy.start(server);
      cleanups.push(() => proxy.close());
      const own = await openClient(version, proxy.url);
      cleanups.push(() => own.destroy());
      return { proxy, own };
    }

    it('does not send those later whose callers have given up', async () => {
      const { proxy, own } = await openByProxy();
      const [patient, store] = [PATIENCE_MS, 100].map((timeoutMs) => new RedisStore(own, { prefix, timeoutMs }));
      await ask(patient!, limit);
      proxy.hold('all');
      // The socket takes no more of what follows.
      const filler = 'x'.repeat(1_000_000);
      const fillers = Array.from({ length: 20 }, () => own.set(`${prefix}:filler`, filler));
      for (let i = 0; i < 3; i++) await expect(ask(store!, limit)).rejects.toThrow(RateLimitStoreError);
      proxy.pass();
      // All that was to be sent before this has been sent.
      await Promise.allSettled(fillers);
      await own.ping();
      expect((await ask(patient!, limit)).remaining).toBe(98);
    });

    it('gives time once more to the calls that it has not sent, and to no others', async () => {
      const { proxy, own } = await openByProxy();
      await ask(new RedisStore(own, { prefix, timeoutMs: PATIENCE_MS }), limit);
      const store = new RedisStore(own, { prefix, timeoutMs: 1000 });
      proxy.hold('all');
      const sent = [ask(store, limit), ask(store, limit)];
      for (let turn = 0; turn < 5; turn++) await setImmediate();
      const unsent = [ask(store, limit), ask(store, limit)];
      // In the turn in which they reach the client, before it writes them.
      const busy = setImmediate().then(() => holdUp(1100));
      for (const each of sent) await expect(each).rejects.toThrow(RateLimitStoreError);
      await busy;
      proxy.pass();
      expect(await Promise.all(unsent)).toMatchObject([{ allowed: true }, { allowed: true }]);
    });
  });
});

describe('keyPrefix of a client', () => {
  it('stands before all keys', async () => {
    const client = nodeRedis['node-redis 6'].createClient({ url, keyPrefix: 'mine:' });
    await client.connect();
    cleanups.push(() => client.close());
    const prefix = freshPrefix();
    const app = await startApp({ redis: client, prefix });
    await app.service.for('login').consume('user:1');
    await app.service.setRate('login', { rate: 20 });
    const redis = await connectRedis();
    cleanups.push(() => redis.disconnect());
    const keys = await redis.keys(`*${prefix}*`);
    expect(keys.length).toBeGreaterThan(1);
    for (const key of keys) expect(key).toMatch(/^mine:/);
    await app.service.for('login').reset('user:1');
    expect(await app.remaining()).toBe(20);
  });
});

const start = (redis: unknown) => RatesApp.start({ redis: redis as NodeRedisClient });

describe('what cannot be used', () => {
  const { createClient } = nodeRedis['node-redis 6'];
  it('is a client that is not open', async () => {
    const closed = createClient({ url });
    await expect(start(closed)).rejects.toThrow(
      'RateLimitModule.redis: expected an open client of node-redis, received one that is not open. Call `await client.connect()` first',
    );
  });

  it.each<[string, () => unknown, string]>([
    ['a promise', () => Promise.resolve(), "a promise (await it, for instance in the 'useFactory' of forRootAsync)"],
    ['a pool', () => nodeRedisPool(), 'a pool of node-redis (its connections take turns'],
    ['a legacy client', () => createClient({ url }).legacy(), 'a client of node-redis in legacy mode (give the client'],
    ['a function', () => createClient, "the function 'createClient' (call it first)"],
    ['a URL object', () => new URL(url), "an object of the class URL (give its 'href')"],
    ['valkey-glide', () => ({ customCommand: () => 1, invokeScript: () => 1 }), 'a client of valkey-glide (it is not'],
    [
      'ioredis 4',
      () => ({ evalsha: () => 1, status: 'ready', _addedScriptHashes: {} }),
      'a connection of ioredis 4 or older (update ioredis to 5 or 6)',
    ],
    [
      'node-redis 4',
      () => ({ sendCommand: () => 1, isOpen: true, isReady: true, duplicate: () => 1, v4: {} }),
      'a client of node-redis 4 or older (update redis to 5 or 6)',
    ],
  ])('is %s', async (_, make, reason) => {
    const error = await start(make()).catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(RateLimitConfigError);
    expect((error as Error).message).toMatch(/^RateLimitModule\.redis: expected /);
    expect((error as Error).message).toContain(`, received ${reason}`);
    expect((error as Error).message).toContain(": expected a URL such as 'redis://localhost:6379'");
  });

  it('is a store without a connection', () => {
    expect(() => new RedisStore({} as NodeRedisClient)).toThrow(
      'connection to Redis: expected a client of ioredis 5 or 6, or of node-redis 5 or 6, received {}',
    );
    expect(() => new RedisStore(nodeRedisPool() as NodeRedisClient)).toThrow(
      'connection to Redis: expected a client of ioredis 5 or 6, or of node-redis 5 or 6, received a pool of node-redis (its connections take turns, and the library uses one for all it sends; give a client of createClient)',
    );
  });

  function nodeRedisPool(): unknown {
    return createClient({ url }).createPool();
  }
});

it('starts without Redis, on the fallback', async () => {
  jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
  const client = nodeRedis['node-redis 6'].createClient({ url: `redis://127.0.0.1:${await freePort()}` });
  client.on('error', () => undefined);
  void client.connect().catch(() => undefined);
  cleanups.push(() => client.destroy());
  const app = await startApp({ redis: client, prefix: freshPrefix() });
  await expect(app.nest.get(LimiterService).for('login').consume('user:1')).resolves.toMatchObject({
    allowed: true,
    source: 'fallback',
  });
});
