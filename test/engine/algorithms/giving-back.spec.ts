import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import type { Store } from '../../../lib/index.js';
import type { StoreDecision } from '../../../lib/testing/store/index.js';
import { costOf, costShare, optionsOf, type RateOptions } from '../../support/limits/arbitraries.js';
import { assertSideBySide, propertyRuns } from '../../support/limits/property-runs.js';
import { ask, compile, connectRedis, ManualClock, storeKinds, tickOf } from '../../support/limits/stores.js';
import { microsOf } from './models.js';

const RUNS = propertyRuns(200);

const identity = 'ip:203.0.113.7';

/** Units that may act from a time on, whole microseconds. */
interface Acts {
  readonly time: bigint;
  units: bigint;
  readonly taken?: StoreDecision;
}

type OptionsOf = Extract<RateOptions, { algo: (typeof algorithms)[number] }>;

const algorithms = ['token-bucket', 'gcra'] as const;

/** How far the clock goes: by a share of the interval, or to right where the units of a reservation act. */
const step = fc.record({
  clock: fc.oneof(
    { weight: 4, arbitrary: fc.constant(0) },
    { weight: 4, arbitrary: fc.double({ min: 0, max: 0.5, noNaN: true }) },
    { weight: 1, arbitrary: fc.double({ min: 0, max: 3, noNaN: true }) },
    { weight: 3, arbitrary: fc.constantFrom('place' as const, 'before' as const) },
  ),
  kind: fc.constantFrom('reserve', 'reserve', 'reserve', 'consume', 'cancel', 'cancel', 'settle', 'exhaust'),
  cost: costShare,
  /** Which one is given back, and how much of it was used. */
  pick: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  used: fc.double({ min: 0, max: 1, noNaN: true }),
});

function most(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

/**
 * The first stretch of time in which more units may act than the limit allows, if there is one: burst + rate x d, where d is
 * exact to the tick to which the time of a reservation is rounded up; one refill more where they come all at once.
 */
function tooMany(acts: readonly Acts[], options: OptionsOf, burst: number, tick: bigint): unknown {
  const rate = BigInt(options.rate);
  const interval = microsOf(options.interval);
  const quota = BigInt(burst);
  const inOrder = acts.filter(({ units }) => units > 0n).toSorted((a, b) => Number(a.time - b.time));
  for (const [index, { time: first }] of inOrder.entries()) {
    let units = 0n;
    for (const [count, { time: last, units: more }] of inOrder.slice(index).entries()) {
      units += more;
      const elapsed = last - first;
      const isTooMuch =
        options.algo === 'token-bucket' && options.refill === 'intervally'
          ? units > quota + rate * (elapsed / interval + 1n)
          : (units - quota) * interval > rate * (elapsed + tick);
      if (isTooMuch) return { first, last, units, quota, count };
    }
  }
  return undefined;
}

describe('what is given back at any time leaves to all others what they were promised, and no more', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis({ enableAutoPipelining: true });
  });
  afterAll(() => redis.disconnect());

  const kinds = Object.keys(storeKinds);
  const cases = kinds.flatMap((kind) => algorithms.map((algo) => [kind, algo] as const));

  it.each(cases)('%s, %s', async (kind, algo) => {
    const history = fc.array(step, { minLength: 3, maxLength: 25 });
    await assertSideBySide(
      fc.asyncProperty(optionsOf[algo], history, async (options, steps) => {
        const clock = new ManualClock();
        const store: Store = storeKinds[kind]!(clock, redis);
        const limit = compile(options);
        const tick = tickOf(limit);
        const interval = microsOf(options.interval);
        const acts: Acts[] = [];
        const unsettled: Acts[] = [];
        const now = () => BigInt(clock.micros - (clock.micros % tick));
        const keep = (time: bigint, units: number, taken: StoreDecision) => {
          const act = { time, units: BigInt(units), taken };
          acts.push(act);
          unsettled.push(act);
        };
        /** Asks for all that is left. */
        const exhaust = async () => {
          const { remaining } = await ask(store, limit, { peek: true });
          if (remaining === 0) return;
          await ask(store, limit, { cost: remaining });
          acts.push({ time: now(), units: BigInt(remaining) });
        };
        try {
          for (const { clock: to, kind, cost: share, pick, used } of steps) {
            const picked = unsettled[Math.floor(pick * unsettled.length)];
            if (typeof to === 'number') clock.advanceMs((to * Number(interval)) / 1000);
            else if (picked !== undefined) {
              clock.micros = Math.max(clock.micros, Number(picked.time) - (to === 'before' ? tick : 0));
            }
            const cost = Math.min(limit.quota, costOf(share, limit.quota));
            if (kind === 'reserve') {
              const taken = await store.reserve({ limit, identity, cost, maxWaitMs: Number(interval) / 100 });
              if (taken.allowed) keep(most(now(), BigInt(taken.ticket! * tick)), cost, taken);
            } else if (kind === 'consume') {
              const [answers] = await store.check([{ entries: [{ limit, identity, cost }], refundable: true }]);
              const taken = answers![0]!;
              if (taken.allowed) keep(now(), cost, taken);
            } else if (kind === 'exhaust') {
              await exhaust();
            } else if (picked !== undefined) {
              const actual = kind === 'cancel' ? 0n : BigInt(Math.floor(used * Number(picked.units)));
              const { ticket, chargedAt } = picked.taken!;
              const units = Number(picked.units - actual);
              if (units > 0) await store.refund([{ limit, identity, units, ticket, chargedAt }]);
              picked.units = actual;
              unsettled.splice(unsettled.indexOf(picked), 1);
            }
          }
          await exhaust();
          for (const { time } of acts.toSorted((a, b) => Number(a.time - b.time))) {
            if (time < now()) continue;
            clock.micros = Number(time);
            await exhaust();
          }
          expect(tooMany(acts, options, limit.quota, BigInt(tick))).toBeUndefined();
        } finally {
          await store.close();
        }
      }),
      RUNS,
    );
  });
});
