import { afterAll, beforeAll, describe, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, MemoryStore, RedisStore, type ReservedShares } from '../../lib/index.js';
import { CompiledLimit, type Refund, type StoreDecision } from '../../lib/testing/store/index.js';
import { anyPriority, clockStep, costOf, costShareOrNothing } from '../support/limits/arbitraries.js';
import { holdOptions } from '../support/limits/hold-arbitraries.js';
import { assertSideBySide, expectEqual, PROPERTY_TIMEOUT_MS, propertyRuns } from '../support/limits/property-runs.js';
import {
  chargeOf,
  connectRedis,
  featuresOfOptions,
  featureTerms,
  freshPrefix,
  ManualClock,
} from '../support/limits/stores.js';
import { PATIENCE_MS } from '../support/redis/patience.mjs';

const RUNS = propertyRuns(60);

const steps = fc.array(
  fc.record({
    clock: fc.oneof(fc.constant(0), clockStep),
    kind: fc.constantFrom(
      'reserve',
      'reserve',
      'reserve',
      'consume',
      'peek',
      'settle',
      'settle',
      'cancel',
      'refund',
      'penalize',
    ),
    /** Of which limits: both are of one counter, or of two. */
    limits: fc.constantFrom([0], [1], [0, 1]),
    cost: costShareOrNothing,
    /** What was really used, as a share of what was reserved, and of which reservation. */
    actual: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 3, noNaN: true })),
    which: fc.nat(20),
    priority: anyPriority,
  }),
  { minLength: 1, maxLength: 25 },
);

/** What may be kept for others, and what becomes of units that were left under another quota. */
const settings = fc.record(
  {
    reserveFor: fc.constantFrom<ReservedShares>({ critical: 0.3 }, { critical: 0.7 }, { critical: 0.2, default: 0.3 }),
    carry: fc.record({
      mode: fc.constantFrom('proportional' as const, 'additive' as const),
      quotaBefore: fc.integer({ min: 1, max: 30 }),
    }),
  },
  { requiredKeys: [] },
);
type Settings = typeof settings extends fc.Arbitrary<infer T> ? T : never;

type Steps = typeof steps extends fc.Arbitrary<infer T> ? T : never;

/** All of a decision but who made it, and how it names what is held. */
const comparable = ({ source: _, ticket: _ticket, ...decision }: StoreDecision) => decision;

describe('the stores hold alike, field by field, on any history', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis({ enableAutoPipelining: true });
  });
  afterAll(() => redis.disconnect());

  async function agree(
    options: AlgorithmOptions,
    other: AlgorithmOptions,
    isShared: boolean,
    more: Settings,
    history: Steps,
  ) {
    const clock = new ManualClock();
    const memory = new MemoryStore({ clock: clock.now, slackMs: Infinity });
    const remote = new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    // Other parameters of the same counter, or another counter.
    // A window of another length or period forgets its holds at another time, and keys outlive that a little on Redis.
    const { rate, limit: most, hold, onLapse } = other as unknown as Record<string, unknown>;
    const changed = { ...options, ...('limit' in options ? { limit: most } : { rate }), hold, onLapse };
    const second = isShared ? changed : other;
    const { carry } = more;
    const features = featureTerms(more, 'test');
    const limits = [options, second as AlgorithmOptions].map((each, index) => {
      const name = index === 0 || isShared ? 'one' : 'two';
      return new CompiledLimit(each, { location: 'test', name, features, featuresOfOptions, ...(carry && { carry }) });
    });
    const held: { here: Refund; there: Refund }[] = [];
    const counted = () =>
      [memory, remote].map((store) =>
        Promise.all(
          limits.map(async (limit) => {
            const [decisions] = await store.check([{ entries: [{ limit, identity: 'id', cost: 1 }], peek: true }]);
            const windows = limit.algorithm.history === undefined ? [] : await store.history({ limit, identity: 'id' });
            return { decision: comparable(decisions![0]!), windows };
          }),
        ),
      );
    try {
      for (const { clock: share, kind, limits: numbers, cost, actual, which, priority } of history) {
        clock.advanceMs(share * limits[0]!.windowMs(clock.now() / 1000));
        const chosen = numbers.map((number) => limits[number]!.meet({ priority }));
        const entries = (isShared ? chosen.slice(0, 1) : chosen).map((limit) => ({
          limit,
          identity: 'id',
          cost: costOf(cost, limit.quota),
        }));
        const [{ limit, identity }] = entries as [(typeof entries)[0]];
        const units = Math.max(1, entries[0]!.cost);
        if (kind === 'reserve' || kind === 'consume' || kind === 'peek') {
          const check = { entries, peek: kind === 'peek', hold: kind === 'reserve', refundable: kind !== 'peek' };
          const [[here], [there]] = [await memory.check([check]), await remote.check([check])];
          expectEqual(there!.map(comparable), here!.map(comparable));
          if (kind !== 'reserve' || !here!.every(({ allowed }) => allowed)) continue;
          for (const [index, entry] of entries.entries()) {
            // What cost nothing holds nothing.
            if (entry.cost === 0) continue;
            held.push({ here: chargeOf(entry, here![index]!), there: chargeOf(entry, there![index]!) });
          }
        } else if (kind === 'settle' || kind === 'cancel') {
          // One that was settled can be settled again, which changes nothing.
          const one = held.at(-1 - (which % Math.max(1, held.length)));
          if (one === undefined) continue;
          const end = {
            // From another process it is settled as of all of the limit.
            limit: which % 2 === 0 ? one.here.limit : one.here.limit.whole,
            ...(kind === 'settle' && { actual: Math.round(actual * one.here.units) }),
          };
          await memory.refund([{ ...one.here, ...end }]);
          await remote.refund([{ ...one.there, ...end }]);
        } else if (kind === 'refund') {
          for (const store of [memory, remote]) await store.refund([{ limit, identity, units }]);
        } else {
          for (const store of [memory, remote]) await store.penalize({ limit, identity, units });
        }
        const [here, there] = await Promise.all(counted());
        expectEqual(there, here);
      }
    } finally {
      await memory.close();
    }
  }

  it.each(Object.entries(holdOptions))(
    '%s, alone and with another',
    async (_, options) => {
      const others = fc.oneof(...Object.values(holdOptions)) as fc.Arbitrary<AlgorithmOptions>;
      const same = options as fc.Arbitrary<AlgorithmOptions>;
      const second = fc.oneof(
        fc.record({ other: same, isShared: fc.constant(true) }),
        fc.record({ other: others, isShared: fc.constant(false) }),
      );
      const property = fc.asyncProperty(same, second, settings, steps, (first, { other, isShared }, more, history) =>
        agree(first, other, isShared, more, history),
      );
      await assertSideBySide(property, RUNS);
    },
    PROPERTY_TIMEOUT_MS,
  );
});
