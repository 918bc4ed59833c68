import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type AlgorithmOptions, MemoryStore } from '../../../../lib/index.js';
import type { CompiledLimit } from '../../../../lib/testing/store/index.js';
import { propertyRuns } from '../../../support/limits/property-runs.js';
import { ask, compile, ManualClock } from '../../../support/limits/stores.js';
import { ShareModel } from './model.js';
import { sharedLimit } from './simulation.js';

const RUNS = propertyRuns(120);

const options = fc
  .record({
    algo: fc.constantFrom('sliding-window', 'token-bucket', 'gcra'),
    rate: fc.integer({ min: 1, max: 30 }),
    interval: fc.constantFrom('1s', '1m', 700),
    burst: fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined }),
  })
  .map(({ burst, ...rest }): AlgorithmOptions =>
    rest.algo === 'sliding-window' || burst === undefined
      ? (rest as AlgorithmOptions)
      : ({ ...rest, burst } as AlgorithmOptions),
  );

const history = fc.array(
  fc.record({
    /** A share of the interval. */
    pause: fc.oneof(
      { weight: 4, arbitrary: fc.double({ min: 0, max: 0.2, noNaN: true }) },
      fc.double({ min: 0, max: 2, noNaN: true }),
    ),
    tenant: fc.constantFrom('a', 'a', 'b', 'c', 'd'),
    cost: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 1, max: 12 })),
  }),
  { minLength: 1, maxLength: 60 },
);

const weights: Readonly<Record<string, number>> = { a: 1, b: 1, c: 2, d: 5 };

function world(limit: CompiledLimit) {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock: clock.now });
  const identity = 'global';
  const of = (tenant: string) => limit.meet({ tenant: { id: tenant, weight: weights[tenant]! } });
  return {
    clock,
    store,
    take: (tenant: string, cost: number) => ask(store, of(tenant), { identity, cost }),
    peek: (tenant: string, cost: number) => ask(store, of(tenant), { identity, cost, peek: true }),
  };
}

describe('shares', () => {
  it('never let more pass than the limit does without them', () =>
    fc.assert(
      fc.asyncProperty(options, fc.constantFrom(0, 0.1, 1), history, async (own, floor, steps) => {
        const { clock, store, take } = world(sharedLimit(own, { floor }));
        const whole = compile(own, 'whole');
        for (const { pause, tenant, cost } of steps) {
          clock.advanceMs(pause * whole.windowMs(0));
          const decision = await take(tenant, cost);
          if (decision.allowed) expect(await ask(store, whole, { cost })).toMatchObject({ allowed: true });
        }
      }),
      { numRuns: RUNS },
    ));

  it('leave a tenant alone all that the limit has, as without them', () =>
    fc.assert(
      fc.asyncProperty(options, history, async (own, steps) => {
        const { clock, store, take } = world(sharedLimit(own, { name: 'whole' }));
        const whole = compile(own, 'whole');
        for (const { pause, cost } of steps) {
          clock.advanceMs(pause * whole.windowMs(0));
          expect(await take('a', cost)).toEqual(await ask(store, whole, { identity: 'beside', cost }));
        }
      }),
      { numRuns: RUNS },
    ));

  it('decide as a model that keeps every request', () =>
    fc.assert(
      fc.asyncProperty(options, fc.constantFrom(0, 0.1), history, async (own, floor, steps) => {
        const limit = sharedLimit(own, { floor });
        const { clock, store, take } = world(limit);
        const whole = compile(own, 'whole');
        const model = new ShareModel(limit);
        for (const { pause, tenant, cost } of steps) {
          clock.advanceMs(pause * whole.windowMs(0));
          const free = await ask(store, whole, { peek: true });
          const expected = model.ask(tenant, weights[tenant]!, cost, free.remaining, clock.micros);
          if (expected) await ask(store, whole, { cost });
          expect((await take(tenant, cost)).allowed).toBe(expected);
        }
      }),
      { numRuns: RUNS },
    ));

  it('tell a refused tenant the shortest wait, in whole milliseconds', () =>
    fc.assert(
      fc.asyncProperty(options, history, fc.double({ min: 0, max: 1, noNaN: true }), async (own, steps, part) => {
        const { clock, take, peek } = world(sharedLimit(own));
        for (const { pause, tenant, cost } of steps) {
          clock.advanceMs(pause * sharedLimit(own).windowMs(0));
          const { allowed, retryAfterMs } = await take(tenant, cost);
          if (allowed || retryAfterMs === Infinity) continue;
          const before = clock.micros;
          for (const early of [retryAfterMs - 1, Math.floor(part * (retryAfterMs - 1))]) {
            clock.micros = before + early * 1000;
            expect(await peek(tenant, cost)).toMatchObject({ allowed: false });
          }
          clock.micros = before + retryAfterMs * 1000;
          expect(await peek(tenant, cost)).toMatchObject({ allowed: true });
          clock.micros = before;
        }
      }),
      { numRuns: RUNS },
    ));

  it('say as remaining what a tenant could still take', () =>
    fc.assert(
      fc.asyncProperty(options, history, async (own, steps) => {
        const { clock, take, peek } = world(sharedLimit(own));
        for (const { pause, tenant, cost } of steps) {
          clock.advanceMs(pause * sharedLimit(own).windowMs(0));
          await take(tenant, cost);
          const { remaining } = await peek(tenant, 1);
          if (remaining > 0) expect(await peek(tenant, remaining)).toMatchObject({ allowed: true });
          expect(await peek(tenant, remaining + 1)).toMatchObject({ allowed: false });
        }
      }),
      { numRuns: RUNS },
    ));
});
