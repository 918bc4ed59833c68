import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { AlgorithmOptions } from '../../../../lib/index.js';
import { algorithmNames, costOf, costShare, optionsOf } from '../../../support/limits/arbitraries.js';
import { compile } from '../../../support/limits/stores.js';
import { RUNS, HOUR, five, blocking, counterOf, queue } from './limits.js';
import type { OperationsStage } from './stage.js';

export function penalizeContract(stage: OperationsStage): void {
  const { at, take, peek, penalize, giveBack, expectToFitAfter } = stage;

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
        await stage.store.reset([counterOf(limit)]);
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
        await stage.store.reset([counterOf(limit)]);
        await penalize(limit, 5);
        await penalize(limit, 5);
        expect(await peek(limit)).toEqual(penalized);
        await expectToFitAfter(0, limit, most);
      });

      it('is ended by as many units given back', async () => {
        await take(limit, 5);
        await penalize(limit, 4);
        await stage.store.refund([{ ...counterOf(limit), units: 4 }]);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: false, remaining: 0 });
        await stage.store.refund([{ ...counterOf(limit), units: 2 }]);
        await expect(peek(limit)).resolves.toMatchObject({ allowed: true, remaining: 2 });
        await stage.store.refund([{ ...counterOf(limit), units: 1000 }]);
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
              await stage.store.reset([counterOf(limit)]);
              for (const [cost, units, share] of steps) {
                await take(limit, costOf(cost, limit.quota));
                await penalize(limit, costOf(units, limit.quota));
                stage.clock.advanceMs(share * limit.windowMs(stage.clock.now() / 1000));
              }
              const now = stage.clock.micros;
              const { allowed, remaining, retryAfterMs } = await peek(limit);
              expect(allowed).toBe(remaining > 0);
              if (allowed) return;
              stage.clock.micros = now + (retryAfterMs - 1) * 1000;
              expect(await peek(limit)).toMatchObject({ allowed: false, retryAfterMs: 1 });
              stage.clock.micros = now + retryAfterMs * 1000;
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
}
