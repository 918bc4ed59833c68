import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { RateLimitStoreError, RedisStore } from '../../../lib/index.js';
import type { StoreDecision } from '../../../lib/testing/store/index.js';
import { algorithmNames } from '../../support/limits/arbitraries.js';
import { withOwnRedis } from '../../support/redis/own-redis.js';
import { ask, compile, freshPrefix, keyOf } from '../../support/limits/stores.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const DAY_MS = 86_400_000;

let redis: Redis;
withOwnRedis((client) => (redis = client));
afterEach(() => {
  jest.restoreAllMocks();
});

const open = (prefix = freshPrefix()) => new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS });

const hourly = (rate: number) => compile({ algo: 'fixed-window', rate, interval: '1h' });

const limitOf = (algo: (typeof algorithmNames)[number]) =>
  algo === 'calendar-window'
    ? compile({ algo, rate: 10, period: 'year' })
    : compile({ algo, rate: 10, interval: '1d' });

describe('a reply that cannot be read', () => {
  it.each([[null], [[]], [[1]], [['a', 'b']], ['OK'], [7], [{}]])('%j fails the check', async (reply) => {
    jest.spyOn(redis, 'evalsha').mockResolvedValue(reply);
    await expect(ask(open(), hourly(5))).rejects.toBeInstanceOf(RateLimitStoreError);
  });

  it.each([
    ['ends too early', [1, 4]],
    ['goes on after its end', [1, 4, 1, 3, 1]],
  ])('since it %s fails all checks of its call', async (_, reply) => {
    const store = open();
    jest.spyOn(redis, 'evalsha').mockResolvedValueOnce(reply);
    const answers = await Promise.allSettled([ask(store, hourly(5)), ask(store, hourly(5))]);
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 'rejected', reason: expect.any(RateLimitStoreError) });
    }
  });
});

describe.each(algorithmNames)('a key of %s', (algo) => {
  it.each<[string, (key: string) => Promise<unknown>]>([
    ['a short string', (key) => redis.set(key, 'x')],
    ['an empty string', (key) => redis.set(key, '')],
    ['half a value', (key) => redis.set(key, Buffer.alloc(13, 7))],
    ['a hash', (key) => redis.hset(key, 'field', 'value')],
    ['a set', (key) => redis.sadd(key, 'member')],
    ['a list of words', (key) => redis.rpush(key, 'some', 'words', 'here')],
  ])('that holds %s counts as none, and does not fail the checks beside it', async (_, spoil) => {
    const prefix = freshPrefix();
    const store = open(prefix);
    const limit = limitOf(algo);
    await spoil(keyOf(prefix, { limit, identity: 'user:1' }));
    const decisions = await Promise.all([
      ask(store, limit, { identity: 'user:2' }),
      ask(store, limit, { identity: 'user:1' }),
      ask(store, limit, { identity: 'user:1' }),
      ask(store, limit, { identity: 'user:3' }),
    ]);
    const full = limit.quota;
    expect(decisions.map(({ remaining }) => remaining)).toEqual([full - 1, full - 1, full - 2, full - 1]);
    expect(await ask(store, limit, { identity: 'user:1', peek: true })).toMatchObject({ remaining: full - 2 });
  });
});

describe('a window that ends thousands of years after it was charged', () => {
  it.each([1, 2])('begins anew, with %i limits a check', async (width) => {
    const prefix = freshPrefix();
    const store = open(prefix);
    const limits = [hourly(5), compile({ algo: 'gcra', rate: 5, interval: '1h' })].slice(0, width);
    const entries = limits.map((limit) => ({ limit, identity: 'user:1', cost: 1 }));
    const value = Buffer.alloc(32);
    for (const [index, number] of [5e87, 1e24, 0, 0].entries()) value.writeDoubleLE(number, 8 * index);
    await redis.set(keyOf(prefix, { limit: limits[0]!, identity: 'user:1' }), value);
    const [[decision]] = (await store.check([{ entries }])) as [StoreDecision[]];
    expect(decision).toMatchObject({ allowed: true, resetAfterMs: 3_600_000 });
  });
});

describe('a process 40 days ahead of the server', () => {
  it('has each of many checks decided once, also those of other limits', async () => {
    const daily = compile({ algo: 'calendar-window', rate: 1000, period: 'day' }, 'daily');
    const other = hourly(1000);
    const store = open();
    const realNow = Date.now;
    jest.spyOn(Date, 'now').mockImplementation(() => realNow() + 40 * DAY_MS);
    const both = [daily, other].map((limit) => ({ limit, identity: 'user:1', cost: 1 }));
    const checks = Array.from({ length: 800 }, (_, i) => ({ entries: i % 4 === 0 ? both.slice(1) : both }));
    const decisions = await store.check(checks);
    expect(decisions.flat().every(({ allowed, source }) => allowed && source === 'redis')).toBe(true);
    expect(await ask(store, daily, { identity: 'user:1', peek: true })).toMatchObject({ remaining: 400 });
    expect(await ask(store, other, { identity: 'user:1', peek: true })).toMatchObject({ remaining: 200 });
  });

  it('gives up if the clocks do not settle', async () => {
    const limit = compile({ algo: 'calendar-window', rate: 10, period: 'day' });
    const store = open();
    const reply = jest.spyOn(redis, 'evalsha').mockImplementation(() => Promise.resolve([-1, Date.now() * 1000]));
    await expect(ask(store, limit)).rejects.toThrow('did not settle after 3 attempts');
    expect(reply).toHaveBeenCalledTimes(3);
    await expect(store.history({ limit, identity: 'a' })).rejects.toThrow('did not settle after 3 attempts');
  });
});

describe('identities and names of any characters', () => {
  const identities = [
    '',
    ' ',
    '#',
    '*',
    '?',
    'a',
    '{',
    '}',
    '{}',
    '{a}',
    '}:{',
    'a}:x:{b',
    'a:b',
    'a:b:c',
    'a:b:',
    '%00',
  ]
    .concat(['nul\0', 'line\nbreak', 'line\r\nbreak', 'é', 'e\u0301', '🙂', '🙃', '\uD83D', '\uD83E', '\uFFFD'])
    .concat(['"', "'", '\\', '[1]', 'x'.repeat(64), 'x'.repeat(65), 'long '.repeat(2000), `${'long '.repeat(2000)}!`]);
  const names = ['c', 'b:c', 'a:b:c', 'c}', '{c}', ':c', 'c:', 'c:fw', 'é', '\n'];

  it('never share a counter', async () => {
    const store = open();
    for (const name of names) {
      const limit = compile({ algo: 'fixed-window', rate: 1, interval: '1h' }, name);
      const decisions = await Promise.all(identities.map((identity) => ask(store, limit, { identity })));
      expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(identities.length);
    }
  });
});
