import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import { type Cluster, Redis } from 'ioredis';
import {
  type AlgorithmOptions,
  MemoryStore,
  RateLimitStoreError,
  RedisStore,
  type Store,
} from '../../../../lib/index.js';
import { CompiledLimit } from '../../../../lib/testing/store/index.js';
import { isPlainCheck } from '../../../../lib/storage/stores/redis/fast-way/plain-checks.js';
import { slotTags } from '../../../../lib/storage/stores/redis/slots.js';
import { ensureBuilt } from '../../../support/processes/built.js';
import { bundledWorker } from '../../../support/processes/bundled-worker.js';
import { type RedisCluster, type RedisServer, startCluster, startRedis } from '../../../support/redis/redis-servers.js';
import {
  ask,
  connectCluster,
  featuresOfOptions,
  featureTerms,
  freshPrefix,
  ManualClock,
} from '../../../support/limits/stores.js';
import { ALL, pagesOf, unitsOf } from '../../../support/limits/usage.js';
import { fallingBack } from '../../../support/limits/layers.js';
import { libraryClient } from '../../../support/redis/library-client.js';
import { PATIENCE_MS } from '../../../support/redis/patience.mjs';

const usageWorker = bundledWorker('usage-worker.mjs');
const DAY_MS = 86_400_000;
const identity = 'user:42';

function recorded(options: AlgorithmOptions, usage: unknown = '400d'): CompiledLimit {
  return new CompiledLimit(options, {
    location: 'test',
    featuresOfOptions,
    name: 'api',
    features: featureTerms({ usage }, 'test'),
  });
}

const limit = recorded({ algo: 'fixed-window', rate: 1000, interval: '1h' });
const usage = (store: Store, who = identity, of = limit) => unitsOf(store, { limit: of, identity: who }, ALL);
const totalOf = async (store: Store, who?: string) =>
  (await usage(store, who)).reduce((sum, { units }) => sum + units, 0);

/** The total of each key of an export. */
async function exported(store: Store, of = limit, batch = 500): Promise<Map<string, number>> {
  const totals = new Map<string, number>();
  for await (const page of pagesOf(store, of, ALL, batch)) {
    for (const { key, days } of page) {
      expect(totals.has(key)).toBe(false);
      totals.set(
        key,
        days.reduce((sum, { units }) => sum + units, 0),
      );
    }
  }
  return totals;
}

