import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { MemoryStore, RedisStore } from '../../../../lib/index.js';
import { TenantWeights } from '../../../../lib/storage/features/shares/tenant-weights.js';
import { ask, compile, connectRedis, freshPrefix, ManualClock } from '../../../support/limits/stores.js';
import { sharedLimit } from './simulation.js';
import { PATIENCE_MS } from '../../../support/redis/patience.mjs';

const limit = sharedLimit({ algo: 'token-bucket', rate: 110, interval: '1m', burst: 20 });
const identity = 'global';
const of = (id: string) => limit.meet({ tenant: { id, weight: 1 } });

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

it('keeps what tenants used beside their counter, in its slot, for a span and three slices', async () => {
  const prefix = freshPrefix();
  const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS });
  await ask(store, of('a'), { identity, cost: 20 });
  expect(await ask(store, of('#b'), { identity })).toMatchObject({ allowed: false });
  const keys = (await redis.keys(`${prefix}*`)).toSorted();
  const counter = `${prefix}:{global}::gpu:td`;
  expect(keys).toEqual([counter, `${counter}:share:#b`, `${counter}:share:a`, `${counter}:shares`]);
  for (const key of keys.slice(1)) {
    const ttl = await redis.pttl(key);
    expect(ttl).toBeGreaterThan(60_000);
    expect(ttl).toBeLessThanOrEqual((60_000 / 11) * 14 + 1001);
  }
  await store.reset([{ limit, identity }]);
  expect(await redis.exists(counter, `${counter}:shares`)).toBe(0);
});

it('writes for a refused tenant only that it asked', async () => {
  const prefix = freshPrefix();
  const clock = new ManualClock();
  const store = new RedisStore(redis, { clock, prefix, timeoutMs: PATIENCE_MS });
  await ask(store, of('a'), { identity, cost: 20 });
  const other = of('b');
  const counter = `${prefix}:{global}::gpu:td`;
  const before = await redis.getBuffer(counter);
  await ask(store, other, { identity, peek: true });
  expect(await redis.exists(`${counter}:share:b`)).toBe(0);
  await ask(store, other, { identity });
  expect(await redis.exists(`${counter}:share:b`)).toBe(1);
  expect(await redis.getBuffer(counter)).toEqual(before);
});

it.each(['no array', '\u0000', '\u0093\u0001\u0002\u0003', ''])(
  'counts anew what tenants used if it reads %j',
  async (text) => {
    const prefix = freshPrefix();
    const clock = new ManualClock();
    const store = new RedisStore(redis, { clock, prefix, timeoutMs: PATIENCE_MS });
    const memory = new MemoryStore({ clock: clock.now });
    await ask(store, of('a'), { identity, cost: 15 });
    await ask(memory, limit, { identity, cost: 15 });
    const counter = `${prefix}:{global}::gpu:td`;
    await redis.set(`${counter}:shares`, Buffer.from(text, 'latin1'));
    await redis.del(`${counter}:share:a`);
    await redis.hset(`${counter}:share:a`, 'a', 1);
    const decision = await ask(store, of('a'), { identity, peek: true });
    expect(decision).toEqual({ ...(await ask(memory, of('a'), { identity, peek: true })), source: 'redis' });
    expect(await ask(store, of('b'), { identity, cost: 5 })).toMatchObject({ allowed: true });
  },
);

it('decides checks of many tenants of a counter in one call', async () => {
  const prefix = freshPrefix();
  const clock = new ManualClock();
  const store = new RedisStore(redis, { clock, prefix, timeoutMs: PATIENCE_MS });
  const memory = new MemoryStore({ clock: clock.now });
  const checks = Array.from({ length: 60 }, (_, index) => ({
    entries: [{ limit: of(`t${index % 7}`), identity, cost: 1 }],
  }));
  for (let turn = 0; turn < 4; turn++) {
    const there = await store.check(checks);
    const here = await memory.check(checks);
    expect(there.flat().map(({ allowed, remaining }) => [allowed, remaining])).toEqual(
      here.flat().map(({ allowed, remaining }) => [allowed, remaining]),
    );
    clock.advanceMs(3000);
  }
});

it('never pass more in total than the limit, whatever instances make of its tenants', async () => {
  const prefix = freshPrefix();
  const clock = new ManualClock();
  const own = { algo: 'token-bucket', rate: 100, interval: '1m' } as const;
  const limits = [
    sharedLimit(own),
    sharedLimit(own, { floor: 0.4 }),
    // Another span: what tenants used begins anew with each call of the other ones.
    sharedLimit({ ...own, rate: 50, burst: 100 }),
    // A release that knows no shares.
    compile(own, 'gpu'),
  ];
  const clients = await Promise.all(limits.map(() => connectRedis()));
  const stores = clients.map((client) => new RedisStore(client, { clock, prefix, timeoutMs: PATIENCE_MS }));
  const count = 400;
  const decisions = await Promise.all(
    Array.from({ length: count }, (_, index) => {
      const each = index % limits.length;
      const tenant = { id: `t${index % 7}`, weight: each === 0 ? 1 : 1_000_000 };
      return ask(stores[each]!, limits[each]!.meet({ tenant }), { identity });
    }),
  );
  expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(100);
  expect((await ask(stores[3]!, limits[3]!, { identity, peek: true })).remaining).toBe(0);
  for (const client of clients) client.disconnect();
});

it('tells tenants apart whatever they are called, and takes no more than a bounded key for each', async () => {
  const prefix = freshPrefix();
  const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS });
  const tenants = new TenantWeights({ by: 'global' }, 'test');
  const counter = `${prefix}:{global}::gpu:td`;
  const names = [
    's',
    'shares',
    ':shares',
    '}',
    '{x}',
    '*',
    'a\tb',
    '"',
    '\\',
    '\u0000',
    '\ud800',
    '☃',
    'x'.repeat(100_000),
  ];
  for (const name of names) await ask(store, limit.meet({ tenant: tenants.tenant(name, 'gpu') }), { identity });
  const keys = await redis.keys(`${prefix}*`);
  expect(keys).toHaveLength(2 + names.length);
  for (const key of keys) {
    expect(key.startsWith(counter)).toBe(true);
    expect(key.slice(counter.length)).toMatch(/^$|^:shares$|^:share:[\w.:@#-]{1,64}$/);
  }
});
