import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { AlgorithmOptions } from '../../lib/algorithms/index.js';
import { CompiledLimit } from '../../lib/limits/compiled-limit.js';
import type { Check, Store, StoreDecision } from '../../lib/stores/store.js';
import type { Counter } from '../../lib/limits/counter.js';
import { algorithmNames, anyOptions, clockStep, costOf, costShare, optionsOf } from '../support/arbitraries.js';
import { propertyRuns } from '../support/property-runs.js';
import { ask, compile, ManualClock } from '../support/stores.js';

const RUNS = propertyRuns(60);

const SECOND = 1000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const everyAlgorithm = [...algorithmNames, 'concurrency' as const];

/** Five units at once, of which one comes back every 2 s where they come back one by one. */
export const five: Record<(typeof everyAlgorithm)[number], AlgorithmOptions> = {
  'fixed-window': { algo: 'fixed-window', rate: 5, interval: '10s' },
  'calendar-window': { algo: 'calendar-window', rate: 5, period: 'minute' },
  'sliding-window': { algo: 'sliding-window', rate: 5, interval: '10s' },
  'sliding-log': { algo: 'sliding-log', rate: 5, interval: '10s' },
  'token-bucket': { algo: 'token-bucket', rate: 5, interval: '10s' },
  'leaky-bucket': { algo: 'leaky-bucket', rate: 5, interval: '10s', queue: 4 },
  gcra: { algo: 'gcra', rate: 5, interval: '10s' },
  concurrency: { algo: 'concurrency', limit: 5, ttl: '10s' },
};

const atOnce: AlgorithmOptions = { algo: 'token-bucket', rate: 5, interval: '10s', refill: 'intervally' };

const identity = 'ip:203.0.113.7';

/** A limit that refuses for so long whom it has refused. */
const blocking = (options: AlgorithmOptions, blockForMs: number, name = 'blocking', shadow = false) =>
  new CompiledLimit(options, { location: 'test', name, shadow, blockFor: blockForMs * 1000 });

const start = Date.parse('2026-09-21T10:00:00Z');

const counterOf = (limit: CompiledLimit) => ({ limit, identity });

const limited = (algo: 'token-bucket' | 'gcra', rate: number, burst: number) =>
  compile({ algo, rate, interval: '10s', burst }, 'one');

const queue = (units: number) => compile({ ...five['leaky-bucket'], queue: units - 1 } as AlgorithmOptions, 'one');

const checkOf = (entries: [limit: CompiledLimit, cost: number][]): Check => ({
  entries: entries.map(([limit, cost]) => ({ limit, identity, cost })),
});

const PENALTY = 90 * SECOND;

const blocked = (ms: number) => ({ allowed: false, remaining: 0, retryAfterMs: ms, resetAfterMs: ms });

const sum = (values: number[]) => values.reduce((all, each) => all + each, 0);

/** A slice of 2 s. */
const slice = (from: number, count: number) => ({ start: start + from, end: start + from + 2000, count });

/** Nothing that a decision says is out of its bounds. */
function expectSound(limit: CompiledLimit, decision: StoreDecision): void {
  const { allowed, remaining, retryAfterMs, resetAfterMs, delayMs, quota } = decision;
  expect(quota).toBe(limit.quota);
  expect(remaining).toBeGreaterThanOrEqual(0);
  expect(remaining).toBeLessThanOrEqual(quota);
  expect(resetAfterMs).toBeGreaterThanOrEqual(0);
  expect(delayMs).toBeGreaterThanOrEqual(0);
  if (allowed) expect(retryAfterMs).toBe(0);
  else expect(retryAfterMs).toBeGreaterThan(0);
}

/** One thing that is done to one counter of a history. */
export const anyOperation = fc.record({
  kind: fc.constantFrom(
    'consume',
    'consume',
    'consume',
    'peek',
    'reserve',
    'penalize',
    'block',
    'unblock',
    'refund',
    'refund without a place',
    'renew',
    'reset',
  ),
  limit: fc.nat(2),
  identity: fc.nat(1),
  units: costShare,
  clock: clockStep,
  /** A share of the limit's window. */
  time: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 3, noNaN: true })),
});

export interface Taken extends Counter {
  readonly units: number;
  readonly ticket: number | undefined;
}

/** Limits for a history; the last one blocks whom it refuses. */
export const limitsOf = (options: readonly AlgorithmOptions[]): CompiledLimit[] =>
  options.map(
    (each, index) =>
      new CompiledLimit(each, {
        location: 'test',
        name: `${each.algo} ${index}`,
        blockFor: index === options.length - 1 ? 7_654_321 : 0,
      }),
  );

/** Does one thing, and says what was decided, if anything was. */
export async function perform(
  store: Store,
  { kind, limit: number, identity: who, units: share, time }: Omit<Operation, 'clock'>,
  { limits, taken, now }: { limits: readonly CompiledLimit[]; taken: Taken[]; now: number },
): Promise<StoreDecision | undefined> {
  const limit = limits[number % limits.length]!;
  const counter = { limit, identity: `id${who}` };
  const units = costOf(share, limit.quota);
  const ms = Math.round(time * limit.windowMs(now / 1000));
  switch (kind) {
    case 'consume':
    case 'peek':
    case 'reserve': {
      const decision =
        kind === 'reserve'
          ? await store.reserve({ ...counter, cost: units, maxWaitMs: ms })
          : await ask(store, limit, { ...counter, cost: units, peek: kind === 'peek' });
      if (decision.allowed && kind !== 'peek') taken.push({ ...counter, units, ticket: decision.ticket });
      return decision;
    }
    case 'penalize':
      if (limit.algorithm.name !== 'concurrency') await store.penalize({ ...counter, units });
      return undefined;
    case 'block':
      await store.block(counter, ms);
      return undefined;
    case 'unblock':
      await store.block(counter, 0);
      return undefined;
    case 'refund without a place':
      await store.refund([{ ...counter, units }]);
      return undefined;
    case 'refund': {
      const refund = taken.splice(Math.floor(share * taken.length), 1)[0];
      if (refund !== undefined) await store.refund([refund]);
      return undefined;
    }
    case 'renew': {
      const lease = taken.find(({ limit: of }) => of.algorithm.name === 'concurrency');
      if (lease?.ticket !== undefined) await store.renew({ ...lease, ticket: lease.ticket });
      return undefined;
    }
    default:
      await store.reset([counter]);
      return undefined;
  }
}
export type Operation = typeof anyOperation extends fc.Arbitrary<infer T> ? T : never;

