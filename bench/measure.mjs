/** How contenders are timed: in alternating rounds, so that what disturbs the machine disturbs them alike. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { profiled } from './profile.mjs';

/** The first thousands of decisions are much slower: code is compiled, and scripts are loaded. */
export const WARM_UP_MS = 1000;
/** What is decided in process costs no more than a look at the clock, so that is done only now and then. */
const LOOK_EVERY = 16;
/** How often a round is made before it is given up, and how long the machine has to calm down. */
const MAX_TRIES = 5;
const PAUSE_MS = 3000;
/** Counters are made so many at a time. */
const FILLING = { keys: 50_000, inFlight: 256 };
const noStrays = () => ({ count: 0 });

export const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** Spreads the checks of a round over all keys, each as often. */
export const keysOf = (count) => (index) => `user:${(index * 7919) % count}`;

/**
 * One round: so many checks in flight for so long.
 * @returns decisions a second, the processor time of this process and of the servers for each, and the share that was refused
 */
export async function round(check, { inFlight, keyOf, ms, latencies, servers = [] }) {
  let count = 0;
  let next = 0;
  let refused = 0;
  const before = await microsOf(servers);
  const cpu = process.cpuUsage();
  const start = performance.now();
  const end = start + ms;
  const timed = async () => {
    while (performance.now() < end) {
      const asked = performance.now();
      if (!(await check(keyOf(next++)))) refused++;
      latencies.push(performance.now() - asked);
      count++;
    }
  };
  const counted = async () => {
    while (performance.now() < end) {
      for (let i = 0; i < LOOK_EVERY; i++) if (!(await check(keyOf(next++)))) refused++;
      count += LOOK_EVERY;
    }
  };
  const lane = latencies === undefined ? counted : timed;
  await Promise.all(Array.from({ length: inFlight }, lane));
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const serverMicros = (await microsOf(servers)) - before;
  return {
    count,
    perSecond: count / seconds,
    cpuMicros: (user + system) / count,
    serverCpuMicros: serverMicros / count,
    refused: refused / count,
  };
}

/**
 * A round of a contender that its store alone decided: on a machine that stood still for longer than the deadline, what decided
 * instead is not what is timed, so the round is made anew.
 */
export async function roundOf({ check, takeStrays = noStrays }, options) {
  for (let tries = 1; ; tries++) {
    takeStrays();
    const latencies = options.inFlight === 1 ? [] : undefined;
    const result = await round(check, { ...options, latencies });
    const strays = takeStrays();
    if (strays.count === 0) return latencies === undefined ? result : { ...result, ...percentiles(latencies) };
    if (tries === MAX_TRIES) {
      throw new Error(`${strays.count} of ${result.count} checks were decided elsewhere, or failed`, {
        cause: strays.error,
      });
    }
    await sleep(PAUSE_MS);
  }
}

function percentiles(latencies) {
  latencies.sort((a, b) => a - b);
  const at = (share) => latencies[Math.floor(latencies.length * share)] * 1000;
  return { p50Micros: at(0.5), p99Micros: at(0.99) };
}

/** Asks once of each of these keys, so that each has a counter on the server. */
export async function fill({ check, takeStrays = noStrays }, from, to) {
  for (let start = from; start < to; start += FILLING.keys) {
    const end = Math.min(to, start + FILLING.keys);
    for (let tries = 1; ; tries++) {
      takeStrays();
      let next = start;
      const lane = async () => {
        while (next < end) await check(`user:${next++}`);
      };
      await Promise.all(Array.from({ length: FILLING.inFlight }, lane));
      const { count, error } = takeStrays();
      if (count === 0) break;
      if (tries === MAX_TRIES) throw new Error(`${count} counters were not made`, { cause: error });
      await sleep(PAUSE_MS);
    }
  }
}

/** The processor time that servers have used. */
export async function microsOf(servers) {
  const all = await Promise.all(servers.map(serverMicros));
  return all.reduce((sum, micros) => sum + micros, 0);
}

/** The processor time that a server has used. */
export async function serverMicros(redis) {
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

/** A round is one of refusals if it was meant to be, or it times something else. */
function assertRefused(name, { refused }, [least, most]) {
  if (refused >= least && refused <= most) return;
  throw new Error(`${name} refused ${(100 * refused).toFixed(1)} %, which is not from ${least} to ${most}`);
}

/**
 * Times contenders side by side. `combine` makes one check of those of several limits, `prepare` is called with each one's check
 * before. The first one is profiled if that is wanted.
 * @returns for each its medians: decisions a second, client CPU a decision, and latencies if one is in flight
 */
export async function compare(contenders, options) {
  const {
    url,
    limits,
    inFlight,
    keys,
    rounds,
    ms,
    keyOf = keysOf(keys),
    refused = [0, 0],
    combine,
    prepare,
    profile,
  } = options;
  const redis = url === undefined ? undefined : new Redis(url);
  const servers = redis === undefined ? [] : [redis];
  await redis?.flushall();
  for (const contender of contenders) await assertLimits(contender, url);
  const runs = [];
  for (const contender of contenders)
    runs.push({ contender, ...(await contender.make(url, limits, combine)), results: [] });
  for (const { check } of runs) await prepare?.(check);
  for (const run of runs) await round(run.check, { inFlight, keyOf, ms: WARM_UP_MS });
  for (let i = 0; i < rounds; i++) {
    for (const run of i % 2 === 0 ? runs : runs.toReversed()) {
      const result = await roundOf(run, { inFlight, keyOf, ms, servers });
      assertRefused(run.contender.name, result, refused);
      run.results.push(result);
    }
  }
  const [first] = runs;
  const top = profile ? await profiled(() => round(first.check, { inFlight, keyOf, ms })) : undefined;
  for (const { close } of runs) await close();
  await redis?.quit();
  return runs.map((run) => {
    const { contender, results } = run;
    const of = (field) => median(results.map((result) => result[field]));
    return {
      name: contender.name,
      perSecond: of('perSecond'),
      cpuMicros: of('cpuMicros'),
      refused: of('refused'),
      ...(redis !== undefined && { serverCpuMicros: of('serverCpuMicros') }),
      ...(inFlight === 1 && { p50Micros: of('p50Micros'), p99Micros: of('p99Micros') }),
      ...(run === first && top !== undefined && { profile: top }),
    };
  });
}
