import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, MemoryStore, RedisStore, type Store } from '../../../../lib/index.js';
import { CompiledLimit, type Refund } from '../../../../lib/testing/store/index.js';
import { Calendar } from '../../../../lib/engine/algorithms/calendar.js';
import { expectEqual, PROPERTY_TIMEOUT_MS, propertyRuns } from '../../../support/limits/property-runs.js';
import {
  chargeOf,
  connectRedis,
  featuresOfOptions,
  featureTerms,
  freshPrefix,
  ManualClock,
} from '../../../support/limits/stores.js';
import { ALL, pagesOf, unitsOf } from '../../../support/limits/usage.js';
import { PATIENCE_MS } from '../../../support/redis/patience.mjs';

const RUNS = propertyRuns(20);
const HOUR_MS = 3_600_000;
const KEYS = ['user:1', 'user:2', 'ключ'];

const algorithm = fc.constantFrom<AlgorithmOptions>(
  { algo: 'fixed-window', rate: 30, interval: '6h' },
  { algo: 'calendar-window', rate: 30, period: 'day', timezone: 'Europe/Berlin', retain: '3d' },
  { algo: 'sliding-window', rate: 30, interval: '6h' },
  { algo: 'sliding-log', rate: 30, interval: '6h' },
  { algo: 'token-bucket', rate: 30, interval: '6h' },
  { algo: 'gcra', rate: 30, interval: '6h' },
  { algo: 'leaky-bucket', rate: 30, interval: '6h' },
);
const held = fc.constantFrom<AlgorithmOptions>(
  { algo: 'budget', limit: 60, period: 'day', hold: '20h', timezone: 'America/New_York' },
  { algo: 'budget', limit: 60, period: 'day', hold: '5h', onLapse: 'release' },
  { algo: 'fixed-window', rate: 60, interval: '12h', hold: '7h', onLapse: 'release' },
  { algo: 'sliding-log', rate: 60, interval: '12h', hold: '7h' },
);
const timezone = fc.constantFrom('UTC', 'Europe/Berlin', 'Australia/Lord_Howe', 'Pacific/Auckland', 'Asia/Kathmandu');
/** Of which the first one crosses the end of summer time, and others midnight. */
const clockMs = fc.oneof(
  fc.constant(0),
  fc.integer({ min: 1, max: 30 * HOUR_MS }),
  fc.integer({ min: -30 * HOUR_MS, max: -1 }),
);
const step = (...kinds: string[]) =>
  fc.record({
    clock: clockMs,
    kind: fc.constantFrom(...kinds),
    key: fc.constantFrom(...KEYS),
    cost: fc.integer({ min: 1, max: 20 }),
    which: fc.nat(20),
  });
/** Of a few histories: an export from Redis asks each of its slots. */
const exported = fc.integer({ min: 0, max: 4 }).map((number) => number === 0);
type Steps = ReturnType<typeof step> extends fc.Arbitrary<infer T> ? T[] : never;

function limitOf(options: AlgorithmOptions, zone: string): CompiledLimit {
  const features = featureTerms({ usage: { keep: '900d', timezone: zone } }, 'test');
  return new CompiledLimit(options, { location: 'test', featuresOfOptions, name: 'api', features });
}

/** What a store says was charged, of each key; and by an export, if there is one. */
async function toldBy(store: Store, limit: CompiledLimit, exports: boolean) {
  const usage = await Promise.all(KEYS.map((identity) => unitsOf(store, { limit, identity }, ALL)));
  if (!exports) return usage;
  const exported: string[] = [];
  for await (const page of pagesOf(store, limit, ALL, 500)) {
    for (const { days } of page) exported.push(...days.map(({ day, units }) => `${day} ${units}`));
  }
  const expected = usage.flat().map(({ day, units }) => `${day} ${units}`);
  expect(exported.toSorted()).toEqual(expected.toSorted());
  return usage;
}

