import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import {
  algorithmNames,
  clockStep,
  costOf,
  costShare,
  optionsOf,
  type RateOptions,
} from '../../support/limits/arbitraries.js';
import { assertSideBySide, expectEqual, propertyRuns } from '../../support/limits/property-runs.js';
import { ask, connectRedis, ManualClock, storeKinds, tickOf } from '../../support/limits/stores.js';
import { modelOf } from './models.js';

const RUNS = propertyRuns(60);

const kinds = Object.keys(storeKinds);
const casesOf = (algorithms: readonly (typeof algorithmNames)[number][]) =>
  kinds.flatMap((kind) => algorithms.map((algo) => [kind, algo] as const));

/** Microseconds: shorter and longer than what is blocked would have to wait for by itself. */
const blockShare = fc.double({ min: 0.001, max: 3, noNaN: true });

const blocking = (options: RateOptions, share: number, now: number): CompiledLimit => {
  const window = new CompiledLimit(options, { location: 'test' }).windowMs(now / 1000) * 1000;
  return new CompiledLimit(options, { location: 'test', blockFor: Math.max(1, Math.round(share * window)) });
};

/** Blocks with steps; whole milliseconds. */
const anySteps = fc.record({
  steps: fc.array(blockShare, { minLength: 1, maxLength: 4 }),
  forgetAfter: blockShare,
});

const escalating = (options: RateOptions, { steps, forgetAfter }: EscalationShares, now: number): CompiledLimit => {
  const windowMs = new CompiledLimit(options, { location: 'test' }).windowMs(now / 1000);
  const micros = (share: number) => 1000 * Math.max(1, Math.round((share * windowMs) / 3));
  const escalation = {
    steps: steps.toSorted((one, other) => one - other).map(micros),
    forgetAfter: micros(forgetAfter),
  };
  return new CompiledLimit(options, { location: 'test', escalation });
};

type EscalationShares = typeof anySteps extends fc.Arbitrary<infer T> ? T : never;

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis({ enableAutoPipelining: true });
});
afterAll(() => redis.disconnect());

/** The clock goes forward by a share of the window, or right to the end of the last wait, or to a millisecond before it. */
const steps = fc.array(
  fc.record({
    clock: fc.oneof(fc.double({ min: 0, max: 0.4, noNaN: true }), fc.constantFrom('wait' as const, 'almost' as const)),
    cost: fc.oneof(costShare, fc.double({ min: 0.3, max: 1, noNaN: true })),
  }),
  { minLength: 3, maxLength: 30 },
);

