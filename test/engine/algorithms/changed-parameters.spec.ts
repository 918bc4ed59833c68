import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, MemoryStore, RedisStore, type Store } from '../../../lib/index.js';
import { CompiledLimit, type StoreDecision } from '../../../lib/testing/store/index.js';
import {
  assertSideBySide,
  expectMatch,
  PROPERTY_TIMEOUT_MS,
  propertyRuns,
} from '../../support/limits/property-runs.js';
import {
  ask,
  type CarryOver,
  connectRedis,
  extraKeysOf,
  freshPrefix,
  keyOf,
  ManualClock,
} from '../../support/limits/stores.js';

const RUNS = propertyRuns(60);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const IDENTITY = 'ip:203.0.113.7';
/** Limits of every algorithm, whose counters have every kind of key. */
const examples: readonly AlgorithmOptions[] = [
  ...(['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket', 'leaky-bucket', 'gcra'] as const).map(
    (algo) => ({ algo, rate: 1, interval: '1h' }) as const,
  ),
  { algo: 'calendar-window', rate: 1, period: 'day' },
  { algo: 'concurrency', limit: 1, ttl: '1h' },
];
/** How much of its real time a server may take for one history. Waits are looked at so much before they end. */
const PATIENCE_MS = 30_000;

const compile = (options: AlgorithmOptions, name: string, carry?: CarryOver) =>
  new CompiledLimit(options, { location: 'test', name, carry });

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis({ enableAutoPipelining: true });
});
afterAll(() => redis.disconnect());

/** A store whose keys run out by the clock that the test moves. */
interface World {
  readonly store: Store;
  take(limit: CompiledLimit, cost?: number): Promise<StoreDecision>;
  peek(limit: CompiledLimit, cost?: number): Promise<StoreDecision>;
  advance(ms: number): Promise<void>;
  close(): Promise<void>;
}

function worldOf(store: Store, advance: World['advance']): World {
  return {
    store,
    take: (limit, cost = 1) => ask(store, limit, { identity: IDENTITY, cost }),
    peek: (limit, cost = 1) => ask(store, limit, { identity: IDENTITY, cost, peek: true }),
    advance,
    close: () => store.close(),
  };
}

function inProcess(_limits?: readonly CompiledLimit[]): World {
  const clock = new ManualClock();
  return worldOf(new MemoryStore({ clock: clock.now }), (ms) => Promise.resolve(clock.advanceMs(ms)));
}

function keysOf(prefix: string, limit: CompiledLimit): string[] {
  const counter = { limit, identity: IDENTITY };
  const key = keyOf(prefix, counter);
  return [key, ...extraKeysOf(key, counter)];
}

function everyKey(prefix: string): string[] {
  const limits = examples.flatMap((options) => ['changing', 'other'].map((name) => compile(options, name)));
  return limits.flatMap((limit) => keysOf(prefix, limit));
}

/** What the server's clock does by itself is done to its keys instead: those of the limits, or of any. */
function onRedis(limits?: readonly CompiledLimit[]): World {
  const clock = new ManualClock();
  const prefix = freshPrefix();
  const keys = limits?.flatMap((limit) => keysOf(prefix, limit)) ?? everyKey(prefix);
  const store = new RedisStore(redis, {
    clock: { now: clock.now, slackMs: PATIENCE_MS / 2 },
    prefix,
    timeoutMs: 20_000,
  });
  return worldOf(store, async (ms) => {
    clock.advanceMs(ms);
    const lives = await Promise.all(keys.map((key) => redis.pttl(key)));
    await Promise.all(
      keys.map(async (key, index) => {
        const left = lives[index]! - Math.round(ms);
        if (lives[index]! < 0) return;
        if (left > 0) await redis.pexpire(key, left);
        else await redis.del(key);
      }),
    );
  });
}

const worlds = [
  ['MemoryStore', inProcess],
  ['RedisStore', onRedis],
] as const;

const changing = (options: AlgorithmOptions) => compile(options, 'changing');
const carried = (interval: string) =>
  compile({ algo: 'sliding-log', rate: 4, interval }, 'changing', { mode: 'proportional', quotaBefore: 2 });

