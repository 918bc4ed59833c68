import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { MemoryStore, RedisStore, type Store } from '../../../../lib/index.js';
import type { Check, CheckEntry } from '../../../../lib/testing/store/index.js';
import {
  assertSideBySide,
  expectEqual,
  PROPERTY_TIMEOUT_MS,
  propertyRuns,
} from '../../../support/limits/property-runs.js';
import { comparable, connectRedis, freshPrefix, ManualClock } from '../../../support/limits/stores.js';
import { borrowingLevel, entriesOf, key, limitsOf, pauseMs, rootLevel } from './tree.js';
import { PATIENCE_MS } from '../../../support/redis/patience.mjs';

const RUNS = propertyRuns(120);

const asked = fc.record({
  path: fc.tuple(key, key, key),
  depth: fc.integer({ min: 1, max: 3 }),
  cost: fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 1, max: 4 }) }, fc.integer({ min: 1, max: 40 })),
  mode: fc.constantFrom('consume', 'consume', 'consume', 'refundable', 'peek'),
  /** A level that is left out, as where a list exempts somebody from it. */
  without: fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined, freq: 8 }),
});

const history = fc.array(
  fc.record({
    pauseMs,
    /** Checks of one turn travel in one call. */
    checks: fc.array(asked, { maxLength: 6 }),
    operation: fc.constantFrom('none', 'none', 'none', 'refund', 'penalize', 'block', 'reset', 'back'),
  }),
  { minLength: 1, maxLength: 25 },
);

const levels = fc.tuple(rootLevel, borrowingLevel, borrowingLevel);

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

type Asked = typeof asked extends fc.Arbitrary<infer T> ? T : never;
type Limits = ReturnType<typeof limitsOf>;

const checkOf = (limits: Limits, { path, depth, cost, mode, without }: Asked): Check => {
  const all = entriesOf(limits, path.slice(0, depth), cost);
  const entries = depth > 1 ? all.filter((_, index) => index !== without) : all;
  return { entries, peek: mode === 'peek', refundable: mode === 'refundable' };
};

describe('limits within others, on both stores', () => {
  it(
    'are decided alike',
    () =>
      assertSideBySide(
        fc.asyncProperty(levels, history, async (drawn, steps) => {
          const clock = new ManualClock();
          const limits = limitsOf(drawn);
          const memory = new MemoryStore({ clock: clock.now, slackMs: Infinity });
          const server = new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
          const both = async <T>(ask: (store: Store) => Promise<T>) => [await ask(memory), await ask(server)] as const;
          for (const { pauseMs: pause, checks, operation } of steps) {
            clock.advanceMs(operation === 'back' ? -pause / 4 : pause);
            const asking = checks.map((check) => checkOf(limits, check));
            const [here, there] = await both((store) => store.check(asking));
            expectEqual(comparable(there), comparable(here));
            const [counter] = asking[0]?.entries ?? [];
            if (counter === undefined) continue;
            const charge = { limit: counter.limit, identity: counter.identity, units: counter.cost };
            if (operation === 'refund') await both((store) => store.refund([charge]));
            if (operation === 'penalize') await both((store) => store.penalize(charge));
            if (operation === 'block') await both((store) => store.block(counter, 300));
            if (operation === 'reset') await both((store) => store.reset([counter]));
          }
        }),
        RUNS,
      ),
    PROPERTY_TIMEOUT_MS,
  );

  it('never are charged beyond any level, and all of them or none', () =>
    fc.assert(
      fc.asyncProperty(levels, history, async (drawn, steps) => {
        const clock = new ManualClock();
        const limits = limitsOf(drawn);
        const memory = new MemoryStore({ clock: clock.now });
        const used = new Map<string, { at: number; cost: number }[]>();
        for (const { pauseMs: pause, checks } of steps) {
          clock.advanceMs(pause);
          for (const each of checks) {
            const { entries, peek } = checkOf(limits, { ...each, without: undefined });
            const before = await Promise.all(entries.map((entry) => left(memory, entry)));
            const [decisions] = await memory.check([{ entries, peek: peek === true }]);
            const after = await Promise.all(entries.map((entry) => left(memory, entry)));
            const isCharged = peek !== true && entries.every(({ limit }, i) => limit.shadow || decisions![i]!.allowed);
            for (const [i, { limit, identity, cost }] of entries.entries()) {
              const charges = isCharged && decisions![i]!.allowed;
              expect(before[i]! - after[i]!).toBe(charges ? cost : 0);
              if (!charges || limit.shadow) continue;
              const id = `${limit.id} ${identity}`;
              const known = [...(used.get(id) ?? []), { at: clock.now(), cost }];
              used.set(id, known);
              // Sliding windows and logs promise it of any stretch; of the others a window begins with its first request.
              if (!['sliding-window', 'sliding-log'].includes(limit.algorithm.name)) continue;
              const inWindow = known.filter(({ at }) => at > clock.now() - 1_000_000);
              expect(inWindow.reduce((sum, { cost: units }) => sum + units, 0)).toBeLessThanOrEqual(limit.quota);
            }
          }
        }
      }),
      { numRuns: propertyRuns(150) },
    ));

  it('refuse for the shortest wait after which they fit', () =>
    fc.assert(
      fc.asyncProperty(levels, history, async (drawn, steps) => {
        const clock = new ManualClock();
        const limits = limitsOf(drawn);
        const memory = new MemoryStore({ clock: clock.now });
        const ask = async (check: Check) => {
          const [decisions] = await memory.check([check]);
          const refused = decisions!.filter(({ allowed }, i) => !allowed && !check.entries[i]!.limit.shadow);
          return Math.max(0, ...refused.map(({ retryAfterMs }) => retryAfterMs));
        };
        for (const { pauseMs: pause, checks } of steps) {
          clock.advanceMs(pause);
          for (const each of checks) {
            const { entries } = checkOf(limits, each);
            const wait = await ask({ entries });
            if (wait === 0 || wait === Infinity) continue;
            clock.advanceMs(wait);
            expect(await ask({ entries, peek: true })).toBe(0);
            clock.advanceMs(-1);
            expect(await ask({ entries, peek: true })).toBe(1);
            clock.advanceMs(1 - wait);
          }
        }
      }),
      { numRuns: propertyRuns(150) },
    ));
});

/** What a counter has left, alone. */
async function left(store: Store, entry: CheckEntry): Promise<number> {
  const [decisions] = await store.check([{ entries: [{ ...entry, cost: 1 }], peek: true }]);
  return decisions![0]!.remaining;
}