describe('what limits with usage record', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis({ enableAutoPipelining: true });
  });
  afterAll(() => redis.disconnect());

  /** Does the same to both stores, and hands each answer on. */
  async function run(limit: CompiledLimit, steps: Steps, exports: boolean, noted: (change: Change) => void) {
    const clock = new ManualClock();
    // Two days before summer time ends in Europe.
    clock.micros = Date.UTC(2026, 9, 23, 12) * 1000;
    const stores = [
      new MemoryStore({ clock: clock.now, slackMs: Infinity }),
      new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS }),
    ] as const;
    const taken: { key: string; refunds: Refund[] }[] = [];
    for (const { clock: ms, kind, key: identity, cost, which } of steps) {
      clock.advanceMs(ms);
      const counter = { limit, identity };
      if (kind === 'penalize') {
        await Promise.all(stores.map((store) => store.penalize({ ...counter, units: cost })));
      } else if (kind === 'reset') {
        await Promise.all(stores.map((store) => store.reset([counter])));
      } else if (kind === 'refund' || kind === 'settle') {
        const [found] = taken.splice(which % Math.max(1, taken.length), 1);
        if (found === undefined) continue;
        const given = found.refunds.map((each) => (kind === 'settle' ? { ...each, actual: cost } : each));
        await Promise.all(stores.map((store, index) => store.refund([given[index]!])));
        const { units, chargedAt } = found.refunds[0]!;
        noted({ key: found.key, at: chargedAt!, units: -units });
      } else {
        const check = { entries: [{ ...counter, cost }], refundable: true, hold: kind === 'hold' };
        const answers = await Promise.all(stores.map(async (store) => (await store.check([check]))[0]![0]!));
        expectEqual(answers[0]!.allowed, answers[1]!.allowed);
        if (!answers[0]!.allowed) continue;
        taken.push({ key: identity, refunds: answers.map((each) => chargeOf({ ...counter, cost }, each)) });
        noted({ key: identity, at: clock.micros, units: cost });
      }
    }
    const [memory, remote] = await Promise.all([toldBy(stores[0], limit, true), toldBy(stores[1], limit, exports)]);
    expectEqual(remote, memory);
    return memory;
  }

  it(
    'is what was charged less what was given back, by days, on both stores',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          algorithm,
          timezone,
          fc.array(step('consume', 'consume', 'consume', 'refund', 'reset'), { minLength: 1, maxLength: 30 }),
          exported,
          async (options, zone, steps, exports) => {
            const days = new Calendar('day', zone);
            const expected = KEYS.map(() => new Map<number, number>());
            const told = await run(limitOf(options, zone), steps, exports, ({ key, at, units }) => {
              const sums = expected[KEYS.indexOf(key)]!;
              const { start } = days.windowAt(at);
              sums.set(start, (sums.get(start) ?? 0) + units);
            });
            const sums = expected.map((each) =>
              [...each].filter(([, units]) => units > 0).toSorted(([one], [other]) => one - other),
            );
            expect(told.map((each) => each.map(({ units }) => units))).toEqual(
              sums.map((each) => each.map(([, units]) => units)),
            );
          },
        ),
        { numRuns: RUNS },
      );
    },
    PROPERTY_TIMEOUT_MS,
  );

  it(
    'is the same on both stores, also of penalties and holds',
    async () => {
      const kinds = step('hold', 'hold', 'hold', 'consume', 'settle', 'settle', 'penalize', 'reset');
      await fc.assert(
        fc.asyncProperty(
          held,
          timezone,
          fc.array(kinds, { minLength: 1, maxLength: 30 }),
          exported,
          async (options, zone, steps, exports) => {
            await run(limitOf(options, zone), steps, exports, () => undefined);
          },
        ),
        { numRuns: RUNS },
      );
    },
    PROPERTY_TIMEOUT_MS,
  );
});

interface Change {
  readonly key: string;
  readonly at: number;
  readonly units: number;
}
