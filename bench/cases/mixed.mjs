/** Checks of different limits, few at once, as the requests of an app are. */
import { mixed as inTheirTurns } from '../contenders/combine.mjs';
import { ours, oursFixed } from '../contenders/ours.mjs';
import { rateLimiterFlexible, throttler } from '../contenders/peers.mjs';
import { several } from '../limits.mjs';
import { compare } from '../measure.mjs';
import { lines } from '../report/chart.mjs';
import { capital, micros, table, thousands } from '../report/format.mjs';

const LIMITS = 20;
/** Has no divisor with the limits in common, so each key meets each limit. */
const KEYS = 499;
const IN_FLIGHT = [1, 4, 16, 64];
const CONTENDERS = [ours, oursFixed, rateLimiterFlexible, throttler];

/** Each counter is alive before it is timed. */
async function touch(check) {
  for (let key = 0; key < KEYS; key++) {
    await Promise.all(Array.from({ length: LIMITS }, () => check(`user:${key}`)));
  }
}

async function measure({ url, ms, rounds, profile, only = '' }) {
  const cases = [];
  for (const inFlight of IN_FLIGHT) {
    const title = `${LIMITS} limits, ${inFlight} in flight`;
    if (!title.includes(only)) continue;
    const options = { url, ms, rounds, profile, inFlight, keys: KEYS, limits: several(LIMITS) };
    cases.push({
      title,
      inFlight,
      results: await compare(CONTENDERS, { ...options, combine: inTheirTurns, prepare: touch }),
    });
  }
  return cases;
}

function section(cases, { chart, goalsOf, profileOf }) {
  const series = CONTENDERS.map(({ name }) => ({
    name,
    points: cases.map(({ inFlight, results }) => [
      inFlight,
      results.find((each) => each.name === name).serverCpuMicros,
    ]),
  }));
  const rows = cases.flatMap(({ inFlight, results }) => {
    const [first] = results;
    return results.map(({ name, perSecond, cpuMicros, serverCpuMicros, p50Micros, p99Micros }) => [
      inFlight,
      name,
      thousands(perSecond),
      `${(first.perSecond / perSecond).toFixed(2)} x`,
      micros(cpuMicros),
      micros(serverCpuMicros, 2),
      p50Micros === undefined ? '' : micros(p50Micros, 0),
      p99Micros === undefined ? '' : micros(p99Micros, 0),
    ]);
  });
  const head = ['in flight', '', 'decisions', `${ours.name} is`, 'client CPU each', 'Redis CPU each', 'p50', 'p99'];
  return [
    '## Mixed limits',
    `Each check is of the next of ${LIMITS} limits, and of one of ${KEYS} users; all counters are alive. The peers have fixed windows alone, so like is compared with like; token buckets store more.`,
    chart('mixed', lines(`${LIMITS} limits in turn`, series, { xName: 'in flight', yName: 'µs of Redis a decision' })),
    table(head, rows),
    ...goalsOf('mixed'),
    ...cases.flatMap(({ title, results }) => profileOf(capital(title), results[0].profile)),
  ];
}

export const mixed = { name: 'mixed', measure, section };
