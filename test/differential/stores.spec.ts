import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import type { AlgorithmOptions } from '../../lib/algorithms/index.js';
import { MemoryStore } from '../../lib/stores/memory.store.js';
import { RedisStore } from '../../lib/stores/redis.store.js';
import type { Check } from '../../lib/stores/store.js';
import { algorithmNames, anyOptions, clockStep, costOf, costShare, optionsOf } from '../support/arbitraries.js';
import { comparable, compile, connectRedis, freshPrefix, ManualClock } from '../support/stores.js';

const RUNS = Number(process.env['PROPERTY_RUNS'] ?? 1000);

/** A step of a history: the clock moves, then several checks are made in one call, or units are given back. */
const steps = fc.array(
  fc.record({
    clock: clockStep,
    checks: fc.array(
      fc.record({
        entries: fc.uniqueArray(
          fc.record({ limit: fc.nat(3), identity: fc.nat(1), cost: costShare, old: fc.boolean() }),
          {
            selector: ({ limit, identity }) => `${limit} ${identity}`,
            minLength: 1,
            maxLength: 3,
          },
        ),
        peek: fc.boolean(),
      }),
      { maxLength: 4 },
    ),
    giveBack: fc.boolean(),
    /** From here on the limits have other parameters. */
    change: fc.boolean(),
  }),
  { minLength: 1, maxLength: 14 },
);

describe('the stores decide alike, field by field, on any history', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(() => redis.disconnect());

  async function agree(first: AlgorithmOptions, changed: AlgorithmOptions, others: AlgorithmOptions[], history: Steps) {
    const clock = new ManualClock();
    const memory = new MemoryStore({ clock: clock.now, slackMs: Infinity });
    const remote = new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: 10_000 });
    const limits = [first, ...others].map((options, index) => compile(options, `limit ${index}`));
    let isFirst = true;
    try {
      for (const step of history) {
        clock.advanceMs(step.clock * limits[0]!.windowMs(clock.now() / 1000));
        const old = limits[0]!;
        if (step.change) {
          limits[0] = compile(isFirst ? changed : first, 'limit 0');
          isFirst = !isFirst;
        }
        const checks = step.checks.map(({ entries, peek }): Check => ({
          peek,
          entries: entries.map(({ limit, identity, cost, old: stale }) => {
            // During a change some instances still decide by the old parameters, even in the same call.
            const chosen = stale && limit === 0 ? old : limits[limit % limits.length]!;
            return { limit: chosen, identity: `id${identity}-${limit}`, cost: costOf(cost, chosen.quota) };
          }),
        }));
        const here = await memory.check(checks);
        const there = await remote.check(checks);
        expect(comparable(there)).toEqual(comparable(here));
        const [charged, decision] = [checks[0]?.entries[0], here[0]?.[0]];
        if (step.giveBack && charged !== undefined && decision?.allowed && !checks[0]!.peek) {
          const refund = { ...charged, units: charged.cost, place: decision.place };
          await Promise.all([memory.refund([refund]), remote.refund([refund])]);
        }
      }
    } finally {
      await memory.close();
    }
  }
  type Steps = typeof steps extends fc.Arbitrary<infer T> ? T : never;

  it.each(algorithmNames)(
    '%s, alone and with others',
    async (algo) => {
      const options = optionsOf[algo] as fc.Arbitrary<AlgorithmOptions>;
      const others = fc.array(anyOptions, { maxLength: 3 });
      await fc.assert(fc.asyncProperty(options, options, others, steps, agree), { numRuns: RUNS });
    },
    120_000,
  );
});
