import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, MemoryStore, RedisStore } from '../../../lib/index.js';
import { CompiledLimit, type Counter, type StoreDecision } from '../../../lib/testing/store/index.js';
import { anyOperation, limitsOf, perform, type Taken } from '../contract/operations/history.js';
import { five } from '../contract/operations/limits.js';
import { anyOptions, clockStep } from '../../support/limits/arbitraries.js';
import { propertyRuns } from '../../support/limits/property-runs.js';
import { withOwnRedis } from '../../support/redis/own-redis.js';
import { ask, comparable, compile, keyOf, ManualClock, slackMsOf } from '../../support/limits/stores.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

/** MessagePack: the first byte of a short array, less its length; and the bytes that follow the first one of a number. */
const FIXED_ARRAY = 0x90;
const MORE_BYTES: Record<number, number> = { 0xcc: 1, 0xcd: 2, 0xce: 4, 0xcf: 8 };
const RUNS = propertyRuns(120);
const HOUR = 3_600_000;
const prefix = 'ops';
const identity = 'user:42';
const algorithms = Object.keys(five) as (keyof typeof five)[];
/** What keeps no string, and its block in a key of its own. */
const apart = new Set<string>(['sliding-log', 'concurrency']);

let redis: Redis;
withOwnRedis((client) => (redis = client));

let clock: ManualClock;
/** By the clock of the server, when the test began. */
let began: number;
let store: RedisStore;
/** A moment that begins every window of `five`. */
const start = Date.parse('2026-09-21T10:00:00Z') * 1000;
beforeEach(async () => {
  await redis.flushall();
  jest.restoreAllMocks();
  began = await serverMs();
  clock = new ManualClock();
  clock.micros = start;
  store = new RedisStore(redis, { clock: { now: clock.now, slackMs: 0 }, prefix, timeoutMs: PATIENCE_MS });
});

const counterOf = (limit: CompiledLimit): Counter => ({ limit, identity });
const take = (limit: CompiledLimit, cost = 1) => ask(store, limit, { identity, cost });
const peek = (limit: CompiledLimit, cost = 1) => ask(store, limit, { identity, cost, peek: true });

/** A value without what it says of its key's time to live. */
function stateIn(value: Buffer | null): unknown {
  if (value === null) return value;
  const count = value[0]! - FIXED_ARRAY;
  if (count >= 0 && count < 16) {
    let end = 1;
    for (let done = 0; done < count; done++) end += 1 + (MORE_BYTES[value[end]!] ?? 0);
    return value.toString('hex', 0, end);
  }
  return value.length < 40 ? value.toString('hex') : [value.toString('hex', 0, 32), value.toString('hex', 40)];
}

/** Every key with its value, as the server dumps it. */
async function dump(): Promise<Record<string, string>> {
  const keys = (await redis.keys('*')).toSorted();
  const values = await Promise.all(keys.map(async (key) => [key, (await redis.dumpBuffer(key)).toString('hex')]));
  return Object.fromEntries(values) as Record<string, string>;
}

const keyFor = (limit: CompiledLimit) => keyOf(prefix, counterOf(limit));

/** The key that lives as long as the block does. */
const blockKeyFor = (limit: CompiledLimit) => keyFor(limit) + (apart.has(limit.algorithm.name) ? ':block' : '');

/** Milliseconds since the epoch by the clock of the server. */
async function serverMs(): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
}

/** The time to live is what it was set to, less what has passed since on the server's clock. */
async function expectToLive(key: string, ms: number, slackMs = 0): Promise<void> {
  const left = await redis.pttl(key);
  expect(left).toBeLessThanOrEqual(ms + slackMs);
  expect(left).toBeGreaterThan(ms - ((await serverMs()) - began) - 2);
}