/** What every store has to do besides checks. `make` makes one that asks the clock for the time. */
export function operationsContract(make: (clock: ManualClock) => Store): void {
  let clock: ManualClock;
  let store: Store;

  beforeEach(() => {
    clock = new ManualClock();
    at(0);
    store = make(clock);
  });
  afterEach(() => store.close());

  /** Milliseconds after the start. */
  function at(ms: number): void {
    clock.micros = Math.round((start + ms) * 1000);
  }

  const take = (limit: CompiledLimit, cost = 1) => ask(store, limit, { cost });
  /** What a check would say, but for the name that the next lease would get. */
  const peek = async (limit: CompiledLimit, cost = 1) => {
    const { ticket: _, chargedAt: _at, ...decision } = await ask(store, limit, { cost, peek: true });
    return decision;
  };
  const reserve = (limit: CompiledLimit, cost = 1, maxWaitMs = HOUR) =>
    store.reserve({ limit, identity, cost, maxWaitMs });
  const penalize = (limit: CompiledLimit, units: number) => store.penalize({ limit, identity, units });
  const block = (limit: CompiledLimit, ms: number) => store.block(counterOf(limit), ms);
  const unblock = (limit: CompiledLimit) => store.block(counterOf(limit), 0);
  /** Gives back what a decision took. */
  const giveBack = (limit: CompiledLimit, units: number, { ticket }: { ticket?: number }) =>
    store.refund([{ limit, identity, units, ticket }]);

  /** From here on, `cost` units fit after `ms`, and not a millisecond earlier. */
  async function expectToFitAfter(from: number, limit: CompiledLimit, ms: number, cost = 1): Promise<void> {
    await expect(peek(limit, cost)).resolves.toMatchObject({ allowed: false, retryAfterMs: ms });
    at(from + ms - 1);
    await expect(peek(limit, cost)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
    at(from + ms);
    await expect(peek(limit, cost)).resolves.toMatchObject({ allowed: true, retryAfterMs: 0 });
  }

  /** 5 are taken; of what follows, the units are there after 6 s and after 8 s. */
  async function reserved(algo: 'token-bucket' | 'gcra') {
    const limit = compile(five[algo]);
    await take(limit, 5);
    const [first, second] = [await reserve(limit, 3), await reserve(limit, 1)];
    expect([first.delayMs, second.delayMs]).toEqual([6000, 8000]);
    return { limit, first, second };
  }

  describe('reserve', () => {
    type Step = [ms: number, cost: number, delayMs: number | { refusedFor: number }, resetAfterMs: number];
    it.each<[name: string, options: AlgorithmOptions, steps: Step[]]>([
      [
        'token-bucket: 5 every 10 s',
        five['token-bucket'],
        [
          [0, 5, 0, 10_000],
          [0, 1, 2000, 12_000],
          [0, 2, 6000, 16_000],
          [1000, 1, 7000, 17_000],
          // Half a unit is there, and half of what was owed.
          [9000, 1, 1000, 11_000],
          [9000, 5, 11_000, 21_000],
          [30_000, 6, { refusedFor: Infinity }, 0],
          [31_000, 1, 0, 2000],
        ],
      ],
      [
        'gcra: 5 every 10 s',
        five.gcra,
        [
          [0, 5, 0, 10_000],
          [0, 1, 2000, 12_000],
          [0, 2, 6000, 16_000],
          [1000, 1, 7000, 17_000],
          [9000, 1, 1000, 11_000],
          [9000, 5, 11_000, 21_000],
          [30_000, 6, { refusedFor: Infinity }, 0],
          [31_000, 1, 0, 2000],
        ],
      ],
      [
        'gcra: 5 every 10 s, one at once',
        { ...five.gcra, burst: 1 } as AlgorithmOptions,
        [
          [0, 1, 0, 2000],
          [0, 1, 2000, 4000],
          [500, 1, 3500, 5500],
          [500, 2, { refusedFor: Infinity }, 5500],
          [6000, 1, 0, 2000],
        ],
      ],
      [
        'token-bucket: 5 at once every 10 s',
        atOnce,
        [
          [0, 5, 0, 10_000],
          [0, 1, 10_000, 20_000],
          [0, 4, 10_000, 20_000],
          [0, 1, 20_000, 30_000],
          [5000, 5, 25_000, 35_000],
          [10_000, 1, 20_000, 30_000],
          [29_999, 3, 1, 10_001],
          [30_000, 1, 10_000, 20_000],
        ],
      ],
      [
        'leaky-bucket: one every 2 s, 4 wait',
        five['leaky-bucket'],
        [
          [0, 1, 0, 2000],
          [0, 1, 2000, 4000],
          [0, 2, 6000, 8000],
          [1000, 1, 7000, 9000],
          [1000, 1, { refusedFor: 1000 }, 9000],
          [2000, 1, 8000, 10_000],
          [2000, 6, { refusedFor: Infinity }, 10_000],
          [20_000, 3, 4000, 6000],
        ],
      ],
    ])('%s', async (_, options, steps) => {
      const limit = compile(options);
      for (const [ms, cost, expected, resetAfterMs] of steps) {
        at(ms);
        const { remaining, ticket, source, chargedAt: _at, ...decision } = await reserve(limit, cost);
        const outcome =
          typeof expected === 'number'
            ? { allowed: true, delayMs: expected, retryAfterMs: 0 }
            : { allowed: false, delayMs: 0, retryAfterMs: expected.refusedFor };
        expect({ ms, cost, ...decision }).toEqual({
          ms,
          cost,
          ...outcome,
          resetAfterMs,
          limit: limit.name,
          quota: limit.quota,
        });
        expect(remaining).toBe((await peek(limit)).remaining);
        expect(ticket === undefined).toBe(!decision.allowed);
        expect(source).not.toBe('fallback');
      }
    });

    it.each(['token-bucket', 'gcra', 'leaky-bucket'] as const)(
      '%s: refuses what would be there later than the longest wait, and takes nothing',
      async (algo) => {
        const limit = compile(five[algo]);
        await take(limit, algo === 'leaky-bucket' ? 1 : 5);
        const before = await peek(limit);
        for (const longest of [0, 1999, 1999.999]) {
          const refused = { allowed: false, delayMs: 0, retryAfterMs: 2000, remaining: before.remaining };
          await expect(reserve(limit, 1, longest)).resolves.toMatchObject(refused);
        }
        expect(await peek(limit)).toEqual(before);
        await expect(reserve(limit, 1, 2000)).resolves.toMatchObject({ allowed: true, delayMs: 2000 });
      },
    );

    it.each(['token-bucket', 'gcra'] as const)(
      '%s: has what is reserved wait in one line with checks',
      async (algo) => {
        const limit = compile(five[algo]);
        await take(limit, 5);
        await expect(reserve(limit, 3)).resolves.toMatchObject({ delayMs: 6000, remaining: 0 });
        await expectToFitAfter(0, limit, 8000);
      },
    );

    it.each(['fixed-window', 'calendar-window', 'sliding-window', 'sliding-log', 'concurrency'] as const)(
      '%s: takes now or refuses, as a check does',
      async (algo) => {
        const limit = compile(five[algo]);
        await expect(reserve(limit, 3)).resolves.toMatchObject({ allowed: true, delayMs: 0, remaining: 2 });
        const looked = await peek(limit, 3);
        expect(looked).toMatchObject({ allowed: false, remaining: 2 });
        const { ticket: _, chargedAt: _at, ...refused } = await reserve(limit, 3);
        expect(refused).toEqual(looked);
        expect(await reserve(limit, 6)).toMatchObject({ allowed: false, retryAfterMs: Infinity });
        await expect(reserve(limit, 2, 0)).resolves.toMatchObject({ allowed: true, delayMs: 0, remaining: 0 });
      },
    );

    it.each(everyAlgorithm)('%s: never blocks', async (algo) => {
      const limit = blocking(five[algo], 90 * SECOND);
      const taken = await reserve(limit, 5);
      expect(taken).toMatchObject({ allowed: true });
      await expect(reserve(limit, 5, 0)).resolves.toMatchObject({ allowed: false });
      await giveBack(limit, 5, taken);
      await expect(peek(limit, 5)).resolves.toMatchObject({ allowed: true, remaining: 5, resetAfterMs: 0 });
    });

    it.each(everyAlgorithm)('%s: refuses who is blocked until then', async (algo) => {
      const limit = compile(five[algo]);
      await block(limit, HOUR);
      await expect(reserve(limit, 1, 2 * HOUR)).resolves.toMatchObject({
        allowed: false,
        remaining: 0,
        delayMs: 0,
        retryAfterMs: HOUR,
        resetAfterMs: HOUR,
      });
      await unblock(limit);
      await expect(peek(limit)).resolves.toMatchObject({ remaining: 5, resetAfterMs: 0 });
    });
  });

  describe('what is owed', () => {
    it.each(['token-bucket', 'gcra'] as const)('%s: goes with time, and is written by nobody else', async (algo) => {
      const limit = limited(algo, 5, 5);
      await reserve(limit, 5);
      await reserve(limit, 5);
      await reserve(limit, 5);
      for (const [ms, retryAfterMs] of [
        [0, 22_000],
        [7000, 15_000],
        [21_999, 1],
      ]) {
        at(ms!);
        await expect(take(limit)).resolves.toMatchObject({ allowed: false, remaining: 0, retryAfterMs });
      }
      at(22_000);
      await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 0, resetAfterMs: 10_000 });
    });

    // What is owed is owed under any quota, so under a smaller one it takes longer to be paid.
    it.each<['token-bucket' | 'gcra', rate: number, burst: number, retryAfterMs: number]>([
      ['token-bucket', 10, 5, 4000],
      ['token-bucket', 1, 5, 40_000],
      ['token-bucket', 7, 5, 5715],
      ['token-bucket', 5, 2, 14_000],
      // A larger bucket has to flow in.
      ['token-bucket', 5, 9, 8000],
      ['gcra', 10, 5, 4000],
      ['gcra', 1, 5, 40_000],
      ['gcra', 7, 5, 5715],
      ['gcra', 5, 2, 14_000],
      ['gcra', 5, 7, 4000],
    ])('%s: stays owed at a rate of %d and a burst of %d', async (algo, rate, burst, retryAfterMs) => {
      await reserve(limited(algo, 5, 5), 5);
      await reserve(limited(algo, 5, 5), 3);
      const changed = limited(algo, rate, burst);
      await expect(take(changed)).resolves.toMatchObject({ allowed: false, remaining: 0, retryAfterMs });
      at(1000);
      await expect(take(changed)).resolves.toMatchObject({ allowed: false, retryAfterMs: retryAfterMs - 1000 });
      at(0);
      await expectToFitAfter(0, changed, retryAfterMs);
    });

    it.each(['token-bucket', 'gcra', 'leaky-bucket'] as const)(
      '%s: stays owed as a penalty when the quota shrinks',
      async (algo) => {
        const sized = (units: number) =>
          compile(
            algo === 'leaky-bucket'
              ? { algo, rate: 5, interval: '10s', queue: units - 1 }
              : { algo, rate: 5, interval: '10s', burst: units },
            'one',
          );
        await take(sized(5), 5);
        await penalize(sized(5), 4);
        await expect(take(sized(2))).resolves.toMatchObject({ allowed: false, retryAfterMs: 16_000 });
        await expectToFitAfter(0, sized(2), 16_000);
      },
    );

    it.each(['token-bucket', 'gcra'] as const)(
      '%s: is the same after a look by other parameters, which writes nothing',
      async (algo) => {
        await reserve(limited(algo, 5, 5), 5);
        await reserve(limited(algo, 5, 5), 5);
        const before = await peek(limited(algo, 5, 5));
        await peek(limited(algo, 100, 2));
        expect(await peek(limited(algo, 5, 5))).toEqual(before);
      },
    );
  });

  describe('giving back what was reserved', () => {
    describe.each(['token-bucket', 'gcra'] as const)('%s', (algo) => {
      it('at the end: it had never been taken', async () => {
        const { limit, second } = await reserved(algo);
        await giveBack(limit, 1, second);
        await expectToFitAfter(0, limit, 8000);
      });

      it('in the middle: those behind keep what they were promised, so as much of it stays taken', async () => {
        const { limit, first } = await reserved(algo);
        await giveBack(limit, 3, first);
        // Of three units two come back: one is kept for whom waits behind.
        await expectToFitAfter(0, limit, 6000);
      });

      it('in the middle, less than is reserved behind: none comes back', async () => {
        const limit = compile(five[algo]);
        await take(limit, 5);
        const first = await reserve(limit, 2);
        await reserve(limit, 5);
        const before = await peek(limit);
        await giveBack(limit, 2, first);
        expect(await peek(limit)).toEqual(before);
      });

      it('from the end on: all comes back', async () => {
        const { limit, first, second } = await reserved(algo);
        await giveBack(limit, 1, second);
        await giveBack(limit, 3, first);
        await expect(peek(limit)).resolves.toMatchObject({ retryAfterMs: 2000, resetAfterMs: 10_000 });
      });

      it.each([6000, 7000, 8000])(
        'once its time has come, at %d ms: as much stays taken as in the middle',
        async (ms) => {
          const { limit, first } = await reserved(algo);
          at(ms);
          const { resetAfterMs } = await peek(limit);
          await giveBack(limit, 3, first);
          // Of three units two come back: the third has flowed off of them, or will for whom waits behind.
          await expect(peek(limit)).resolves.toMatchObject({ resetAfterMs: resetAfterMs - 4000 });
        },
      );

      it('of one that did not wait: none that others wait for', async () => {
        const limit = compile(five[algo]);
        const taken = await reserve(limit, 5);
        expect(taken).toMatchObject({ delayMs: 0 });
        await reserve(limit, 1);
        await giveBack(limit, 5, taken);
        await expect(peek(limit)).resolves.toMatchObject({ remaining: 3, resetAfterMs: 4000 });
        // When the one that waits uses its unit, the others are no more than there may be.
        at(2000);
        await expect(peek(limit)).resolves.toMatchObject({ remaining: 4 });
      });

      it('of a check that was charged at a known time: none that others wait for', async () => {
        const limit = compile(five[algo]);
        const [answers] = await store.check([{ entries: [{ limit, identity, cost: 5 }], refundable: true }]);
        await reserve(limit, 1);
        await store.refund([{ limit, identity, units: 5, chargedAt: answers![0]!.chargedAt }]);
        await expect(peek(limit)).resolves.toMatchObject({ remaining: 3, resetAfterMs: 4000 });
      });

      it.each([0, 54_000, 80_000])(
        'at %d ms: what was reserved behind does not act beside a whole burst',
        async (ms) => {
          const limit = compile({ algo, rate: 1000, interval: '1m' });
          await take(limit, 1000);
          const first = await reserve(limit, 900);
          const second = await reserve(limit, 900);
          expect([first.delayMs, second.delayMs]).toEqual([54_000, 108_000]);
          at(ms);
          await giveBack(limit, 900, first);
          at(108_000);
          expect((await peek(limit)).remaining).toBeLessThanOrEqual(100);
        },
      );

      it('more than was taken: never above the quota', async () => {
        const { limit, second } = await reserved(algo);
        await giveBack(limit, 1000, second);
        await expect(peek(limit)).resolves.toMatchObject({ remaining: 5, resetAfterMs: 0 });
      });

      it('as a part: what is not used of an estimate', async () => {
        const { limit, second } = await reserved(algo);
        await giveBack(limit, 1, second);
        const estimate = await reserve(limit, 4);
        expect(estimate.delayMs).toBe(14_000);
        await giveBack(limit, 3, estimate);
        await expect(peek(limit)).resolves.toMatchObject({ retryAfterMs: 10_000 });
      });
    });

    it('token-bucket at once: all that is there at the same time is in nobody’s way', async () => {
      const limit = compile(atOnce);
      await take(limit, 5);
      const first = await reserve(limit, 3);
      await reserve(limit, 2);
      await giveBack(limit, 3, first);
      await expect(reserve(limit, 3)).resolves.toMatchObject({ delayMs: 10_000 });
      await expect(reserve(limit, 1)).resolves.toMatchObject({ delayMs: 20_000 });
    });

    it('leaky-bucket: a place in the middle goes to the next, the last one makes the queue shorter', async () => {
      const limit = compile(five['leaky-bucket']);
      const joined = [];
      for (let i = 0; i < 5; i++) joined.push(await reserve(limit));
      expect(joined.map(({ delayMs }) => delayMs)).toEqual([0, 2000, 4000, 6000, 8000]);
      await giveBack(limit, 1, joined[2]!);
      await expect(reserve(limit, 1, 3999)).resolves.toMatchObject({ allowed: false, retryAfterMs: 4000 });
      await expect(reserve(limit)).resolves.toMatchObject({ allowed: true, delayMs: 4000 });
      await giveBack(limit, 1, joined[4]!);
      await expect(peek(limit)).resolves.toMatchObject({ remaining: 1, resetAfterMs: 8000 });
      await expect(reserve(limit)).resolves.toMatchObject({ allowed: true, delayMs: 8000 });
    });
  });

  describe('penalize', () => {
    /** When a unit fits: after 5 were taken and 3 charged as a penalty, and after as many as can be. */
    const waits: Record<(typeof algorithmNames)[number], [three: number, most: number]> = {
      'fixed-window': [10_000, 10_000],
      'calendar-window': [60_000, 60_000],
      'sliding-window': [11_000, 11_000],
      'sliding-log': [10_000, 10_000],
      'token-bucket': [8000, 12_000],
      'leaky-bucket': [8000, 12_000],
      gcra: [8000, 12_000],
    };

    describe.each(algorithmNames)('%s', (algo) => {
      const limit = compile(five[algo]);
      const [three, most] = waits[algo];

      it('charges what fits like a check', async () => {
        await penalize(limit, 2);
        const penalized = await peek(limit);
        await store.reset([counterOf(limit)]);
        await take(limit, 2);
        expect(penalized).toEqual(await peek(limit));
        expect(penalized).toMatchObject({ allowed: true, remaining: 3 });
      });

      it('charges what does not fit: it says to the millisecond when a unit fits again', async () => {
        await take(limit, 5);
        await penalize(limit, 3);
        await expect(take(limit)).resolves.toMatchObject({ allowed: false, remaining: 0, retryAfterMs: three });
        await expectToFitAfter(0, limit, three);
      });

      it('charges no more than one quota below nothing', async () => {
        await take(limit, 5);
        await penalize(limit, 5);
        const whole = await peek(limit);
        expect(whole).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: most });
        for (const units of [1, 5, 1_000_000_000]) {
          await penalize(limit, units);
          expect(await peek(limit)).toEqual(whole);
        }
        await expectToFitAfter(0, limit, most);
      });

      it('charges a fresh counter two quotas at most', async () => {
        await penalize(limit, 1_000_000_000);
        const penalized = await peek(limit);
        await store.reset([counterOf(limit)]);
        await penalize(limit, 5);
        await penalize(limit, 5);
        expect(await peek(limit)).toEqual(penalized);
        await expectToFitAfter(0, limit, most);
      });

      it('is ended by as many units given back', async () => {
        await take(limit, 5);
        await penalize(limit, 4);
        await store.refund([{ ...counterOf(limit), units: 4 }]);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: false, remaining: 0 });
        await store.refund([{ ...counterOf(limit), units: 2 }]);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: true, remaining: 2 });
        await store.refund([{ ...counterOf(limit), units: 1000 }]);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: true, remaining: 5, resetAfterMs: 0 });
        await expect(take(limit, 5)).resolves.toMatchObject({ allowed: true, remaining: 0 });
        await expect(take(limit)).resolves.toMatchObject({ allowed: false });
      });

      it('does not block', async () => {
        const limit = blocking(five[algo], HOUR);
        await take(limit, 5);
        await penalize(limit, 5);
        await expect(peek(limit)).resolves.toMatchObject({ retryAfterMs: most });
      });

      it('says exactly when a unit fits, for any parameters', async () => {
        await fc.assert(
          fc.asyncProperty(
            optionsOf[algo] as fc.Arbitrary<AlgorithmOptions>,
            fc.array(fc.tuple(costShare, costShare, fc.double({ min: 0, max: 0.6, noNaN: true })), {
              minLength: 1,
              maxLength: 4,
            }),
            async (options, steps) => {
              at(0);
              const limit = compile(options, 'any');
              await store.reset([counterOf(limit)]);
              for (const [cost, units, share] of steps) {
                await take(limit, costOf(cost, limit.quota));
                await penalize(limit, costOf(units, limit.quota));
                clock.advanceMs(share * limit.windowMs(clock.now() / 1000));
              }
              const now = clock.micros;
              const { allowed, remaining, retryAfterMs } = await peek(limit);
              expect(allowed).toBe(remaining > 0);
              if (allowed) return;
              clock.micros = now + (retryAfterMs - 1) * 1000;
              expect(await peek(limit)).toMatchObject({ allowed: false, retryAfterMs: 1 });
              clock.micros = now + retryAfterMs * 1000;
              expect(await peek(limit)).toMatchObject({ allowed: true });
            },
          ),
          { numRuns: RUNS },
        );
      });
    });

    it('sliding-log: a penalty counts for as long as a request of its time', async () => {
      const limit = compile(five['sliding-log']);
      await take(limit, 5);
      at(4000);
      await penalize(limit, 3);
      await expect(peek(limit, 2)).resolves.toMatchObject({ allowed: false, retryAfterMs: 6000 });
      await expect(peek(limit, 3)).resolves.toMatchObject({ allowed: false, retryAfterMs: 10_000 });
      at(10_000);
      await expect(peek(limit)).resolves.toMatchObject({ remaining: 2, resetAfterMs: 4000 });
    });

    describe('leaky-bucket, with places that were given back', () => {
      const limit = compile(five['leaky-bucket']);
      const fill = async () => {
        const joined = [];
        for (let i = 0; i < 5; i++) joined.push(await take(limit));
        return joined;
      };

      it('takes these first', async () => {
        const joined = await fill();
        await giveBack(limit, 1, joined[1]!);
        await penalize(limit, 1);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 2000 });
      });

      it('leaves none of them to those who owe', async () => {
        const joined = await fill();
        await giveBack(limit, 1, joined[1]!);
        await penalize(limit, 3);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 6000 });
      });

      it('charges no more than one quota below nothing', async () => {
        const joined = await fill();
        await giveBack(limit, 1, joined[1]!);
        for (let i = 0; i < 4; i++) {
          await penalize(limit, 1000);
          await expect(peek(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 12_000 });
        }
      });

      it('has what is given back settle the penalty before anyone gets a place', async () => {
        const joined = await fill();
        await penalize(limit, 2);
        await giveBack(limit, 1, joined[1]!);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 4000 });
        await giveBack(limit, 1, joined[2]!);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 2000 });
        await giveBack(limit, 1, joined[3]!);
        // The fourth one's place is free, and the fifth one still leaves after 8 s.
        await expect(take(limit)).resolves.toMatchObject({ allowed: true, delayMs: 6000 });
        await expect(take(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 2000 });
      });
    });

    it('leaky-bucket: says no more than is still to come of a large place when the queue gets shorter', async () => {
      const large = await take(queue(10), 5);
      await take(queue(10));
      await giveBack(queue(10), 5, large);
      at(7999);
      await expect(peek(queue(3))).resolves.toMatchObject({ allowed: true, quota: 3, remaining: 1 });
    });
  });

  describe('block', () => {
    describe.each(everyAlgorithm)('%s', (algo) => {
      const limit = compile(five[algo]);

      it('refuses a fresh counter exactly so long', async () => {
        await block(limit, 2500);
        const blocked = { allowed: false, remaining: 0, retryAfterMs: 2500, resetAfterMs: 2500, delayMs: 0 };
        await expect(peek(limit)).resolves.toMatchObject(blocked);
        await expect(take(limit)).resolves.toMatchObject(blocked);
        await expect(take(limit, 5)).resolves.toMatchObject(blocked);
        await expect(take(limit, 6)).resolves.toMatchObject({ ...blocked, retryAfterMs: Infinity });
        await expect(ask(store, limit, { identity: 'other' })).resolves.toMatchObject({ allowed: true, remaining: 4 });
        at(2499.999);
        await expect(take(limit)).resolves.toMatchObject({ ...blocked, retryAfterMs: 1, resetAfterMs: 1 });
        at(2500);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: true, remaining: 5, resetAfterMs: 0 });
        await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 4 });
      });

      it('keeps beneath it what was counted', async () => {
        await take(limit, 3);
        const before = await peek(limit);
        await block(limit, HOUR);
        await expect(take(limit)).resolves.toMatchObject({ remaining: 0, retryAfterMs: HOUR, resetAfterMs: HOUR });
        await unblock(limit);
        expect(await peek(limit)).toEqual(before);
        await block(limit, 1500);
        await expect(peek(limit)).resolves.toMatchObject({ retryAfterMs: 1500, resetAfterMs: before.resetAfterMs });
        at(1500);
        await expect(peek(limit)).resolves.toMatchObject({
          allowed: true,
          remaining: 2,
          resetAfterMs: before.resetAfterMs - 1500,
        });
      });

      it('lets what was counted run out beneath it', async () => {
        await take(limit, 5);
        await block(limit, HOUR);
        at(HOUR - 1);
        await expect(take(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1, resetAfterMs: 1 });
        at(HOUR);
        await expect(take(limit, 5)).resolves.toMatchObject({ allowed: true, remaining: 0 });
      });

      it('has units given back beneath it', async () => {
        const taken = await take(limit, 5);
        await block(limit, 1000);
        await giveBack(limit, 5, taken);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: false, remaining: 0, resetAfterMs: 1000 });
        await unblock(limit);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: true, remaining: 5, resetAfterMs: 0 });
      });

      it('ends no wait that is longer', async () => {
        await take(limit, 5);
        const { retryAfterMs, resetAfterMs } = await peek(limit);
        await block(limit, 1000);
        await expect(take(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs, resetAfterMs });
        await unblock(limit);
        await expect(take(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs, resetAfterMs });
      });

      it('begins anew when it is renewed, longer or shorter', async () => {
        await take(limit);
        await block(limit, 5000);
        at(1000);
        await block(limit, 10_000);
        await expect(take(limit)).resolves.toMatchObject({ retryAfterMs: 10_000 });
        at(10_999);
        await expect(take(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
        await block(limit, 500);
        await expect(take(limit)).resolves.toMatchObject({ retryAfterMs: 500 });
        at(11_498);
        await expect(take(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
        at(11_499);
        await expect(take(limit)).resolves.toMatchObject({ allowed: true });
      });

      it('is unblocked whether it was blocked or not', async () => {
        await unblock(limit);
        await expect(take(limit, 2)).resolves.toMatchObject({ allowed: true, remaining: 3 });
        await unblock(limit);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: true, remaining: 3 });
      });

      it('ends with a reset, and all that was counted', async () => {
        await take(limit, 4);
        await block(limit, DAY);
        await store.reset([counterOf(limit)]);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: true, remaining: 5, resetAfterMs: 0 });
      });

      it('lasts no longer than it was to when the clock is set back a little', async () => {
        await block(limit, 5000);
        at(-1000);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 5000 });
        await expect(take(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 5000, resetAfterMs: 5000 });
        at(3999);
        await expect(take(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
        at(4000);
        await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 4 });
      });

      it('lasts no longer than it was to when the clock is set back far', async () => {
        await take(limit, 5);
        await block(limit, 20 * 60_000);
        at(-1000 * DAY);
        await expect(take(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 20 * 60_000 });
        at(-1000 * DAY + 20 * 60_000 - 1);
        await expect(take(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
        at(-1000 * DAY + 20 * 60_000);
        await expect(take(limit, 5)).resolves.toMatchObject({ allowed: true, remaining: 0 });
      });

      it('does not come back with a clock that is set back once it was over and the counter was charged', async () => {
        await block(limit, 1000);
        at(1000);
        await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 4 });
        at(999);
        await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 3 });
      });

      it('has other limits of the check charged nothing', async () => {
        const other = compile({ algo: 'fixed-window', rate: 3, interval: '1m' }, 'other');
        await block(limit, 1000);
        const entries = [other, limit].map((each) => ({ limit: each, identity, cost: 1 }));
        await expect(store.check([{ entries }])).resolves.toMatchObject([
          [
            { allowed: true, remaining: 3 },
            { allowed: false, remaining: 0, retryAfterMs: 1000 },
          ],
        ]);
        await expect(peek(other)).resolves.toMatchObject({ remaining: 3 });
      });
    });
  });

  describe('blockFor', () => {
    describe.each(everyAlgorithm)('%s', (algo) => {
      const limit = blocking(five[algo], PENALTY);
      it('blocks with the first refusal, in the same call, and not longer with the next ones', async () => {
        await expect(take(limit, 5)).resolves.toMatchObject({ allowed: true, remaining: 0 });
        await expect(take(limit)).resolves.toMatchObject(blocked(PENALTY));
        for (const ms of [1, 30_000, 60_000, PENALTY - 1]) {
          at(ms);
          await expect(take(limit)).resolves.toMatchObject(blocked(PENALTY - ms));
        }
        at(PENALTY);
        await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 4 });
      });

      it('blocks those who would fit if they asked for less', async () => {
        await take(limit, 3);
        await expect(take(limit, 3)).resolves.toMatchObject(blocked(PENALTY));
        await expect(take(limit)).resolves.toMatchObject(blocked(PENALTY));
      });

      it('blocks who asks for more than ever fits', async () => {
        await expect(take(limit, 6)).resolves.toMatchObject({ ...blocked(PENALTY), retryAfterMs: Infinity });
        await expect(take(limit)).resolves.toMatchObject(blocked(PENALTY));
      });

      it('does not block who only looks', async () => {
        const taken = await take(limit, 5);
        const looked = await peek(limit);
        expect(looked.retryAfterMs).toBeLessThanOrEqual(60_000);
        expect(await peek(limit)).toEqual(looked);
        await giveBack(limit, 5, taken);
        await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 4 });
      });

      it('does not replace a block', async () => {
        await block(limit, 1000);
        await expect(take(limit)).resolves.toMatchObject(blocked(1000));
        at(1000);
        await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 4 });
      });

      it('leaves nothing when it is over, but what is still to come', async () => {
        const quick = blocking(five[algo], 1500);
        const waits = algo === 'leaky-bucket' ? 2000 : 1500;
        await take(quick, 5);
        const refused = await take(quick);
        expect(refused).toMatchObject({ allowed: false, retryAfterMs: algo === 'concurrency' ? 10_000 : waits });
        at(1499);
        await expect(take(quick)).resolves.toMatchObject({ allowed: false, retryAfterMs: refused.retryAfterMs - 1499 });
        at(waits);
        if (algo === 'concurrency') {
          await expect(take(quick)).resolves.toMatchObject({ allowed: false, retryAfterMs: 8500 });
          return;
        }
        await expect(take(quick)).resolves.toMatchObject({
          allowed: true,
          remaining: algo === 'leaky-bucket' ? 0 : 4,
          delayMs: algo === 'leaky-bucket' ? 8000 : 0,
        });
      });

      it('begins anew when it is unblocked', async () => {
        const taken = await take(limit, 3);
        await take(limit, 3);
        await unblock(limit);
        const left = algo === 'leaky-bucket' || algo === 'concurrency' ? 2 : 5;
        await expect(peek(limit)).resolves.toMatchObject({ allowed: true, remaining: left });
        // What was forgotten cannot be given back.
        await giveBack(limit, 3, taken);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: true, remaining: 5, resetAfterMs: 0 });
      });

      it('does not come back with a clock that is set back', async () => {
        await take(limit, 5);
        await take(limit);
        at(PENALTY);
        await take(limit);
        at(PENALTY - 1);
        await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 3 });
      });

      if (algo !== 'concurrency') {
        it('lets stand what is owed beyond the quota', async () => {
          await penalize(limit, 8);
          await take(limit);
          await unblock(limit);
          await expect(peek(limit)).resolves.toMatchObject(
            algo === 'leaky-bucket' ? { allowed: false, remaining: 0 } : { allowed: true, remaining: 2 },
          );
        });

        it('has a penalty count that is charged meanwhile', async () => {
          const quick = blocking(five[algo], 1000);
          await take(quick, 6);
          await penalize(quick, 3);
          at(1000);
          await expect(peek(quick)).resolves.toMatchObject({ allowed: true, remaining: 2 });
        });
      }

      it('holds at once for the next checks of the same call', async () => {
        const answers = (await store.check([5, 1, 5, 1].map((cost) => checkOf([[limit, cost]])))).flat();
        expect(answers).toMatchObject([
          { allowed: true, remaining: 0 },
          blocked(PENALTY),
          blocked(PENALTY),
          blocked(PENALTY),
        ]);
      });
    });

    it.each(['token-bucket', 'gcra'] as const)('%s: leaves units reserved that are still to come', async (algo) => {
      const limit = blocking(five[algo], 1000);
      await take(limit, 5);
      await expect(reserve(limit, 2)).resolves.toMatchObject({ allowed: true, delayMs: 4000 });
      await expect(take(limit, 5)).resolves.toMatchObject({ allowed: false, retryAfterMs: 4000 });
      at(3999);
      await expect(take(limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
      at(4000);
      await expect(take(limit, 5)).resolves.toMatchObject({ allowed: true, remaining: 0 });
    });

    it('calendar-window: keeps the windows that ended before', async () => {
      const limit = blocking({ algo: 'calendar-window', rate: 5, period: 'minute', retain: '1h' }, 1000);
      await take(limit, 4);
      at(60_000);
      await take(limit, 5);
      await take(limit);
      await expect(store.history(counterOf(limit))).resolves.toMatchObject([{ count: 4 }]);
      at(61_000);
      await take(limit, 2);
      await expect(store.history(counterOf(limit))).resolves.toMatchObject([{ count: 2 }, { count: 4 }]);
      at(120_000);
      await expect(store.history(counterOf(limit))).resolves.toMatchObject([{ count: 2 }, { count: 4 }]);
    });

    it('by hand leaves what was counted, by a refusal it does not', async () => {
      const limit = blocking(five['fixed-window'], 1000);
      await take(limit, 3);
      await block(limit, 1000);
      at(1000);
      await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 1 });
      await take(limit, 2);
      at(2000);
      await expect(take(limit)).resolves.toMatchObject({ allowed: true, remaining: 4 });
    });

    const [first, second] = ['first', 'second'].map((name) => blocking(five['fixed-window'], PENALTY, name));
    it.each([
      [0, 1],
      [1, 0],
    ])('of several limits only that which refused blocks (%d before %d)', async (...order) => {
      const inOrder = <T>(values: T[]) => order.map((index) => values[index]!);
      await take(first!, 5);
      const check = checkOf(
        inOrder([
          [first!, 1],
          [second!, 1],
        ]),
      );
      for (let i = 0; i < 2; i++) {
        const answers = await store.check([check]);
        expect(answers[0]).toMatchObject(
          inOrder([
            { allowed: false, retryAfterMs: PENALTY },
            { allowed: true, remaining: 5 },
          ]),
        );
      }
      await expect(take(second!)).resolves.toMatchObject({ allowed: true, remaining: 4 });
    });

    it('of several limits all that refused block', async () => {
      await take(first!, 5);
      await take(second!, 4);
      const answers = await store.check([
        checkOf([
          [first!, 1],
          [second!, 2],
        ]),
      ]);
      expect(answers).toMatchObject([[{ retryAfterMs: PENALTY }, { retryAfterMs: PENALTY }]]);
      await expect(peek(second!)).resolves.toMatchObject({ allowed: false, retryAfterMs: PENALTY });
    });

    it('of a shadow limit is reported, and nobody is refused', async () => {
      const shadow = blocking(five.gcra, PENALTY, 'shadow', true);
      const real = compile({ algo: 'fixed-window', rate: 9, interval: '10s' }, 'real');
      const check = checkOf([
        [shadow, 3],
        [real, 3],
      ]);
      await expect(store.check([check])).resolves.toMatchObject([[{ allowed: true }, { allowed: true, remaining: 6 }]]);
      await expect(store.check([check])).resolves.toMatchObject([
        [
          { allowed: false, remaining: 0, retryAfterMs: PENALTY },
          { allowed: true, remaining: 3 },
        ],
      ]);
      at(6000);
      await expect(store.check([check])).resolves.toMatchObject([
        [
          { allowed: false, remaining: 0, retryAfterMs: PENALTY - 6000 },
          { allowed: true, remaining: 0 },
        ],
      ]);
    });
  });

  describe('the slices of a sliding window', () => {
    const limit = compile({ algo: 'sliding-window', rate: 20, interval: '10s', slices: 5 });
    const counts = async () => (await store.history(counterOf(limit))).map(({ count }) => count);
    const used = async () => 20 - (await peek(limit)).remaining;

    it('are none that hold anything before the first request', async () => {
      expect(await counts()).toEqual([0, 0, 0, 0, 0, 0]);
    });

    it('come the newest first, each where it begins and ends', async () => {
      for (const [ms, cost] of [
        [0, 1],
        [2500, 2],
        [3999.999, 3],
        [8000, 4],
      ] as const) {
        at(ms);
        await take(limit, cost);
      }
      expect(await store.history(counterOf(limit))).toEqual([
        slice(8000, 4),
        slice(6000, 0),
        slice(4000, 0),
        slice(2000, 5),
        slice(0, 1),
        slice(-2000, 0),
      ]);
    });

    it('add up to what is used, also when the ring has wrapped', async () => {
      for (let i = 0; i < 40; i++) {
        at(i * 1300);
        await take(limit, 1 + (i % 3));
        const slices = await store.history(counterOf(limit));
        expect(sum(slices.map(({ count }) => count))).toBe(await used());
        expect(slices.map((slice) => slice.start)).toEqual(
          slices.map((_, age) => start + (Math.floor((i * 1300) / 2000) - age) * 2000),
        );
        expect(slices.every((slice) => slice.end - slice.start === 2000)).toBe(true);
      }
    });

    it('are empty after a long pause, and then hold what comes', async () => {
      await take(limit, 7);
      at(DAY);
      expect(await counts()).toEqual([0, 0, 0, 0, 0, 0]);
      await take(limit, 3);
      expect(await counts()).toEqual([3, 0, 0, 0, 0, 0]);
      at(DAY + 11_999);
      expect(await counts()).toEqual([0, 0, 0, 0, 0, 3]);
      at(DAY + 12_000);
      expect(await counts()).toEqual([0, 0, 0, 0, 0, 0]);
    });

    it('hold penalties, less what is given back of the oldest', async () => {
      await take(limit, 7);
      at(4000);
      await take(limit, 3);
      await penalize(limit, 15);
      expect(await counts()).toEqual([18, 0, 7, 0, 0, 0]);
      await store.refund([{ ...counterOf(limit), units: 8 }]);
      expect(await counts()).toEqual([17, 0, 0, 0, 0, 0]);
    });

    it('can be read while it is blocked', async () => {
      await take(limit, 7);
      await block(limit, HOUR);
      expect(await counts()).toEqual([7, 0, 0, 0, 0, 0]);
    });

    it('write nothing when they are read by other parameters', async () => {
      await take(limit, 7);
      const finer = compile({ algo: 'sliding-window', rate: 20, interval: '10s', slices: 20 }, limit.name);
      const slices = await store.history(counterOf(finer));
      expect(slices).toHaveLength(21);
      expect(sum(slices.map(({ count }) => count))).toBe(7);
      expect(await counts()).toEqual([7, 0, 0, 0, 0, 0]);
    });
  });

  describe('any history', () => {
    const options = fc.array(anyOptions, { minLength: 1, maxLength: 3 });
    const history = fc.array(anyOperation, { minLength: 1, maxLength: 25 });

    it('leaves between nothing and the quota, and a fresh counter in the end', async () => {
      await fc.assert(
        fc.asyncProperty(options, history, async (limitOptions, operations) => {
          at(0);
          let latest = clock.micros;
          const limits = limitsOf(limitOptions);
          const taken: Taken[] = [];
          const counters = limits.flatMap((limit) => [0, 1].map((who) => ({ limit, identity: `id${who}` })));
          await store.reset(counters);
          for (const operation of operations) {
            const limit = limits[operation.limit % limits.length]!;
            clock.advanceMs(operation.clock * limit.windowMs(clock.now() / 1000));
            latest = Math.max(latest, clock.micros);
            const decision = await perform(store, operation, { limits, taken, now: clock.now() });
            if (decision !== undefined) expectSound(limit, decision);
            const looks = counters.map((counter) => ask(store, counter.limit, { ...counter, peek: true }));
            for (const [index, look] of (await Promise.all(looks)).entries()) expectSound(counters[index]!.limit, look);
          }
          for (const counter of counters) {
            // Not before what has happened: a look does not write down that the clock was set back.
            clock.micros = latest;
            const { resetAfterMs } = await ask(store, counter.limit, { ...counter, peek: true });
            clock.advanceMs(resetAfterMs);
            expect(
              await ask(store, counter.limit, { ...counter, cost: counter.limit.quota, peek: true }),
            ).toMatchObject({ allowed: true, remaining: counter.limit.quota, resetAfterMs: 0 });
          }
        }),
        { numRuns: RUNS },
      );
    });
  });
}
