import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { createStoreStack, type StoreStack } from '../../../lib/nest/store-stack.js';
import { createClient, connect } from '../../../lib/storage/redis/client.js';
import { limitSilence, noteSilence } from '../../../lib/storage/redis/silence.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-servers.js';
import { ask, compile, freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';

const limit = compile({ algo: 'fixed-window', rate: 1_000_000, interval: '1h' });

describe('a connection that says nothing any more', () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await startRedis();
  });
  afterEach(() => server.stop());

  it('is replaced while checks go on', async () => {
    const client = (await createClient(server.url)) as Redis;
    limitSilence(client, 300);
    const store: StoreStack = await createStoreStack({
      redis: client,
      ownsClient: true,
      prefix: freshPrefix(),
      timeoutMs: 1000,
      maxKeys: 100,
      report: () => undefined,
    });
    try {
      await store.open();
      expect(await ask(store, limit)).toMatchObject({ source: 'redis' });
      let closed = 0;
      client.on('close', () => closed++);
      server.pause();
      await until(async () => {
        await ask(store, limit);
        return closed > 0;
      });
      server.resume();
      await until(async () => (await ask(store, limit)).source === 'redis');
    } finally {
      await store.close();
    }
  });

  it('stays as long as it says anything', async () => {
    const client = (await createClient(server.url)) as Redis;
    await connect(client);
    limitSilence(client, 20);
    try {
      let closed = 0;
      client.on('close', () => closed++);
      const end = performance.now() + 200;
      while (performance.now() < end) {
        await client.ping();
        noteSilence(client);
      }
      expect(closed).toBe(0);
    } finally {
      client.disconnect();
    }
  });
});
