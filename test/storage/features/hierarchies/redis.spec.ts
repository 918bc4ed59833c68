import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import { Cluster, type Redis } from 'ioredis';
import { MemoryStore, RedisStore } from '../../../../lib/index.js';
import type { StoreDecision } from '../../../../lib/testing/store/index.js';
import { type RedisCluster, startCluster } from '../../../support/redis/redis-servers.js';
import { compile, connectRedis, freshPrefix, keyOf } from '../../../support/limits/stores.js';
import { entriesOf, limitsOf, windowOptions } from './tree.js';
import { PATIENCE_MS } from '../../../support/redis/patience.mjs';

const levels = [
  { options: windowOptions('gcra', 50), lends: 0.5 },
  { options: windowOptions('sliding-log', 10), ceiling: 20 },
  { options: windowOptions('fixed-window', 5) },
];
const plain = levels.map(({ options }) => ({ options }));

const hourly = (rate: number) => ({ algo: 'fixed-window', rate, interval: '1h' }) as const;

const outcomes = (decisions: readonly (readonly StoreDecision[])[]) =>
  decisions.map((each) => each.map(({ allowed, remaining }) => [allowed, remaining]));

describe('keys of limits within others', () => {
  const limits = limitsOf(levels);
  const keys = (path: readonly string[]) => entriesOf(limits, path, 1).map((entry) => keyOf('p', entry));

  it('have the identity of the root as their tag, and the others behind their codes', () => {
    expect(keys(['org:1', 'team:2', 'user:3'])).toEqual([
      'p:{org:1}::level-2:fw/team=2/user=3/',
      'p:{org:1}::level-1:sl/team=2/',
      'p:{org:1}::level-0:gd',
    ]);
  });

  it('are those of before where a limit stands alone', () => {
    const limit = compile({ algo: 'gcra', rate: 1, interval: 1 }, 'alone');
    for (const identity of ['user:42', 'a/b', '\nwithin\na/b\nc', 'x'.repeat(65)]) {
      expect(keyOf('p', { limit, identity })).toMatch(/^p:\{(user:42|#[\w-]{43})\}::alone:gd$/);
    }
  });

  it('are different for all that differs', () => {
    const parts = [
      'a',
      'b',
      'a:b',
      'a=b',
      'a/b',
      'a\nb',
      '\nwithin\na\nb',
      '#x',
      'a'.repeat(70),
      'a'.repeat(71),
      '}',
      '{a}',
    ];
    const all = parts.flatMap((org) => parts.flatMap((team) => parts.flatMap((user) => keys([org, team, user])[0]!)));
    expect(new Set(all).size).toBe(parts.length ** 3);
    for (const org of parts) {
      const slots = [
        ['a', 'b'],
        ['c', 'd/e'],
      ].flatMap((rest) => keys([org, ...rest]).map((key) => calculateSlot(key)));
      expect(new Set(slots).size).toBe(1);
    }
  });
});

describe('on Redis', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(() => redis.disconnect());

  it('writes nothing for a refused check, and lets every key run out', async () => {
    const prefix = freshPrefix();
    const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS });
    const limits = limitsOf([
      { options: windowOptions('gcra', 50) },
      { options: { algo: 'fixed-window', rate: 2, interval: '1h' } },
    ]);
    await store.check([{ entries: entriesOf(limits, ['o', 'a'], 2) }]);
    const keys = (await redis.keys(`${prefix}*`)).toSorted();
    expect(keys).toEqual([`${prefix}:{o}::level-0:gd`, `${prefix}:{o}::level-1:fw/a/`]);
    const before = await redis.getBuffer(keys[1]!);
    await store.check([{ entries: entriesOf(limits, ['o', 'a'], 1) }]);
    expect(await redis.getBuffer(keys[1]!)).toEqual(before);
    for (const key of keys) expect(await redis.pttl(key)).not.toBe(-1);
    await store.reset(entriesOf(limits, ['o', 'a'], 1));
    expect(await redis.keys(`${prefix}*`)).toEqual([]);
  });

  it('decides for itself each check of a call that has fewer levels than the one before', async () => {
    const store = new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    const limits = limitsOf([
      { options: hourly(20), lends: 0.5 },
      { options: hourly(4), ceiling: 9 },
      { options: hourly(2), ceiling: 7 },
    ]);
    const all = entriesOf(limits, ['o', 't', 'u'], 3);
    const checks = [all, all.slice(1), all.slice(0, 1), all].map((entries) => ({ entries }));
    const decided = outcomes(await store.check(checks));
    expect(decided.map((each) => each.map(([allowed]) => allowed))).toEqual([
      [true, true, true],
      [true, true],
      [true],
      [false, false, true],
    ]);
    expect(decided).toEqual(outcomes(await new MemoryStore().check(checks)));
  });
});

describe('on a Cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  let store: RedisStore;
  beforeAll(async () => {
    cluster = await startCluster();
    client = new Cluster(cluster.nodes);
    store = new RedisStore(client, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS, ownsClient: true });
    await store.open();
  });
  afterAll(async () => {
    await store?.close();
    await cluster?.stop();
  });

  const calls = async (): Promise<number> => {
    const stats = await Promise.all(client.nodes('master').map((node) => node.info('commandstats')));
    return stats.reduce((sum, text) => sum + Number(/cmdstat_evalsha:calls=(\d+)/.exec(text)?.[1] ?? 0), 0);
  };

  it.each([
    ['plain levels', plain],
    ['levels that borrow', levels],
  ])('decides %s in one call', async (_, drawn) => {
    const limits = limitsOf(drawn);
    for (const [index, org] of ['o1', 'o2', 'o3', 'o4'].entries()) {
      const before = await calls();
      const entries = entriesOf(limits, [`${org}-${drawn.length}-${String(drawn === plain)}`, 't', 'u'], index + 1);
      const [decisions] = await store.check([{ entries }]);
      expect(await calls()).toBe(before + 1);
      expect(decisions!.every(({ allowed, source }) => allowed && source === 'redis')).toBe(true);
      await store.check([{ entries }]);
      await store.check([{ entries: entries.slice(1), peek: true }]);
      await store.refund(entries.map(({ limit, identity }) => ({ limit, identity, units: 1 })));
      await store.reset(entries);
    }
  });
});