describe('usage on Redis', () => {
  let server: RedisServer;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.url, { lazyConnect: true });
    await redis.connect();
  });
  afterAll(async () => {
    redis?.disconnect();
    await server?.stop();
  });

  const fresh = (clock?: ManualClock) => {
    const prefix = freshPrefix();
    const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS, ...(clock && { clock }) });
    return { prefix, store, keys: async () => (await redis.keys(`${prefix}:*`)).toSorted() };
  };

  it('is exported with as few round trips in small batches as in large ones', async () => {
    const { store } = fresh();
    for (const each of ['a', 'b', 'c', 'd', 'e']) await ask(store, limit, { identity: each });
    const roundTripsOf = async (batch: number) => {
      let [inFlight, roundTrips] = [0, 0];
      const read = redis.zrangebyscore.bind(redis) as (...args: unknown[]) => Promise<string[]>;
      const spy = jest.spyOn(redis, 'zrangebyscore').mockImplementation(async (...args: unknown[]) => {
        if (inFlight++ === 0) roundTrips++;
        return read(...args).finally(() => inFlight--);
      });
      expect(await exported(store, limit, batch)).toEqual(new Map(['a', 'b', 'c', 'd', 'e'].map((each) => [each, 1])));
      spy.mockRestore();
      return roundTrips;
    };
    const atMost = await roundTripsOf(500);
    expect(atMost).toBeLessThan(100);
    expect(await roundTripsOf(2)).toBe(atMost);
  });

  it('stands in the slot of the counter, and runs out by itself', async () => {
    const { prefix, store, keys } = fresh();
    await ask(store, limit, { identity });
    const all = await keys();
    expect(all.map((key) => key.replace(/usage-.*/, 'usage-'))).toEqual([
      expect.stringMatching(new RegExp(`^${prefix}:\\{\\w+\\}:usage-$`)),
      `${prefix}:{${identity}}::api:fw`,
      `${prefix}:{${identity}}::api:usage`,
    ]);
    expect(new Set(all.map((key) => calculateSlot(key))).size).toBe(1);
    for (const key of all) {
      const ttl = await redis.pttl(key);
      if (key.includes('usage')) {
        expect(ttl).toBeGreaterThan(400 * DAY_MS);
        expect(ttl).toBeLessThan(402.2 * DAY_MS);
      } else expect(ttl).toBeGreaterThan(0);
    }
  });

  it('has a tag for each slot', () => {
    const slots = slotTags().map((tag) => calculateSlot(tag));
    expect(slots).toEqual(Array.from({ length: 16_384 }, (_, slot) => slot));
  });

  it('is bounded: old days go, also from the index', async () => {
    const clock = new ManualClock();
    const { store, keys } = fresh(clock);
    const short = recorded({ algo: 'gcra', rate: 10, interval: '1s' }, '5d');
    await ask(store, short, { identity: '{other}' });
    for (let i = 0; i < 30; i++) {
      await ask(store, short, { identity });
      clock.advanceMs(DAY_MS);
    }
    const list = (await keys()).find((key) => key.includes(identity) && key.endsWith(':usage'))!;
    expect(await redis.llen(list)).toBeLessThanOrEqual(2 * 8);
    expect(await usage(store, identity, short)).toHaveLength(5);
    expect([...(await exported(store, short)).keys()]).toEqual([identity]);
  });

  it('takes the way of all limits only where it is recorded', () => {
    const plain = new CompiledLimit(
      { algo: 'fixed-window', rate: 10, interval: '1h' },
      { location: 'test', featuresOfOptions },
    );
    expect(isPlainCheck({ entries: [{ limit: plain, identity, cost: 1 }] })).toBe(true);
    expect(isPlainCheck({ entries: [{ limit, identity, cost: 1 }] })).toBe(false);
  });

  it('begins a day by the clock of the server, not by that of the caller', async () => {
    const { prefix, store } = fresh();
    const now = Date.now;
    // A caller whose clock is two days behind: the script says so, and is asked again.
    jest.spyOn(Date, 'now').mockImplementation(() => now() - 2 * DAY_MS);
    try {
      await ask(store, limit, { identity, cost: 3 });
      await store.refund([{ limit, identity, units: 1 }]);
    } finally {
      jest.restoreAllMocks();
    }
    const other = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS });
    const today = new Date((await redis.time())[0]! * 1000).toISOString().slice(0, 10);
    expect(await usage(other)).toEqual([{ day: today, units: 2 }]);
  });

  it('begins anew where what is stored is none of ours, and loses no charge', async () => {
    const { store, keys } = fresh();
    await ask(store, limit, { identity });
    for (const key of (await keys()).filter((each) => each.includes('usage'))) await redis.set(key, 'x');
    await ask(store, limit, { identity, cost: 4 });
    expect(await totalOf(store)).toBe(4);
    expect(await exported(store)).toEqual(new Map([[identity, 4]]));
  });

  it('begins anew after a FLUSHALL, with the counter', async () => {
    const { store } = fresh();
    await ask(store, limit, { identity, cost: 4 });
    await redis.flushall();
    expect(await totalOf(store)).toBe(0);
    await ask(store, limit, { identity, cost: 2 });
    expect(await totalOf(store)).toBe(2);
    expect(await exported(store)).toEqual(new Map([[identity, 2]]));
  });

  it('reads long records from their end', async () => {
    const clock = new ManualClock();
    const { store } = fresh(clock);
    const long = recorded({ algo: 'gcra', rate: 10, interval: '1s' }, '10y');
    for (let i = 0; i < 500; i++) {
      await ask(store, long, { identity });
      clock.advanceMs(DAY_MS);
    }
    const days = await usage(store, identity, long);
    expect(days).toHaveLength(500);
    const to = clock.micros;
    for (const from of [to - 3 * DAY_MS * 1000, to - 400 * DAY_MS * 1000]) {
      const some = await unitsOf(store, { limit: long, identity }, { from, to });
      expect(some).toEqual(days.slice(-some.length));
    }
  });

  it('does not hold what is counted in process while Redis is away, and cannot be read meanwhile', async () => {
    const own = await startRedis();
    const client = await libraryClient(own.url);
    const remote = new RedisStore(client, { prefix: freshPrefix(), timeoutMs: 1000, ownsClient: true });
    const local = new MemoryStore();
    const store = fallingBack(remote, local);
    try {
      await remote.open();
      await ask(store, limit, { identity, cost: 2 });
      await own.stop();
      await expect(ask(store, limit, { identity, cost: 3 })).resolves.toMatchObject({
        allowed: true,
        source: 'fallback',
      });
      await expect(usage(store)).rejects.toThrow(RateLimitStoreError);
      await expect(exported(store)).rejects.toThrow(RateLimitStoreError);
      expect(await usage(local)).toEqual([]);
    } finally {
      await store.close();
      await own.stop();
    }
  });

  describe('of several processes', () => {
    beforeAll(ensureBuilt);

    it('is exactly what the counters were charged, also where processes are killed', async () => {
      const prefix = freshPrefix();
      const options = { algo: 'budget', limit: 1_000_000, period: 'year', usage: '400d' };
      const input = { url: server.url, prefix, name: 'api', limit: options, keys: 40 };
      const script = await usageWorker();
      const workers: ChildProcess[] = [];
      const told: number[] = [0, 0, 0];
      try {
        for (let seed = 0; seed < 3; seed++) {
          const worker = fork(script, [JSON.stringify({ ...input, seed })], { execArgv: [] });
          worker.on('message', ({ allowed }: { allowed: number }) => (told[seed] = allowed));
          workers.push(worker);
        }
        // Each is killed in the middle of its calls.
        for (const [index, worker] of workers.entries()) {
          while ((told[index] ?? 0) < 150 * (index + 1)) await once(worker, 'message');
          worker.kill('SIGKILL');
        }
      } finally {
        for (const worker of workers) {
          worker.kill('SIGKILL');
          if (worker.exitCode === null && worker.signalCode === null) await once(worker, 'exit');
        }
      }
      const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS });
      const money = recorded({ algo: 'budget', limit: 1_000_000, period: 'year' });
      const rows = await exported(store, money, 7);
      expect(rows.size).toBe(40);
      let sum = 0;
      for (const [key, total] of rows) {
        const { remaining } = await ask(store, money, { identity: key, peek: true });
        expect({ key, total }).toEqual({ key, total: 1_000_000 - remaining });
        sum += total;
      }
      const least = told.reduce((all, each) => all + each, 0);
      expect(sum).toBeGreaterThanOrEqual(least);
      // What was asked and not told: a round of each process, and what was told and not heard.
      expect(sum).toBeLessThanOrEqual(least + 3 * 1000);
    });
  });
});