describe.each(worlds)('the wait that a refusal tells under changed parameters, %s', (_, open) => {
  it('sliding-log: is kept by a counter that was stored for a shorter interval', async () => {
    const world = open();
    const short = changing({ algo: 'sliding-log', rate: 2, interval: '15m' });
    const long = changing({ algo: 'sliding-log', rate: 2, interval: '1d' });
    await world.take(short, 2);
    await world.advance(MINUTE);
    await expect(world.take(long)).resolves.toMatchObject({ allowed: false, retryAfterMs: DAY - MINUTE });
    await world.advance(16 * MINUTE);
    await expect(world.take(long)).resolves.toMatchObject({ allowed: false, retryAfterMs: DAY - 17 * MINUTE });
    await world.advance(DAY - 18 * MINUTE);
    await expect(world.take(long)).resolves.toMatchObject({ allowed: false, retryAfterMs: MINUTE });
    await world.advance(MINUTE);
    await expect(world.take(long)).resolves.toMatchObject({ allowed: true, remaining: 1 });
    await world.close();
  });

  it('token-bucket: is kept by a counter that was stored for a smaller bucket', async () => {
    const world = open();
    const small = changing({ algo: 'token-bucket', rate: 1, interval: '1m', burst: 2 });
    const large = changing({ algo: 'token-bucket', rate: 1, interval: '1m', burst: 100 });
    await world.take(small, 2);
    await expect(world.take(large, 50)).resolves.toMatchObject({ allowed: false, retryAfterMs: 50 * MINUTE });
    await world.advance(10 * MINUTE);
    await expect(world.take(large, 50)).resolves.toMatchObject({ allowed: false, retryAfterMs: 40 * MINUTE });
    await world.advance(40 * MINUTE);
    await expect(world.take(large, 50)).resolves.toMatchObject({ allowed: true, remaining: 0 });
    await world.close();
  });

  it('token-bucket: is kept by a counter that was filled evenly before', async () => {
    const world = open();
    const evenly = changing({ algo: 'token-bucket', rate: 60, interval: '1h' });
    const hourly = changing({ algo: 'token-bucket', rate: 60, interval: '1h', refill: 'intervally' });
    await world.take(evenly, 10);
    await world.advance(5 * MINUTE);
    await expect(world.take(hourly, 60)).resolves.toMatchObject({ allowed: false, retryAfterMs: 60 * MINUTE });
    await world.advance(30 * MINUTE);
    await expect(world.take(hourly, 60)).resolves.toMatchObject({ allowed: false, retryAfterMs: 30 * MINUTE });
    await world.close();
  });

  it('is kept when it was told of a reservation or of a check of several limits, and not when somebody only looked', async () => {
    for (const how of ['reserve', 'several', 'look'] as const) {
      const world = open();
      const short = changing({ algo: 'sliding-log', rate: 2, interval: '15m' });
      const long = changing({ algo: 'sliding-log', rate: 2, interval: '1d' });
      const other = compile({ algo: 'gcra', rate: 100, interval: '1m' }, 'other');
      await world.take(short, 2);
      if (how === 'look') await expect(world.peek(long)).resolves.toMatchObject({ allowed: false });
      if (how === 'reserve') await world.store.reserve({ limit: long, identity: IDENTITY, cost: 1, maxWaitMs: 5 });
      if (how === 'several') {
        await world.store.check([{ entries: [other, long].map((limit) => ({ limit, identity: IDENTITY, cost: 1 })) }]);
      }
      await world.advance(HOUR);
      await expect(world.peek(long)).resolves.toMatchObject({ allowed: how === 'look' });
      await world.close();
    }
  });

  it('is told beside the refusal of another limit, too: units that fit with it are not forgotten sooner', async () => {
    for (const algo of ['sliding-log', 'sliding-window'] as const) {
      const world = open();
      const short = changing({ algo, rate: 2, interval: '15m' });
      const long = changing({ algo, rate: 2, interval: '1d' });
      const other = compile({ algo: 'fixed-window', rate: 1, interval: '1h' }, 'other');
      await world.take(other);
      await world.take(long);
      // Now it lives for as long as it counts under the short interval.
      await world.store.block({ limit: short, identity: IDENTITY }, 0);
      const [decisions] = await world.store.check([
        { entries: [long, other].map((limit) => ({ limit, identity: IDENTITY, cost: 1 })) },
      ]);
      expect(decisions!.map(({ allowed }) => allowed)).toEqual([true, false]);
      await world.advance(decisions![0]!.resetAfterMs - MINUTE);
      await expect(world.take(long, 2)).resolves.toMatchObject({ allowed: false, retryAfterMs: MINUTE });
      await world.close();
    }
  });

  it('is kept beside a block', async () => {
    const world = open();
    const short = changing({ algo: 'sliding-log', rate: 2, interval: '15m' });
    const long = changing({ algo: 'sliding-log', rate: 2, interval: '1d' });
    await world.take(short, 2);
    await world.store.block({ limit: short, identity: IDENTITY }, HOUR);
    await world.take(long);
    await world.advance(2 * HOUR);
    await expect(world.take(long)).resolves.toMatchObject({ allowed: false, retryAfterMs: 22 * HOUR });
    await world.close();
  });

  it('is kept with the quota that the units were carried over to', async () => {
    const world = open();
    await world.take(carried('15m'), 4);
    await world.take(carried('1d'));
    await world.advance(HOUR);
    await expect(world.take(carried('1d'))).resolves.toMatchObject({
      allowed: false,
      retryAfterMs: 23 * HOUR,
      resetAfterMs: 23 * HOUR,
    });
    await world.close();
  });

  it('sliding-window: is not forgotten when longer slices were charged meanwhile', async () => {
    const world = open();
    const short = changing({ algo: 'sliding-window', rate: 2, interval: '13s', slices: 2 });
    const long = changing({ algo: 'sliding-window', rate: 3, interval: '100s', slices: 5 });
    for (let i = 0; i < 20; i++) {
      await world.take(short, 2);
      await world.advance(6723);
      await expect(world.take(long)).resolves.toMatchObject({ allowed: true, remaining: 0 });
      await expect(world.take(short)).resolves.toMatchObject({ allowed: false, remaining: 0 });
      await world.store.reset([{ limit: short, identity: IDENTITY }]);
    }
    await world.close();
  });

  it('sliding-window: is not lengthened by calls that count nothing', async () => {
    const world = open();
    const coarse = { algo: 'sliding-window', rate: 20, interval: '1h', slices: 14 } as const;
    const fine = { algo: 'sliding-window', rate: 4, interval: '1h', slices: 743 } as const;
    for (const name of ['changing', 'other']) await world.take(compile(coarse, name), 12);
    for (let i = 0; i < 20; i++) {
      await world.advance(97_531);
      for (const ms of [1000, 0]) await world.store.block({ limit: compile(fine, 'changing'), identity: IDENTITY }, ms);
      const { retryAfterMs } = await world.peek(compile(coarse, 'other'), 12);
      await expect(world.peek(compile(coarse, 'changing'), 12)).resolves.toMatchObject({
        allowed: false,
        retryAfterMs,
      });
    }
    await world.close();
  });
});

