/** Decisions a second, by store and by load. */
import { ours, oursBare, oursInProcess, oursLeased, oursWith } from '../contenders/ours.mjs';
import {
  emptyScript,
  increment,
  rateLimiterFlexible,
  rateLimiterFlexibleInMemory,
  rateLimitRedis,
  throttler,
} from '../contenders/peers.mjs';
import { compare } from '../measure.mjs';

const PEERS = [ours, throttler, rateLimiterFlexible, rateLimitRedis];
const ALL = [...PEERS, oursBare, increment, emptyScript];

/** So much that nobody is refused. */
const wide = { rate: 1_000_000_000, intervalMs: 60_000 };
const three = [wide, { ...wide, intervalMs: 3_600_000 }, { ...wide, intervalMs: 86_400_000 }];

const ALGORITHMS = ['gcra', 'token-bucket', 'fixed-window', 'sliding-window', 'leaky-bucket'];

export async function decisions({ url, rounds, ms, only = '' }) {
  const common = { url, rounds, ms, limits: [wide], keys: 10_000 };
  const cases = [];
  const add = async (title, contenders, options) => {
    if (!title.includes(only)) return;
    const results = await compare(contenders, { ...common, ...options });
    cases.push({ title, results });
  };
  for (const inFlight of [1, 16, 256, 1024]) {
    await add(`10,000 keys, ${inFlight.toLocaleString('en')} in flight`, ALL, { inFlight });
  }
  await add('one hot key, 256 in flight', [...ALL, oursLeased], { inFlight: 256, keys: 1 });
  await add('three limits a request, 10,000 keys, 256 in flight', PEERS, { inFlight: 256, limits: three });
  await add('a flood of which 99 % is refused, 100 keys, 256 in flight', PEERS, {
    inFlight: 256,
    keys: 100,
    limits: [{ rate: 10, intervalMs: 1000 }],
  });
  await add('in process, 10,000 keys', [oursInProcess, rateLimiterFlexibleInMemory], { inFlight: 256, url: undefined });
  const each = ALGORITHMS.map((algo) => oursWith(algo, { ...wide, rate: 1_000_000, algo }));
  each.push(
    oursWith('calendar-window', { algo: 'calendar-window', rate: 1_000_000_000, period: 'day' }),
    oursWith('sliding-log', { algo: 'sliding-log', rate: 1_000_000, intervalMs: 1000 }),
  );
  await add('each algorithm, 10,000 keys, 256 in flight', each, { inFlight: 256 });
  return cases;
}
