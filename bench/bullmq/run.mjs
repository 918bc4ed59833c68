/** One run of one contender: adds the jobs, lets the workers go, kills one of them in the middle, and gathers what happened. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { serverMicros } from '../measure.mjs';
import { looking } from '../servers.mjs';
import { contenders } from './contenders.mjs';
import { STARTS, DELAYS } from './recording.mjs';

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));
const QUEUE = 'bench';
/** A tenant's jobs come so many at a time. */
const BATCH = 10;
const CHUNK = 1000;
const POLL_MS = 100;

/**
 * Runs all jobs of a contender.
 * @returns the starts, the delays of each job, what became of the jobs, and what it cost
 */
export async function runJobs(terms) {
  const { redisUrl, startsUrl, jobs, workers, kill, timeoutMs } = terms;
  const queue = new Queue(QUEUE, { connection: connectionOf(redisUrl) });
  const starts = new Redis(startsUrl);
  const children = [];
  try {
    await addJobs(queue, terms);
    const before = await looking(redisUrl, costOf);
    for (let index = 0; index < workers; index++) children.push(await startWorker(terms, index));
    const beganMicros = await timeOf(starts);
    for (const child of children) child.send('go');
    const deadline = performance.now() + timeoutMs;
    let killed = !kill;
    let done = 0;
    while (done < jobs && performance.now() < deadline) {
      await sleep(POLL_MS);
      if (!killed && (await starts.llen(STARTS)) > jobs / 2) {
        killed = true;
        children[0].kill('SIGKILL');
      }
      const counts = await queue.getJobCounts('completed', 'failed');
      done = counts.completed + counts.failed;
    }
    const after = await looking(redisUrl, costOf);
    const cpuMicros = await endWorkers(children);
    const counts = await queue.getJobCounts();
    const delays = await starts.hgetall(DELAYS);
    return {
      beganMicros,
      endedMicros: await timeOf(starts),
      starts: (await starts.lrange(STARTS, 0, -1)).map((line) => JSON.parse(line)),
      delays: Object.values(delays).map(Number),
      counts,
      cpuMicros,
      serverMicros: after.micros - before.micros,
      calls: after.calls - before.calls,
    };
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await queue.close();
    starts.disconnect();
  }
}

async function addJobs(queue, { jobs, tenants, contender }) {
  const { jobOptions } = contenders[contender];
  const batches = shuffled(Array.from({ length: Math.ceil(jobs / BATCH) }, (_, batch) => batch % tenants));
  const all = batches.flatMap((tenant) => Array.from({ length: BATCH }, () => tenant)).slice(0, jobs);
  const listed = all.map((tenant, index) => ({
    name: 'call',
    data: { tenant },
    opts: { jobId: `j${index}`, ...jobOptions },
  }));
  for (let from = 0; from < jobs; from += CHUNK) await queue.addBulk(listed.slice(from, from + CHUNK));
}

/** The same order in each run. */
function shuffled(values) {
  let seed = 1;
  const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
  for (let last = values.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [values[last], values[other]] = [values[other], values[last]];
  }
  return values;
}

async function startWorker(terms, index) {
  const child = fork(WORKER, [JSON.stringify({ ...terms, index, queue: QUEUE })]);
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`a worker ended with ${code}`)));
  await Promise.race([once(child, 'message'), ended]);
  // One that ends later was killed, or told to.
  ended.catch(() => undefined);
  return child;
}

/** Tells them to stop; what a killed one has used is not known. */
async function endWorkers(children) {
  const running = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
  const answers = running.map(async (child) => {
    const answer = once(child, 'message');
    child.send('end');
    return (await answer)[0].cpuMicros;
  });
  const used = await Promise.all(answers);
  return (used.reduce((sum, micros) => sum + micros, 0) * children.length) / used.length;
}

/** The processor time that a server has used, and the calls of clients: those inside of scripts are none. */
async function costOf(redis) {
  const stats = await redis.info('commandstats');
  const calls = [...stats.matchAll(/cmdstat_(eval|evalsha|bzpopmin):calls=(\d+)/g)];
  return { micros: await serverMicros(redis), calls: calls.reduce((sum, [, , count]) => sum + Number(count), 0) };
}

async function timeOf(redis) {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1e6 + Number(micros);
}

export function connectionOf(url) {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}
