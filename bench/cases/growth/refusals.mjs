/** How cost changes with the share of checks that is refused. */
import { ours } from '../../contenders/ours.mjs';
import { rateLimiterFlexible, rateLimiterFlexibleBlocking, throttler } from '../../contenders/peers.mjs';
import { steady } from '../../limits.mjs';
import { compare, keysOf } from '../../measure.mjs';
import { lines } from '../../report/chart.mjs';
import { micros, percent, table, thousands } from '../../report/format.mjs';

const CONTENDERS = [ours, throttler, rateLimiterFlexible, rateLimiterFlexibleBlocking];
const GREEDY_KEYS = 20;
/** The measured share may be so far off: a unit of a greedy key may come back meanwhile. */
const TOLERANCE = 0.02;

const greedy = (index) => `greedy:${index % GREEDY_KEYS}`;

/** Some keys ask more than they may, until they are refused. */
async function useUp(check) {
  for (let key = 0; key < GREEDY_KEYS; key++) {
    const asked = Array.from({ length: steady.rate }, () => check(greedy(key)));
    await Promise.all(asked);
    if (await check(greedy(key))) throw new Error(`${greedy(key)} is not refused`);
  }
}

async function measure({ url, ms, rounds, quick }) {
  const points = [];
  const inOrder = keysOf(10_000);
  for (const share of quick ? [0, 0.9] : [0, 0.1, 0.5, 0.9, 0.99]) {
    const keyOf = (index) => (index % 100 < 100 * share ? greedy(index) : inOrder(index));
    const refused = [Math.max(0, share - TOLERANCE), share === 0 ? 0 : share + TOLERANCE];
    const options = { url, rounds, ms, inFlight: 256, limits: [steady], keyOf, refused, prepare: useUp };
    for (const result of await compare(CONTENDERS, options)) points.push({ share, ...result });
  }
  return points;
}

function section(points, { chart }) {
  const names = [...new Set(points.map(({ name }) => name))];
  const series = names.map((name) => ({
    name,
    points: points
      .filter((point) => point.name === name)
      .map(({ share, cpuMicros, serverCpuMicros }) => [100 * share, cpuMicros + serverCpuMicros]),
  }));
  const axes = { xName: '% refused', yName: 'µs a check', log: false };
  return [
    '## As more is refused',
    `10,000 keys that are allowed, and ${GREEDY_KEYS} that have used up their limit; 256 in flight. Keys that are refused until a known time are refused in process.`,
    chart('growth-refusals', lines('processor time of client and Redis as refusals grow', series, axes)),
    table(
      ['refused', '', 'checks', 'client CPU each', 'Redis CPU each'],
      points.map(({ share, name, perSecond, cpuMicros, serverCpuMicros }) => [
        percent(share),
        name,
        thousands(perSecond),
        micros(cpuMicros),
        micros(serverCpuMicros, 2),
      ]),
    ),
  ];
}

export const refusals = { name: 'growth:refusals', measure, section };
