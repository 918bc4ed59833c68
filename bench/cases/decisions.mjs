/** Decisions a second, by store and by load. */
import { ours, oursBare, oursLeased, ourThrottlerStorage, oursWith } from '../contenders/ours.mjs';
import {
  emptyScript,
  increment,
  rateLimiterFlexible,
  rateLimiterFlexibleBlocking,
  rateLimitRedis,
  throttler,
  throttlerOnNodeRedis,
} from '../contenders/peers.mjs';
import { hot, steady, three } from '../limits.mjs';
import { compare } from '../measure.mjs';
import { rateBars } from '../report/chart.mjs';
import { capital, micros, table, thousands } from '../report/format.mjs';

const PEERS = [ours, throttler, rateLimiterFlexible, rateLimitRedis];
const ALL = [...PEERS, throttlerOnNodeRedis, ourThrottlerStorage, oursBare, increment, emptyScript];

const ALGORITHMS = ['gcra', 'token-bucket', 'fixed-window', 'sliding-window', 'leaky-bucket'];

/** `only` is a part of the title of what is timed. */
async function measure({ url, rounds, ms, profile, only = '' }) {
  const common = { url, rounds, ms, limits: [steady], keys: 10_000, profile };
  const cases = [];
  const add = async (title, contenders, options) => {
    if (!title.includes(only)) return;
    const results = await compare(contenders, { ...common, ...options });
    cases.push({ title, results });
  };
  for (const inFlight of [1, 16, 256, 1024]) {
    const contenders = inFlight === 1024 ? PEERS : ALL;
    await add(`10,000 keys, ${inFlight.toLocaleString('en')} in flight`, contenders, { inFlight });
  }
  await add('one hot key, 256 in flight', [...ALL, oursLeased], { inFlight: 256, keys: 1, limits: [hot] });
  await add('three limits a request, 10,000 keys, 256 in flight', [...PEERS, oursBare], {
    inFlight: 256,
    limits: three,
  });
  await add(
    'a flood of which 99 % is refused, 100 keys, 256 in flight',
    [...PEERS, oursBare, rateLimiterFlexibleBlocking],
    {
      inFlight: 256,
      keys: 100,
      limits: [{ rate: 10, intervalMs: 10_000 }],
      // A slower machine allows more of it.
      refused: [0.95, 1],
    },
  );
  const each = ALGORITHMS.map((algo) => oursWith(algo, { ...steady, algo }));
  each.push(
    oursWith('calendar-window', { algo: 'calendar-window', rate: 1_000_000_000, period: 'year' }),
    oursWith('sliding-log', { algo: 'sliding-log', rate: 1_000_000, intervalMs: 1000 }),
  );
  await add('each algorithm, 10,000 keys, 256 in flight', each, { inFlight: 256, profile: false });
  return cases;
}

function caseOf({ title, results }, { goalsOf, profileOf }) {
  const [first] = results;
  const timed = first.p50Micros !== undefined;
  const rows = results.map(({ name, perSecond, cpuMicros, serverCpuMicros, p50Micros, p99Micros }) => [
    name,
    thousands(perSecond),
    `${(first.perSecond / perSecond).toFixed(2)} x`,
    micros(cpuMicros),
    micros(serverCpuMicros, 2),
    ...(timed ? [micros(p50Micros, 0), micros(p99Micros, 0)] : []),
  ]);
  const head = [
    '',
    'decisions',
    `${first.name} is`,
    'client CPU each',
    'Redis CPU each',
    ...(timed ? ['p50', 'p99'] : []),
  ];
  return [
    `### ${capital(title)}`,
    table(head, rows),
    ...goalsOf('decisions', title),
    ...profileOf(title, first.profile),
  ];
}

function section(cases, page) {
  const charts = [
    ['keys', '10,000 keys, 256 in flight'],
    ['hot', 'one hot key, 256 in flight'],
  ].flatMap(([name, title]) => {
    const found = cases.find((each) => each.title === title);
    return found === undefined ? [] : [page.chart(name, rateBars(title, found.results))];
  });
  return [
    '## Decisions',
    'One limit, or a few a check, asked much. The counters of all keys are alive: each decision goes on from a state, as those of an app do. Nobody is refused, except where noted.',
    ...charts,
    ...cases.flatMap((each) => caseOf(each, page)),
  ];
}

export const decisions = { name: 'decisions', measure, section };