describe.each(algorithms)('keys of %s', (algo) => {
  const limit = compile(five[algo]);

  it('live as long as a block, where nothing is counted', async () => {
    await store.block(counterOf(limit), 5000);
    expect(await redis.keys('*')).toEqual([blockKeyFor(limit)]);
    await expectToLive(blockKeyFor(limit), 5000);
    await store.block(counterOf(limit), 2000.4);
    await expectToLive(blockKeyFor(limit), 2001);
    await store.block(counterOf(limit), 0);
    expect(await redis.keys('*')).toEqual([]);
  });

  it('live as long as what is counted, if that is longer than a block', async () => {
    await take(limit, 5);
    const { resetAfterMs } = await peek(limit);
    await expectToLive(keyFor(limit), resetAfterMs, slackMsOf(limit));
    await store.block(counterOf(limit), 1000);
    await expectToLive(keyFor(limit), resetAfterMs);
    if (apart.has(algo)) await expectToLive(blockKeyFor(limit), 1000);
  });

  it('live as long as a block, if that is longer than what is counted', async () => {
    await take(limit, 5);
    const before = await redis.getBuffer(keyFor(limit)).catch(() => null);
    await store.block(counterOf(limit), HOUR);
    await expectToLive(blockKeyFor(limit), HOUR);
    const { resetAfterMs } = await peek(limit);
    expect(resetAfterMs).toBe(HOUR);
    await store.block(counterOf(limit), 0);
    await expectToLive(keyFor(limit), (await peek(limit)).resetAfterMs);
    if (!apart.has(algo)) expect(stateIn(await redis.getBuffer(keyFor(limit)))).toEqual(stateIn(before));
    expect(await redis.keys('*')).toHaveLength(1);
  });

  it('go when block and state are over', async () => {
    const quick = compile(
      algo === 'calendar-window' ? { algo, rate: 5, period: 'second' } : shortened(five[algo]),
      'quick',
    );
    await take(quick, 5);
    await store.block(counterOf(quick), 600);
    const { length: kept } = await redis.keys('*');
    expect(kept > 0 || (await serverMs()) - began > 600).toBe(true);
    const { resetAfterMs } = await peek(quick);
    await new Promise((resolve) => setTimeout(resolve, resetAfterMs + 100));
    expect(await redis.keys('*')).toEqual([]);
  });

  it('go with a reset, also that of a block', async () => {
    await take(limit, 3);
    await store.block(counterOf(limit), HOUR);
    await store.reset([counterOf(limit)]);
    expect(await redis.keys('*')).toEqual([]);
  });

  it('are as they were after a refusal, a look and a reservation that is refused', async () => {
    const other = compile({ algo: 'fixed-window', rate: 1, interval: '1m' }, 'other');
    await take(limit, 5);
    const before = await dump();
    clock.advanceMs(1);
    await take(limit);
    await take(limit, 6);
    await peek(limit);
    await store.reserve({ ...counterOf(limit), cost: 1, maxWaitMs: 0 });
    await store.check([{ entries: [limit, other].map((each) => ({ limit: each, identity, cost: 1 })) }]);
    expect(await dump()).toEqual(before);
  });

  it('are as they were after a refusal by a block', async () => {
    await take(limit, 2);
    await store.block(counterOf(limit), HOUR);
    const before = await dump();
    clock.advanceMs(1);
    await take(limit);
    await take(limit, 6);
    await store.reserve({ ...counterOf(limit), cost: 1, maxWaitMs: HOUR });
    expect(await dump()).toEqual(before);
  });

  it('hold the block of the first refusal, and no later one touches it', async () => {
    const blocking = new CompiledLimit(five[algo], { location: 'test', name: 'blocking', blockFor: 90_000_000 });
    await take(blocking, 5);
    await take(blocking);
    await expectToLive(blockKeyFor(blocking), 90_000);
    const before = await dump();
    clock.advanceMs(30_000);
    await take(blocking);
    await take(blocking, 6);
    expect(await dump()).toEqual(before);
  });

  it('hold what a penalty owes for as long as it does', async () => {
    if (algo === 'concurrency') return;
    await take(limit, 5);
    await store.penalize({ ...counterOf(limit), units: 4 });
    await expectToLive(keyFor(limit), (await peek(limit)).resetAfterMs);
  });

  it('are gone once everything is given back', async () => {
    const { ticket } = await take(limit, 4);
    await store.refund([{ ...counterOf(limit), units: 4, ticket }]);
    expect(await redis.keys('*')).toEqual([]);
  });

  it('that are blocked and then spoilt count as none', async () => {
    await store.block(counterOf(limit), HOUR);
    await redis.setrange(blockKeyFor(limit), 5, '');
    await redis.set(blockKeyFor(limit), Buffer.from([255, 1, 2, 3]));
    await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 4 });
  });
});

