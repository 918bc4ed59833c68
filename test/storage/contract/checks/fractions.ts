import { describe, expect, it } from '@jest/globals';
import { ask } from '../../../support/limits/stores.js';
import { bucket } from './limits.js';
import type { CheckStage } from './stage.js';

export function fractionsContract(stage: CheckStage): void {
  const { at } = stage;

  describe('fractions', () => {
    it.each(['token-bucket', 'gcra'] as const)('%s: ten looks refill as much as one', async (algo) => {
      const [often, once] = [{ identity: 'often' }, { identity: 'once' }];
      for (const each of [often, once]) await ask(stage.store, bucket(algo), { ...each, cost: 100 });
      for (let ms = 1; ms <= 9; ms++) {
        at(ms);
        await ask(stage.store, bucket(algo), { ...often, cost: 50 });
      }
      at(10);
      const answers = [await ask(stage.store, bucket(algo), often), await ask(stage.store, bucket(algo), once)];
      expect(answers[0]).toEqual(answers[1]);
      expect(answers[0]).toMatchObject({ allowed: true, remaining: 6 });
    });

    it.each(['token-bucket', 'gcra'] as const)(
      '%s: none is lost when every whole unit is taken at once',
      async (algo) => {
        const limit = bucket(algo);
        await ask(stage.store, limit, { cost: 100 });
        let taken = 0;
        for (let ms = 1; ms <= 1000; ms++) {
          at(ms);
          const { remaining } = await ask(stage.store, limit, { peek: true });
          if (remaining > 0) expect((await ask(stage.store, limit, { cost: remaining })).allowed).toBe(true);
          taken += remaining;
        }
        expect(taken).toBe(700);
      },
    );
  });
}
