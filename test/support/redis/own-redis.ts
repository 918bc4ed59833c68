import { afterAll, beforeAll } from '@jest/globals';
import type { Redis } from 'ioredis';
import { connectClient, libraryClient } from './library-client.js';
import { type RedisServer, startRedis } from './redis-servers.js';

/**
 * Starts a server of the spec's own, so that what it holds is only the spec's, before all tests that follow here; ends it behind them.
 *
 * @param take is given a client, made as the library makes its own, and the server, before the first test
 */
export function withOwnRedis(take: (redis: Redis, server: RedisServer) => void): void {
  let server: RedisServer | undefined;
  let redis: Redis | undefined;
  beforeAll(async () => {
    server = await startRedis();
    redis = (await libraryClient(server.url)) as Redis;
    await connectClient(redis);
    take(redis, server);
  });
  afterAll(async () => {
    redis?.disconnect();
    await server?.stop();
  });
}
