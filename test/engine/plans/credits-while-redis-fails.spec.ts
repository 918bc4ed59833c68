import { expect, it } from '@jest/globals';
import { MemoryStore, RateLimitStoreError, RedisStore } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { startRedis } from '../../support/redis/redis-servers.js';
import { ask, freshPrefix } from '../../support/limits/stores.js';
import { fallingBack } from '../../support/limits/layers.js';
import { libraryClient } from '../../support/redis/library-client.js';

it('takes no credits while Redis fails, and adds none', async () => {
  const server = await startRedis();
  const redis = await libraryClient(server.url, 2000);
  const primary = new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: 2000, ownsClient: true });
  const store = fallingBack(primary, new MemoryStore());
  await store.open();
  try {
    const limit = new CompiledLimit(
      { algo: 'calendar-window', rate: 2, period: 'year', credits: true },
      { location: 'test', name: 'plan' },
    );
    const identity = 'user:42';
    const credit = { limit, identity, units: 5 };
    expect(await store.credit!(credit)).toBe(5);
    expect(await ask(store, limit, { identity, cost: 3 })).toMatchObject({ allowed: true, credits: 4 });
    await server.stop();
    expect(await ask(store, limit, { identity, cost: 2 })).toMatchObject({ allowed: true, source: 'fallback' });
    expect(await ask(store, limit, { identity })).toMatchObject({ allowed: false, credits: 0 });
    await expect(store.credit!(credit)).rejects.toBeInstanceOf(RateLimitStoreError);
  } finally {
    await server.stop();
    await store.close();
  }
});
