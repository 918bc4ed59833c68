import { describe, expect, it } from '@jest/globals';
import { compile } from '../../../support/limits/stores.js';
import { HOUR, DAY, start, counterOf, sum, slice } from './limits.js';
import type { OperationsStage } from './stage.js';

export function slicesContract(stage: OperationsStage): void {
  const { at, take, peek, penalize, block } = stage;

  describe('the slices of a sliding window', () => {
    const limit = compile({ algo: 'sliding-window', rate: 20, interval: '10s', slices: 5 });
    const counts = async () => (await stage.store.history(counterOf(limit))).map(({ count }) => count);
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
      expect(await stage.store.history(counterOf(limit))).toEqual([
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
        const slices = await stage.store.history(counterOf(limit));
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
      await stage.store.refund([{ ...counterOf(limit), units: 8 }]);
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
      const slices = await stage.store.history(counterOf(finer));
      expect(slices).toHaveLength(21);
      expect(sum(slices.map(({ count }) => count))).toBe(7);
      expect(await counts()).toEqual([7, 0, 0, 0, 0, 0]);
    });
  });
}
