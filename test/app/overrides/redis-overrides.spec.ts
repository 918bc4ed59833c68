import type { Server } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import {
  LimiterService,
  RateLimit,
  RateLimitModule,
  type RateLimitModuleOptions,
  RateLimitStoreError,
} from '../../../lib/index.js';
import { withOwnRedis } from '../../support/redis/own-redis.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-servers.js';
import { freePort } from '../../support/processes/ports.mjs';
import { freshPrefix } from '../../support/limits/stores.js';
import { TcpProxy } from '../../support/redis/tcp-proxy.js';
import { PATIENCE } from '../../support/redis/patience.mjs';
import { exceptReadings, login, RatesApp, READ_EVERY_MS, recordOf, until } from './overrides-app.js';

describe('changed rates on Redis', () => {
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
  /** Writes a record, as another release might, without a message. */
  const writeSilently = (fields: object, name = 'login', client = redis) =>
    client.hset(`${prefix}:rates`, name, recordOf(fields));
  const stored = async (name: string) =>
    JSON.parse((await redis.hget(`${prefix}:rates`, name)) as string) as Record<string, unknown>;
  /** The URL of a user of Redis who may use our keys, and do what the rules say. */
  const userOf = async (...rules: string[]): Promise<string> => {
    const name = `user-${prefix}`;
    await redis.call('ACL', 'SETUSER', name, 'reset', 'on', '>secret', `~${prefix}:*`, ...rules);
    cleanups.push(() => redis.call('ACL', 'DELUSER', name));
    const { hostname, port } = new URL(url);
    return `redis://${name}:secret@${hostname}:${port}`;
  };
  const warnings = () => warn.mock.calls.map(([message]) => String(message));

  withOwnRedis((client, { url: ofServer }) => {
    [redis, url] = [client, ofServer];
  });
  beforeEach(() => {
    prefix = freshPrefix();
    warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    // What an instance comes to know, it has heard.
    jest.spyOn(globalThis, 'setTimeout').mockImplementation(exceptReadings);
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await Promise.all(apps.splice(0).map((app) => app.close()));
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  });

  describe('reach other instances', () => {
    it('at once, and so are cleared ones', async () => {
      const [one, two] = [await start(), await start()];
      for (let round = 1; round <= 20; round++) {
        await one.service.setRate('login', { rate: 10 + round });
        expect(await one.quota()).toBe(10 + round);
        await until(() => two.quota(), 10 + round);
      }
      expect(await two.service.clearRate('login')).toBe(true);
      await until(() => one.quota(), 10);
    });

    it.each<[string, () => Redis]>([
      ['a connection of the app', () => new Redis(url)],
      ['a connection with a prefix of its own', () => new Redis(url, { keyPrefix: 'app:' })],
      ['a connection that never connects again by itself', () => new Redis(url, { retryStrategy: () => null })],
    ])('over %s, which stays open', async (_, make) => {
      const client = make();
      cleanups.push(() => client.quit());
      const [one, two] = [await start({ redis: client }), await start({ redis: client })];
      await one.service.setRate('login', { rate: 20 });
      await until(() => two.quota(), 20);
      await Promise.all(apps.splice(0).map((app) => app.close()));
      expect(client.status).toBe('ready');
    });

    it('that start later', async () => {
      const one = await start();
      await one.service.setRate('login', { rate: 20 }, { inherit: 'reset' });
      await one.service.setRate('hourly', { rate: 7 });
      const two = await start();
      expect(await two.quota()).toBe(20);
      expect(await two.service.getRate('hourly')).toMatchObject({ options: { rate: 7 } });
    });

    it('with a reset that all of them follow', async () => {
      const [one, two] = [await start(), await start()];
      await two.service.for('login').consume('user:1', 9);
      await one.service.setRate('login', { rate: 20 }, { inherit: 'reset' });
      await until(() => two.remaining(), 20);
      await two.service.for('login').consume('user:1', 5);
      expect(await one.remaining()).toBe(15);
    });

    it('and end on all of them without a message', async () => {
      const [one, two] = [await start(), await start()];
      const began = performance.now();
      const clock = jest.spyOn(performance, 'now').mockReturnValue(began);
      const timers = jest.mocked(globalThis.setTimeout);
      timers.mockClear();
      await one.service.setRate('login', { rate: 20 }, { expiresIn: '1h' });
      await until(() => two.quota(), 20);
      const ends = timers.mock.calls.filter(([, ms]) => ms! > 3_000_000);
      const quotasAfter = (ms: number) => {
        clock.mockReturnValue(began + ms);
        for (const [end] of ends) end();
        return Promise.all([one.quota(), two.quota()]);
      };
      // An instance that learned of it later has less time left. Timers are rounded up to a millisecond.
      const left = ends.map(([, ms]) => ms!);
      expect(await quotasAfter(Math.min(...left) - 2)).toEqual([20, 20]);
      expect(await quotasAfter(Math.max(...left))).toEqual([10, 10]);
    });
  });

  it('are set by one of many instances that call trySetRate', async () => {
    const instances = await Promise.all(Array.from({ length: 5 }, () => start()));
    const tries = Array.from({ length: 50 }, (_, index) =>
      instances[index % 5]!.service.trySetRate('login', { rate: 100 + index }),
    );
    const done = await Promise.all(tries);
    expect(done.filter(Boolean)).toHaveLength(1);
    for (const app of instances) expect(await app.quota()).toBe(100 + done.indexOf(true));
  });

  it('send nothing that is wrong', async () => {
    const app = await start();
    await expect(app.service.setRate('login', { rate: 0 })).rejects.toThrow('expected a whole number >= 1, received 0');
    await expect(app.service.setRate('nope', { rate: 1 })).rejects.toThrow(
      "unknown limit 'nope', expected a limit of 'define', 'forFeature' or 'limits' with a 'name': 'hourly', 'login'",
    );
    expect(await redis.exists(`${prefix}:rates`)).toBe(0);
  });

  it('are stored with all fields of their record', async () => {
    const app = await start();
    const most = Number.MAX_SAFE_INTEGER;
    await app.service.setRate('hourly', { rate: 200 });
    await app.service.setRate('hourly', { rate: most, slices: 4 }, { inherit: 'reset', expiresIn: '1h' });
    expect(await stored('hourly')).toEqual({
      patch: { rate: most, slices: 4 },
      version: 2,
      generation: 1,
      inherit: 'reset',
      expiresAt: expect.any(Number),
      quota: most,
      previousQuota: 200,
    });
    await app.service.clearRate('hourly');
    expect(await stored('hourly')).toEqual({
      patch: null,
      version: 3,
      generation: 1,
      inherit: 'keep',
      expiresAt: null,
      quota: 100,
      previousQuota: most,
    });
  });

  it('show in the headers of a route', async () => {
    @Controller()
    class LoginController {
      @Get()
      @RateLimit('login')
      list() {}
    }
    const testing = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ redis: url, prefix, define: { login }, timeout: PATIENCE })],
      controllers: [LoginController],
    }).compile();
    const nest = testing.createNestApplication();
    cleanups.push(() => nest.close());
    cleanups.push(() => (nest.getHttpServer() as Server).closeAllConnections());
    await nest.listen(0, '127.0.0.1');
    const policy = async () => (await fetch(await nest.getUrl())).headers.get('ratelimit-policy');
    expect(await policy()).toBe('"login";q=10;w=3600');
    await nest.get(LimiterService).setRate('login', { rate: 2, interval: '1m' });
    expect(await policy()).toBe('"login";q=2;w=60');
    expect((await fetch(await nest.getUrl())).status).toBe(429);
  });

  describe('are read again', () => {
    it('when the connection that listens was cut', async () => {
      const app = await start();
      await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await writeSilently({ patch: { rate: 20 } });
      await until(() => app.quota(), 20);
      const other = await start();
      await other.service.setRate('login', { rate: 30 });
      await until(() => app.quota(), 30);
    });

    it('when the server comes back without them', async () => {
      const server = await startRedis();
      cleanups.push(() => server.stop());
      const app = await start({ redis: server.url });
      await app.service.setRate('login', { rate: 20 });
      await server.kill();
      await until(async () => (await app.service.for('login').peek('user:1')).source, 'fallback');
      expect(await app.quota()).toBe(20);
      await server.start();
      await until(() => app.quota(), 10);
      await app.service.setRate('login', { rate: 30 });
      expect((await app.service.getRate('login')).override?.version).toBe(1);
    });

    it('every 30 s', async () => {
      const timers = jest.mocked(globalThis.setTimeout);
      timers.mockClear();
      const app = await start();
      const timer = timers.mock.calls.findLast(([, delay]) => delay === READ_EVERY_MS);
      await writeSilently({ patch: { rate: 20 } });
      expect(await app.quota()).toBe(10);
      timer![0]();
      await until(() => app.quota(), 20);
    });

    it('from records of a release that named the inherit mode `state`', async () => {
      const app = await start();
      await app.service.setRate('login', { rate: 20 }, { inherit: 'reset' });
      await writeSilently({ patch: { rate: 30 }, version: 2, generation: 1, inherit: undefined, state: 'additive' });
      const { override } = await app.service.getRate('login');
      expect(override).toEqual({ patch: { rate: 30 }, version: 2, inherit: 'additive', expiresAt: undefined });
      expect(await app.quota()).toBe(30);
      await app.service.setRate('login', { rate: 40 });
      expect(await stored('login')).toMatchObject({ version: 3, generation: 1, inherit: 'keep', previousQuota: 10 });
      expect(warnings()).toEqual([]);
    });

    it('when they are asked for', async () => {
      const app = await start();
      await writeSilently({ patch: { rate: 20 }, version: 7 });
      expect((await app.service.getRate('login')).override?.version).toBe(7);
      expect(await app.quota()).toBe(20);
    });
  });

  it.each<[string, string]>([
    ['that is no JSON', '{'],
    ['that is no object', '7'],
    ['without what a record has', '{}'],
    ['of another inherit mode', recordOf({ patch: { rate: 20 }, inherit: 'forget' })],
    ['of another algorithm', recordOf({ patch: { queue: 20 } })],
    ['that nothing knows', recordOf({ patch: { tempo: 20 } })],
    ['with a wrong rate', recordOf({ patch: { rate: -1 } })],
    ['that is a list', recordOf({ patch: [20] })],
  ])('ignore a record %s, with one warning', async (_, json) => {
    await redis.hset(`${prefix}:rates`, 'login', json, 'unknown', json);
    const app = await start();
    expect(await app.quota()).toBe(10);
    expect(await app.service.getRate('login')).toMatchObject({
      options: login,
      source: 'configured',
      override: undefined,
    });
    await app.service.setRate('hourly', { rate: 7 });
    const ignored = warnings().filter((message) => message.includes("the changed rate of limit 'login' is ignored"));
    expect(ignored).toHaveLength(1);
    await app.service.setRate('login', { rate: 20 });
    expect(await app.quota()).toBe(20);
  });

  describe('while Redis is not there', () => {
    let server: RedisServer;

    beforeEach(async () => {
      server = await startRedis();
      cleanups.push(() => server.stop());
    });

    it('are not changed, and stay as they are', async () => {
      const other = await RatesApp.start({ redis: server.url, prefix });
      await other.service.setRate('login', { rate: 20 });
      await other.close();
      const app = await start({ redis: server.url, timeout: 50 });
      await until(() => app.quota(), 20);
      server.pause();
      cleanups.push(() => server.resume());
      await expect(app.service.setRate('login', { rate: 30 })).rejects.toThrow(RateLimitStoreError);
      await expect(app.service.clearRate('login')).rejects.toThrow(RateLimitStoreError);
      await expect(app.service.trySetRate('login', { rate: 30 })).rejects.toThrow(RateLimitStoreError);
      expect(await app.service.getRate('login')).toMatchObject({ options: { rate: 20 } });
      expect(await app.service.listRates()).toHaveLength(2);
      expect(await app.quota()).toBe(20);
    });

    it('are those of the configuration, until it is there', async () => {
      const port = await freePort();
      const app = await start({ redis: `redis://127.0.0.1:${port}`, timeout: 100 });
      await expect(app.service.setRate('login', { rate: 20 })).rejects.toThrow(RateLimitStoreError);
      expect(await app.quota()).toBe(10);
      const client = new Redis(server.url);
      cleanups.push(() => client.quit());
      await writeSilently({ patch: { rate: 20 } }, 'login', client);
      // It is read as soon as the server is there, which says nothing of it later.
      const proxy = await TcpProxy.start(server, port);
      cleanups.push(() => proxy.close());
      await until(() => app.quota(), 20);
    });
  });

  describe('after the changes were lost on the server', () => {
    const keys = () => {
      const rates = `${prefix}:rates`;
      return [rates, ...['overrides', 'expiries', 'changes'].map((name) => `${prefix}:{${rates}}:${name}`)];
    };
    /** What the server keeps now, to go back to: as a replica that lags behind, or a snapshot. */
    const snapshot = () => Promise.all(keys().map((key) => redis.dumpBuffer(key)));
    const goBackTo = async (dumps: readonly (Buffer | null)[]) => {
      for (const [index, dump] of dumps.entries()) {
        if (dump === null) await redis.del(keys()[index]!);
        else await redis.restore(keys()[index]!, 0, dump, 'REPLACE');
      }
    };
    const two = async () => {
      const define = { login, daily: { ...login, rate: 100 } };
      const apps = [await start({ define }), await start({ define })] as const;
      await apps[0].service.setRate('daily', { rate: 7 });
      await until(() => apps[1].quota('daily'), 7);
      return apps;
    };
    const setRate = async ([one, other]: readonly [RatesApp, RatesApp], rate: number) => {
      await one.service.setRate('login', { rate });
      await until(() => other.quota(), rate);
    };

    it('take effect everywhere, and what was lost ends', async () => {
      const both = await two();
      for (const rate of [20, 30, 40]) await setRate(both, rate);
      await redis.del(keys());
      const [one, other] = both;
      await one.service.deny({ identity: 'user:1' });
      expect(await one.service.for('login').consume('user:1')).toMatchObject({ source: 'list' });
      expect(await one.quota('login', 'user:2')).toBe(10);
      await until(() => other.quota('login', 'user:2'), 10);
      expect(await other.service.for('login').consume('user:1')).toMatchObject({ source: 'list' });
      expect(await other.quota('daily')).toBe(100);
      await other.service.setRate('login', { rate: 50 });
      expect(await other.quota('login', 'user:2')).toBe(50);
      await until(() => one.quota('login', 'user:2'), 50);
      expect(await one.service.changes()).toMatchObject([{ version: 2 }, { version: 1 }]);
    });

    it('take effect everywhere if an older state came back', async () => {
      const both = await two();
      const dumps = await snapshot();
      for (const rate of [20, 30, 40]) await setRate(both, rate);
      await goBackTo(dumps);
      await both[1].service.setRate('daily', { rate: 9 });
      expect([await both[1].quota(), await both[1].quota('daily')]).toEqual([10, 9]);
      await until(() => both[0].quota('daily'), 9);
      expect(await both[0].quota()).toBe(10);
    });

    it('take effect everywhere if the state before the last change came back', async () => {
      const both = await two();
      const dumps = await snapshot();
      await setRate(both, 20);
      await goBackTo(dumps);
      await both[1].service.setRate('daily', { rate: 9 });
      await until(() => both[0].quota('daily'), 9);
      expect([await both[0].quota(), await both[1].quota()]).toEqual([10, 10]);
    });

    it('take effect everywhere if the hash of keys alone was lost', async () => {
      const both = await two();
      await both[0].service.setRate('login', { rate: 20 }, { key: 'user:1' });
      await until(() => both[1].quota(), 20);
      await redis.del(keys()[1]!);
      await both[1].service.setRate('login', { rate: 30 }, { key: 'user:2' });
      await until(() => both[0].quota('login', 'user:2'), 30);
      expect([await both[0].quota(), await both[1].quota()]).toEqual([10, 10]);
      expect(await both[0].quota('daily')).toBe(7);
      // What was changed before would be taken back to a state that is no longer there.
      expect(await both[0].service.changes()).toHaveLength(1);
    });
  });

  describe('of a user of Redis', () => {
    const documented =
      '+evalsha +script|load +mget +get +set +del +time +publish +subscribe +info ' +
      '+hget +hset +hgetall +hdel +hscan +zadd +zrem +zrangebyscore +rpush +lrange +ltrim';

    it('that may do what the guide says work', async () => {
      const user = await userOf(`&${prefix}:rates`, `&${prefix}:given-back`, ...documented.split(' '));
      const [one, two] = [await start({ redis: user }), await start({ redis: user })];
      await one.service.setRate('login', { rate: 20 });
      await until(() => two.quota(), 20);
      await one.service.for('login').consume('user:1');
      expect(warnings()).toEqual([]);
    });

    it.each([
      ['use the channel', ['resetchannels', '+@all'], 2],
      ['subscribe', ['allchannels', '+@all', '-subscribe'], 2],
      ['publish', ['allchannels', '+@all', '-publish'], 1],
    ])('that may not %s are read every 2 s, and warned of once', async (_, rules, warned) => {
      const user = await userOf(...rules);
      const [one, two] = [await start({ redis: user }), await start({ redis: user })];
      // Each channel is subscribed to separately, and by both instances.
      await until(async () => warnings().length, 2 * warned);
      const timer = () => jest.mocked(globalThis.setTimeout).mock.calls.findLast(([, delay]) => delay === 2000);
      await until(async () => timer() !== undefined, true);
      jest.mocked(globalThis.setTimeout).mockClear();
      await one.service.setRate('login', { rate: 20 });
      expect(await one.quota()).toBe(20);
      await until(() => two.quota(), 20);
      await two.service.clearRate('login');
      await until(() => one.quota(), 10);
      const ofChanges = warnings().filter((message) => message.startsWith('changes of rates do not arrive at once'));
      expect(ofChanges).toHaveLength(2);
      expect(ofChanges[0]).toMatch(new RegExp(`read every 2 s. .* PUBLISH on the channel '${prefix}:rates': NOPERM`));
      expect(timer()).toBeDefined();
      const others = warnings().filter((message) => !ofChanges.includes(message));
      for (const message of others) expect(message).toMatch(/^rejections are not cached.*given-back'.*NOPERM/);
    });

    it('that may use it again are told of changes at once', async () => {
      const user = await userOf('allchannels', '+@all', '-subscribe');
      const app = await start({ redis: user });
      await until(async () => warnings().length, 2);
      await redis.call('ACL', 'SETUSER', `user-${prefix}`, '+subscribe');
      const pauses = jest.mocked(globalThis.setTimeout).mock.calls.filter(([, delay]) => delay === READ_EVERY_MS);
      for (const [goOn] of pauses) goOn();
      await until(async () => String(await redis.call('PUBSUB', 'NUMSUB', `${prefix}:rates`)), `${prefix}:rates,1`);
      await (await start()).service.setRate('login', { rate: 20 });
      await until(() => app.quota(), 20);
    });

    it('that may not read them are warned of once', async () => {
      const app = await start({ redis: await userOf('allchannels', '+@all', '-hgetall') });
      await app.service.listRates();
      expect(await app.quota()).toBe(10);
      expect(warnings()).toEqual([
        expect.stringMatching(/^changed rates cannot be read, so the last known ones apply/),
      ]);
    });
  });
});
