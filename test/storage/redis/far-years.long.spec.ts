import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, MemoryStore, RedisStore, type Store } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import {
  algorithmNames,
  clockStep,
  concurrencyOptions,
  costOf,
  costShare,
  optionsOf,
} from '../../support/limits/arbitraries.js';
import {
  assertSideBySide,
  expectEqual,
  PROPERTY_TIMEOUT_MS,
  propertyRuns,
} from '../../support/limits/property-runs.js';
import {
  ask,
  type CarryOver,
  comparable,
  connectRedis,
  freshPrefix,
  keyOf,
  ManualClock,
} from '../../support/limits/stores.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const RUNS = propertyRuns(40);
const IDENTITY = 'user:42';

/**
 * From May 2041 on, a time in microseconds is at least 2^51, and the lowest byte of its double may be any even one; from September
 * 2112 on, any. In June 2255 whole numbers end.
 */
const years = [2042, 2100, 2113, 2255];
const startOf = (year: number) => Date.parse(`${year}-01-01T10:00:00Z`) * 1000;

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis({ enableAutoPipelining: true });
});
afterAll(() => redis.disconnect());

/** The first time from `micros` on whose double begins with the byte, as it is stored. */
function timeThatBeginsWith(byte: number, micros: number): number {
  const buffer = Buffer.alloc(8);
  for (let time = micros; ; time++) {
    buffer.writeDoubleLE(time);
    if (buffer[0] === byte) return time;
  }
}

const make = (options: AlgorithmOptions, carry?: CarryOver) =>
  new CompiledLimit(options, { location: 'test', name: options.algo, carry });

function openStores(micros: number) {
  const clock = new ManualClock();
  clock.micros = micros;
  const prefix = freshPrefix();
  const memory = new MemoryStore({ clock: clock.now, slackMs: Infinity });
  const remote = new RedisStore(redis, { clock, prefix, timeoutMs: PATIENCE_MS });
  return { clock, prefix, memory, remote };
}

describe.each([254, 255])('a value whose first byte is %i, the mark of one with something before it', (byte) => {
  it.each(['fixed-window', 'token-bucket', 'gcra', 'leaky-bucket'] as const)('is read as it is: %s', async (algo) => {
    const micros = timeThatBeginsWith(byte, startOf(2113));
    const { clock, prefix, remote } = openStores(micros);
    const limit = make({ algo, rate: 10, interval: '1h' });
    await ask(remote, limit, { identity: IDENTITY, cost: 4 });
    const value = (await redis.getBuffer(keyOf(prefix, { limit, identity: IDENTITY })))!;
    expect(value[0]).toBe(byte);
    const { remaining, resetAfterMs } = await ask(remote, limit, { identity: IDENTITY, peek: true });
    expect(remaining).toBe(limit.quota - 4);
    // Under a changed rate, and behind a block.
    const twice = make({ algo, rate: 20, interval: '1h' }, { mode: 'additive', quotaBefore: limit.quota });
    expect(await ask(remote, twice, { identity: IDENTITY, peek: true })).toMatchObject({ remaining: remaining + 10 });
    await remote.block({ limit, identity: IDENTITY }, 1000);
    clock.advanceMs(1000);
    const after = await ask(remote, limit, { identity: IDENTITY, peek: true });
    expect(after).toMatchObject({ remaining, resetAfterMs: resetAfterMs - 1000 });
  });
});

const steps = fc.array(
  fc.record({
    clock: clockStep,
    act: fc.constantFrom('take', 'take', 'peek', 'block', 'unblock', 'reserve'),
    cost: costShare,
    carry: fc.constantFrom('keep', 'proportional', 'additive'),
  }),
  { minLength: 1, maxLength: 12 },
);

describe.each(years)('in the year %i the stores decide alike', (year) => {
  it.each([...algorithmNames, 'concurrency' as const])(
    '%s, blocked and carried over',
    async (algo) => {
      const any = { ...optionsOf, concurrency: concurrencyOptions }[algo] as fc.Arbitrary<AlgorithmOptions>;
      // No wait may reach beyond June 2255.
      const options = any.filter((each) => !('interval' in each && ['30d', '1y'].includes(String(each.interval))));
      const nudge = fc.integer({ min: 0, max: 600 });
      await assertSideBySide(
        fc.asyncProperty(options, options, nudge, steps, async (first, second, nudge, history) => {
          const { clock, memory, remote } = openStores(startOf(year) + nudge);
          let [now, next] = [first, second];
          let limit = make(now);
          for (const { clock: step, act, cost, carry } of history) {
            // Less than a month: the numbers of a year's microseconds end in June 2255.
            const window = Math.min(limit.windowMs(clock.now() / 1000), 86_400_000);
            clock.advanceMs(Math.max(-2, Math.min(step, 2)) * window);
            if (carry !== 'keep') {
              [now, next] = [next, now];
              limit = make(now, { mode: carry, quotaBefore: limit.quota });
            }
            const counter = { limit, identity: IDENTITY };
            const units = costOf(cost, limit.quota);
            const perform = async (store: Store) => {
              if (act === 'block') return store.block(counter, window / 3);
              if (act === 'unblock') return store.block(counter, 0);
              if (act === 'reserve') {
                return comparable([[await store.reserve({ ...counter, cost: units, maxWaitMs: window })]]);
              }
              return comparable([[await ask(store, limit, { identity: IDENTITY, cost: units, peek: act === 'peek' })]]);
            };
            const here = await perform(memory);
            expectEqual(await perform(remote), here);
          }
          await memory.close();
        }),
        RUNS,
      );
    },
    PROPERTY_TIMEOUT_MS,
  );
});

it.each([
  { algo: 'gcra', rate: 3, interval: 31_557_599_999, burst: 50_000 },
  { algo: 'token-bucket', rate: 3, interval: 31_557_599_999, burst: 50_000 },
  { algo: 'leaky-bucket', rate: 3, interval: 31_557_599_999, queue: 50_000 },
] as const)('waits of thousands of years are whole milliseconds: $algo', async (options) => {
  const { clock, memory, remote } = openStores(startOf(2026));
  const limit = make(options);
  for (let cost = 1; cost < 3000; cost += 97) {
    clock.advanceMs(0.001);
    const here = comparable([[await ask(memory, limit, { identity: IDENTITY, cost })]]);
    expectEqual(comparable([[await ask(remote, limit, { identity: IDENTITY, cost })]]), here);
  }
  await memory.close();
});
