import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { connect, createClient, ignoreConnectionErrors } from '../../lib/redis/client.js';
import { notConnected } from '../../lib/redis/connection-errors.js';
import { startRedis, type RedisServer } from '../support/redis-servers.js';

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
