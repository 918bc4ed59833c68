import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Cluster, Redis } from 'ioredis';
import { LimiterService, RateLimitModule, type RateLimitModuleOptions } from '../../../lib/index.js';
import { ownCopy } from '../../../lib/storage/redis/client.js';
import type { Connection } from '../../../lib/storage/redis/connection.js';
import { freshPrefix, SENDS_ONCE } from '../../support/limits/stores.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-servers.js';
import { TcpProxy } from '../../support/redis/tcp-proxy.js';
import { until } from '../../support/time/until.js';

const api = { algo: 'fixed-window', rate: 100, interval: '1d' } as const;

describe("an app's own ioredis client", () => {
  let server: RedisServer;
  const cleanups: (() => unknown)[] = [];

  beforeAll(async () => {
    server = await startRedis();
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
    jest.restoreAllMocks();
  });
  afterAll(async () => {
    await server?.stop();
  });

  const connectTo = async (url: string, options = {}) => {
    const client = new Redis(url, { ...options, lazyConnect: true });
    cleanups.push(() => client.disconnect());
    await client.connect();
    return client;
  };
  const open = async (redis: NonNullable<RateLimitModuleOptions['redis']>, prefix: string) => {
    const module = RateLimitModule.forRoot({ redis, prefix, timeout: '5s', define: { api } });
    const app = await Test.createTestingModule({ imports: [module] }).compile();
    await app.init();
    cleanups.push(() => app.close());
    return app.get(LimiterService).for('api');
  };
  const listeners = (client: NodeJS.EventEmitter) =>
    Object.fromEntries(client.eventNames().map((name) => [String(name), client.listenerCount(name)]));

  it.each<[string, object]>([
    ['with default options', {}],
    ['that resends nothing', SENDS_ONCE],
  ])('%s is charged once for a lost answer', async (_, options) => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const proxy = await TcpProxy.start(server);
    cleanups.push(() => proxy.close());
    const prefix = freshPrefix();
    const limiter = await open(await connectTo(proxy.url, options), prefix);
    const beside = await open(server.url, prefix);
    const used = async () => 100 - (await beside.peek('a')).remaining;
    await limiter.consume('a');
    proxy.hold('replies');
    const lost = limiter.consume('a');
    await until(async () => (await used()) === 2);
    proxy.aim(server);
    proxy.pass();
    expect(await lost).toMatchObject({ allowed: true, source: 'fallback' });
    await until(async () => (await limiter.peek('a')).source === 'redis');
    expect(await limiter.consume('a')).toMatchObject({ source: 'redis', remaining: 97 });
    expect(await used()).toBe(3);
    expect(warn).not.toHaveBeenCalledWith(expect.stringContaining('autoResend'));
  });

  it('with default options is left alone', async () => {
    const client = await connectTo(server.url, { keyPrefix: 'app:' });
    const before = listeners(client);
    const sent = jest.spyOn(client, 'sendCommand');
    const prefix = freshPrefix();
    const module = RateLimitModule.forRoot({ redis: client, prefix, define: { api } });
    const app = await Test.createTestingModule({ imports: [module] }).compile();
    await app.init();
    expect(await app.get(LimiterService).for('api').consume('a')).toMatchObject({ source: 'redis' });
    expect(listeners(client)).toEqual(before);
    await app.close();
    expect(sent).not.toHaveBeenCalled();
    expect(client.status).toBe('ready');
    expect(await client.keys(`app:${prefix}:*`)).toHaveLength(1);
  });

  it('may change its password, which the copy follows', async () => {
    const own = await startRedis();
    cleanups.push(() => own.stop());
    const admin = await connectTo(own.url);
    await admin.call('ACL', 'SETUSER', 'app', 'on', '>one', '~*', '&*', '+@all');
    const client = await connectTo(own.url, { username: 'app', password: 'one' });
    const limiter = await open(client, freshPrefix());
    await limiter.consume('a');
    await admin.call('ACL', 'SETUSER', 'app', '<one', '>two');
    client.options.password = 'two';
    await admin.call('CLIENT', 'KILL', 'USER', 'app');
    await until(async () => (await limiter.peek('a')).source === 'redis');
    expect(await limiter.consume('a')).toMatchObject({ source: 'redis', remaining: 98 });
  });

  it('of a Cluster has a copy that resends nothing', () => {
    const redisOptions = { password: 'one', connectTimeout: 5000 };
    const client = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true, redisOptions });
    const copy = ownCopy(client, 250) as unknown as Cluster;
    expect(copy.options).toMatchObject({ enableOfflineQueue: false, retryDelayOnFailover: 0 });
    expect(copy.options.redisOptions).toMatchObject({ autoResendUnfulfilledCommands: false, connectTimeout: 5000 });
    client.options.redisOptions!.password = 'two';
    expect(copy.options.redisOptions!.password).toBe('two');
    const prompt = new Cluster([{ host: '127.0.0.1', port: 1 }], {
      lazyConnect: true,
      redisOptions: { autoResendUnfulfilledCommands: false },
    });
    expect(ownCopy(prompt as unknown as Connection, 250)).toBeUndefined();
  });
});
