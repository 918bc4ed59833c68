import { afterAll, beforeAll, describe, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { MemoryStore, RedisStore, type Store } from '../../lib/index.js';
import {
  type Check,
  CompiledLimit,
  type Counter,
  type Lesson,
  type StoreDecision,
} from '../../lib/testing/store/index.js';
import {
  algorithmNames,
  type AnyBlocks,
  anyBlocks,
  anyOptions,
  blocksOf,
  clockStep,
  concurrencyOptions,
  costOf,
  costShare,
  costShareOrNothing,
  optionsOf,
} from '../support/limits/arbitraries.js';
import { assertSideBySide, expectEqual, PROPERTY_TIMEOUT_MS, propertyRuns } from '../support/limits/property-runs.js';
import {
  type CarryOver,
  comparable,
  connectRedis,
  freshPrefix,
  ManualClock,
  type StoredOptions,
} from '../support/limits/stores.js';
import { PATIENCE_MS } from '../support/redis/patience.mjs';

const RUNS = propertyRuns(150);

const share = fc.double({ min: 0, max: 2, noNaN: true });

const lesson = fc.record(
  {
    remaining: share,
    resetAfterMs: share,
    ageMs: fc.oneof(fc.constant(0), share),
    window: fc.nat(1),
    inFlight: fc.oneof(fc.constant(0), share),
    asking: share,
    instance: fc.nat(2),
    blockMs: fc.oneof(fc.constant(0), share),
    rate: fc.record(
      {
        quota: share,
        windowMs: share,
        accepted: fc.oneof(fc.constant(0), share),
        refused: fc.boolean(),
        largest: share,
        slowestMs: share,
      },
      { requiredKeys: ['accepted', 'refused', 'largest', 'slowestMs'] },
    ),
  },
  { requiredKeys: ['ageMs', 'inFlight', 'instance'] },
);

/** Longer than a year is no option. */
const LONGEST_MS = 365.25 * 86_400_000;

/** What an upstream says, of shares. */
function lessonOf(
  { remaining, resetAfterMs, ageMs, window, inFlight, instance, blockMs, asking, rate }: Lesson,
  quota: number,
  ms: number,
) {
  const units = (part: number | undefined) => part && Math.floor(part * quota);
  const time = (part: number | undefined) => part && Math.min(Math.round(part * ms), LONGEST_MS);
  return {
    remaining: units(remaining),
    resetAfterMs: time(resetAfterMs),
    ageMs: time(ageMs)!,
    window,
    inFlight: units(inFlight)!,
    asking: units(asking),
    instance,
    blockMs: time(blockMs),
    rate: rate && {
      quota: units(rate.quota),
      windowMs: time(rate.windowMs),
      accepted: units(rate.accepted)!,
      refused: rate.refused,
      largest: Math.max(1, units(rate.largest)!),
      slowestMs: Math.min(60_000, time(rate.slowestMs)!),
    },
  };
}

/** A step of a history: the clock moves, then several checks are made in one call, or units are given back. */
const steps = fc.array(
  fc.record({
    clock: clockStep,
    checks: fc.array(
      fc.record({
        entries: fc.uniqueArray(
          fc.record({ limit: fc.nat(3), identity: fc.nat(1), cost: costShareOrNothing, old: fc.boolean() }),
          {
            selector: ({ limit, identity }) => `${limit} ${identity}`,
            minLength: 1,
            maxLength: 3,
          },
        ),
        peek: fc.boolean(),
        refundable: fc.boolean(),
        /** Takes as many units as fit, at most those of the first entry. */
        upTo: fc.integer({ min: 0, max: 3 }).map((number) => number === 0),
      }),
      { maxLength: 4 },
    ),
    giveBack: fc.boolean(),
    /** What is done to single counters. */
    operations: fc.array(
      fc.record({
        kind: fc.constantFrom(
          'reserve',
          'reserve nothing',
          'penalize',
          'block',
          'learn',
          'unblock',
          'refund',
          'renew',
          'reset',
        ),
        limit: fc.nat(3),
        identity: fc.nat(1),
        units: costShare,
        /** A share of the limit's window. */
        /** What an upstream says, in shares of the quota and of the limit's window. */
        lesson,
        time: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 3, noNaN: true })),
      }),
      { maxLength: 3 },
    ),
    /** From here on the first limit has other parameters, and other blocks. */
    change: fc.boolean(),
    /** What becomes of what was left. */
    carry: fc.constantFrom('keep', 'proportional', 'additive'),
  }),
  { minLength: 1, maxLength: 14 },
);

/** A limit, and whether and how it blocks whom it refuses. */
const make = (options: StoredOptions, index: number, blocks: AnyBlocks, carry?: CarryOver) =>
  new CompiledLimit(options, {
    location: 'test',
    // Limits without blocks, of algorithms that can.
    countsRefused: options.algo.length % 2 === index % 2,
    name: `${options.algo} ${index}`,
    ...blocksOf(options, blocks),
    carry,
  });

/** Where something was taken, as a store says it. */
type Place = Pick<StoreDecision, 'ticket' | 'chargedAt'>;

const placeOf = ({ ticket, chargedAt }: Place): Place => ({
  ...(ticket === undefined ? {} : { ticket }),
  ...(chargedAt === undefined ? {} : { chargedAt }),
});

