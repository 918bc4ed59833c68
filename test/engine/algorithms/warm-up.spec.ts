import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, RedisStore, type Store } from '../../../lib/index.js';
import type { CompiledLimit, StoreDecision } from '../../../lib/testing/store/index.js';
import { clockStep, costOf, costShare, forwardStep } from '../../support/limits/arbitraries.js';
import { assertSideBySide, expectEqual, expectMatch, propertyRuns } from '../../support/limits/property-runs.js';
import {
  ask,
  compile,
  connectRedis,
  freshPrefix,
  keyOf,
  ManualClock,
  storeKinds,
} from '../../support/limits/stores.js';
import { microsOf } from './models.js';
import { warmUpModel, type WarmingOptions } from './warm-up-model.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const RUNS = propertyRuns(30);

const identity = 'ip:203.0.113.7';

/** Rates whose units are some microseconds apart, and ramps of some units up to many. */
const options: fc.Arbitrary<WarmingOptions> = fc
  .record({
    algo: fc.constantFrom('gcra' as const, 'token-bucket' as const),
    rate: fc.integer({ min: 1, max: 50 }),
    interval: fc.constantFrom('1s', '10s', '1m', 777),
    burst: fc.integer({ min: 1, max: 30 }),
    units: fc.double({ min: 0.5, max: 60, noNaN: true }),
    // A share is counted as a fraction of thousandths or simpler.
    from: fc.oneof(
      fc.constantFrom(1 / 3, 0.1, 0.3, 0.5),
      fc.integer({ min: 1, max: 999 }).map((part) => part / 1000),
    ),
  })
  .map(({ units, from, ...rest }) => ({
    ...rest,
    // So long that about so many units are allowed meanwhile.
    warmUp: { for: Math.max(1, Math.round((units * Number(microsOf(rest.interval))) / rest.rate / 1000)), from },
  }));

const step = fc.record({
  clock: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: forwardStep }, clockStep),
  kind: fc.constantFrom('consume', 'consume', 'consume', 'reserve', 'give back', 'penalize', 'change'),
  cost: costShare,
});

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis({ enableAutoPipelining: true });
});
afterAll(() => redis.disconnect());

const kinds = Object.keys(storeKinds);