function shortened(options: AlgorithmOptions): AlgorithmOptions {
  return { ...options, ...('ttl' in options ? { ttl: 800 } : { interval: 800 }) } as AlgorithmOptions;
}

describe('what is reserved', () => {
  it.each(['token-bucket', 'gcra', 'leaky-bucket'] as const)('%s: lives until it is paid', async (algo) => {
    const limit = compile(five[algo]);
    await take(limit, algo === 'leaky-bucket' ? 1 : 5);
    await store.reserve({ ...counterOf(limit), cost: 4, maxWaitMs: HOUR });
    const { resetAfterMs } = await peek(limit);
    expect(resetAfterMs).toBe(algo === 'leaky-bucket' ? 10_000 : 18_000);
    await expectToLive(keyFor(limit), resetAfterMs);
  });

  it.each(['token-bucket', 'gcra'] as const)('%s: is refused before it is no whole number any more', async (algo) => {
    // A unit weighs 31,557,600,000: 2^53 of them are some 285,000.
    const limit = compile({ algo, rate: 1, interval: '1y', burst: 100_000 });
    await take(limit, 100_000);
    const outcomes = [];
    for (let i = 0; i < 4; i++) {
      const maxWaitMs = 2 ** 52;
      outcomes.push((await store.reserve({ ...counterOf(limit), cost: 100_000, maxWaitMs })).allowed);
    }
    expect(outcomes[0]).toBe(true);
    expect(outcomes.at(-1)).toBe(false);
    const before = await dump();
    await store.reserve({ ...counterOf(limit), cost: 100_000, maxWaitMs: 2 ** 52 });
    expect(await dump()).toEqual(before);
  });
});

describe('what is held', () => {
  const limit = compile(five.concurrency);

  it('lives as long as its last lease, through releases and renewals', async () => {
    const first = await take(limit, 2);
    clock.advanceMs(4000);
    const second = await take(limit, 2);
    await expectToLive(keyFor(limit), 10_000);
    await store.refund([{ ...counterOf(limit), units: 2, ticket: second.ticket }]);
    await expectToLive(keyFor(limit), 6000);
    clock.advanceMs(1000);
    await store.renew({ ...counterOf(limit), units: 2, ticket: first.ticket! });
    await expectToLive(keyFor(limit), 10_000);
    await store.refund([{ ...counterOf(limit), units: 2, ticket: first.ticket }]);
    expect(await redis.keys('*')).toEqual([]);
  });

  it('is a member a lease, and what has ended goes with the next one that is granted', async () => {
    for (let i = 0; i < 5; i++) {
      await take(limit);
      clock.advanceMs(1000);
    }
    expect(await redis.zcard(keyFor(limit))).toBe(7);
    clock.advanceMs(7500);
    await take(limit);
    // Three have ended; two are left with the new one, the sum, and the longest time to live.
    expect(await redis.zcard(keyFor(limit))).toBe(5);
    expect(await redis.zscore(keyFor(limit), '')).toBe('-3');
  });

  it('of a thousand units is as it was after a refusal, and takes no more than 128 bytes a lease', async () => {
    const large = compile({ algo: 'concurrency', limit: 1000, ttl: '1m' }, 'large');
    await store.check(Array.from({ length: 1000 }, () => ({ entries: [{ ...counterOf(large), cost: 1 }] })));
    const before = await dump();
    await expect(take(large)).resolves.toMatchObject({ allowed: false, retryAfterMs: 60_000 });
    expect(await dump()).toEqual(before);
    expect(await redis.zcard(keyFor(large))).toBe(1002);
    expect((await redis.memory('USAGE', keyFor(large), 'SAMPLES', 0))! / 1000).toBeLessThan(128);
  });

  it('is held once if a client sends its call twice', async () => {
    const once = redis.evalsha.bind(redis) as (...args: unknown[]) => Promise<unknown>;
    await take(limit);
    const spy = jest.spyOn(redis, 'evalsha').mockImplementation(async (...args: unknown[]) => {
      await once(...args);
      return once(...args);
    });
    const { ticket } = await take(limit, 2);
    spy.mockRestore();
    await expect(peek(limit)).resolves.toMatchObject({ remaining: 2 });
    await store.refund([{ ...counterOf(limit), units: 2, ticket }]);
    await expect(peek(limit)).resolves.toMatchObject({ remaining: 4 });
  });

  it('is not what a key of another kind holds', async () => {
    for (const spoil of [
      () => redis.set(keyFor(limit), 'x'),
      () => redis.rpush(keyFor(limit), 'some', 'words'),
      () => redis.hset(keyFor(limit), 'field', 'value'),
      () => redis.sadd(keyFor(limit), 'member'),
      () => redis.zadd(keyFor(limit), 1, 'word'),
      () => redis.zadd(keyFor(limit), start + 5e6, 'word'),
    ]) {
      await redis.flushall();
      await spoil();
      const other = compile(five.gcra);
      const [first, , third] = await Promise.all([take(limit, 5), take(limit), take(other)]);
      expect(first).toMatchObject({ allowed: true, remaining: 0 });
      expect(third).toMatchObject({ allowed: true, remaining: 4 });
      await expect(take(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 10_000 });
    }
  });
});