describe('the stores decide alike, field by field, on any history', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis({ enableAutoPipelining: true });
  });
  afterAll(() => redis.disconnect());

  async function agree(
    first: StoredOptions,
    changed: StoredOptions,
    others: StoredOptions[],
    blocks: AnyBlocks[],
    history: Steps,
  ) {
    const clock = new ManualClock();
    const memory = new MemoryStore({ clock: clock.now, slackMs: Infinity });
    const remote = new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    const limits = [first, ...others].map((options, index) => make(options, index, blocks[index]!));
    /** What was taken and not given back, with the place in each store: a lease has another name in each. */
    const taken: { counter: Counter; units: number; here: Place; there: Place }[] = [];
    const both = async (act: (store: Store, isHere: boolean) => Promise<unknown>) => {
      const [here, there] = [await act(memory, true), await act(remote, false)];
      expectEqual(there, here);
    };
    let isFirst = true;
    try {
      for (const step of history) {
        clock.advanceMs(step.clock * limits[0]!.windowMs(clock.now() / 1000));
        const old = limits[0]!;
        if (step.change) {
          const carry = step.carry === 'keep' ? undefined : { mode: step.carry, quotaBefore: old.quota };
          limits[0] = isFirst ? make(changed, 0, blocks[4]!, carry) : make(first, 0, blocks[0]!, carry);
          isFirst = !isFirst;
        }
        const checks = step.checks.map(({ entries, peek, refundable, upTo }): Check => {
          const asked = entries.map(({ limit, identity, cost, old: stale }) => {
            // During a change some instances still decide by the old parameters, even in the same call.
            const chosen = stale && limit === 0 ? old : limits[limit % limits.length]!;
            return { limit: chosen, identity: `id${identity}-${limit}`, cost: costOf(cost, chosen.quota) };
          });
          if (!upTo) return { peek, refundable, entries: asked };
          const cost = Math.max(1, asked[0]!.cost);
          return { peek, refundable, entries: asked.map((entry) => ({ ...entry, cost })), upTo };
        });
        const here = await memory.check(checks);
        const there = await remote.check(checks);
        expectEqual(comparable(there), comparable(here));
        for (const [index, { entries, peek }] of checks.entries()) {
          const allowed = here[index]!.every((decision) => decision.allowed);
          for (const [at, { limit, identity, cost }] of entries.entries()) {
            if (peek || !allowed || cost === 0) continue;
            const places = { here: here[index]![at]!, there: there[index]![at]! };
            taken.push({ counter: { limit, identity }, units: places.here.taken ?? cost, ...places });
          }
        }
        if (step.giveBack && taken.length > 0) await giveBack();
        for (const { kind, limit: number, identity, units, time, lesson: said } of step.operations) {
          const limit = limits[number % limits.length]!;
          const counter = { limit, identity: `id${identity}-${number}` };
          const cost = costOf(units, limit.quota);
          const ms = Math.round(time * limit.windowMs(clock.now() / 1000));
          const held = limit.algorithm.name === 'concurrency';
          switch (kind) {
            case 'reserve nothing':
            case 'reserve': {
              const reservation = { ...counter, cost: kind === 'reserve' ? cost : 0, maxWaitMs: ms };
              const [one, other] = [await memory.reserve(reservation), await remote.reserve(reservation)];
              expectEqual(comparable([[other]]), comparable([[one]]));
              if (one.allowed && kind === 'reserve') taken.push({ counter, units: cost, here: one, there: other });
              break;
            }
            case 'penalize':
              if (!held) await both((store) => store.penalize({ ...counter, units: cost }));
              break;
            case 'block':
              await both((store) => store.block(counter, ms));
              break;
            case 'learn':
              await both((store) => store.learn!(counter, lessonOf(said, limit.quota, limit.windowMs(0))));
              break;
            case 'unblock':
              await both((store) => store.block(counter, 0));
              break;
            case 'refund':
              if (taken.length > 0) await giveBack();
              break;
            case 'renew': {
              const lease = taken.findLast(({ counter: { limit: of } }) => of.algorithm.name === 'concurrency');
              if (lease === undefined) break;
              await both((store, isHere) =>
                store.renew({
                  ...lease.counter,
                  units: lease.units,
                  ticket: (isHere ? lease.here : lease.there).ticket!,
                }),
              );
              break;
            }
            default:
              // Redis still has what has lapsed a moment ago, so the answer may differ.
              await both(async (store) => void (await store.reset([counter])));
          }
        }
      }

      async function giveBack(): Promise<void> {
        const { counter, units, here, there } = taken.shift()!;
        await both((store, isHere) => store.refund([{ ...counter, units, ...placeOf(isHere ? here : there) }]));
      }
    } finally {
      await memory.close();
    }
  }
  type Steps = typeof steps extends fc.Arbitrary<infer T> ? T : never;

  it.each([...algorithmNames, 'concurrency' as const])(
    '%s, alone and with others',
    async (algo) => {
      const options = { ...optionsOf, concurrency: concurrencyOptions }[algo] as fc.Arbitrary<StoredOptions>;
      const others = fc.array(anyOptions, { maxLength: 3 });
      const blocks = fc.array(anyBlocks, { minLength: 5, maxLength: 5 });
      await assertSideBySide(fc.asyncProperty(options, options, others, blocks, steps, agree), RUNS);
    },
    PROPERTY_TIMEOUT_MS,
  );
});
