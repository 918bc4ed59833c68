import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { AlgorithmName } from '../../../engine/algorithms/index.js';
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

/** The rules for one limit with each algorithm. */
export const oneLimitCases = (algo: AlgorithmName, algorithms: readonly AlgorithmName[]): Case[] => [
  {
    name: `${algo}: lets through what its quota holds, and says what is left`,
    async run(stage) {
      const limit = limitOf(algo, stage.id);
      const allowed: boolean[] = [];
      for (let i = 0; i < QUOTA + 3; i++) allowed.push((await stage.take(limit)).allowed);
      deepStrictEqual(allowed, [true, true, true, true, true, false, false, false]);
    },
  },
  {
    name: `${algo}: takes several units or none`,
    async run(stage) {
      const limit = limitOf(algo, stage.id);
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
  },
  {
    name: `${algo}: never allows a cost above the quota, and charges nothing for it`,
    async run(stage) {
      const limit = limitOf(algo, stage.id);
      const { allowed, quota, remaining, retryAfterMs, resetAfterMs } = await stage.take(limit, QUOTA + 1);
      deepStrictEqual([allowed, quota, remaining, retryAfterMs, resetAfterMs], [false, QUOTA, QUOTA, Infinity, 0]);
      const next = await stage.take(limit, QUOTA);
      deepStrictEqual([next.allowed, next.remaining], [true, 0]);
    },
  },
  {
    name: `${algo}: looks without a trace`,
    async run(stage) {
      const limit = limitOf(algo, stage.id);
      for (let i = 0; i < QUOTA + 3; i++) await stage.take(limit, 1, 'user:1', { peek: true });
      await stage.take(limit, 0);
      strictEqual((await stage.take(limit, QUOTA)).allowed, true);
    },
  },
  {
    name: `${algo}: never lets more through than its quota, no matter how many check at once`,
    run: (stage) => atOnce(stage, algo),
  },
  {
    name: `${algo}: gives units back, at most those that were taken`,
    async run(stage) {
      const limit = limitOf(algo, stage.id);
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
  },
  {
    name: `${algo}: keeps identities apart`,
    async run(stage) {
      const limit = limitOf(algo, stage.id);
      for (const identity of IDENTITIES) await stage.take(limit, QUOTA, identity);
      for (const identity of IDENTITIES) strictEqual((await stage.take(limit, 1, identity)).allowed, false, identity);
    },
  },
  {
    name: `${algo}: keeps the counters of other algorithms and names apart`,
    async run(stage) {
      const full = limitOf(algo, stage.id);
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
  },
  {
    name: `${algo}: forgets a counter that is reset`,
    async run(stage) {
      const limit = limitOf(algo, stage.id);
      const counters = [{ limit, identity: 'user:1' }];
      await stage.take(limit, QUOTA);
      await stage.doBoth((store) => store.reset(counters));
      strictEqual((await stage.take(limit, QUOTA)).allowed, true);
    },
  },
  {
    name: `${algo}: refuses a key that is blocked, until it is not`,
    async run(stage) {
      const limit = limitOf(algo, stage.id);
      const counter = { limit, identity: 'user:1' };
      const block = (ms: number) => stage.doBoth((store) => store.block(counter, ms));
      await block(3_600_000);
      strictEqual((await stage.take(limit)).allowed, false);
      await block(0);
      strictEqual((await stage.take(limit)).allowed, true);
    },
  },
  ...(REFILLED.includes(algo) ? [refilled(algo)] : []),
];

async function atOnce(stage: Stage, algo: AlgorithmName): Promise<void> {
  const limit = limitOf(algo, stage.id);
  const check = { entries: [{ limit, identity: 'user:1', cost: 1 }] };
  const answers = await Promise.all(Array.from({ length: 4 * QUOTA }, () => stage.store.check([check])));
  strictEqual(answers.filter(([decisions]) => decisions![0]!.allowed).length, QUOTA);
}

const refilled = (algo: AlgorithmName): Case => ({
  name: `${algo}: has its quota again when its interval is over`,
  async run(stage) {
    // A store that takes longer than an interval for two calls may have refilled the quota in between, so it gets a longer interval.
    for (let intervalMs = SHORT_MS; !(await isRefilled(stage, algo, intervalMs)); intervalMs *= 2);
  },
});

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
