import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { AlgorithmName } from '../../../engine/algorithms/index.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { chargeOf } from '../../../storage/stores/store-decision.js';
import { type Case, limitOf, QUOTA, REFILLED, type Stage } from './stage.js';

/** The shortest interval for which the suite waits, in milliseconds. */
const SHORT_MS = 100;
/** Identities that a store could mix up with each other or with other data. */
const IDENTITIES = [
  'a',
  'A',
  'a ',
  'a:b',
  'a/b',
  '{a}',
  "a'b",
  'a"b',
  'a\\b',
  'a%b',
  'a_b',
  'a*',
  'ä',
  '日本',
  '😀',
  'x'.repeat(2000),
];

interface Subject {
  readonly stage: Stage;
  readonly algo: AlgorithmName;
  readonly limit: CompiledLimit;
  /** All algorithms of the store. */
  readonly algorithms: readonly AlgorithmName[];
}

const CASES: Readonly<Record<string, (subject: Subject) => Promise<void>>> = {
  'lets through what its quota holds, and says what is left': async ({ stage, limit }) => {
    const allowed: boolean[] = [];
    for (let i = 0; i < QUOTA + 3; i++) allowed.push((await stage.take(limit)).allowed);
    deepStrictEqual(allowed, [true, true, true, true, true, false, false, false]);
  },

  'takes several units or none': async ({ stage, limit }) => {
    const outcomes: [boolean, number][] = [];
    for (const cost of [3, 3, 2, 1, QUOTA + 1]) {
      const { allowed, remaining } = await stage.take(limit, cost);
      outcomes.push([allowed, remaining]);
    }
    const expected = [
      [true, 2],
      [false, 2],
      [true, 0],
      [false, 0],
      [false, 0],
    ];
    deepStrictEqual(outcomes, expected);
  },

  'never allows a cost above the quota, and charges nothing for it': async ({ stage, limit }) => {
    const { allowed, quota, remaining, retryAfterMs, resetAfterMs } = await stage.take(limit, QUOTA + 1);
    deepStrictEqual([allowed, quota, remaining, retryAfterMs, resetAfterMs], [false, QUOTA, QUOTA, Infinity, 0]);
    const next = await stage.take(limit, QUOTA);
    deepStrictEqual([next.allowed, next.remaining], [true, 0]);
  },

  'looks without a trace': async ({ stage, limit }) => {
    for (let i = 0; i < QUOTA + 3; i++) await stage.take(limit, 1, 'user:1', { peek: true });
    await stage.take(limit, 0);
    strictEqual((await stage.take(limit, QUOTA)).allowed, true);
  },

  'never lets more through than its quota, no matter how many check at once': async ({ stage, limit }) => {
    const check = { entries: [{ limit, identity: 'user:1', cost: 1 }] };
    const answers = await Promise.all(Array.from({ length: 4 * QUOTA }, () => stage.store.check([check])));
    strictEqual(answers.filter(([decisions]) => decisions![0]!.allowed).length, QUOTA);
  },

  'gives units back, at most those that were taken': async ({ stage, limit }) => {
    const entry = { limit, identity: 'user:1', cost: 2 };
    const answers = await stage.both({ entries: [entry], refundable: true });
    await stage.take(limit, 1);
    // A second refund returns nothing, since there is nothing left to return.
    for (let i = 0; i < 2; i++) {
      await stage.doBoth((store, index) => store.refund([chargeOf(entry, answers[index][0]!)]));
      await stage.take(limit, QUOTA, 'user:1', { peek: true });
    }
    await stage.take(limit, QUOTA);
  },

  'keeps identities apart': async ({ stage, limit }) => {
    for (const identity of IDENTITIES) await stage.take(limit, QUOTA, identity);
    for (const identity of IDENTITIES) strictEqual((await stage.take(limit, 1, identity)).allowed, false, identity);
  },

  'keeps the counters of other algorithms and names apart': async ({ stage, algo, limit: full, algorithms }) => {
    await stage.take(full, QUOTA);
    const others = algorithms.filter((other) => other !== algo).map((other) => limitOf(other, stage.id));
    for (const limit of [...others, limitOf(algo, `${stage.id}-two`)]) {
      for (const identity of ['user:1', 'user:2']) {
        const { remaining } = await stage.take(limit, 1, identity, { peek: true });
        strictEqual(remaining, QUOTA, `'${limit.algorithm.name}' shares a counter with '${algo}'`);
      }
    }
    strictEqual((await stage.take(full, 1, 'user:1', { peek: true })).remaining, 0);
    strictEqual((await stage.take(full, 1, 'user:2', { peek: true })).remaining, QUOTA);
  },

  'forgets a counter that is reset': async ({ stage, limit }) => {
    await stage.take(limit, QUOTA);
    await stage.doBoth((store) => store.reset([{ limit, identity: 'user:1' }]));
    strictEqual((await stage.take(limit, QUOTA)).allowed, true);
  },

  'refuses a key that is blocked, until it is not': async ({ stage, limit }) => {
    const block = (ms: number) => stage.doBoth((store) => store.block({ limit, identity: 'user:1' }, ms));
    await block(3_600_000);
    strictEqual((await stage.take(limit)).allowed, false);
    await block(0);
    strictEqual((await stage.take(limit)).allowed, true);
  },
};

const REFILL_CASES: typeof CASES = {
  'has its quota again when its interval is over': async ({ stage, algo }) => {
    // A store that takes longer than an interval for two calls may have refilled the quota in between, so it gets a longer interval.
    for (let intervalMs = SHORT_MS; !(await isRefilled(stage, algo, intervalMs)); intervalMs *= 2);
  },
};

/** The rules for one limit with each algorithm. */
export const oneLimitCases = (algo: AlgorithmName, algorithms: readonly AlgorithmName[]): Case[] =>
  Object.entries({ ...CASES, ...(REFILLED.includes(algo) && REFILL_CASES) }).map(([name, run]) => ({
    name: `${algo}: ${name}`,
    run: (stage) => run({ stage, algo, limit: limitOf(algo, stage.id), algorithms }),
  }));

/** Tests one interval. Returns false if the store was too slow for a result. */
async function isRefilled(stage: Stage, algo: AlgorithmName, intervalMs: number): Promise<boolean> {
  const limit = limitOf(algo, `${stage.id}-${intervalMs}`, `${intervalMs}ms`);
  const take = async (cost: number) => {
    const [decisions] = await stage.store.check([{ entries: [{ limit, identity: 'user:1', cost }] }]);
    return decisions![0]!.allowed;
  };
  strictEqual(await take(QUOTA), true);
  await stage.pass(2.5 * intervalMs);
  const since = stage.now();
  strictEqual(await take(QUOTA), true);
  const isAllowed = await take(QUOTA);
  const isFast = stage.now() - since < intervalMs * 1000;
  if (isFast) strictEqual(isAllowed, false);
  return isFast || !isAllowed;
}
