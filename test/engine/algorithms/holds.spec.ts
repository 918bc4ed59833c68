import { describe, it } from '@jest/globals';
import fc from 'fast-check';
import { type AlgorithmOptions, MemoryStore } from '../../../lib/index.js';
import type { Refund, StoreDecision } from '../../../lib/testing/store/index.js';
import { budgetOptions, costOf, costShare, forwardStep } from '../../support/limits/arbitraries.js';
import { holdOptions } from '../../support/limits/hold-arbitraries.js';
import { expectEqual, propertyRuns } from '../../support/limits/property-runs.js';
import { ask, chargeOf, compile, ManualClock } from '../../support/limits/stores.js';
import { budgetModel } from './models.js';

const RUNS = propertyRuns(80);

const steps = fc.array(
  fc.record({
    clock: fc.oneof(
      { weight: 3, arbitrary: fc.constant(0) },
      { weight: 3, arbitrary: forwardStep },
      fc.constantFrom('wait', 'almost'),
    ),
    kind: fc.constantFrom('reserve', 'reserve', 'consume', 'settle'),
    cost: costShare,
    actual: fc.double({ min: 0, max: 1, noNaN: true }),
    which: fc.nat(20),
  }),
  { minLength: 1, maxLength: 30 },
);

interface Step {
  readonly clock: number | 'wait' | 'almost';
  readonly kind: string;
  readonly cost: number;
  readonly actual: number;
  readonly which: number;
}

/** Plays a history. What was reserved is settled at a share of itself, or of thrice as much. */
async function play(
  options: AlgorithmOptions,
  history: readonly Step[],
  most: number,
  told: {
    decided(
      now: number,
      cost: number,
      isHeld: boolean,
      decision: StoreDecision,
      store: MemoryStore,
    ): Promise<void> | void;
    settled(now: number, number: number, actual: number): void;
  },
): Promise<void> {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock: clock.now });
  const limit = compile(options);
  const identity = 'ip:203.0.113.7';
  const held: Refund[] = [];
  let wait = 0;
  try {
    for (const { clock: step, kind, cost: share, actual, which } of history) {
      if (step === 'wait') clock.advanceMs(wait);
      else if (step === 'almost') clock.advanceMs(Math.max(0, wait - 1));
      else clock.advanceMs(step * limit.windowMs(clock.now() / 1000));
      const cost = costOf(share, limit.quota);
      if (kind === 'settle') {
        if (held.length === 0) continue;
        const number = which % held.length;
        const units = Math.round(actual * most * held[number]!.units);
        await store.refund([{ ...held[number]!, actual: units }]);
        told.settled(clock.now(), number, units);
        continue;
      }
      const hold = kind === 'reserve';
      const [[decision]] = (await store.check([{ entries: [{ limit, identity, cost }], hold, refundable: true }])) as [
        [StoreDecision],
      ];
      if (hold && decision.allowed) held.push(chargeOf({ limit, identity, cost }, decision));
      await told.decided(clock.now(), cost, hold, decision, store);
      wait = Number.isFinite(decision.retryAfterMs) ? decision.retryAfterMs : 0;
    }
  } finally {
    await store.close();
  }
}

describe('units that are held', () => {
  it('count as a naive model of a budget says, on any history of a clock that goes forward', async () => {
    const property = fc.asyncProperty(budgetOptions, steps, async (options, history) => {
      const model = budgetModel(options);
      await play(options, history, 3, {
        decided(now, cost, isHeld, { allowed, remaining }) {
          expectEqual({ allowed, remaining }, model.decide(BigInt(now), BigInt(cost), isHeld));
        },
        settled: (now, number, actual) => model.settle(BigInt(now), number, BigInt(actual)),
      });
    });
    await fc.assert(property, { numRuns: RUNS });
  });

  it.each(Object.entries(holdOptions))(
    '%s: fit after the wait that a refusal tells, and not before',
    async (algo, options) => {
      const property = fc.asyncProperty(options as fc.Arbitrary<AlgorithmOptions>, steps, async (random, history) => {
        const limit = compile(random);
        // A hold that lapses may free units sooner where each unit counts for an interval of its own.
        const isExact = !algo.startsWith('sliding') || !('onLapse' in random) || random.onLapse !== 'release';
        let refused: { cost: number; at: number; waitMs: number } | undefined;
        await play(random, history, 1, {
          async decided(now, cost, _, decision, store) {
            const { waitMs = 0, at = 0 } = refused ?? {};
            const isDue = refused?.cost === cost && now - at === waitMs * 1000;
            if (isDue) expectEqual(decision.allowed, true);
            const isEarly = refused?.cost === cost && now - at === (waitMs - 1) * 1000;
            if (isEarly && isExact) expectEqual(decision.allowed, false);
            const { allowed, retryAfterMs: ms } = decision;
            refused = allowed || !Number.isFinite(ms) ? undefined : { cost, at: now, waitMs: ms };
            // Spent and held are never more than allowed, as long as nobody uses more than was reserved.
            const { remaining } = await ask(store, limit, { peek: true });
            expectEqual(remaining >= 0 && remaining <= limit.quota, true);
          },
          settled: () => (refused = undefined),
        });
      });
      await fc.assert(property, { numRuns: RUNS });
    },
  );
});
