import { describe, expect, it } from '@jest/globals';
import type { Lesson, RateLesson } from '../../../../lib/testing/store/index.js';
import { compile } from '../../../support/limits/stores.js';
import { blocked, counterOf, HOUR } from './limits.js';
import type { OperationsStage } from './stage.js';

const MINUTE = 60_000;

/** The rate of a limit that has none of its own. */
export function learnRateContract(stage: OperationsStage): void {
  const { at, take, peek, learn } = stage;
  const limit = compile({ algo: 'gcra', rate: 60, interval: MINUTE, burst: 1 }, 'learned');

  const rateOf = (told: Partial<RateLesson> = {}, lesson: Partial<Lesson> = {}) => {
    const rate = { accepted: 0, refused: false, largest: 1, slowestMs: MINUTE, ...told };
    return learn(limit, { window: undefined, ...lesson, rate });
  };
  const aMinute = (rate: number, burst = Math.ceil(rate / 240)) => ({ rate, intervalMs: MINUTE, burst });
  /** So many units go out at once and are accepted, from `ms` on. */
  async function accept(units: number, ms: number) {
    at(ms);
    await take(limit);
    return rateOf({ accepted: units });
  }

  describe('the rate that is learnt', () => {
    it('begins with the largest cost of a call a second', async () => {
      expect(await rateOf()).toEqual(aMinute(60));
      expect(await rateOf({ largest: 5 })).toEqual(aMinute(60, 5));
      await stage.store.reset([counterOf(limit)]);
      expect(await rateOf({ largest: 50 })).toEqual(aMinute(3000, 50));
    });

    it('doubles every second that is used', async () => {
      expect(await accept(1, 0)).toEqual(aMinute(120));
      expect(await accept(2, 1000)).toEqual(aMinute(240));
      expect(await accept(4, 2000)).toEqual(aMinute(480));
    });

    it('does not grow while it is not used', async () => {
      expect(await rateOf({ accepted: 1 })).toEqual(aMinute(60));
    });

    it('is halved once for all calls that were on their way, and then grows slowly', async () => {
      await accept(15, 0);
      expect(await rateOf({ refused: true })).toEqual(aMinute(480));
      at(200);
      expect(await rateOf({ refused: true }, { ageMs: 250 })).toEqual(aMinute(480));
      expect(await rateOf({ accepted: 5 }, { ageMs: 250 })).toEqual(aMinute(480));
      // A sixteenth of 480 in a second in which 8 are accepted.
      expect(await accept(8, 5000)).toEqual(aMinute(510));
      expect(await rateOf({ refused: true })).toEqual(aMinute(255));
    });

    it('pauses after refusals that do not say how long, twice as long each time', async () => {
      let now = 0;
      for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
        at(now);
        await rateOf({ refused: true });
        await expect(take(limit)).resolves.toMatchObject(blocked(seconds * 1000));
        now += seconds * 1000;
      }
      expect(await rateOf()).toEqual(aMinute(30));
      await accept(1, now);
      await rateOf({ refused: true });
      await expect(take(limit)).resolves.toMatchObject(blocked(1000));
    });

    it.each([0, 500, 5000])('does not pause where a refusal says %d ms', async (blockMs) => {
      await rateOf({ refused: true }, { blockMs });
      expect(await peek(limit)).toMatchObject(blockMs === 0 ? { allowed: true } : blocked(blockMs));
    });

    it.each([
      [1, MINUTE, 1],
      [7, MINUTE, 7],
      [1, 5000, 12],
    ])('of calls of %d at most never waits longer than %d ms', async (largest, slowestMs, rate) => {
      for (let second = 0; second < 20; second++) {
        at(second * 1000);
        await rateOf({ refused: true, largest, slowestMs }, { blockMs: 0 });
      }
      expect(await rateOf({ largest, slowestMs })).toEqual(aMinute(rate, largest));
    });

    it('is not held up by what was used at a faster one', async () => {
      const fast = compile({ algo: 'gcra', rate: 100, interval: 10_000, burst: 100 }, 'learned');
      await take(fast, 100);
      const refused = { accepted: 0, refused: true, largest: 1, slowestMs: MINUTE };
      expect(await learn(fast, { window: undefined, blockMs: 0, rate: refused })).toEqual(aMinute(30));
      const slow = compile({ algo: 'gcra', rate: 30, interval: MINUTE, burst: 1 }, 'learned');
      expect(await peek(slow)).toMatchObject({ allowed: false, retryAfterMs: 2000 });
    });

    describe("is that of the upstream's headers", () => {
      const inWindow = { window: 7, remaining: 90, resetAfterMs: 5000 };

      it('as soon as they tell it', async () => {
        const told = { quota: 100, windowMs: 10_000 };
        expect(await rateOf(told, inWindow)).toEqual({ rate: 100, intervalMs: 10_000, burst: 100 });
        expect(await rateOf()).toEqual({ rate: 100, intervalMs: 10_000, burst: 100 });
      });

      it('with the longest time until a reset where they tell no window', async () => {
        const told = { quota: 100 };
        expect(await rateOf(told, inWindow)).toMatchObject({ intervalMs: 5000 });
        expect(await rateOf(told, { ...inWindow, resetAfterMs: 9000 })).toMatchObject({ intervalMs: 9000 });
        expect(await rateOf(told, { ...inWindow, resetAfterMs: 3000 })).toMatchObject({ intervalMs: 9000 });
        expect(await rateOf({ quota: 50 }, inWindow)).toEqual({ rate: 50, intervalMs: 5000, burst: 50 });
      });

      it('spread evenly where units come back little by little', async () => {
        expect(await rateOf({ quota: 600, windowMs: 30_000 }, { remaining: 90 })).toEqual(aMinute(1200));
      });

      it('unless the upstream refuses before it is used up', async () => {
        await rateOf({ quota: 100, windowMs: 10_000 }, inWindow);
        await rateOf({ refused: true }, { remaining: 0, blockMs: 0 });
        expect(await rateOf()).toMatchObject({ rate: 100, burst: 100 });
        await rateOf({ refused: true }, { blockMs: 0 });
        expect(await rateOf()).toEqual(aMinute(300));
        await accept(16, 60_000);
        expect(await rateOf()).toEqual(aMinute(360));
        await accept(1000, 120_000);
        expect(await rateOf()).toMatchObject({ rate: 100, burst: 100 });
      });

      it('unless no call would fit it', async () => {
        expect(await rateOf({ quota: 4, windowMs: HOUR, largest: 5 }, inWindow)).toEqual(aMinute(300, 5));
        await rateOf({ quota: 6, windowMs: HOUR, largest: 5 }, inWindow);
        expect(await rateOf({ largest: 7 })).toEqual(aMinute(7, 7));
      });
    });

    it('is forgotten after an hour, and by reset', async () => {
      await accept(100, 0);
      at(HOUR - 1);
      expect(await rateOf()).toMatchObject({ rate: 6060 });
      at(2 * HOUR - 2);
      expect(await rateOf()).toMatchObject({ rate: 6060 });
      at(3 * HOUR - 2);
      expect(await rateOf()).toMatchObject({ rate: 60 });
      await accept(100, 3 * HOUR);
      await stage.store.reset([counterOf(limit)]);
      expect(await rateOf()).toMatchObject({ rate: 60 });
    });

    it('is no lower after the clock was set back', async () => {
      at(HOUR);
      await accept(1, HOUR);
      await rateOf({ refused: true }, { blockMs: 0 });
      expect(await accept(1, 0)).toMatchObject({ rate: 63 });
    });
  });
}
