import { describe, expect, it } from '@jest/globals';
import { ask } from '../../../support/limits/stores.js';
import { atOnceContract } from './at-once.js';
import { carryOverContract } from './carry-over.js';
import { one, aMinute, fixedWindow, slidingLog, slidingWindow, tenIn } from './limits.js';
import type { CheckStage } from './stage.js';

export function changedParametersContract(stage: CheckStage): void {
  const { at } = stage;

  describe('parameters that change on a live counter', () => {
    it('fixed-window: a shorter interval ends the window earlier, a longer one not later', async () => {
      await ask(stage.store, fixedWindow('10s'));
      await expect(ask(stage.store, fixedWindow('4s'))).resolves.toMatchObject({ allowed: false, retryAfterMs: 4000 });
      await expect(ask(stage.store, fixedWindow('1m'))).resolves.toMatchObject({
        allowed: false,
        retryAfterMs: 10_000,
      });
    });

    it.each(['token-bucket', 'gcra', 'leaky-bucket'] as const)(
      '%s: debts stay debts at any rate and size',
      async (algo) => {
        const limit = (rate: number, units: number) =>
          one(
            algo === 'leaky-bucket'
              ? { algo, rate, interval: '10s', queue: units - 1 }
              : { algo, rate, interval: '10s', burst: units },
          );
        await ask(stage.store, limit(10, 10), { cost: 8 });
        for (const units of [10, 5]) {
          const remaining = units === 10 ? 2 : 0;
          await expect(ask(stage.store, limit(1, units), { peek: true })).resolves.toMatchObject({
            remaining,
            resetAfterMs: 80_000,
          });
        }
        // What a token bucket has more room for flows in.
        await expect(ask(stage.store, limit(1, 20), { peek: true })).resolves.toMatchObject(
          algo === 'token-bucket' ? { remaining: 2, resetAfterMs: 180_000 } : { remaining: 12, resetAfterMs: 80_000 },
        );
        // A refusal keeps what was made of the debt, or its wait would begin anew each time.
        await expect(ask(stage.store, limit(1, 5), { cost: 2 })).resolves.toMatchObject({
          allowed: false,
          retryAfterMs: 50_000,
        });
        await expect(ask(stage.store, limit(1, 10), { peek: true })).resolves.toMatchObject({ remaining: 2 });
        at(49_999);
        await expect(ask(stage.store, limit(1, 5), { cost: 2 })).resolves.toMatchObject({
          allowed: false,
          retryAfterMs: 1,
        });
        at(50_000);
        await expect(ask(stage.store, limit(1, 5), { cost: 2 })).resolves.toMatchObject({ allowed: true });
        await expect(ask(stage.store, limit(1, 10), { peek: true })).resolves.toMatchObject({ remaining: 5 });
      },
    );

    it.each(['token-bucket', 'gcra'] as const)(
      '%s: a refusal by a smaller burst makes no room for a larger one',
      async (algo) => {
        const limit = (burst: number) => one({ algo, rate: 1, interval: '1s', burst });
        const [small, large] = [limit(10), limit(100)];
        let allowed = 0;
        for (let ms = 0; ms < 30_000; ms += 100) {
          at(ms);
          await ask(stage.store, small);
          for (const cost of [50, 10, 1]) if ((await ask(stage.store, large, { cost })).allowed) allowed += cost;
        }
        expect(allowed).toBeLessThanOrEqual(100 + 30);
      },
    );

    it.each(['token-bucket', 'gcra'] as const)(
      '%s: a refusal by finer ticks makes no room within a coarse one',
      async (algo) => {
        const [fine, coarse] = [one({ algo, rate: 1, interval: 0.007 }), one({ algo, rate: 1099, interval: '1y' })];
        at(0.789);
        await ask(stage.store, coarse, { cost: 1099 });
        await expect(ask(stage.store, fine)).resolves.toMatchObject({ allowed: false, remaining: 0 });
        await expect(ask(stage.store, coarse, { peek: true })).resolves.toMatchObject({ remaining: 0 });
      },
    );

    it('token-bucket: a bucket that grew fills at its rate, also if it was refused and nobody came meanwhile', async () => {
      const minute = 60_000;
      await ask(stage.store, aMinute(2), { cost: 2 });
      await expect(ask(stage.store, aMinute(100), { cost: 50 })).resolves.toMatchObject({
        allowed: false,
        remaining: 0,
        retryAfterMs: 50 * minute,
        resetAfterMs: 100 * minute,
      });
      for (const ms of [2 * minute, 17 * minute, 50 * minute - 1]) {
        at(ms);
        const wait = 50 * minute - ms;
        await expect(ask(stage.store, aMinute(100), { cost: 50 })).resolves.toMatchObject({ retryAfterMs: wait });
      }
      at(50 * minute);
      await expect(ask(stage.store, aMinute(100), { cost: 50 })).resolves.toMatchObject({
        allowed: true,
        remaining: 0,
      });
      // It has not grown once more for who saw it small meanwhile.
      await expect(ask(stage.store, aMinute(2))).resolves.toMatchObject({ allowed: false });
      await expect(ask(stage.store, aMinute(100), { peek: true })).resolves.toMatchObject({
        resetAfterMs: 100 * minute,
      });
    });

    carryOverContract(stage);

    it.each(['token-bucket', 'gcra', 'leaky-bucket'] as const)(
      '%s: scales what is owed in whole numbers, to the millisecond',
      async (algo) => {
        const limit = (rate: number) =>
          one(
            algo === 'leaky-bucket'
              ? { algo, rate, interval: '1m', queue: 19 }
              : { algo, rate, interval: '1m', burst: 20 },
          );
        await ask(stage.store, limit(7), { cost: 20 });
        // 7 / 3 units have flowed off.
        at(20_000);
        for (const [rate, resetAfterMs] of [
          [1, 1_060_000],
          [2, 530_000],
          [4, 265_000],
          [8, 132_500],
          [16, 66_250],
        ] as const) {
          await expect(ask(stage.store, limit(rate), { peek: true })).resolves.toMatchObject({ resetAfterMs });
        }
      },
    );

    atOnceContract(stage);

    it('sliding-log: a shorter window forgets earlier', async () => {
      for (const ms of [0, 4000, 8000]) {
        at(ms);
        await ask(stage.store, slidingLog('10s'));
      }
      await expect(ask(stage.store, slidingLog('5s'), { peek: true })).resolves.toMatchObject({ remaining: 1 });
      await expect(ask(stage.store, slidingLog('10s'))).resolves.toMatchObject({ allowed: false, retryAfterMs: 2000 });
    });

    it('sliding-window: other slices hold what the old ones held', async () => {
      await ask(stage.store, slidingWindow(10));
      at(5000);
      await ask(stage.store, slidingWindow(10));
      for (const slices of [1, 3, 20, 1000]) {
        await expect(ask(stage.store, slidingWindow(slices), { peek: true })).resolves.toMatchObject({ remaining: 1 });
      }
      at(16_000);
      await expect(ask(stage.store, slidingWindow(20), { peek: true })).resolves.toMatchObject({ remaining: 3 });
    });

    it('sliding-window: a longer interval brings back nothing that has left, and keeps what has not', async () => {
      await ask(stage.store, tenIn('10s'), { cost: 6 });
      at(9500);
      await ask(stage.store, tenIn('10s'));
      at(12_000);
      await expect(ask(stage.store, tenIn('10s'), { peek: true })).resolves.toMatchObject({ remaining: 9 });
      await expect(ask(stage.store, tenIn('1m'), { peek: true })).resolves.toMatchObject({ remaining: 9 });
      // The unit counts as one of the second before 10 s, and so of the slice of 6 s that ends at 12 s.
      const refused = { allowed: false, remaining: 9, retryAfterMs: 60_000 };
      await expect(ask(stage.store, tenIn('1m'), { cost: 10 })).resolves.toMatchObject(refused);
      at(30_000);
      await expect(ask(stage.store, tenIn('10s'), { peek: true })).resolves.toMatchObject({ remaining: 10 });
      await expect(ask(stage.store, tenIn('1m'), { cost: 10 })).resolves.toMatchObject({
        ...refused,
        retryAfterMs: 42_000,
      });
      at(71_999);
      await expect(ask(stage.store, tenIn('1m'), { cost: 10 })).resolves.toMatchObject({ ...refused, retryAfterMs: 1 });
      at(72_000);
      await expect(ask(stage.store, tenIn('1m'), { cost: 10 })).resolves.toMatchObject({ allowed: true });
    });

    it('sliding-window: fewer and longer slices bring back nothing that has left', async () => {
      await ask(stage.store, slidingWindow(10), { cost: 2 });
      at(5000);
      await ask(stage.store, slidingWindow(10));
      at(11_000);
      for (const slices of [10, 1, 2, 3]) {
        await expect(ask(stage.store, slidingWindow(slices), { peek: true })).resolves.toMatchObject({ remaining: 2 });
      }
    });

    it.each<[ms: number, slices: number, otherMs: number, otherSlices: number]>([
      [10_000, 7, 10_000, 10],
      [10_000, 1, 10_000, 10],
      [10_000, 3, 11_000, 4],
      [1000, 10, 60_000, 10],
      [1000, 1, 60_000, 7],
      [60_000, 1, 1000, 10],
    ])(
      'sliding-window: of %i ms in %i and %i ms in %i slices that refuse in turn, none keeps alive what counts',
      async (...[ms, slices, otherMs, otherSlices]) => {
        const limits = [slidingWindow(slices, ms), slidingWindow(otherSlices, otherMs)];
        at(700);
        await ask(stage.store, limits[0]!, { cost: 3 });
        const end = 700 + Math.max(ms, otherMs) + ms / slices + otherMs / otherSlices;
        let allowed = false;
        for (let time = 711; time < end + 333 && !allowed; time += 333) {
          at(time);
          for (const limit of limits) allowed ||= (await ask(stage.store, limit, { cost: 3 })).allowed;
        }
        expect(allowed).toBe(true);
      },
    );
  });
}
