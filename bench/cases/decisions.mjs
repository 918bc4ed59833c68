/** Decisions a second, by store and by load. */
import {
  emptyScript,
  increment,
  ours,
  oursInApp,
  oursInMemory,
  oursLeased,
  rateLimiterFlexible,
  rateLimiterFlexibleInMemory,
  rateLimitRedis,
  throttler,
} from '../contenders/limiters.mjs';
import { compare } from '../measure.mjs';

const ALL = [ours, throttler, rateLimiterFlexible, rateLimitRedis, increment, emptyScript];
const PEERS = [ours, throttler, rateLimiterFlexible, rateLimitRedis];

/** So much that nobody is refused. */
const wide = { rate: 1_000_000_000, intervalMs: 60_000 };
const three = [wide, { ...wide, intervalMs: 3_600_000 }, { ...wide, intervalMs: 86_400_000 }];

const ALGORITHMS = ['gcra', 'token-bucket', 'fixed-window', 'sliding-window', 'leaky-bucket'];

export async function decisions({ url, rounds, ms }) {
  const common = { url, rounds, ms, limits: [wide], keys: 10_000 };
  const cases = [];
  const add = async (title, contenders, options) => {
    const results = await compare(contenders, { ...common, ...options });
    cases.push({ title, results });
  };
  for (const inFlight of [1, 16, 256, 1024]) {
    await add(`10,000 keys, ${inFlight.toLocaleString('en')} in flight`, ALL, { inFlight });
  }
  await add('one hot key, 256 in flight', [...ALL, oursLeased], { inFlight: 256, keys: 1 });
  await add('three limits a request, 10,000 keys, 256 in flight', PEERS, { inFlight: 256, limits: three });
  await add('a flood of which 99 % is refused, 100 keys, 256 in flight', [...PEERS, oursInApp], {
    inFlight: 256,
    keys: 100,
    limits: [{ rate: 10, intervalMs: 1000 }],
  });
  await add('in process, 10,000 keys', [oursInMemory, rateLimiterFlexibleInMemory], { inFlight: 256 });
  const each = ALGORITHMS.map((algo) => ({
    ...ours,
    name: algo,
    unlimited: true,
    make: (to, [limit]) => ours.make(to, [{ ...limit, rate: 1_000_000, algo }]),
  }));
  each.push({
    ...ours,
    name: 'calendar-window',
    unlimited: true,
    make: (to) =>
      ours.make(to, [{ algo: 'calendar-window', rate: 1_000_000_000, period: 'day', intervalMs: undefined }]),
  });
  each.push({
    ...ours,
    name: 'sliding-log',
    unlimited: true,
    make: (to) => ours.make(to, [{ algo: 'sliding-log', rate: 1_000_000, intervalMs: 1000 }]),
  });
  await add('each algorithm, 10,000 keys, 256 in flight', each, { inFlight: 256 });
  return cases;
}
