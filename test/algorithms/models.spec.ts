import { describe, it } from '@jest/globals';
import fc from 'fast-check';

import type { CompiledLimit } from '../../lib/limits/compiled-limit.js';
import type { Scale } from '../../lib/algorithms/scale.js';
import { MemoryStore } from '../../lib/stores/memory/memory.store.js';
import { algorithmNames, costOf, costShare, forwardStep, optionsOf, type RateOptions } from '../support/arbitraries.js';
import { expectEqual, propertyRuns } from '../support/property-runs.js';
import { ask, compile, ManualClock } from '../support/stores.js';
import { modelOf } from './models.js';

const RUNS = propertyRuns(300);

/** The clock goes forward by a share of the window, or right to the end of the last wait, or to a millisecond before it. */
const steps = fc.array(
  fc.record({
    clock: fc.oneof({ weight: 5, arbitrary: forwardStep }, fc.constantFrom('wait', 'almost', 'reset', 1, 0.5, 0.1)),
    cost: costShare,
  }),
  { minLength: 1, maxLength: 30 },
);

/** Intervals of a few microseconds, too: then the clock often stands right where something begins or ends. */
const tinyInterval = fc.option(
  fc.integer({ min: 1, max: 40 }).map((micros) => micros / 1000),
  { freq: 1 },
);

/** Microseconds of a tick: 1, or 1,000 where microseconds would be too fine. */
function tickOf({ parameters }: CompiledLimit): bigint {
  return BigInt('scale' in parameters ? (parameters.scale as Scale).tick : 1);
}

describe('MemoryStore decides as a naive model does, on any history of a clock that goes forward', () => {
  it.each(algorithmNames)('%s', async (algo) => {
    const property = fc.asyncProperty(
      optionsOf[algo] as fc.Arbitrary<RateOptions>,
      tinyInterval,
      steps,
      async (random, tiny, history) => {
        const options = tiny !== null && 'interval' in random ? ({ ...random, interval: tiny } as RateOptions) : random;
        const clock = new ManualClock();
        const store = new MemoryStore({ clock: clock.now });
        const limit = compile(options);
        const model = modelOf(options, tickOf(limit));
        let wait = 0;
        let reset = 0;
        for (const step of history) {
          if (step.clock === 'wait') clock.advanceMs(wait);
          else if (step.clock === 'almost') clock.advanceMs(Math.max(0, wait - 1));
          else if (step.clock === 'reset') clock.advanceMs(reset);
          else clock.advanceMs(Number(step.clock) * limit.windowMs(clock.now() / 1000));
          const cost = costOf(step.cost, limit.quota);
          const decision = await ask(store, limit, { cost });
          const { allowed, remaining, delayMs } = decision;
          expectEqual({ allowed, remaining, delayMs }, model(BigInt(clock.now()), BigInt(cost)));
          wait = Number.isFinite(decision.retryAfterMs) ? decision.retryAfterMs : 0;
          reset = decision.resetAfterMs;
        }
        await store.close();
      },
    );
    await fc.assert(property, { numRuns: RUNS });
  });
});
