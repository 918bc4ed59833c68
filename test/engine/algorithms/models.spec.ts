import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

import { MemoryStore } from '../../../lib/index.js';
import {
  algorithmNames,
  costOf,
  costShare,
  forwardStep,
  optionsOf,
  type RateOptions,
} from '../../support/limits/arbitraries.js';
import { expectEqual, propertyRuns } from '../../support/limits/property-runs.js';
import { ask, compile, ManualClock, tickOf } from '../../support/limits/stores.js';
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

type History = typeof steps extends fc.Arbitrary<infer H> ? H : never;

/** Intervals of a few microseconds, too: then the clock often stands right where something begins or ends. */
const tinyInterval = fc.option(
  fc.integer({ min: 1, max: 40 }).map((micros) => micros / 1000),
  { freq: 1 },
);

/** Options of rates that are counted in milliseconds, since microseconds would pass whole numbers. */
const coarseOptions = fc
  .record({
    algo: fc.constantFrom('token-bucket' as const, 'gcra' as const, 'leaky-bucket' as const),
    rate: fc.constantFrom(1009, 4999),
    units: fc.integer({ min: 150, max: 200 }),
    interval: fc.constant('1y'),
  })
  .map(
    ({ units, ...options }): RateOptions =>
      ({ ...options, ...(options.algo === 'leaky-bucket' ? { queue: units } : { burst: units }) }) as RateOptions,
  );

async function decidesAsItsModel(options: RateOptions, history: History): Promise<void> {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock: clock.now });
  const limit = compile(options);
  const model = modelOf(options, BigInt(tickOf(limit)));
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
}

describe('MemoryStore decides as a naive model does, on any history of a clock that goes forward', () => {
  it.each(algorithmNames)('%s', async (algo) => {
    const property = fc.asyncProperty(
      optionsOf[algo] as fc.Arbitrary<RateOptions>,
      tinyInterval,
      steps,
      (random, tiny, history) =>
        decidesAsItsModel(
          tiny !== null && 'interval' in random ? ({ ...random, interval: tiny } as RateOptions) : random,
          history,
        ),
    );
    await fc.assert(property, { numRuns: RUNS });
  });

  it('limits that are counted in milliseconds', async () => {
    const coarse = fc.asyncProperty(coarseOptions, steps, async (options, history) => {
      expect(BigInt(tickOf(compile(options)))).toBe(1000n);
      await decidesAsItsModel(options, history);
    });
    await fc.assert(coarse, { numRuns: Math.ceil(RUNS / 3) });
  });
});
