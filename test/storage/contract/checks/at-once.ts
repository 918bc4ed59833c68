import { describe, expect, it } from '@jest/globals';
import { ask } from '../../../support/limits/stores.js';
import { one, atOnce } from './limits.js';
import type { CheckStage } from './stage.js';

/** A bucket that gets all tokens at once changes its rate, interval and refill. */
export function atOnceContract(stage: CheckStage): void {
  const { at, peekAfter } = stage;

  describe('token-bucket, all tokens at once', () => {
    it('has none before the interval is over, which goes on at another rate', async () => {
      await ask(stage.store, atOnce(1000, '1h'), { cost: 1000 });
      const minute = 60_000;
      expect(await peekAfter(30 * minute, atOnce(2000, '1h', 1000))).toEqual([0, 30 * minute]);
      expect(await peekAfter(30 * minute, atOnce(2000, '1h'))).toEqual([0, 30 * minute]);
      await expect(ask(stage.store, atOnce(2000, '1h'), { cost: 2000 })).resolves.toMatchObject({
        allowed: false,
        remaining: 0,
        retryAfterMs: 30 * minute,
      });
      at(60 * minute - 1);
      await expect(ask(stage.store, atOnce(2000, '1h'))).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
      at(60 * minute);
      await expect(ask(stage.store, atOnce(2000, '1h'), { cost: 2000 })).resolves.toMatchObject({ allowed: true });
    });

    it('has none of an interval that is not over when the new one is shorter', async () => {
      await ask(stage.store, atOnce(6000, '1m'), { cost: 6000 });
      const shorter = atOnce(100, '1s', 6000);
      expect(await peekAfter(59_300, shorter)).toEqual([0, 700]);
      await expect(ask(stage.store, shorter, { cost: 101 })).resolves.toMatchObject({ retryAfterMs: 1700 });
      expect(await peekAfter(59_999, shorter)).toEqual([0, 1]);
      expect(await peekAfter(60_000, shorter)).toEqual([100, 0]);
      expect(await peekAfter(61_000, shorter)).toEqual([200, 0]);
    });

    it('has what came at the ends of intervals that are over', async () => {
      await ask(stage.store, atOnce(10, '10s', 100), { cost: 100 });
      // 30 came, and the fourth interval has begun 5 s ago.
      expect(await peekAfter(35_000, atOnce(7, '20s', 100))).toEqual([30, 0]);
      await expect(ask(stage.store, atOnce(7, '20s', 100), { cost: 31 })).resolves.toMatchObject({
        retryAfterMs: 15_000,
      });
    });

    it('begins an interval when tokens flowed evenly before, and flows from now on when they did not', async () => {
      const evenly = one({ algo: 'token-bucket', rate: 10, interval: '10s' });
      await ask(stage.store, evenly, { cost: 10 });
      at(4500);
      await expect(ask(stage.store, atOnce(10, '10s'), { cost: 5 })).resolves.toMatchObject({
        allowed: false,
        remaining: 4,
        retryAfterMs: 10_000,
      });
      at(9500);
      await expect(ask(stage.store, evenly, { cost: 5 })).resolves.toMatchObject({
        allowed: false,
        remaining: 4,
        retryAfterMs: 500,
      });
    });
  });
}
