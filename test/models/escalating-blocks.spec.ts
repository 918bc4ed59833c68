import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, MemoryStore, RedisStore, type Store } from '../../lib/index.js';
import { type Check, CompiledLimit, type LimitSettings } from '../../lib/testing/store/index.js';
import { algorithmNames, concurrencyOptions, costOf, costShare, optionsOf } from '../support/limits/arbitraries.js';
import { assertSideBySide, expectEqual, PROPERTY_TIMEOUT_MS, propertyRuns } from '../support/limits/property-runs.js';
import { type CarryOver, comparable, connectRedis, freshPrefix, ManualClock } from '../support/limits/stores.js';
import { PATIENCE_MS } from '../support/redis/patience.mjs';

const RUNS = propertyRuns(120);

/** Whole milliseconds, so that the wait of a refusal says exactly when its block ends. */
const shares = fc.array(fc.double({ min: 0.001, max: 2, noNaN: true }), { minLength: 1, maxLength: 4 });

/** Definitions of one counter: most of them with steps. */
const definitions = fc.array(
  fc.record({
    steps: fc.option(shares, { freq: 8 }),
    forgetAfter: fc.double({ min: 0.001, max: 3, noNaN: true }),
    carry: fc.option(fc.constantFrom('proportional' as const, 'additive' as const), { freq: 2 }),
    shadow: fc.boolean(),
    strikes: fc.integer({ min: 0, max: 3 }).map((number) => number === 0),
  }),
  { minLength: 1, maxLength: 3 },
);

const steps = fc.array(
  fc.record({
    clock: fc.oneof(
      { weight: 2, arbitrary: fc.double({ min: 0, max: 1, noNaN: true }) },
      { weight: 1, arbitrary: fc.double({ min: -3, max: 0, noNaN: true }) },
      { weight: 8, arbitrary: fc.constant('end' as const) },
      { weight: 1, arbitrary: fc.constant('forgotten' as const) },
    ),
    /** Microseconds beside that moment. */
    aside: fc.constantFrom(0, 0, 0, -1, 1),
    /** What is done in one call. */
    acts: fc.array(
      fc.record({
        kind: fc.oneof(
          { weight: 8, arbitrary: fc.constant('never fits' as const) },
          { weight: 8, arbitrary: fc.constant('consume' as const) },
          { weight: 3, arbitrary: fc.constantFrom('peek' as const, 'refundable' as const, 'reserve' as const) },
          { weight: 2, arbitrary: fc.constantFrom('penalize' as const, 'refund' as const, 'block' as const) },
          { weight: 1, arbitrary: fc.constantFrom('unblock' as const, 'reset' as const) },
        ),
        definition: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(2) }),
        share: fc.oneof(costShare, fc.double({ min: 0.5, max: 1.2, noNaN: true })),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  }),
  { minLength: 5, maxLength: 30 },
);
type Steps = typeof steps extends fc.Arbitrary<infer T> ? T : never;
type Definitions = typeof definitions extends fc.Arbitrary<infer T> ? T : never;

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis({ enableAutoPipelining: true });
});
afterAll(() => redis.disconnect());

/** How many decisions there were with so many offences. */
const seen: number[] = [];

async function agree(options: AlgorithmOptions, random: Definitions, history: Steps): Promise<void> {
  const clock = new ManualClock();
  const memory = new MemoryStore({ clock: clock.now, slackMs: Infinity });
  const remote = new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
  const stores: Store[] = [memory, remote];
  const windowMs = new CompiledLimit(options, { location: 'test' }).windowMs(clock.now() / 1000);
  const micros = (share: number) => 1000 * Math.max(1, Math.round(share * windowMs));
  const limits = random.map(({ steps, forgetAfter, carry, shadow, strikes }) => {
    const escalation: LimitSettings['escalation'] =
      steps === null ? undefined : { steps: steps.map(micros), forgetAfter: micros(forgetAfter) };
    const carries: CarryOver | undefined = carry === null ? undefined : { mode: carry, quotaBefore: 1 };
    const settings = { location: 'test', name: `${options.algo} one`, shadow, strikes, carry: carries };
    return new CompiledLimit(options, { ...settings, blockFor: micros(1), escalation });
  });
  const quota = limits[0]!.quota;
  const identity = 'user:1';
  const moments = { end: clock.now(), forgotten: clock.now() };
  try {
    for (const { clock: step, aside, acts } of history) {
      if (typeof step === 'number') clock.advanceMs(step * windowMs);
      else clock.micros = moments[step] + aside;
      const answers = await Promise.all(
        stores.map((store) =>
          Promise.all(
            acts.map(async ({ kind, definition, share }) => {
              const limit = limits[definition % limits.length]!;
              const counter = { limit, identity };
              const cost = kind === 'never fits' ? quota + 1 : costOf(share, quota);
              const check: Check = {
                entries: [{ ...counter, cost }],
                peek: kind === 'peek',
                refundable: kind === 'refundable',
              };
              const held = limit.algorithm.leases !== undefined;
              switch (kind) {
                case 'reserve':
                  return comparable([[await store.reserve({ ...counter, cost, maxWaitMs: windowMs })]]);
                case 'penalize':
                  return held ? undefined : store.penalize({ ...counter, units: cost });
                case 'refund':
                  return store.refund([{ ...counter, units: cost }]);
                case 'block':
                  return store.block(counter, micros(share) / 1000);
                case 'unblock':
                  return store.block(counter, 0);
                case 'reset':
                  // Nothing else of the call is done at the same time.
                  return acts.length === 1 ? void (await store.reset([counter])) : undefined;
                default:
                  return comparable(await store.check([check]));
              }
            }),
          ),
        ),
      );
      expectEqual(answers[1], answers[0]);
      for (const [index, answer] of answers[0]!.entries()) {
        // A block and a reset say whether there was anything.
        const decision = Array.isArray(answer) ? answer[0]?.[0] : undefined;
        if (decision?.offences !== undefined) seen[decision.offences] = (seen[decision.offences] ?? 0) + 1;
        if (decision === undefined || decision.allowed) continue;
        const { escalation } = limits[acts[index]!.definition % limits.length]!;
        const { retryAfterMs, resetAfterMs } = decision;
        moments.end = clock.now() + (retryAfterMs === Infinity ? resetAfterMs : retryAfterMs) * 1000;
        moments.forgotten = moments.end + (escalation?.forgetAfter ?? 0);
      }
    }
  } finally {
    await memory.close();
  }
}

describe('blocks that last longer with each offence', () => {
  const all = { ...optionsOf, concurrency: concurrencyOptions };

  it.each([...algorithmNames, 'concurrency' as const])(
    '%s: begin, end, are forgotten, changed and pardoned alike in both stores',
    async (algo) => {
      seen.length = 0;
      const options = all[algo] as fc.Arbitrary<AlgorithmOptions>;
      await assertSideBySide(fc.asyncProperty(options, definitions, steps, agree), RUNS);
      // Else it would say nothing.
      expect(seen.slice(3).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(RUNS / 2);
    },
    PROPERTY_TIMEOUT_MS,
  );
});
