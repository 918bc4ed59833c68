import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, type Duration, RedisStore } from '../../../lib/index.js';
import { CompiledLimit, type StoreDecision } from '../../../lib/testing/store/index.js';
import { connectRedis, freshPrefix, keyOf, ManualClock } from '../../support/limits/stores.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const IDENTITY = 'ip:203.0.113.7';
/** As much as is added to each time to live in production, for a server that stalls while it decides. */
const SLACK_MS = 1000;
/** So much of it may be gone: times are rounded. */
const ROUNDING_MS = 30;

let redis: Redis;
let prefix: string;
let store: RedisStore;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());
beforeEach(() => {
  prefix = freshPrefix();
  store = new RedisStore(redis, {
    clock: { now: new ManualClock().now, slackMs: SLACK_MS },
    prefix,
    timeoutMs: PATIENCE_MS,
  });
});

const compile = (options: AlgorithmOptions, name: string) => new CompiledLimit(options, { location: 'test', name });
const entry = (limit: CompiledLimit) => ({ limit, identity: IDENTITY, cost: 1 });
/** By the clock of the test, which stands still. */
const timeToLive = async (limit: CompiledLimit, began: number) =>
  (await redis.pttl(keyOf(prefix, entry(limit)))) + performance.now() - began;

const other = compile({ algo: 'gcra', rate: 1, interval: '1h' }, 'other');

const cases = (['sliding-window', 'sliding-log'] as const).flatMap((algo) =>
  ['alone', 'beside another limit', 'in a call with another operation'].map((how) => ({ algo, how })),
);

/** Short slices: a unit counts from the end of its slice. */
const limitOf = (algo: (typeof cases)[number]['algo'], rate: number, interval: Duration) =>
  compile({ algo, rate, interval, ...(algo === 'sliding-window' && { slices: 1000 }) } as AlgorithmOptions, 'one');

/** Checks a limit in one of the ways of the script. */
async function check(limit: CompiledLimit, how: string): Promise<StoreDecision> {
  const limits = how === 'beside another limit' ? [other, limit] : [limit];
  const [decisions] = await Promise.all([
    store.check([{ entries: limits.map(entry) }]),
    ...(how === 'in a call with another operation' ? [store.block(entry(other), 0)] : []),
  ]);
  return decisions[0]!.at(-1)!;
}

describe('the time to live of a counter that was stored under a shorter interval', () => {
  it.each(cases)('$algo: has all of its slack after a refusal, $how', async ({ algo, how }) => {
    const short = limitOf(algo, 1, 10_000);
    // By less than the slack: the key outlives the wait, unless something stalls.
    const long = limitOf(algo, 1, 10_900);
    await store.check([{ entries: [entry(long)] }]);
    await store.block(entry(short), 0);
    const began = performance.now();
    const { allowed, resetAfterMs } = await check(long, how);
    expect([allowed, resetAfterMs > 10_800]).toEqual([false, true]);
    expect(await timeToLive(long, began)).toBeGreaterThan(resetAfterMs + SLACK_MS - ROUNDING_MS);
  });

  it.each(cases.filter(({ how }) => how !== 'alone'))(
    '$algo: is as long as is told by a check that another limit refuses, $how',
    async ({ algo, how }) => {
      const short = limitOf(algo, 2, 10_000);
      const long = limitOf(algo, 2, '1h');
      await store.check([{ entries: [entry(long), entry(other)] }]);
      await store.block(entry(short), 0);
      const began = performance.now();
      const [decisions] = await Promise.all([
        store.check([{ entries: [entry(long), entry(other)] }]),
        ...(how === 'in a call with another operation' ? [store.block(entry(other), 0)] : []),
      ]);
      const [fitting, refusing] = decisions[0]!;
      expect([fitting!.allowed, refusing!.allowed, fitting!.remaining]).toEqual([true, false, 1]);
      expect(await timeToLive(long, began)).toBeGreaterThan(fitting!.resetAfterMs + SLACK_MS - ROUNDING_MS);
    },
  );
});

it.each(['gcra', 'token-bucket', 'sliding-window'] as const)(
  'a counter of %s that has other parameters than before lives with all of the slack by the clock of the server',
  async (algo) => {
    store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS });
    const [short, long] = [
      compile({ algo, rate: 1, interval: '1m' }, 'one'),
      compile({ algo, rate: 1, interval: '1h' }, 'one'),
    ];
    await store.check([{ entries: [entry(short)] }]);
    const began = performance.now();
    const [[decision]] = (await store.check([{ entries: [entry(long)] }])) as [[StoreDecision]];
    expect(decision.allowed).toBe(false);
    expect(await timeToLive(long, began)).toBeGreaterThan(decision.resetAfterMs + SLACK_MS - ROUNDING_MS);
  },
);
