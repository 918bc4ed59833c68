import { describe, expect, it } from '@jest/globals';
import type { AlgorithmOptions } from '../../../../lib/index.js';
import { ask } from '../../../support/limits/stores.js';
import { one, hourly, carrying } from './limits.js';
import type { CheckStage } from './stage.js';

/** Units that were left under another quota are carried over once. */
export function carryOverContract(stage: CheckStage): void {
  const { at } = stage;

  describe('what is left of another quota', () => {
    it.each(['token-bucket', 'gcra', 'leaky-bucket'] as const)(
      '%s: scales with it, parts of a unit, too',
      async (algo) => {
        const limit = (rate: number): AlgorithmOptions =>
          algo === 'leaky-bucket' ? { algo, rate, interval: '1h', queue: rate - 1 } : { algo, rate, interval: '1h' };
        await ask(stage.store, one(limit(3)), { cost: 2 });
        // 0.8 of a unit flow in 16 minutes: 1.8 of 3 are left.
        at(16 * 60_000);
        const more = carrying(limit(60), 'proportional', 3);
        await expect(ask(stage.store, more, { peek: true })).resolves.toMatchObject({ remaining: 36 });
        await expect(ask(stage.store, more, { cost: 36 })).resolves.toMatchObject({ allowed: true, remaining: 0 });
      },
    );

    it.each(['proportional', 'additive'] as const)(
      '%s: under a smaller one what is owed stays, as those find it who still know the larger one',
      async (mode) => {
        const old = one({ ...hourly, rate: 60 });
        const smaller = carrying(hourly, mode, 60);
        await ask(stage.store, old, { cost: 60 });
        for (let i = 0; i < 3; i++) {
          await expect(ask(stage.store, smaller)).resolves.toMatchObject({ allowed: false, remaining: 0 });
          await expect(ask(stage.store, old)).resolves.toMatchObject({ allowed: false, remaining: 0 });
        }
        await expect(ask(stage.store, old, { peek: true })).resolves.toMatchObject({ resetAfterMs: 3_600_000 });
      },
    );

    it('is carried over once, whoever charges or refuses meanwhile', async () => {
      const old = one(hourly);
      const larger = carrying({ ...hourly, rate: 60 }, 'proportional', 3);
      await ask(stage.store, old, { cost: 2 });
      for (let i = 0; i < 3; i++) {
        await expect(ask(stage.store, larger, { cost: 21 })).resolves.toMatchObject({
          allowed: false,
          remaining: 20,
        });
        await expect(ask(stage.store, old)).resolves.toMatchObject({ allowed: false });
      }
    });
  });
}
