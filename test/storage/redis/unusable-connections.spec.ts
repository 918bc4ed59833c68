import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { LimiterService, RateLimitModule, type RateLimitModuleOptions } from '../../../lib/index.js';
import { startRedis, type RedisServer } from '../../support/redis/redis-servers.js';

let server: RedisServer;
let admin: Redis;
let logged: string[];

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.url);
  await admin.config('SET', 'requirepass', 'right');
});
afterAll(async () => {
  admin.disconnect();
  await server.stop();
});
beforeEach(() => {
  logged = [];
  for (const level of ['warn', 'error'] as const) {
    jest.spyOn(Logger.prototype, level).mockImplementation((text: unknown) => void logged.push(String(text)));
  }
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** The only line that an app logs about a connection that it can't use. With `calls`, the app uses a limit first. */
async function lineOf(redis: RateLimitModuleOptions['redis'], calls = false): Promise<string> {
  const api = { name: 'api', algo: 'gcra', rate: 1, interval: '1s' } as const;
  const options = { redis, ...(calls ? { define: { api } } : { limits: [api] }) } as RateLimitModuleOptions;
  const app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot(options)] }).compile();
  await app.init();
  if (calls) await app.get(LimiterService).for('api').consume('a');
  await app.close();
  expect(logged).toHaveLength(1);
  return logged[0]!;
}

describe('the log of a connection that is not usable names the option, the server and what to do', () => {
  it('for a wrong password, which it does not show', async () => {
    const line = await lineOf(server.url.replace('redis://', 'redis://app:hidden@'));
    expect(line).toMatch(
      /^the store failed, so each limit follows its 'onStoreError' \(by default each instance counts by itself\): WRONGPASS /,
    );
    expect(line).toContain(
      `; option 'redis' points to ${server.host}:${server.port}, which rejects the user or the password. Use valid ones, in a URL ` +
        'as redis://user:password@host:port',
    );
    expect(line).not.toContain('hidden');
  });

  it('for no password', async () => {
    const line = await lineOf({ host: server.host, port: server.port });
    expect(line).toContain('NOAUTH');
    expect(line).toContain(
      `option 'redis' points to ${server.host}:${server.port}, which requires a password, in a URL as `,
    );
  });

  it('for an unknown host', async () => {
    expect(await lineOf('redis://:hidden@nohost.invalid:6379')).toMatch(
      /; option 'redis' points to nohost\.invalid:6379, a name that no name server knows\. Use the host of Redis$/,
    );
  });

  it('for a port where nothing listens', async () => {
    expect(await lineOf('redis://127.0.0.1:1')).toBe(
      "the store failed, so each limit follows its 'onStoreError' (by default each instance counts by itself): connect ECONNREFUSED 127.0.0.1:1; option 'redis' points to " +
        '127.0.0.1:1, where nothing listens. Start Redis there, or use another host and port',
    );
  });

  it('for a replica, once a limit is used', async () => {
    const master = await startRedis();
    const replica = await startRedis({ args: ['--replicaof', master.host, `${master.port}`] });
    const line = await lineOf(replica.url, true);
    expect(line).toMatch(
      /^the store failed, so each limit follows its 'onStoreError' \(by default each instance counts by itself\): READONLY /,
    );
    expect(line).toContain(
      `points to ${replica.host}:${replica.port}, which is a replica and takes no writes. Use the`,
    );
    await replica.stop();
    await master.stop();
  });

  it('for a server whose memory is full', async () => {
    const full = await startRedis({ args: ['--maxmemory', '1', '--maxmemory-policy', 'noeviction'] });
    expect(await lineOf(full.url, true)).toMatch(/\): OOM .*, whose memory is full\. Raise its 'maxmemory', or delete/);
    await full.stop();
  });

  it('for a database that the server does not have', async () => {
    expect(await lineOf(`redis://:right@${server.host}:${server.port}/99`)).toMatch(
      /which has no database with this number\. Use a lower one, mostly 0 to 15$/,
    );
  });

  it('for a server that is not Redis', async () => {
    const other = createServer((socket) => socket.on('error', () => undefined).end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await once(other.listen(0, '127.0.0.1'), 'listening');
    const { port } = other.address() as AddressInfo;
    expect(await lineOf(`redis://127.0.0.1:${port}`)).toMatch(
      /where something other than Redis answers\. Use the host and port of Redis$/,
    );
    other.close();
  });

  it('for a server that stops while the app runs', async () => {
    const stopping = await startRedis();
    const module = RateLimitModule.forRoot({
      redis: stopping.url,
      define: { api: { algo: 'gcra', rate: 1, interval: '1s' } },
    });
    const app = await Test.createTestingModule({ imports: [module] }).compile();
    await app.init();
    await stopping.stop();
    const limiter = app.get(LimiterService).for('api');
    while (logged.length === 0) await limiter.consume('a');
    expect(logged[0]).toContain(`; option 'redis' points to ${stopping.host}:${stopping.port}, `);
    await app.close();
  });

  it('for TLS that the server does not speak', async () => {
    expect(await lineOf(server.url.replace('redis://', 'rediss://'))).toMatch(
      /no answer to the TLS handshake; option 'redis' points to \S+, which probably does not use TLS\. Write redis:\/\/ instead of rediss:/,
    );
  });

  it('for Sentinels and nodes of a Cluster', async () => {
    const place = { host: '127.0.0.1', port: 1 };
    expect(await lineOf({ sentinels: [place], name: 'main' })).toContain(
      "the store failed, so each limit follows its 'onStoreError' (by default each instance counts by itself): All sentinels are unreachable. Retrying from scratch after 10ms. Last error: Connection is closed; option 'redis' points to the master 'main' of the Sentinels, none of which answers. Set 'sentinels' to the hosts and ports of running ones",
    );
    logged = [];
    expect(await lineOf({ nodes: [place, { ...place, port: 2 }] })).toContain(
      "option 'redis' points to 127.0.0.1:1, 127.0.0.1:2, none of which answers as a node of a Cluster. Set ",
    );
  });

  it('for a client of node-redis', async () => {
    const client = createClient({ url: 'redis://127.0.0.1:1' });
    client.on('error', () => undefined);
    const opened = client.connect().catch(() => undefined);
    expect(await lineOf(client)).toContain(
      "the store failed, so each limit follows its 'onStoreError' (by default each instance counts by itself): connect ECONNREFUSED 127.0.0.1:1; option 'redis' points to 127.0.0.1:1, where nothing listens. Start Redis there, or use another host and port",
    );
    client.destroy();
    await opened;
  });
});
