/** How decisions grow with the masters of a Cluster. */
import { startClusterOf } from '../../cluster.mjs';
import { ours } from '../../contenders/ours.mjs';
import { rateLimiterFlexible } from '../../contenders/peers.mjs';
import { compareInstances } from '../../instances.mjs';
import { serverMicros } from '../../measure.mjs';
import { lines } from '../../report/chart.mjs';
import { micros, table, thousands } from '../../report/format.mjs';

/** One process would keep no more than one server busy. */
const INSTANCES = 2;

const CONTENDERS = [ours.name, rateLimiterFlexible.name];

async function measure({ ms, rounds, quick }) {
  const options = { count: INSTANCES, keys: 10_000, inFlight: 256, ms, rounds };
  const points = [];
  for (const masters of quick ? [1, 3] : [1, 3, 6]) {
    const { nodes, connections, stop } = await startClusterOf(masters);
    try {
      const microsOfEach = () => Promise.all(connections.map(serverMicros));
      const results = await compareInstances(CONTENDERS, { ...options, target: { nodes }, microsOfEach });
      // The busiest node is full first.
      for (const result of results) points.push({ masters, capacity: 1e6 / result.busiestMicros, ...result });
    } finally {
      await stop();
    }
  }
  return points;
}

function section(points, { chart, goalsOf }) {
  const names = [...new Set(points.map(({ name }) => name))];
  const series = names.map((name) => ({
    name,
    points: points.filter((point) => point.name === name).map(({ masters, capacity }) => [masters, capacity / 1000]),
  }));
  const axes = { xName: 'masters', yName: 'k decisions/s', log: false };
  return [
    '## As a Cluster grows',
    `${INSTANCES} processes, 10,000 keys in as many slots as may be, 256 checks in flight each. All nodes and processes share the processors, so decisions a second cannot grow here: the capacity is what the nodes could decide, each with a core to itself, until the busiest one is full.`,
    chart('growth-cluster', lines('capacity of a Cluster', series, axes)),
    table(
      ['masters', '', 'decisions here', 'client CPU each', 'Redis CPU each', 'capacity'],
      points.map(({ name, masters, perSecond, cpuMicros, serverCpuMicros, capacity }) => [
        masters,
        name,
        thousands(perSecond),
        micros(cpuMicros),
        micros(serverCpuMicros, 2),
        thousands(capacity),
      ]),
    ),
    ...goalsOf('growth:cluster'),
  ];
}

export const cluster = { name: 'growth:cluster', measure, section };