const interval = fc.integer({ min: 10, max: 1440 }).map((minutes) => minutes * MINUTE);
const rate = fc.integer({ min: 1, max: 12 });
const slices = fc.integer({ min: 1, max: 12 });
const burst = fc.integer({ min: 1, max: 20 });
const ranges = {
  'fixed-window': fc.record({ algo: fc.constant('fixed-window' as const), rate, interval }),
  'sliding-window': fc.record({ algo: fc.constant('sliding-window' as const), rate, interval, slices }),
  'sliding-log': fc.record({ algo: fc.constant('sliding-log' as const), rate, interval }),
  'token-bucket': fc.record({ algo: fc.constant('token-bucket' as const), rate, interval, burst }),
  gcra: fc.record({ algo: fc.constant('gcra' as const), rate, interval, burst }),
  'leaky-bucket': fc.record({ algo: fc.constant('leaky-bucket' as const), rate, interval, queue: burst }),
  concurrency: fc.record({ algo: fc.constant('concurrency' as const), limit: rate, ttl: interval }),
};

const steps = fc.array(
  fc.record({
    /** A share of the limit's window. */
    clock: fc.double({ min: 0, max: 0.7, noNaN: true }),
    which: fc.nat(2),
    cost: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  { minLength: 1, maxLength: 10 },
);

describe.each(worlds)(
  'of whatever definitions asked before, a refused wait is not shortened by time: %s',
  (_, open) => {
    it.each(Object.keys(ranges) as (keyof typeof ranges)[])(
      '%s',
      async (algo) => {
        const options = ranges[algo] as fc.Arbitrary<AlgorithmOptions>;
        await assertSideBySide(
          fc.asyncProperty(fc.tuple(options, options, options), steps, async (definitions, history) => {
            const limits = definitions.map(changing);
            const world = open(limits.slice(0, 1));
            for (const { clock, which, cost } of history) {
              const limit = limits[which]!;
              await world.advance(clock * limit.windowMs(0));
              const units = Math.max(1, Math.round(cost * limit.quota));
              const { allowed, retryAfterMs } = await world.take(limit, units);
              if (allowed || retryAfterMs < 3 * PATIENCE_MS) continue;
              await world.advance(retryAfterMs - PATIENCE_MS);
              expectMatch(await world.take(limit, units), { allowed: false, retryAfterMs: PATIENCE_MS });
              await world.advance(PATIENCE_MS);
              expectMatch(await world.take(limit, units), { allowed: true });
            }
            await world.close();
          }),
          RUNS,
        );
      },
      PROPERTY_TIMEOUT_MS,
    );
  },
);
