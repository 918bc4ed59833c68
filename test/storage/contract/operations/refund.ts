import { describe, expect, it } from '@jest/globals';
import { compile } from '../../../support/limits/stores.js';
import { five, atOnce, identity } from './limits.js';
import type { OperationsStage } from './stage.js';

export function refundContract(stage: OperationsStage): void {
  const { at, take, peek, reserve, giveBack, expectToFitAfter, reserved } = stage;

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
        const [answers] = await stage.store.check([{ entries: [{ limit, identity, cost: 5 }], refundable: true }]);
        await reserve(limit, 1);
        await stage.store.refund([{ limit, identity, units: 5, chargedAt: answers![0]!.chargedAt }]);
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
}
