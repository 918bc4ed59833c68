import { describe, expect, it } from '@jest/globals';
import { ask, compile } from '../../../support/limits/stores.js';
import { HOUR, DAY, everyAlgorithm, five, identity, counterOf } from './limits.js';
import type { OperationsStage } from './stage.js';

export function blockContract(stage: OperationsStage): void {
  const { at, take, peek, block, unblock, giveBack } = stage;

  describe('block', () => {
    describe.each(everyAlgorithm)('%s', (algo) => {
      const limit = compile(five[algo]);

      it('refuses a fresh counter exactly so long', async () => {
        expect(await stage.store.blockedFor!(counterOf(limit))).toBe(0);
        await block(limit, 2500);
        expect(await stage.store.blockedFor!(counterOf(limit))).toBe(2500);
        const blocked = { allowed: false, remaining: 0, retryAfterMs: 2500, resetAfterMs: 2500, delayMs: 0 };
        await expect(peek(limit)).resolves.toMatchObject(blocked);
        await expect(take(limit)).resolves.toMatchObject(blocked);
        await expect(take(limit, 5)).resolves.toMatchObject(blocked);
        await expect(take(limit, 6)).resolves.toMatchObject({ ...blocked, retryAfterMs: Infinity });
        await expect(ask(stage.store, limit, { identity: 'other' })).resolves.toMatchObject({
          allowed: true,
          remaining: 4,
        });
        at(2499.999);
        await expect(take(limit)).resolves.toMatchObject({ ...blocked, retryAfterMs: 1, resetAfterMs: 1 });
        expect(await stage.store.blockedFor!(counterOf(limit))).toBe(1);
        at(2500);
        expect(await stage.store.blockedFor!(counterOf(limit))).toBe(0);
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
        await stage.store.reset([counterOf(limit)]);
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
        await expect(stage.store.check([{ entries }])).resolves.toMatchObject([
          [
            { allowed: true, remaining: 3 },
            { allowed: false, remaining: 0, retryAfterMs: 1000 },
          ],
        ]);
        await expect(peek(other)).resolves.toMatchObject({ remaining: 3 });
      });
    });
  });
}
