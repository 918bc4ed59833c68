import { describe, expect, it } from '@jest/globals';
import type { AlgorithmOptions } from '../../../../lib/index.js';
import { compile } from '../../../support/limits/stores.js';
import { SECOND, HOUR, everyAlgorithm, five, atOnce, blocking, limited } from './limits.js';
import type { OperationsStage } from './stage.js';

export function reserveContract(stage: OperationsStage): void {
  const { at, take, peek, reserve, penalize, block, unblock, giveBack, expectToFitAfter } = stage;

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
}
