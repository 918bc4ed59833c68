import { describe, expect, it } from '@jest/globals';
import type { AlgorithmOptions } from '../../../../lib/index.js';
import { algorithmNames } from '../../../support/limits/arbitraries.js';
import { ask, compile } from '../../../support/limits/stores.js';
import { five, sized } from './limits.js';
import type { CheckStage } from './stage.js';

export function everyAlgorithmContract(stage: CheckStage): void {
  const { at } = stage;

  describe.each(algorithmNames)('%s', (algo) => {
    it('does not count refusals: an eager client recovers', async () => {
      const limit = compile(five[algo]);
      await ask(stage.store, limit, { cost: 5 });
      const { retryAfterMs } = await ask(stage.store, limit);
      for (let ms = 0; ms < retryAfterMs; ms += retryAfterMs / 20) {
        at(ms);
        await expect(ask(stage.store, limit)).resolves.toMatchObject({ allowed: false });
      }
      at(retryAfterMs);
      await expect(ask(stage.store, limit)).resolves.toMatchObject({ allowed: true });
    });

    it.each([500, 1900, 0.007])('has intervals of %d ms', async (interval) => {
      if (algo === 'calendar-window') return;
      const others = { algo, rate: 1, interval } as AlgorithmOptions;
      const limit = compile(algo === 'leaky-bucket' ? ({ ...others, queue: 0 } as AlgorithmOptions) : others);
      await expect(ask(stage.store, limit)).resolves.toMatchObject({ allowed: true });
      at(interval - 0.001);
      await expect(ask(stage.store, limit)).resolves.toMatchObject({
        allowed: false,
        retryAfterMs: expect.any(Number),
      });
      // A slice counts until none of it is in the window.
      at(algo === 'sliding-window' ? interval * 1.1 + 0.001 : interval);
      await expect(ask(stage.store, limit)).resolves.toMatchObject({ allowed: true });
    });

    it('has more than a thousand units a second', async () => {
      const options = { ...five[algo], rate: 20_000 } as AlgorithmOptions;
      if ('interval' in options) options.interval = '1s';
      if ('queue' in options) options.queue = 19_999;
      const limit = compile(options);
      await expect(ask(stage.store, limit, { cost: 19_999 })).resolves.toMatchObject({ allowed: true, remaining: 1 });
      await expect(ask(stage.store, limit, { cost: 2 })).resolves.toMatchObject({ allowed: false });
      await expect(ask(stage.store, limit)).resolves.toMatchObject({ allowed: true, remaining: 0 });
      if (!['token-bucket', 'gcra', 'leaky-bucket'].includes(algo)) return;
      at(1);
      await expect(ask(stage.store, limit, { cost: 20 })).resolves.toMatchObject({ allowed: true, remaining: 0 });
    });

    it('gives units back, and never more than were taken', async () => {
      const limit = compile(five[algo]);
      const counter = { limit, identity: 'ip:203.0.113.7' };
      await stage.store.refund([{ ...counter, units: 1 }]);
      const { ticket } = await ask(stage.store, limit, { cost: 4 });
      await expect(ask(stage.store, limit, { cost: 3 })).resolves.toMatchObject({ allowed: false });
      await stage.store.refund([{ ...counter, units: 2, ticket }]);
      await expect(ask(stage.store, limit, { cost: 3, peek: true })).resolves.toMatchObject({
        allowed: true,
        remaining: 3,
      });
      await stage.store.refund([{ ...counter, units: 100 }]);
      const fresh = { allowed: true, remaining: 5, resetAfterMs: 0 };
      await expect(ask(stage.store, limit, { peek: true })).resolves.toMatchObject(fresh);
      await expect(ask(stage.store, limit, { cost: 6 })).resolves.toMatchObject({ allowed: false });
    });

    it('keeps what it counted when more or less is allowed from now on', async () => {
      await ask(stage.store, sized(algo, 5), { cost: 4 });
      // A token bucket has room for more, which flows in; what it lacks is the same in all others.
      const left = algo === 'token-bucket' ? 1 : 6;
      await expect(ask(stage.store, sized(algo, 10), { peek: true })).resolves.toMatchObject({
        remaining: left,
        quota: 10,
      });
      await expect(ask(stage.store, sized(algo, 5), { peek: true })).resolves.toMatchObject({ remaining: 1 });
      await expect(ask(stage.store, sized(algo, 3))).resolves.toMatchObject({ allowed: false, remaining: 0 });
      // Whoever looks, what is used stays used.
      await expect(ask(stage.store, sized(algo, 10), { peek: true })).resolves.toMatchObject({ remaining: left });
    });
  });
}
