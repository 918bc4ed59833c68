/** How cost grows with the counters that are alive on the server. */
import { ours } from '../../contenders/ours.mjs';
import { steady } from '../../limits.mjs';
import { fill, keysOf, median, round, roundOf, WARM_UP_MS } from '../../measure.mjs';
import { lines } from '../../report/chart.mjs';
import { micros, table, thousands, whole } from '../../report/format.mjs';
import { looking, usedBytes } from '../../servers.mjs';

const IN_FLIGHT = 256;

function measure({ url, ms, rounds, quick }) {
  return looking(url, async (redis) => {
    await redis.flushall();
    const asked = await ours.make(url, [steady]);
    await round(asked.check, { inFlight: IN_FLIGHT, keyOf: keysOf(1000), ms: WARM_UP_MS });
    await redis.flushall();
    const empty = await usedBytes(redis);
    const points = [];
    let made = 0;
    for (const keys of quick ? [10_000, 100_000] : [10_000, 100_000, 1_000_000, 10_000_000]) {
      await fill(asked, made, keys);
      made = keys;
      const alive = await redis.dbsize();
      if (alive !== keys) throw new Error(`${alive} keys are alive instead of ${keys}`);
      const bytes = ((await usedBytes(redis)) - empty) / keys;
      const results = [];
      for (let i = 0; i < rounds; i++) {
        results.push(await roundOf(asked, { inFlight: IN_FLIGHT, keyOf: keysOf(keys), ms, servers: [redis] }));
      }
      const of = (field) => median(results.map((result) => result[field]));
      const [perSecond, cpuMicros, serverCpuMicros] = ['perSecond', 'cpuMicros', 'serverCpuMicros'].map(of);
      points.push({ keys, perSecond, cpuMicros, serverCpuMicros, bytes });
    }
    await asked.close();
    await redis.flushall();
    return points;
  });
}

function section(points, { chart }) {
  const line = (name, field) => ({ name, points: points.map((point) => [point.keys, point[field]]) });
  const series = [line('Redis CPU', 'serverCpuMicros'), line('client CPU', 'cpuMicros')];
  const svg = lines('processor time as keys grow', series, { xName: 'keys', yName: 'µs a decision' });
  return [
    '## As keys grow',
    'All keys are alive, and asked in turn; 256 checks in flight. The bytes are all that the server keeps for a key, with its place in the table.',
    chart('growth-keys', svg),
    table(
      ['keys', 'decisions', 'client CPU each', 'Redis CPU each', 'bytes a key'],
      points.map(({ keys, perSecond, cpuMicros, serverCpuMicros, bytes }) => [
        whole(keys),
        thousands(perSecond),
        micros(cpuMicros),
        micros(serverCpuMicros, 2),
        bytes.toFixed(0),
      ]),
    ),
  ];
}

export const keys = { name: 'growth:keys', measure, section };