describe('usage on a Cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  let store: RedisStore;
  beforeAll(async () => {
    cluster = await startCluster();
    client = await connectCluster(cluster);
    store = new RedisStore(client, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS, ownsClient: true });
    await store.open();
  });
  afterAll(async () => {
    await store?.close();
    await cluster?.stop();
  });

  it('is recorded and exported of keys in all slots', async () => {
    const keys = Array.from({ length: 300 }, (_, i) => `user:${i}`);
    await Promise.all(keys.map((who, i) => ask(store, limit, { identity: who, cost: 1 + (i % 5) })));
    await Promise.all(keys.map((who) => ask(store, limit, { identity: who, cost: 2 })));
    const rows = await exported(store, limit, 50);
    expect(rows).toEqual(new Map([...rows.keys()].map((key) => [key, 3 + (Number(key.slice(5)) % 5)])));
    expect(rows.size).toBe(300);
  });

  it('lacks what was given back where another slot refused', async () => {
    const [one, two] = [recorded({ algo: 'gcra', rate: 9, interval: '1d' }), limit];
    const narrow = new CompiledLimit(
      { algo: 'gcra', rate: 1, interval: '1d' },
      { location: 'test', featuresOfOptions, name: 'narrow' },
    );
    const entries = [
      { limit: two, identity: 'tenant:1', cost: 1 },
      { limit: narrow, identity: 'tenant:2', cost: 1 },
      { limit: one, identity: 'tenant:3', cost: 1 },
    ];
    for (let i = 0; i < 3; i++) await store.check([{ entries }]);
    expect(await totalOf(store, 'tenant:1')).toBe(1);
    expect(await totalOf(store, 'tenant:3')).toBe(1);
  });
});