describe.each(Object.entries(storeKinds))('%s', (_, make) => {
  /** The waits of reservations, each of which is waited for, and the idle times between them. */
  async function waits(limit: CompiledLimit, steps: readonly (number | 'idle')[][]): Promise<number[][]> {
    const clock = new ManualClock();
    const store = make(clock, redis);
    const all: number[][] = [];
    for (const [idle, units] of steps as [number, number][]) {
      clock.advanceMs(idle);
      const found: number[] = [];
      for (let i = 0; i < units; i++) {
        const { delayMs } = await store.reserve({ limit, identity, cost: 1, maxWaitMs: 60_000 });
        clock.advanceMs(delayMs);
        found.push(delayMs);
      }
      all.push(found);
    }
    await store.close();
    return all;
  }

  const cold = [0, 1375, 1125, 875, 625, 500, 500, 500];

  it("waits as Guava's limiter of 2 a second, 4 s to warm up, three times as slow when cold", async () => {
    const limit = compile({ algo: 'gcra', rate: 2, interval: '1s', burst: 1, warmUp: { for: '4s', from: 1 / 3 } });
    // The last unit is paid for 500 ms later; it is cold after 4 s more, and half as cold after 2 s, when no unit takes longer.
    const found = await waits(limit, [
      [0, 8],
      [4500, 8],
      [2500, 8],
    ]);
    expect(found).toEqual([cold, cold, [0, 500, 500, 500, 500, 500, 500, 500]]);
  });

  it("waits as Guava's limiter of 5 a second, 4 s to warm up, ten times as slow when cold", async () => {
    const limit = compile({
      algo: 'token-bucket',
      rate: 5,
      interval: '1s',
      burst: 1,
      warmUp: { for: '4s', from: 0.1 },
    });
    const found = await waits(limit, [
      [0, 8],
      [4200, 8],
      [1200, 8],
    ]);
    // To a hundredth of a second, as its own tests have them: 1.75, 1.26, 0.76, 0.30, 0.20.
    const slow = [0, 1753, 1257, 763, 300, 200, 200, 200];
    expect(found).toEqual([slow, slow, [0, 200, 200, 200, 200, 200, 200, 200]]);
  });

  it('charges several units as much as one after another', async () => {
    const limit = compile({ algo: 'gcra', rate: 2, interval: '1s', burst: 8, warmUp: { for: '4s', from: 1 / 3 } });
    const found: StoreDecision[] = [];
    for (const costs of [[3], [1, 1, 1]]) {
      const store = make(new ManualClock(), redis);
      let last: StoreDecision | undefined;
      for (const cost of costs) last = await ask(store, limit, { cost });
      found.push(last!);
      await store.close();
    }
    // 1,375 + 1,125 + 875 ms of the 4 s that 8 units take.
    expect(found[0]).toMatchObject({ allowed: true, remaining: 1, resetAfterMs: 3375 });
    expect(found[1]).toEqual(found[0]);
  });

  it('is as cold after a reservation was cancelled as before', async () => {
    const clock = new ManualClock();
    const store = make(clock, redis);
    const limit = compile({
      algo: 'token-bucket',
      rate: 2,
      interval: '1s',
      burst: 4,
      warmUp: { for: '4s', from: 0.5 },
    });
    await ask(store, limit, { cost: 1 });
    const before = await ask(store, limit, { peek: true });
    const { ticket, chargedAt } = await store.reserve({ limit, identity, cost: 4, maxWaitMs: 60_000 });
    await store.refund([{ limit, identity, units: 4, ticket, chargedAt }]);
    expect(await ask(store, limit, { peek: true })).toEqual(before);
    await store.close();
  });

  /** The waits of reservations of a unit each, made at once; of which one is cancelled after some. */
  async function waitsWithCancelled(from: number, cancelled: number, after: number): Promise<number[]> {
    const store = make(new ManualClock(), redis);
    const limit = compile({ algo: 'gcra', rate: 1, interval: '1s', burst: 1, warmUp: { for: 500, from } });
    const made: StoreDecision[] = [];
    for (let i = 0; i < after + 2; i++) {
      if (i === after) {
        const { ticket, chargedAt } = made[cancelled]!;
        await store.refund([{ limit, identity, units: 1, ticket, chargedAt }]);
      }
      made.push(await store.reserve({ limit, identity, cost: 1, maxWaitMs: 60_000 }));
    }
    await store.close();
    return made.map(({ delayMs }) => delayMs);
  }

  it('gives back no coldness that a unit has not found', async () => {
    expect(await waitsWithCancelled(1 / 3, 2, 3)).toEqual([0, 1250, 2250, 2250, 3250]);
  });

  it('leaves the time of those who have reserved behind units that are given back', async () => {
    expect(await waitsWithCancelled(1 / 1000, 0, 2)).toEqual([0, 1499, 2499, 3499]);
  });

  it('decides as a naive model does, on any history of a clock that goes forward', async () => {
    const steps = fc.array(fc.record({ clock: forwardStep, cost: costShare }), { minLength: 1, maxLength: 25 });
    await assertSideBySide(
      fc.asyncProperty(options, steps, async (options, history) => {
        const clock = new ManualClock();
        const store = make(clock, redis);
        const limit = compile(options);
        const model = warmUpModel(options);
        for (const { clock: share, cost: part } of history) {
          clock.advanceMs(share * limit.windowMs(0));
          const cost = costOf(part, limit.quota);
          const { allowed, remaining } = await ask(store, limit, { cost });
          const told = model(clock.now(), cost, allowed);
          if (told === undefined) continue;
          expectEqual({ allowed, remaining }, told);
        }
        await store.close();
      }),
      RUNS,
    );
  });

  it('allows no more than its rate and its burst in any stretch of time, and while it is cold no more than the ramp', async () => {
    const steps = fc.array(fc.record({ clock: forwardStep, cost: costShare }), { minLength: 1, maxLength: 30 });
    await assertSideBySide(
      fc.asyncProperty(options, steps, async (options, history) => {
        const clock = new ManualClock();
        const store = make(clock, redis);
        const limit = compile(options);
        const rate = options.rate / Number(microsOf(options.interval));
        const acts: { time: number; cost: number }[] = [];
        for (const { clock: share, cost: part } of history) {
          clock.advanceMs(share * limit.windowMs(0));
          const cost = costOf(part, limit.quota);
          const { allowed } = await ask(store, limit, { cost });
          if (allowed) acts.push({ time: clock.now(), cost });
        }
        for (const [index, from] of acts.entries()) {
          let units = 0;
          for (const to of acts.slice(index)) {
            units += to.cost;
            expect(units).toBeLessThanOrEqual(limit.quota + rate * (to.time - from.time) + 1e-6);
          }
        }
        let before = 0;
        for (const { time, cost } of acts) {
          // What came before it has flowed off but for the burst, at the price of a cold limit.
          const micros = rampTime(options, before);
          expect(micros).toBeLessThanOrEqual(time - acts[0]!.time + (limit.quota - cost) / rate + 2 + acts.length);
          before += cost;
        }
        await store.close();
      }),
      RUNS,
    );
  });

  it('tells waits that are exact, also of a clock that steps back', async () => {
    let waited = 0;
    await assertSideBySide(
      fc.asyncProperty(
        options,
        fc.array(step, { minLength: 1, maxLength: 12 }),
        costShare,
        async (options, steps, part) => {
          const clock = new ManualClock();
          const store = make(clock, redis);
          const limit = compile(options);
          const cost = Math.min(limit.quota, costOf(part, limit.quota));
          for (const { clock: share, cost: units } of steps) {
            clock.advanceMs(share * limit.windowMs(0));
            await ask(store, limit, { cost: costOf(units, limit.quota) });
          }
          let refused = await ask(store, limit, { cost });
          while (refused.allowed) refused = await ask(store, limit, { cost });
          const { retryAfterMs, remaining } = refused;
          if (remaining > 0) expectMatch(await ask(store, limit, { cost: remaining, peek: true }), { allowed: true });
          expectMatch(await ask(store, limit, { cost: remaining + 1, peek: true }), { allowed: false });
          clock.advanceMs(retryAfterMs - 1);
          expectMatch(await ask(store, limit, { cost }), { allowed: false, retryAfterMs: 1 });
          clock.advanceMs(1);
          expectMatch(await ask(store, limit, { cost }), { allowed: true });
          waited++;
          await store.close();
        },
      ),
      RUNS,
    );
    expect(waited).toBe(RUNS);
  });

  it('leaves to all others what they were promised, whatever is given back', async () => {
    const gives = fc.array(
      fc.record({
        clock: fc.oneof(
          { weight: 2, arbitrary: fc.constant(0) },
          { weight: 3, arbitrary: fc.double({ min: 0, max: 0.5, noNaN: true }) },
        ),
        kind: fc.constantFrom('reserve', 'reserve', 'consume', 'cancel', 'exhaust'),
        cost: costShare,
        pick: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      }),
      { minLength: 3, maxLength: 20 },
    );
    await assertSideBySide(
      fc.asyncProperty(options, gives, async (options, steps) => {
        const clock = new ManualClock();
        const store: Store = make(clock, redis);
        const limit = compile(options);
        const rate = options.rate / Number(microsOf(options.interval));
        const acts: { time: number; units: number; taken?: StoreDecision }[] = [];
        for (const { clock: share, kind, cost: part, pick } of steps) {
          clock.advanceMs(share * limit.windowMs(0));
          const cost = Math.min(limit.quota, costOf(part, limit.quota));
          const open = acts.filter(({ units, taken }) => units > 0 && taken !== undefined);
          if (kind === 'reserve') {
            const taken = await store.reserve({ limit, identity, cost, maxWaitMs: 10 * limit.windowMs(0) });
            if (taken.allowed) acts.push({ time: clock.now() + taken.delayMs * 1000, units: cost, taken });
          } else if (kind === 'cancel') {
            const picked = open[Math.floor(pick * open.length)];
            if (picked === undefined) continue;
            const { ticket, chargedAt } = picked.taken!;
            await store.refund([{ limit, identity, units: picked.units, ticket, chargedAt }]);
            picked.units = 0;
          } else {
            const { remaining } = await ask(store, limit, { peek: true });
            const asked = kind === 'exhaust' ? Math.max(1, remaining) : cost;
            const [answers] = await store.check([{ entries: [{ limit, identity, cost: asked }], refundable: true }]);
            if (answers![0]!.allowed) acts.push({ time: clock.now(), units: asked, taken: answers![0]! });
          }
        }
        const inOrder = acts.toSorted((one, other) => one.time - other.time);
        for (const [index, from] of inOrder.entries()) {
          let units = 0;
          for (const to of inOrder.slice(index)) {
            units += to.units;
            // A wait is told in whole milliseconds.
            expect(units).toBeLessThanOrEqual(limit.quota + rate * (to.time - from.time + 1000) + 1e-6);
          }
        }
        await store.close();
      }),
      RUNS,
    );
  });
});

