import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { AlgorithmName } from '../../../engine/algorithms/index.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { limitOf, QUOTA } from './limits.js';
import type { Case } from './stage.js';

/** How many checks go through a store at once where they lock the same counters in different orders. */
const CROWD = 50;

const peeked = (limit: CompiledLimit) => ({ entries: [{ limit, identity: 'user:1', cost: 1 }], peek: true });

/** What has to hold for checks of several limits, of one algorithm or of two. */
export const severalLimitsCases = (algo: AlgorithmName, other: AlgorithmName): Case[] => [
  {
    name: `${algo} and ${other}: a check is allowed by all of its limits, or charged to none`,
    async run(stage) {
      const [small, large] = [limitOf(algo, `${stage.id}-a`), limitOf(other, `${stage.id}-b`)];
      const of = (cost: number) => [small, large].map((limit) => ({ limit, identity: 'user:1', cost }));
      await stage.take(small, 3);
      strictEqual((await stage.both({ entries: of(3) }))[0][0]!.allowed, false);
      const [[untouched]] = await stage.both(peeked(large));
      strictEqual(untouched!.remaining, QUOTA, `'${other}' was charged, though '${algo}' refused`);
      await stage.both({ entries: of(2) });
      await stage.both({ entries: of(1).toReversed() });
    },
  },
  {
    name: `${algo} and ${other}: a shadow limit is counted, and never refuses`,
    async run(stage) {
      const shadow = limitOf(algo, `${stage.id}-a`, undefined, { shadow: true });
      const limit = limitOf(other, `${stage.id}-b`);
      const entries = [shadow, limit].map((each) => ({ limit: each, identity: 'user:1', cost: 1 }));
      await stage.take(shadow, QUOTA);
      const [[first, second]] = await stage.both({ entries });
      deepStrictEqual([first!.allowed, second!.allowed], [false, true]);
      strictEqual((await stage.both(peeked(limit)))[0][0]!.remaining, QUOTA - 1);
      // A shadow limit isn't charged for a check that another limit rejects.
      await stage.take(limit, QUOTA - 1);
      await stage.doBoth((store) => store.reset([{ limit: shadow, identity: 'user:1' }]));
      const [[free, full]] = await stage.both({ entries });
      deepStrictEqual([free!.allowed, free!.remaining, full!.allowed], [true, QUOTA, false]);
    },
  },
  {
    name: `${algo} and ${other}: checks that name their limits in different orders do not wait for one another`,
    async run(stage) {
      const limits = [limitOf(algo, `${stage.id}-a`), limitOf(other, `${stage.id}-b`)];
      const entries = limits.map((limit) => ({ limit, identity: 'user:1', cost: 1 }));
      const checks = Array.from({ length: CROWD }, (_, index) => (index % 2 === 0 ? entries : entries.toReversed()));
      const answers = await Promise.all(checks.map((each) => stage.store.check([{ entries: each }])));
      const allowed = answers.filter(([decisions]) => decisions!.every((decision) => decision.allowed));
      strictEqual(allowed.length, QUOTA);
      for (const limit of limits) {
        const [decisions] = await stage.store.check([peeked(limit)]);
        ok(!decisions![0]!.allowed, `'${limit.algorithm.name}' has units left, though ${QUOTA} checks took them all`);
      }
    },
  },
];
