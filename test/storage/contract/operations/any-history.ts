import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anyOptions } from '../../../support/limits/arbitraries.js';
import { ask } from '../../../support/limits/stores.js';
import { anyOperation, type Taken, limitsOf, perform } from './history.js';
import { RUNS, expectSound } from './limits.js';
import type { OperationsStage } from './stage.js';

export function anyHistoryContract(stage: OperationsStage): void {
  const { at } = stage;

  describe('any history', () => {
    const options = fc.array(anyOptions, { minLength: 1, maxLength: 3 });
    const history = fc.array(anyOperation, { minLength: 1, maxLength: 25 });

    it('leaves between nothing and the quota, and a fresh counter in the end', async () => {
      await fc.assert(
        fc.asyncProperty(options, history, async (limitOptions, operations) => {
          at(0);
          let latest = stage.clock.micros;
          const limits = limitsOf(limitOptions);
          const taken: Taken[] = [];
          const counters = limits.flatMap((limit) => [0, 1].map((who) => ({ limit, identity: `id${who}` })));
          await stage.store.reset(counters);
          for (const operation of operations) {
            const limit = limits[operation.limit % limits.length]!;
            stage.clock.advanceMs(operation.clock * limit.windowMs(stage.clock.now() / 1000));
            latest = Math.max(latest, stage.clock.micros);
            const decision = await perform(stage.store, operation, { limits, taken, now: stage.clock.now() });
            if (decision !== undefined) expectSound(limit, decision);
            const looks = counters.map((counter) => ask(stage.store, counter.limit, { ...counter, peek: true }));
            for (const [index, look] of (await Promise.all(looks)).entries()) expectSound(counters[index]!.limit, look);
          }
          for (const counter of counters) {
            // Not before what has happened: a look does not write down that the clock was set back.
            stage.clock.micros = latest;
            const { resetAfterMs } = await ask(stage.store, counter.limit, { ...counter, peek: true });
            stage.clock.advanceMs(resetAfterMs);
            expect(
              await ask(stage.store, counter.limit, { ...counter, cost: counter.limit.quota, peek: true }),
            ).toMatchObject({ allowed: true, remaining: counter.limit.quota, resetAfterMs: 0 });
          }
        }),
        { numRuns: RUNS },
      );
    });
  });
}