/** The time that so many units of a cold limit take: a trapezoid, and what is left at the full rate. */
function rampTime({ rate, interval, warmUp: { for: length, from } }: WarmingOptions, units: number): number {
  const t = Number(microsOf(interval)) / rate;
  const slowest = t / from;
  const ramp = (2 * Number(microsOf(length))) / (t + slowest);
  const slow = Math.min(units, ramp);
  const last = slowest - ((slowest - t) * slow) / ramp;
  return (slow * (slowest + last)) / 2 + (units - slow) * t;
}

it('is told alike by both stores, on any history', async () => {
  await assertSideBySide(
    fc.asyncProperty(
      options,
      options,
      fc.array(step, { minLength: 1, maxLength: 20 }),
      async (first, second, steps) => {
        const told: unknown[][] = [];
        for (const kind of kinds) {
          const clock = new ManualClock();
          const store = storeKinds[kind]!(clock, redis);
          // Of one algorithm, whose rate and ramp change.
          const limits = [first, { ...second, algo: first.algo } as WarmingOptions].map((each) => compile(each, 'one'));
          const answers: StoreDecision[] = [];
          const taken: [CompiledLimit, number, StoreDecision][] = [];
          for (const { clock: share, kind: what, cost: part } of steps) {
            const limit = limits[0]!;
            clock.advanceMs(share * limit.windowMs(0));
            const cost = costOf(part, limit.quota);
            const last = taken.at(-1);
            if (what === 'change') limits.reverse();
            else if (what === 'penalize') await store.penalize({ limit, identity, units: cost });
            else if (what === 'give back' && last !== undefined) {
              const [charged, units, { ticket, chargedAt }] = last;
              await store.refund([{ limit: charged, identity, units, ticket, chargedAt }]);
              taken.pop();
            } else {
              const decision =
                what === 'reserve'
                  ? await store.reserve({ limit, identity, cost, maxWaitMs: limit.windowMs(0) })
                  : (await store.check([{ entries: [{ limit, identity, cost }], refundable: true }]))[0]![0]!;
              answers.push(decision);
              if (decision.allowed) taken.push([limit, cost, decision]);
            }
          }
          told.push(answers.map(({ source: _, ...rest }) => rest));
          await store.close();
        }
        expectEqual(told[1], told[0]);
      },
    ),
    RUNS * 2,
  );
});

it('keeps a key until it is cold again, and no longer', async () => {
  const prefix = freshPrefix();
  const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS });
  const options: AlgorithmOptions = { algo: 'gcra', rate: 10, interval: '1s', warmUp: { for: '1m', from: 0.5 } };
  const limit = compile(options);
  const { resetAfterMs } = await ask(store, limit, { cost: 5 });
  const key = keyOf(prefix, { limit, identity });
  const lives = await redis.pttl(key);
  // The ramp is as long as 65 units take of it; 5 of these are used.
  const coolsFor = 60_000 * (5 / (600 * (0.5 + 2 / 3)));
  expect(lives).toBeGreaterThan(resetAfterMs);
  expect(lives).toBeLessThanOrEqual(resetAfterMs + coolsFor + 1001);
  expect(lives).toBeGreaterThan(resetAfterMs + coolsFor - 5000);
  await store.close();
});
