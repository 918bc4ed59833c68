import { describe, expect, it } from '@jest/globals';
import { algorithmNames } from '../../../support/limits/arbitraries.js';
import { ask, compile } from '../../../support/limits/stores.js';
import { five, MINUTE, DAY, yes, no, slidingWindow } from './limits.js';
import type { CheckStage } from './stage.js';

export function clockStepsContract(stage: CheckStage): void {
  const { at, play } = stage;

  describe('a clock that is set back', () => {
    it('by less than an interval: time stands still', () =>
      play({ algo: 'fixed-window', rate: 5, interval: '10s' }, [
        [0, 3, yes(2, 10_000)],
        [-4000, 2, yes(0, 14_000)],
        [-2000, 1, no(0, 12_000, 12_000)],
        [10_000, 1, yes(4, 10_000)],
      ]));

    it('by more, from the last charge: a fixed window begins anew with what it counted', () =>
      play({ algo: 'fixed-window', rate: 5, interval: '10s' }, [
        [0, 1, yes(4, 10_000)],
        [9000, 3, yes(1, 1000)],
        [-6000, 2, no(1, 10_000, 10_000)],
        [-1000, 2, no(1, 5000, 5000)],
        [-1000, 1, yes(0, 5000)],
        [3999, 1, no(0, 1, 1)],
        [4000, 1, yes(4, 10_000)],
      ]));

    it('by more, from the last charge: a calendar window hands over what it counted', () =>
      play({ algo: 'calendar-window', rate: 5, period: 'minute' }, [
        [1000, 1, yes(4, 59_000)],
        [50_000, 3, yes(1, 10_000)],
        [-9000, 2, no(1, 69_000, 69_000)],
        [-10_000, 2, no(1, 10_000, 10_000)],
        [-10_000, 1, yes(0, 10_000)],
        [0, 1, yes(4, 60_000)],
      ]));

    it('by slightly more than an interval: a sliding window sees it, however long its slices are', async () => {
      for (const [slices, waitMs] of [
        [1, 119_501],
        [2, 89_501],
        [60, 60_501],
      ] as const) {
        at(60_500);
        await stage.store.reset([{ limit: slidingWindow(slices), identity: 'ip:203.0.113.7' }]);
        await ask(stage.store, slidingWindow(slices, '1m'), { cost: 3 });
        at(499);
        const refused = { allowed: false, remaining: 0 };
        await expect(ask(stage.store, slidingWindow(slices, '1m'))).resolves.toMatchObject({
          ...refused,
          retryAfterMs: waitMs,
        });
        at(499 + waitMs - 1);
        await expect(ask(stage.store, slidingWindow(slices, '1m'))).resolves.toMatchObject({
          ...refused,
          retryAfterMs: 1,
        });
        at(499 + waitMs);
        await expect(ask(stage.store, slidingWindow(slices, '1m'))).resolves.toMatchObject({
          allowed: true,
          remaining: 2,
        });
      }
    });

    it.each(algorithmNames)('far, %s: what was counted is what happens now', async (algo) => {
      const limit = compile(five[algo]);
      await ask(stage.store, limit, { cost: 5 });
      at(-1000 * DAY);
      const { allowed, retryAfterMs } = await ask(stage.store, limit);
      expect(allowed).toBe(false);
      expect(retryAfterMs).toBeLessThanOrEqual(algo === 'calendar-window' ? MINUTE : 11_000);
      at(-1000 * DAY + retryAfterMs - 1);
      await expect(ask(stage.store, limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
      at(-1000 * DAY + retryAfterMs);
      await expect(ask(stage.store, limit)).resolves.toMatchObject({ allowed: true });
    });
  });
}
