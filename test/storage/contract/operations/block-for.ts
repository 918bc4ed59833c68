import { describe, expect, it } from '@jest/globals';
import { compile } from '../../../support/limits/stores.js';
import { everyAlgorithm, five, blocking, counterOf, checkOf, PENALTY, blocked } from './limits.js';
import type { OperationsStage } from './stage.js';

export function blockForContract(stage: OperationsStage): void {
  const { at, take, peek, reserve, penalize, block, unblock, giveBack } = stage;

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
        const answers = (await stage.store.check([5, 1, 5, 1].map((cost) => checkOf([[limit, cost]])))).flat();
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
      await expect(stage.store.history(counterOf(limit))).resolves.toMatchObject([{ count: 4 }]);
      at(61_000);
      await take(limit, 2);
      await expect(stage.store.history(counterOf(limit))).resolves.toMatchObject([{ count: 2 }, { count: 4 }]);
      at(120_000);
      await expect(stage.store.history(counterOf(limit))).resolves.toMatchObject([{ count: 2 }, { count: 4 }]);
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
        const answers = await stage.store.check([check]);
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
      const answers = await stage.store.check([
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
      await expect(stage.store.check([check])).resolves.toMatchObject([
        [{ allowed: true }, { allowed: true, remaining: 6 }],
      ]);
      await expect(stage.store.check([check])).resolves.toMatchObject([
        [
          { allowed: false, remaining: 0, retryAfterMs: PENALTY },
          { allowed: true, remaining: 3 },
        ],
      ]);
      at(6000);
      await expect(stage.store.check([check])).resolves.toMatchObject([
        [
          { allowed: false, remaining: 0, retryAfterMs: PENALTY - 6000 },
          { allowed: true, remaining: 0 },
        ],
      ]);
    });
  });
}
