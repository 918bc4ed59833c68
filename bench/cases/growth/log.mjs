/** How cost grows with the requests that a sliding log remembers. */
import { ours } from '../../contenders/ours.mjs';
import { compare } from '../../measure.mjs';
import { lines } from '../../report/chart.mjs';
import { micros, table, thousands, whole } from '../../report/format.mjs';
import { looking, usedBytes } from '../../servers.mjs';

const HOUR_MS = 3_600_000;
/** So many requests are remembered, by all keys together. */
const REMEMBERED = 1_000_000;

function measure({ url, ms, rounds, quick }) {
  return looking(url, async (redis) => {
    const points = [];
    for (const rate of quick ? [10, 10_000] : [10, 100, 1000, 10_000, 100_000, 1_000_000]) {
      const keys = Math.max(1, Math.min(10_000, Math.floor(REMEMBERED / rate)));
      const limits = [{ algo: 'sliding-log', rate, intervalMs: HOUR_MS }];
      // Where the rate is low, some are used up meanwhile.
      const options = { url, rounds, ms, inFlight: 256, keys, limits, refused: [0, 1] };
      const [{ perSecond, cpuMicros, serverCpuMicros, refused }] = await compare([ours], options);
      points.push({ rate, keys, perSecond, cpuMicros, serverCpuMicros, refused, bytes: await usedBytes(redis) });
    }
    return points;
  });
}

function section(points, { chart }) {
  const line = (name, field) => ({ name, points: points.map((point) => [point.rate, point[field]]) });
  const series = [line('Redis CPU', 'serverCpuMicros'), line('client CPU', 'cpuMicros')];
  return [
    '## As a sliding log grows',
    'A log remembers each request of an hour. Where the rate is low, the logs are full soon, and the rest is refused.',
    chart('growth-log', lines('processor time as a log grows', series, { xName: 'rate', yName: 'µs a decision' })),
    table(
      ['rate', 'keys', 'decisions', 'refused', 'client CPU each', 'Redis CPU each', 'Redis memory'],
      points.map(({ rate, keys, perSecond, refused, cpuMicros, serverCpuMicros, bytes }) => [
        whole(rate),
        whole(keys),
        thousands(perSecond),
        `${(100 * refused).toFixed(0)} %`,
        micros(cpuMicros),
        micros(serverCpuMicros, 2),
        `${(bytes / 1e6).toFixed(0)} MB`,
      ]),
    ),
  ];
}

export const log = { name: 'growth:log', measure, section };
