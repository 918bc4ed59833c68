/** How contenders are timed: in alternating rounds, so that what disturbs the machine disturbs them alike. */
import { Redis } from 'ioredis';

/** The first thousands of decisions are much slower: code is compiled, and scripts are loaded. */
const WARM_UP_MS = 1500;
/** What is decided in process costs no more than a look at the clock, so that is done only now and then. */
const LOOK_EVERY = 16;

export const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** One round: so many checks in flight for so long. */
async function round(check, { inFlight, keyOf, ms, latencies, redis }) {
  let count = 0;
  let next = 0;
  const serverCpu = await serverMicros(redis);
  const cpu = process.cpuUsage();
  const start = performance.now();
  const end = start + ms;
  const timed = async () => {
    while (performance.now() < end) {
      const asked = performance.now();
      await check(keyOf(next++));
      latencies.push(performance.now() - asked);
      count++;
    }
  };
  const counted = async () => {
    while (performance.now() < end) {
      for (let i = 0; i < LOOK_EVERY; i++) await check(keyOf(next++));
      count += LOOK_EVERY;
    }
  };
  const lane = latencies === undefined ? counted : timed;
  await Promise.all(Array.from({ length: inFlight }, lane));
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const serverCpuMicros = ((await serverMicros(redis)) - serverCpu) / count;
  return { perSecond: count / seconds, cpuMicros: (user + system) / count, serverCpuMicros };
}

/** The processor time that the server has used. */
export async function serverMicros(redis) {
  if (redis === undefined) return 0;
  const info = await redis.info('cpu');
  return [/used_cpu_sys:([\d.]+)/, /used_cpu_user:([\d.]+)/].reduce((sum, part) => sum + part.exec(info)[1] * 1e6, 0);
}

/** Refuses to time what does not limit: of quota + 5 requests of one key exactly the quota has to pass. */
async function assertLimits(contender, url) {
  if (contender.unlimited) return;
  const quota = 7;
  const { check, close } = await contender.make(url, [{ rate: quota, intervalMs: 3_600_000 }]);
  const passed = [];
  for (let i = 0; i < quota + 5; i++) passed.push(await check('proof'));
  await close();
  if (passed.filter(Boolean).length !== quota || passed.lastIndexOf(true) !== quota - 1) {
    throw new Error(
      `${contender.name} does not limit: of ${passed.length} requests it let ${passed.filter(Boolean).length} pass`,
    );
  }
}

/**
 * Times contenders side by side.
 * @returns for each its medians: decisions a second, client CPU a decision, and latencies if one is in flight
 */
export async function compare(contenders, { url, limits, inFlight, keys, rounds, ms }) {
  const redis = url === undefined ? undefined : new Redis(url);
  await redis?.flushall();
  for (const contender of contenders) await assertLimits(contender, url);
  const runs = [];
  for (const contender of contenders) runs.push({ contender, ...(await contender.make(url, limits)), results: [] });
  const names = Array.from({ length: keys }, (_, i) => `user:${i}`);
  const keyOf = (index) => names[(index * 7919) % keys];
  for (const run of runs) await round(run.check, { inFlight, keyOf, ms: WARM_UP_MS });
  for (let i = 0; i < rounds; i++) {
    for (const run of i % 2 === 0 ? runs : runs.toReversed()) {
      const latencies = inFlight === 1 ? [] : undefined;
      const result = await round(run.check, { inFlight, keyOf, ms, latencies, redis });
      if (latencies !== undefined) {
        latencies.sort((a, b) => a - b);
        result.p50Micros = latencies[Math.floor(latencies.length * 0.5)] * 1000;
        result.p99Micros = latencies[Math.floor(latencies.length * 0.99)] * 1000;
      }
      run.results.push(result);
    }
  }
  for (const { close } of runs) await close();
  await redis?.quit();
  return runs.map(({ contender, results }) => {
    const of = (field) => median(results.map((result) => result[field]));
    return {
      name: contender.name,
      perSecond: of('perSecond'),
      cpuMicros: of('cpuMicros'),
      ...(redis !== undefined && { serverCpuMicros: of('serverCpuMicros') }),
      ...(inFlight === 1 && { p50Micros: of('p50Micros'), p99Micros: of('p99Micros') }),
    };
  });
}
