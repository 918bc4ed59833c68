import { describe, expect, it } from '@jest/globals';
import { algorithmNames } from '../../../support/limits/arbitraries.js';
import { compile } from '../../../support/limits/stores.js';
import { five, MINUTE, named } from './limits.js';
import type { CheckStage } from './stage.js';

export function severalLimitsContract(stage: CheckStage): void {
  const { at } = stage;

  describe('several limits', () => {
    const identity = 'user:42';
    it('1,000 a minute and 10,000 an hour', async () => {
      const minute = named({ algo: 'sliding-log', rate: 1000, interval: '1m' }, 'minute');
      const hour = named({ algo: 'sliding-window', rate: 10_000, interval: '1h' }, 'hour');
      const charge = async (cost: number) => {
        const entries = [minute, hour].map((limit) => ({ limit, identity, cost }));
        const [decisions] = await stage.store.check([{ entries }]);
        return decisions!.map(({ allowed, remaining }) => [allowed, remaining]);
      };
      for (let i = 0; i < 10; i++) {
        at(i * MINUTE);
        expect(await charge(600)).toEqual([
          [true, 400],
          [true, 10_000 - 1000 * i - 600],
        ]);
        expect(await charge(600)).toEqual([
          [false, 400],
          [i < 9, 10_000 - 1000 * i - 600],
        ]);
        await charge(400);
      }
      at(10 * MINUTE);
      expect(await charge(1)).toEqual([
        [true, 1000],
        [false, 0],
      ]);
    });

    it('charges none if one refuses, wherever it stands', async () => {
      const limits = algorithmNames.map((algo) => named(five[algo], algo));
      const narrow = named({ algo: 'fixed-window', rate: 1, interval: '10s' }, 'narrow');
      for (const position of [0, 3, limits.length]) {
        const entries = limits.toSpliced(position, 0, narrow).map((limit) => ({ limit, identity, cost: 1 }));
        await stage.store.check([{ entries }]);
        const [before] = await stage.store.check([{ entries, peek: true }]);
        const [refused] = await stage.store.check([{ entries }]);
        expect(refused!.map(({ allowed }) => allowed)).toEqual(entries.map(({ limit }) => limit !== narrow));
        const [after] = await stage.store.check([{ entries, peek: true }]);
        expect(after).toEqual(before);
        await stage.store.reset(entries);
      }
    });

    it('decides many checks of one call one after the other', async () => {
      const limit = compile({ algo: 'sliding-log', rate: 1000, interval: '1h' });
      const entries = [{ limit, identity, cost: 1 }];
      const answers = (await stage.store.check(Array.from({ length: 1200 }, () => ({ entries })))).flat();
      expect(answers.map(({ allowed }) => allowed)).toEqual(Array.from({ length: 1200 }, (_, i) => i < 1000));
      expect(answers.map(({ remaining }) => remaining)).toEqual(
        Array.from({ length: 1200 }, (_, i) => Math.max(0, 999 - i)),
      );
    });

    it('decides the checks of one call each for itself', async () => {
      const limit = compile(five.gcra);
      const other = compile(five['fixed-window']);
      const checks = [
        { entries: [{ limit, identity: 'a', cost: 3 }] },
        {
          entries: [
            { limit, identity: 'b', cost: 5 },
            { limit: other, identity: 'b', cost: 1 },
          ],
        },
        {
          entries: [
            { limit, identity: 'a', cost: 3 },
            { limit: other, identity: 'a', cost: 1 },
          ],
        },
        { entries: [{ limit, identity: 'a', cost: 2 }], peek: true },
        { entries: [{ limit, identity: 'a', cost: 2 }] },
      ];
      const answers = await stage.store.check(checks);
      expect(answers.map((each) => each.map(({ allowed }) => allowed))).toEqual([
        [true],
        [true, true],
        [false, true],
        [true],
        [true],
      ]);
      expect(answers[2]![1]).toMatchObject({ remaining: 5 });
      expect(answers[4]).toMatchObject([{ remaining: 0 }]);
      expect(await stage.store.check([])).toEqual([]);
    });
  });
}
