import { afterAll, beforeAll, describe, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, MemoryStore, RedisStore, type Store } from '../../lib/index.js';
import { explainedByFeatures } from '../../lib/storage/features/index.js';
import { recentUsageOf } from '../../lib/storage/features/usage/usage.js';
import { pagesOf, unitsOf } from '../../lib/storage/features/usage/stores.js';
import { CompiledLimit, type Refund, type StoreDecision } from '../../lib/testing/store/index.js';
import { anyOptions, clockStep, costOf, costShareOrNothing } from '../support/limits/arbitraries.js';
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

const RUNS = propertyRuns(100);
const identity = 'user:42';
const ALL = { from: -Infinity, to: Infinity };

const steps = fc.array(
  fc.record({
    clock: fc.oneof(fc.constant(0), clockStep, fc.double({ min: 0, max: 3, noNaN: true })),
    kind: fc.constantFrom(
      'consume',
      'consume',
      'reserve',
      'reserve',
      'settle',
      'refund',
      'penalize',
      'credit',
      'block',
      'read',
      'read',
    ),
    /** Which rate the limit has now. */
    limit: fc.nat(1),
    cost: costShareOrNothing,
    which: fc.nat(5),
  }),
  { minLength: 1, maxLength: 25 },
);
type Steps = typeof steps extends fc.Arbitrary<infer T> ? T : never;

const planOptions = fc.record({
  algo: fc.constantFrom('calendar-window' as const),
  rate: fc.integer({ min: 1, max: 30 }),
  period: fc.constantFrom('day' as const, 'month' as const),
  hold: fc.constantFrom('1h', '2d'),
  onLapse: fc.constantFrom('charge' as const, 'release' as const),
  rollover: fc.constantFrom(0.5, 1),
  credits: fc.constantFrom(true as const, undefined),
  retain: fc.constantFrom('40d', undefined),
  anchor: fc.constantFrom(undefined, () => null),
});

const kinds: Record<string, fc.Arbitrary<object>> = { ...holdOptions, plan: planOptions, 'no hold': anyOptions };

/** All of a decision except the store that made it and the name of what it holds. */
const comparable = ({ source: _, ticket: _ticket, chargedAt: _at, ...decision }: StoreDecision) => decision;

/** Everything that can be read of a counter. Exports read 16,384 lists on Redis, so only some reads export. */
async function readAll(store: Store, limit: CompiledLimit, exports = true): Promise<unknown> {
  const counter = { limit, identity };
  const hasUsage = limit.features?.some(({ name }) => name === 'usage') === true;
  const looks = [0, 1, limit.quota].map(async (cost) => {
    const [[decision]] = (await store.check([{ entries: [{ ...counter, cost }], peek: true }])) as [[StoreDecision]];
    return comparable(decision);
  });
  const exported: unknown[] = [];
  if (hasUsage && exports) for await (const page of pagesOf(store, limit, ALL, 1000)) exported.push(...page);
  return {
    looks: await Promise.all(looks),
    blocked: await store.blockedFor!(counter),
    ...(limit.algorithm.history && { history: await store.history(counter) }),
    ...(hasUsage && { usage: await unitsOf(store, counter, ALL), exported }),
    ...(hasUsage && { recent: await recentUsageOf(store, counter) }),
    explained: await explainedByFeatures(store, counter),
  };
}

describe('reading changes nothing', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis({ enableAutoPipelining: true });
  });
  afterAll(() => redis.disconnect());

  /** All keys on Redis, with their values and when they expire. */
  async function stored(prefix: string): Promise<unknown> {
    const keys = (await redis.keys(`${prefix}:*`)).toSorted();
    return Promise.all(keys.map(async (key) => [key, await redis.dumpBuffer(key), await redis.pexpiretime(key)]));
  }

  async function act(first: object, second: object, history: Steps): Promise<void> {
    const clock = new ManualClock();
    const prefix = freshPrefix();
    const memory = new MemoryStore({ clock: clock.now, slackMs: Infinity });
    const remote = new RedisStore(redis, { clock, prefix, timeoutMs: 10_000 });
    /** Nobody reads this one. */
    const unread = new MemoryStore({ clock: clock.now, slackMs: Infinity });
    const stores = [memory, remote, unread];
    // The same counter with another rate.
    const changed = { ...first, ...rateOf(first, second as Record<string, unknown>) };
    const limits = [first, changed].map((options) => {
      const features = isRecorded(options) ? featureTerms({ usage: '400d' }, 'test') : [];
      return new CompiledLimit(options as AlgorithmOptions, {
        location: 'test',
        name: 'one',
        features,
        featuresOfOptions,
      });
    });
    const held: Refund[][] = [];
    try {
      for (const { clock: share, kind, limit: number, cost: part, which } of history) {
        clock.advanceMs(share * Math.min(limits[0]!.windowMs(clock.now() / 1000), 40 * 86_400_000));
        const limit = limits[number]!;
        const cost = costOf(part, limit.quota);
        const met = limit.meet({ anchor: null });
        const each = (ask: (store: Store, index: number) => Promise<unknown>) => Promise.all(stores.map(ask));
        const charge = async (hold: boolean) => {
          const entries = [{ limit: met, identity, cost }];
          const all = await Promise.all(
            stores.map(async (store) => (await store.check([{ entries, hold, refundable: true }]))[0]![0]!),
          );
          for (const other of all) expectEqual(comparable(other), comparable(all[0]!));
          if (hold && all[0]!.allowed && cost > 0) {
            held.push(all.map((decision) => chargeOf({ limit, identity, cost }, decision)));
          }
        };
        const counter = { limit, identity };
        switch (kind) {
          case 'consume':
            await charge(false);
            break;
          case 'reserve':
            await charge(limit.estimates !== undefined);
            break;
          case 'settle': {
            const one = held.at(-1 - (which % Math.max(1, held.length)));
            if (one !== undefined)
              await each((store, index) => store.refund([{ ...one[index]!, limit, actual: cost }]));
            break;
          }
          case 'refund':
            await each((store) => store.refund([{ ...counter, units: Math.max(1, cost) }]));
            break;
          case 'penalize':
            if (limit.algorithm.leases === undefined)
              await each((store) => store.penalize({ ...counter, units: cost }));
            break;
          case 'credit':
            if (limit.takesCredits) await each((store) => store.credit!({ ...counter, units: which - 2 || 1 }));
            break;
          case 'block':
            await each((store) => store.block(counter, which * 1000));
            break;
          default: {
            const before = await stored(prefix);
            const [here, there] = [await readAll(memory, met, which === 0), await readAll(remote, met, which === 0)];
            expectEqual(await stored(prefix), before);
            expectEqual(there, here);
          }
        }
      }
      expectEqual(await readAll(unread, limits[0]!), await readAll(memory, limits[0]!));
    } finally {
      await Promise.all([memory.close(), unread.close()]);
    }
  }

  it.each(Object.entries(kinds))(
    'of limits with %s',
    async (_, options) => {
      await assertSideBySide(fc.asyncProperty(options, options, steps, act), RUNS);
    },
    PROPERTY_TIMEOUT_MS,
  );
});

/** What the second options say about the rate of the first ones. */
function rateOf(first: object, second: Record<string, unknown>): object {
  const option = 'limit' in first ? 'limit' : 'rate';
  return second[option] === undefined ? {} : { [option]: second[option] };
}

/** Whether usage can be recorded: units of `concurrency` come back. */
function isRecorded(options: object): boolean {
  return !('algo' in options) || options.algo !== 'concurrency';
}
