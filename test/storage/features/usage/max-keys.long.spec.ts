import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import type { Redis } from 'ioredis';
import { Logger } from '@nestjs/common';
import { MemoryStore, RedisStore, type Store } from '../../../../lib/index.js';
import { CompiledLimit } from '../../../../lib/testing/store/index.js';
import { ask, connectRedis, featureTerms, freshPrefix, ManualClock } from '../../../support/limits/stores.js';
import { ALL, pagesOf, unitsOf } from '../../../support/limits/usage.js';
import { checkOptions } from '../../../support/limits/checked-options.js';
import { PATIENCE_MS } from '../../../support/redis/patience.mjs';

const DAY_MS = 86_400_000;

const recorded = (usage: object) =>
  new CompiledLimit(
    { algo: 'fixed-window', rate: 1000, interval: '1h' },
    { location: 'test', name: 'api', features: featureTerms({ usage }, 'test') },
  );
const limit = recorded({ keep: '2d', maxKeys: 3 });

const told = async (store: Store, identity: string, of = limit) =>
  (await unitsOf(store, { limit: of, identity }, ALL)).reduce((sum, { units }) => sum + units, 0);

const exported = async (store: Store, of = limit) => {
  const keys: string[] = [];
  for await (const page of pagesOf(store, of, ALL, 500)) keys.push(...page.map(({ key }) => key));
  return keys.toSorted();
};

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());
afterEach(() => void jest.restoreAllMocks());

/** Of one slot: on Redis each slot has a part of all keys. */
const madeUp: string[] = [];
for (let number = 0; madeUp.length < 12; number++) {
  const key = `made-up:${number}`;
  if (calculateSlot(key) === calculateSlot('made-up:0')) madeUp.push(key);
}

describe.each(['MemoryStore', 'RedisStore'])('the most keys that have a record, on a %s', (kind) => {
  const start = () => {
    const clock = new ManualClock();
    const store: Store =
      kind === 'MemoryStore'
        ? new MemoryStore({ clock: clock.now })
        : new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    return { clock, store };
  };

  it('are kept, while made-up keys beyond are charged, not recorded, and said to be', async () => {
    const warned = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const { clock, store } = start();
    for (const identity of madeUp) expect(await ask(store, limit, { identity })).toMatchObject({ allowed: true });
    const keys = await exported(store);
    expect(keys).toHaveLength(3);
    expect(warned.mock.calls).toEqual([
      [
        "limit 'api' was charged for more keys than its usage records: 'maxKeys' is 3, and later keys are missing from invoices",
      ],
    ]);
    // Those that have a record go on.
    clock.advanceMs(DAY_MS);
    await ask(store, limit, { identity: keys[0]!, cost: 5 });
    expect(await told(store, keys[0]!)).toBe(6);
    expect(await told(store, madeUp.at(-1)!)).toBe(0);
    expect(warned).toHaveBeenCalledTimes(2);
    // And once others are forgotten, there is room again.
    clock.advanceMs(3 * DAY_MS);
    await ask(store, limit, { identity: madeUp.at(-1)! });
    expect(await told(store, madeUp.at(-1)!)).toBe(1);
    await store.close();
  });

  it('are all of them without a bound, and those that were never charged have none', async () => {
    const { store } = start();
    const free = recorded({ keep: '2d' });
    for (let number = 0; number < 40; number++) await ask(store, free, { identity: `key:${number}` });
    await ask(store, free, { identity: 'refused', cost: 2000 });
    await ask(store, free, { identity: 'looked', peek: true });
    expect(await exported(store, free)).toHaveLength(40);
    expect(await exported(store, free)).not.toContain('refused');
    await store.close();
  });
});

it('are looked through once in process, however many made-up keys come beyond them', async () => {
  jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  const clock = new ManualClock();
  const store = new MemoryStore({ clock: clock.now });
  const identities = Array.from({ length: 50 }, (_, number) => `made-up:${number}`);
  for (const identity of identities.slice(0, 4)) await ask(store, limit, { identity });
  const looked = jest.spyOn(Map.prototype, 'values');
  for (const identity of identities.slice(4)) await ask(store, limit, { identity });
  const looks = looked.mock.calls.length;
  looked.mockRestore();
  expect(looks).toBe(0);
  clock.advanceMs(4 * DAY_MS);
  await ask(store, limit, { identity: 'made-up:later' });
  expect(await exported(store)).toEqual(['made-up:later']);
  await store.close();
});

it('hardly leave out any of so many on Redis, however they are spread over the slots', async () => {
  const store = new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
  const many = recorded({ keep: '2d', maxKeys: 2000 });
  const checks = Array.from({ length: 2000 }, (_, number) => ({
    entries: [{ limit: many, identity: `user:${number}`, cost: 1 }],
  }));
  await store.check(checks);
  expect(await exported(store, many)).toHaveLength(2000);
});

it.each([0, 1.5, '3', 2e8])('are refused if they are %j', (maxKeys) => {
  const limit = { algo: 'gcra', rate: 1, interval: 1, usage: { keep: '2d', maxKeys } };
  expect(() => checkOptions(limit)).toThrow(
    `test.usage.maxKeys: expected a whole number >= 1 and <= 100000000, received ${typeof maxKeys === 'string' ? `'${maxKeys}'` : maxKeys}`,
  );
});
