import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { RedisStore } from '../../../lib/index.js';
import { connect, createClient, ignoreConnectionErrors } from '../../../lib/storage/redis/client.js';
import { notConnected } from '../../../lib/storage/redis/errors.js';
import { startRedis, type RedisServer } from '../../support/redis/redis-servers.js';
import { ask, compile, freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

let server: RedisServer;
let admin: Redis;

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.url);
  await admin.config('SET', 'requirepass', 'right');
});

afterAll(async () => {
  admin.disconnect();
  await server.stop();
});

it('an error for want of a connection says why there is none', async () => {
  const client = await createClient(server.url.replace('redis://', 'redis://:wrong@'));
  ignoreConnectionErrors(client);
  try {
    expect(notConnected(client).message).toBe("Redis is not connected (status 'wait')");
    await expect(connect(client)).rejects.toThrow('WRONGPASS');
    expect(notConnected(client).message).toMatch(/^Redis is not connected \(status '[a-z]+'\): WRONGPASS /);
    const ready = once(client, 'ready');
    await admin.config('SET', 'requirepass', 'wrong');
    await ready;
    client.disconnect();
    expect(notConnected(client).message).toMatch(/^Redis is not connected \(status '[a-z]+'\)$/);
  } finally {
    client.disconnect();
  }
});

it('a call whose connection was lost says so, and to which server, but no password', async () => {
  const own = await startRedis();
  const client = await createClient(own.url.replace('redis://', 'redis://default:hidden@'));
  ignoreConnectionErrors(client);
  const store = new RedisStore(client, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS, ownsClient: true });
  try {
    await store.open();
    own.pause();
    const asked = [
      ask(store, compile({ algo: 'gcra', rate: 1, interval: '1h' }, 'lost')),
      store.reset([{ limit: compile({ algo: 'gcra', rate: 1, interval: '1h' }, 'lost'), identity: 'user:1' }]),
    ];
    const failures = asked.map((each) =>
      expect(each).rejects.toMatchObject({
        name: 'RateLimitStoreError',
        message: `the connection to Redis (${own.host}:${own.port}) was lost before it answered`,
      }),
    );
    await own.kill();
    await Promise.all(failures);
  } finally {
    await store.close();
    await own.stop();
  }
});
