/** How cost grows with the limits of a check. */
import { ours } from '../../contenders/ours.mjs';
import { several } from '../../limits.mjs';
import { compare } from '../../measure.mjs';
import { lines } from '../../report/chart.mjs';
import { micros, table, thousands } from '../../report/format.mjs';

async function measure({ url, ms, rounds, quick }) {
  const points = [];
  for (const count of quick ? [1, 3] : [1, 2, 3, 5, 10]) {
    const options = { url, rounds, ms, inFlight: 256, keys: 10_000, limits: several(count) };
    const [{ perSecond, cpuMicros, serverCpuMicros }] = await compare([ours], options);
    points.push({ count, perSecond, cpuMicros, serverCpuMicros });
  }
  return points;
}

function section(points, { chart }) {
  const line = (name, field) => ({ name, points: points.map((point) => [point.count, point[field]]) });
  const series = [line('Redis CPU', 'serverCpuMicros'), line('client CPU', 'cpuMicros')];
  const axes = { xName: 'limits', yName: 'µs a check', log: false };
  return [
    '## As a check has more limits',
    '10,000 keys, 256 in flight.',
    chart('growth-limits', lines('processor time as limits grow', series, axes)),
    table(
      ['limits of a check', 'checks', 'client CPU each', 'Redis CPU each', 'Redis CPU a limit'],
      points.map(({ count, perSecond, cpuMicros, serverCpuMicros }) => [
        count,
        thousands(perSecond),
        micros(cpuMicros),
        micros(serverCpuMicros, 2),
        micros(serverCpuMicros / count, 2),
      ]),
    ),
  ];
}

export const limits = { name: 'growth:limits', measure, section };
