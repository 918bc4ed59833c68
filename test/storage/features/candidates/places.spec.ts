import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Cluster, Redis } from 'ioredis';
import { MemoryStore, type OnStoreError, RateLimitStoreError, RedisStore } from '../../../../lib/index.js';
import { CompiledLimit } from '../../../../lib/testing/store/index.js';
import { startCluster, type RedisCluster } from '../../../support/redis/redis-servers.js';
import { connectCluster, connectRedis, freshPrefix, ManualClock } from '../../../support/limits/stores.js';
import { WatchedStore } from './watched-store.js';
import { PATIENCE_MS } from '../../../support/redis/patience.mjs';
import { fallingBack } from '../../../support/limits/layers.js';

const window = { algo: 'fixed-window', rate: 3, interval: '1h' } as const;
const limitOf = (onStoreError: OnStoreError = 'local') =>
  new CompiledLimit(window, { location: 'test', name: 'api', onStoreError, candidate: { ...window, rate: 2 } });
const limit = limitOf();

/** How often scripts ran on a server. */
async function calls(redis: Redis): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
}

describe('a candidate on a Cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  let store: WatchedStore;

  beforeAll(async () => {
    cluster = await startCluster();
    client = await connectCluster(cluster);
    store = new WatchedStore(
      new RedisStore(client, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS, ownsClient: true }),
    );
    await store.open();
  });
  afterAll(async () => {
    await store?.close();
    await cluster?.stop();
  });

  const allCalls = async () => {
    const counts = await Promise.all(client.nodes('master').map(calls));
    return counts.reduce((sum, count) => sum + count, 0);
  };

  it('lies in the slot of its limit, whoever is counted, so that one call decides both', async () => {
    const identities = ['user:1', 'user:2', 'a key with {braces} and spaces', 'x'.repeat(300)];
    for (const identity of identities) {
      await store.check([{ entries: [{ limit, identity, cost: 2 }] }]);
      expect(store.nodeOf!({ limit, identity })).toBe(store.nodeOf!({ limit: limit.candidate!, identity }));
    }
    const before = await allCalls();
    for (const identity of identities) await store.check([{ entries: [{ limit, identity, cost: 1 }] }]);
    expect(await allCalls()).toBe(before + identities.length);
    expect(store.candidates).toMatchObject([{ allowed: false, remaining: 0 }]);
  });

  it('gets back what it was charged, where another slot refuses', async () => {
    const full = new CompiledLimit({ ...window, rate: 1 }, { location: 'test', name: 'full' });
    const entries = [
      { limit, identity: 'user:a', cost: 1 },
      { limit: full, identity: 'user:b', cost: 1 },
      { limit, identity: 'user:c', cost: 1 },
    ];
    await store.check([{ entries: [entries[1]!] }]);
    const [decisions] = await store.check([{ entries }]);
    expect(decisions!.map(({ allowed }) => allowed)).toEqual([true, false, true]);
    for (const identity of ['user:a', 'user:c']) expect(await store.remaining(limit, identity)).toBe(2);
  });
});

describe('a candidate on one server', () => {
  it('goes the fast way with its limit', async () => {
    const redis = await connectRedis();
    const store = new WatchedStore(new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: 5000 }));
    const evalsha = jest.spyOn(redis, 'evalsha');
    await store.check([{ entries: [{ limit, identity: 'user:1', cost: 1 }] }]);
    const [[, keys, ...rest]] = evalsha.mock.calls as unknown as [[string, number, ...string[]]];
    expect(keys).toBe(2);
    expect(rest[0]).toMatch(/:\{user:1\}::api:fw$/);
    expect(rest[1]).toMatch(/:\{user:1\}::api:fwc$/);
    expect(rest[2]).toMatch(/^\[2,/);
    await redis.quit();
  });

  it('shares a call with all else of the turn', async () => {
    const redis = await connectRedis();
    const store = new WatchedStore(
      new RedisStore(redis, { clock: new ManualClock(), prefix: freshPrefix(), timeoutMs: PATIENCE_MS }),
    );
    const entries = [{ limit, identity: 'user:1', cost: 1 }];
    const answers = await store.check(Array.from({ length: 4 }, () => ({ entries })));
    expect(answers.map(([decision]) => decision!.remaining)).toEqual([2, 1, 0, 0]);
    const reserved = { limit, identity: 'user:2', cost: 3, maxWaitMs: 0 };
    expect((await store.reserve(reserved)).candidate).toMatchObject({ allowed: false, remaining: 2 });
    await redis.quit();
  });
});

describe('a candidate of a limit in shadow mode', () => {
  it('gets back at once what its limit had refused, where that may be given back', async () => {
    const store = new WatchedStore(new MemoryStore({ clock: new ManualClock().now }));
    const shadow = new CompiledLimit(window, {
      location: 'test',
      name: 'api',
      shadow: true,
      candidate: { ...window, rate: 9 },
    });
    const full = new CompiledLimit({ ...window, rate: 4 }, { location: 'test', name: 'full' });
    const entries = [shadow, full].map((each) => ({ limit: each, identity: 'user:1', cost: 1 }));
    const said: (readonly [boolean, number])[] = [];
    for (const refundable of [false, false, false, true, true]) {
      await store.check([{ entries, refundable }]);
      const { allowed } = store.candidates[0]!;
      said.push([allowed, await store.remaining(shadow, 'user:1')]);
    }
    // The fourth one is refused by the shadow, and so charged to nobody in the end; the fifth by the other limit.
    expect(said).toEqual([
      [true, 8],
      [true, 7],
      [true, 6],
      [true, 6],
      [true, 6],
    ]);
    await store.close();
  });
});

describe('a candidate while the store fails', () => {
  const fail = () => Promise.reject(new RateLimitStoreError('it fails'));
  const failing = (localShare = 1) => {
    const store = Object.assign(new MemoryStore(), { check: fail, reserve: fail });
    return new WatchedStore(fallingBack(store, new MemoryStore(), { localShare }));
  };

  it('is counted in process as its limit is, and a share of it', async () => {
    const store = failing(0.5);
    const four = new CompiledLimit(
      { ...window, rate: 8 },
      { location: 'test', name: 'four', candidate: { ...window, rate: 4 } },
    );
    const entry = { limit: four, identity: 'user:1', cost: 2 };
    await store.check([{ entries: [entry] }]);
    expect(store.candidates).toMatchObject([{ allowed: true, quota: 2, remaining: 0, source: 'fallback' }]);
    expect(await store.reserve({ ...entry, maxWaitMs: 0 })).toMatchObject({
      allowed: true,
      candidate: { allowed: false },
    });
    await store.close();
  });

  it('never asks a function of the user', async () => {
    const store = failing();
    const asked: string[] = [];
    const chosen = limitOf((_, { key }) => {
      asked.push(key);
      return 'allow';
    });
    const [decisions] = await store.check([{ entries: [{ limit: chosen, identity: 'user:1', cost: 1 }] }]);
    expect([decisions![0]!.allowed, asked]).toEqual([true, ['user:1']]);
    await store.close();
  });

  it('refuses nothing, nor lets anything pass that its limit denies', async () => {
    const store = failing();
    const check = { entries: [{ limit: limitOf('deny'), identity: 'user:1', cost: 1 }] };
    await expect(store.check([check])).rejects.toThrow('it fails');
    await store.close();
  });
});