describe('blockFor', () => {
  // So no stretch of time holds more than the algorithm allows, once for each block that ended in it and once more.
  it.each(casesOf(algorithmNames.filter((algo) => algo !== 'leaky-bucket')))(
    '%s, %s: refuses for exactly so long, and begins anew',
    async (kind, algo) => {
      const options = optionsOf[algo] as fc.Arbitrary<RateOptions>;
      let blocks = 0;
      const property = fc.asyncProperty(options, blockShare, steps, async (options, share, history) => {
        const clock = new ManualClock();
        const store = storeKinds[kind]!(clock, redis);
        const limit = blocking(options, share, clock.now());
        const tick = BigInt(tickOf(limit));
        let model = modelOf(options, tick);
        let blockedUntil = 0;
        let wait = 0;
        for (const step of history) {
          if (step.clock === 'wait') clock.advanceMs(wait);
          else if (step.clock === 'almost') clock.advanceMs(Math.max(0, wait - 1));
          else clock.advanceMs(step.clock * limit.windowMs(clock.now() / 1000));
          const now = clock.now();
          const cost = costOf(step.cost, limit.quota);
          const { allowed, remaining, retryAfterMs, resetAfterMs } = await ask(store, limit, { cost });
          let answer = { allowed: false, remaining: 0 };
          if (now >= blockedUntil) {
            const { delayMs: _, ...asked } = model(BigInt(now), BigInt(cost));
            answer = asked;
            if (!asked.allowed) {
              blocks++;
              blockedUntil = now + limit.blockFor;
              model = modelOf(options, tick);
              answer.remaining = 0;
            }
          }
          expectEqual({ allowed, remaining }, answer);
          if (!allowed) {
            wait = Math.ceil((blockedUntil - now) / 1000);
            expectEqual(
              { retryAfterMs, resetAfterMs },
              { retryAfterMs: cost > limit.quota ? Infinity : wait, resetAfterMs: wait },
            );
          }
        }
        await store.close();
      });
      await assertSideBySide(property, RUNS);
      expect(blocks).toBeGreaterThan(RUNS / 2);
    },
  );

  // Each offence is written down, and their number is counted anew of that.
  it.each(casesOf(algorithmNames.filter((algo) => algo !== 'leaky-bucket')))(
    '%s, %s: with steps lasts as long as the offences before it say',
    async (kind, algo) => {
      const options = optionsOf[algo] as fc.Arbitrary<RateOptions>;
      const most: number[] = [];
      const acts = fc.array(
        fc.record({
          clock: fc.oneof(
            { weight: 2, arbitrary: fc.double({ min: 0, max: 0.4, noNaN: true }) },
            { weight: 6, arbitrary: fc.constantFrom('end' as const, 'almost forgotten' as const) },
            { weight: 1, arbitrary: fc.constant('forgotten' as const) },
          ),
          cost: fc.oneof(costShare, fc.constant(2)),
          kind: fc.constantFrom(...Array.from({ length: 20 }, () => 'consume' as const), 'peek', 'unblock', 'reset'),
        }),
        { minLength: 3, maxLength: 30 },
      );
      const property = fc.asyncProperty(options, anySteps, acts, async (options, shares, history) => {
        const clock = new ManualClock();
        const store = storeKinds[kind]!(clock, redis);
        const limit = escalating(options, shares, clock.now());
        const { steps, forgetAfter } = limit.escalation!;
        const counter = { limit, identity: 'ip:203.0.113.7' };
        const tick = BigInt(tickOf(limit));
        let model = modelOf(options, tick);
        /** The ends of all blocks since the last pardon. */
        let ends: number[] = [];
        const end = () => ends.at(-1) ?? 0;
        for (const { clock: step, cost: share, kind: act } of history) {
          if (typeof step === 'number') clock.advanceMs(step * limit.windowMs(clock.now() / 1000));
          else if (ends.length > 0) {
            const later = step === 'end' ? 0 : step === 'forgotten' ? forgetAfter : forgetAfter - 1;
            clock.micros = Math.max(clock.micros, end() + later);
          }
          const now = clock.now();
          const cost = costOf(share, limit.quota);
          const isBlocked = now < end();
          if (act === 'unblock' || act === 'reset') {
            await (act === 'reset' ? store.reset([counter]) : store.block(counter, 0));
            // What was counted is forgotten by the block, or with it.
            if (act === 'reset') model = modelOf(options, tick);
            ends = [];
            continue;
          }
          const isPeek = act === 'peek';
          const decision = await ask(store, limit, { cost, peek: isPeek });
          // A block that began within the time to forget after the one before counts with it.
          if (ends.length > 0 && now >= end() + forgetAfter) ends = [];
          if (isPeek) {
            expectEqual(decision.offences, ends.length);
            continue;
          }
          let allowed = false;
          if (!isBlocked) {
            allowed = model(BigInt(now), BigInt(cost)).allowed;
            if (!allowed) {
              model = modelOf(options, tick);
              ends.push(now + steps[Math.min(ends.length, steps.length - 1)]!);
            }
          }
          expectEqual([decision.allowed, decision.offences], [allowed, ends.length]);
          if (!allowed) expectEqual(decision.resetAfterMs, Math.ceil((end() - now) / 1000));
          most.push(ends.length);
        }
        await store.close();
      });
      await assertSideBySide(property, RUNS);
      expect(most.filter((offences) => offences > 2).length).toBeGreaterThan(RUNS / 4);
    },
  );

  it.each(casesOf(algorithmNames))('%s, %s: tells a wait that no try lengthens', async (kind, algo) => {
    const options = optionsOf[algo] as fc.Arbitrary<RateOptions>;
    const before = fc.array(fc.record({ clock: clockStep, cost: costShare }), { maxLength: 8 });
    const tries = fc.array(
      fc.record({
        part: fc.double({ min: 0, max: 1, noNaN: true }),
        cost: costShare,
        kind: fc.constantFrom('consume', 'reserve', 'refund'),
      }),
      { maxLength: 4 },
    );
    const penalty = fc.option(costShare);
    const property = fc.asyncProperty(
      options,
      blockShare,
      before,
      costShare,
      tries,
      penalty,
      async (options, share, before, costs, tries, penalty) => {
        const clock = new ManualClock();
        const store = storeKinds[kind]!(clock, redis);
        const limit = blocking(options, share, clock.now());
        const counter = { limit, identity: 'ip:203.0.113.7' };
        for (const { clock: step, cost } of before) {
          clock.advanceMs(step * limit.windowMs(clock.now() / 1000));
          await ask(store, limit, { cost: costOf(cost, limit.quota) });
        }
        await store.block(counter, 0);
        // What is owed is still to come: it stays, and the wait is for that too.
        if (penalty !== null) await store.penalize({ ...counter, units: costOf(penalty, limit.quota) });
        const cost = Math.min(costOf(costs, limit.quota), limit.quota);
        const { remaining } = await ask(store, limit, { peek: true });
        if (remaining >= cost) await ask(store, limit, { cost: remaining });
        const refused = await ask(store, limit, { cost });
        const from = clock.now();
        const wait = refused.retryAfterMs;
        for (const { part, cost: share, kind } of tries.toSorted((one, other) => one.part - other.part)) {
          clock.micros = from + Math.floor(part * (wait - 1)) * 1000;
          const units = costOf(share, limit.quota);
          if (kind === 'consume')
            await expect(ask(store, limit, { cost: units })).resolves.toMatchObject({ allowed: false });
          else if (kind === 'reserve')
            await store.reserve({ ...counter, cost: units, maxWaitMs: Number.MAX_SAFE_INTEGER });
          else if (penalty === null) await store.refund([{ ...counter, units }]);
        }
        clock.micros = from + (wait - 1) * 1000;
        await expect(ask(store, limit, { cost })).resolves.toMatchObject({
          allowed: false,
          remaining: 0,
          retryAfterMs: 1,
        });
        clock.micros = from + wait * 1000;
        await expect(ask(store, limit, { cost })).resolves.toMatchObject({ allowed: true });
        await store.close();
      },
    );
    await assertSideBySide(property, RUNS);
  });
});