it('a lease that cannot be read fails nothing beside it', async () => {
  const limit = compile(five.concurrency);
  await redis.zadd(keyFor(limit), -5, '', start + 5e6, 'word');
  const other = compile(five.gcra);
  await expect(Promise.all([take(limit), take(other)])).resolves.toMatchObject([
    { allowed: false, retryAfterMs: 10_000 },
    { allowed: true, remaining: 4 },
  ]);
});

it('an operation that an algorithm does not have fails nothing beside it', async () => {
  const limit = compile(five.gcra);
  const [renewed, taken] = await Promise.all([store.renew({ ...counterOf(limit), units: 1, ticket: 1 }), take(limit)]);
  expect(renewed).toBe(false);
  expect(taken).toMatchObject({ allowed: true, remaining: 4 });
});

const decided = (decisions: (StoreDecision | undefined)[]) =>
  comparable([decisions.flatMap((decision) => decision ?? [])]);

it('operations of one call find what those before them left, as in process', async () => {
  const options = fc.array(anyOptions, { minLength: 1, maxLength: 3 });
  // A reset is a call of its own; what is given back and renewed is known only after an answer.
  const alone = new Set(['reset', 'refund', 'renew']);
  const batch = fc.array(
    anyOperation.filter(({ kind }) => !alone.has(kind)),
    { minLength: 1, maxLength: 12 },
  );
  const batches = fc.array(fc.tuple(clockStep, batch), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(options, batches, async (limitOptions, history) => {
      await redis.flushall();
      clock.micros = start;
      const remote = new RedisStore(redis, { clock, prefix, timeoutMs: PATIENCE_MS });
      const memory = new MemoryStore({ clock: clock.now, slackMs: Infinity });
      const limits = limitsOf(limitOptions);
      const context = () => ({ limits, taken: [], now: clock.now() });
      for (const [step, operations] of history) {
        clock.advanceMs(step * limits[0]!.windowMs(clock.now() / 1000));
        const here = [];
        for (const operation of operations) here.push(await perform(memory, operation, context()));
        const there = await Promise.all(operations.map((operation) => perform(remote, operation, context())));
        expect(decided(there)).toEqual(decided(here));
      }
      await memory.close();
    }),
    { numRuns: RUNS },
  );
});

it('no history leaves a key without a time to live', async () => {
  const options = fc.array(anyOptions, { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(
      options,
      fc.array(anyOperation, { minLength: 1, maxLength: 25 }),
      async (limitOptions, history) => {
        await redis.flushall();
        clock.micros = start;
        // Keys do not run out in the middle of a history, whose clock is not the server's.
        const slow = new RedisStore(redis, { clock, prefix, timeoutMs: PATIENCE_MS });
        const limits = limitsOf(limitOptions);
        const taken: Taken[] = [];
        for (const operation of history) {
          const limit = limits[operation.limit % limits.length]!;
          clock.advanceMs(operation.clock * limit.windowMs(clock.now() / 1000));
          const decision = await perform(slow, operation, { limits, taken, now: clock.now() });
          if (decision === undefined) continue;
          expect(decision.remaining).toBeGreaterThanOrEqual(0);
          expect(decision.remaining).toBeLessThanOrEqual(limit.quota);
        }
        const keys = await redis.keys('*');
        const lives = await Promise.all(keys.map((key) => redis.pttl(key)));
        expect(lives.filter((ms) => ms < 0)).toEqual([]);
      },
    ),
    { numRuns: RUNS },
  );
});
