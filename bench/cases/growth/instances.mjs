/** How decisions grow with the processes that share one server. */
import { ours } from '../../contenders/ours.mjs';
import { rateLimiterFlexible } from '../../contenders/peers.mjs';
import { compareInstances } from '../../instances.mjs';
import { serverMicros } from '../../measure.mjs';
import { lines } from '../../report/chart.mjs';
import { micros, table, thousands } from '../../report/format.mjs';
import { looking } from '../../servers.mjs';

const CONTENDERS = [ours.name, rateLimiterFlexible.name];

function measure({ url, ms, rounds, quick }) {
  return looking(url, async (redis) => {
    const microsOfEach = async () => [await serverMicros(redis)];
    const options = { target: url, keys: 10_000, inFlight: 256, ms, rounds, microsOfEach };
    const points = [];
    for (const count of quick ? [1, 2] : [1, 2, 4]) {
      await redis.flushall();
      for (const result of await compareInstances(CONTENDERS, { ...options, count })) points.push({ count, ...result });
    }
    return points;
  });
}

function section(points, { chart }) {
  const names = [...new Set(points.map(({ name }) => name))];
  const series = names.map((name) => ({
    name,
    points: points.filter((point) => point.name === name).map(({ count, perSecond }) => [count, perSecond / 1000]),
  }));
  const axes = { xName: 'instances', yName: 'k decisions/s', log: false };
  return [
    '## As instances grow',
    'Processes that share one server and the same 10,000 keys, 256 checks in flight each. They share the processors with the server, so the Redis CPU of a decision tells how many more instances it could serve.',
    chart('growth-instances', lines('decisions of all instances', series, axes)),
    table(
      ['instances', '', 'decisions of all', 'client CPU each', 'Redis CPU each', 'a server with a core to itself'],
      points.map(({ name, count, perSecond, cpuMicros, serverCpuMicros }) => [
        count,
        name,
        thousands(perSecond),
        micros(cpuMicros),
        micros(serverCpuMicros, 2),
        thousands(1e6 / serverCpuMicros),
      ]),
    ),
  ];
}

export const instances = { name: 'growth:instances', measure, section };
