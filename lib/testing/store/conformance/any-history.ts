import type { AlgorithmName } from '../../../engine/algorithms/index.js';
import type { CheckEntry, Counter } from '../../../engine/limits/counter.js';
import { chargesOf } from '../../../storage/stores/store-decision.js';
import type { Refund } from '../../../storage/stores/store.js';
import { type Case, limitOf, QUOTA, type Stage } from './stage.js';
import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';

/** The number of concurrent checks that lock the same counters in different orders. */
const CROWD = 50;

const entryOf = (limit: CompiledLimit, cost = 1): CheckEntry => ({ limit, identity: 'user:1', cost });
const peeked = (limit: CompiledLimit) => ({ entries: [entryOf(limit)], peek: true });

interface Pair {
  readonly algo: AlgorithmName;
  readonly other: AlgorithmName;
}

const CASES: Readonly<Record<string, (stage: Stage, pair: Pair) => Promise<void>>> = {
  'a check is allowed by all of its limits, or charged to none': async (stage, { algo, other }) => {
    const [small, large] = [limitOf(algo, `${stage.id}-a`), limitOf(other, `${stage.id}-b`)];
    const of = (cost: number) => [entryOf(small, cost), entryOf(large, cost)];
    await stage.take(small, 3);
    strictEqual((await stage.both({ entries: of(3) }))[0][0]!.allowed, false);
    const [[untouched]] = await stage.both(peeked(large));
    strictEqual(untouched!.remaining, QUOTA, `'${other}' was charged, though '${algo}' refused`);
    await stage.both({ entries: of(2) });
    await stage.both({ entries: of(1).toReversed() });
  },

  'a shadow limit is counted, and never refuses': async (stage, { algo, other }) => {
    const shadow = limitOf(algo, `${stage.id}-a`, undefined, { shadow: true });
    const limit = limitOf(other, `${stage.id}-b`);
    const entries = [entryOf(shadow), entryOf(limit)];
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

  'checks that name their limits in different orders do not wait for one another': async (stage, { algo, other }) => {
    const limits = [limitOf(algo, `${stage.id}-a`), limitOf(other, `${stage.id}-b`)];
    const entries = limits.map((limit) => entryOf(limit));
    const checks = Array.from({ length: CROWD }, (_, index) => (index % 2 === 0 ? entries : entries.toReversed()));
    const answers = await Promise.all(checks.map((each) => stage.store.check([{ entries: each }])));
    const allowed = answers.filter(([decisions]) => decisions!.every((decision) => decision.allowed));
    strictEqual(allowed.length, QUOTA);
    for (const limit of limits) {
      const [decisions] = await stage.store.check([peeked(limit)]);
      ok(!decisions![0]!.allowed, `'${limit.algorithm.name}' has units left, though ${QUOTA} checks took them all`);
    }
  },
};

/** The rules for checks of several limits with one algorithm or two. */
export const severalLimitsCases = (algo: AlgorithmName, other: AlgorithmName): Case[] =>
  Object.entries(CASES).map(([name, run]) => ({
    name: `${algo} and ${other}: ${name}`,
    run: (stage) => run(stage, { algo, other }),
  }));

const STEPS = 60;
const IDENTITIES = ['user:1', 'user:2'];
const HOUR_MS = 3_600_000;
/** The maximum time that a clock is moved. The suite doesn't wait this long for a store with a clock of its own. */
const LONGEST_MOVE_MS = 12 * 24 * HOUR_MS;

/** Returns the same numbers for the same seed, so that you can repeat a history that fails. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Checks, refunds, penalties, blocks and resets in random order. After each, the store must decide as the store in memory does. */
export const anyHistoryCases = (algorithms: readonly AlgorithmName[]): Case[] =>
  [1, 2, 3, 4].map((seed) => ({
    name: `any history of all limits (${seed})`,
    run: (stage) => history(stage, algorithms, randomOf(seed)),
  }));

async function history(stage: Stage, algorithms: readonly AlgorithmName[], random: (below: number) => number) {
  const limits = algorithms.map((algo) => limitOf(algo, `${stage.id}-${algo}`));
  const entry = (): CheckEntry => ({
    limit: limits[random(limits.length)]!,
    identity: IDENTITIES[random(IDENTITIES.length)]!,
    cost: random(QUOTA),
  });
  let charged: (readonly [Refund, Refund])[] = [];
  const forget = (counter: Counter) => {
    charged = charged.filter(([{ limit, identity }]) => limit !== counter.limit || identity !== counter.identity);
  };
  for (let step = 0; step < STEPS; step++) {
    const kind = random(12);
    const one = entry();
    const units = 1 + random(QUOTA);
    if (kind < 6) {
      const others = [entry(), entry()].filter(({ limit }) => limit !== one.limit);
      const entries = kind < 3 ? [one] : [one, ...others.slice(0, 1)];
      const { got, expected, isClose } = await stage.compare({ entries, refundable: true });
      if (isClose) entries.forEach(forget);
      const refused = isClose || expected.some(({ allowed }) => !allowed);
      const ours = refused ? [] : chargesOf(entries, expected);
      const theirs = refused ? [] : chargesOf(entries, got);
      charged.push(...ours.flatMap((refund, index) => (refund.units > 0 ? [[theirs[index]!, refund] as const] : [])));
    } else if (kind === 6) await stage.compare({ entries: [one], peek: true });
    else if (kind === 7) {
      const [refund] = charged.splice(random(charged.length), 1);
      if (refund !== undefined) await stage.doBoth((store, index) => store.refund([refund[index]]));
    } else if (kind === 8 && one.limit.algorithm.leases === undefined) {
      await stage.doBoth((store) => store.penalize({ ...one, units }));
    } else if (kind === 9) {
      const ms = random(2) * HOUR_MS * units;
      await stage.doBoth((store) => store.block(one, ms));
    } else if (kind === 10) {
      forget(one);
      await stage.doBoth((store) => store.reset([one]));
    } else stage.move(random(LONGEST_MOVE_MS));
  }
  for (const limit of limits) {
    for (const identity of IDENTITIES) await stage.compare({ entries: [{ limit, identity, cost: 1 }], peek: true });
  }
}
