import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { ensureBuilt } from '../../support/processes/built.js';
import { connectRedis, freshPrefix } from '../../support/limits/stores.js';
import { expectWithinRate, type Pass } from './passes.js';
import { polled } from '../../support/time/until.js';

const WORKER = fileURLToPath(new URL('../../support/processes/job-worker.mjs', import.meta.url));
const URL_OF_REDIS = process.env['TEST_REDIS_URL']!;

const TENANTS = 10;
const JOBS = 160;
const LIMIT = { algo: 'gcra', rate: 10, interval: 1000, burst: 5 } as const;
const QUEUE = 'jobs';
/** Jobs that come later than that, on a machine that stood still, may be delayed once more. */
const WAITED_FOR_MS = 250;

type JobEvent = [
  micros: number,
  event: 'came' | 'started' | 'delayed',
  job: string,
  tenant: string,
  worker: string,
  delayMs: number,
];

interface WorkerProcess {
  child: ChildProcess;
  /** What its locks begin with. */
  id: string;
}

describe('two workers, of which one is killed in the middle', () => {
  let redis: Redis;
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    await ensureBuilt();
    redis = await connectRedis();
  });
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });
  afterAll(() => redis.quit());

  it('lose no job, start none twice that had not started, delay each at most once, and exceed no rate', async () => {
    const prefix = freshPrefix();
    const { hostname: host, port } = new URL(URL_OF_REDIS);
    const queue = new Queue(QUEUE, { connection: { host, port: Number(port) }, prefix });
    try {
      await queue.addBulk(Array.from({ length: JOBS }, (_, index) => jobOf(index)));
      const [killed, other] = await Promise.all([startWorker(prefix, children), startWorker(prefix, children)]);
      for (const { child } of [killed, other]) child.send('go');
      await polled(async () => (await eventsOf(redis, prefix)).filter(isStart).length > JOBS / 2, 60_000, 20);
      killed.child.kill('SIGKILL');
      await polled(
        async () => {
          await unlockJobsOf(killed.id, redis, prefix);
          return (await queue.getCompletedCount()) === JOBS;
        },
        60_000,
        50,
      );

      expect(await queue.getJobCounts()).toMatchObject({
        completed: JOBS,
        failed: 0,
        active: 0,
        delayed: 0,
        waiting: 0,
      });
      const events = await eventsOf(redis, prefix);
      for (const [job, ofJob] of grouped(events, ([, , id]) => id)) {
        const starters = ofJob.filter(isStart).map(([, , , , worker]) => worker);
        expect([job, starters]).toEqual([job, [...new Set(starters)]]);
        // Whether the killed worker had ended what it had started, nobody knows.
        expect([job, starters.length]).toEqual([job, starters[0] === killed.id ? starters.length : 1]);
      }
      for (const ofTenant of grouped(events, ([, , , tenant]) => tenant).values()) {
        expectWithinRate(passesOf(ofTenant), LIMIT);
        for (const ofJob of grouped(ofTenant, ([, , id]) => id).values()) {
          const delays = ofJob.filter(([, event]) => event === 'delayed').length;
          if (mostLateMs(ofTenant) < WAITED_FOR_MS) expect(delays).toBeLessThanOrEqual(1);
        }
      }
    } finally {
      await queue.close();
    }
  });
});

const jobOf = (index: number) => ({
  name: 'call',
  data: { tenant: `tenant-${index % TENANTS}` },
  opts: { jobId: `job-${index}`, priority: 1 },
});

const isStart = ([, event]: JobEvent) => event === 'started';

async function startWorker(prefix: string, children: ChildProcess[]): Promise<WorkerProcess> {
  const input = { url: URL_OF_REDIS, prefix, queue: QUEUE, limit: LIMIT };
  const child = fork(WORKER, [JSON.stringify(input)], { execArgv: [] });
  children.push(child);
  const [{ told }] = (await once(child, 'message')) as [{ told: string }];
  await once(child, 'message');
  return { child, id: told };
}

async function eventsOf(redis: Redis, prefix: string): Promise<JobEvent[]> {
  const lines = await redis.lrange(`${prefix}-events`, 0, -1);
  return lines.map((line) => JSON.parse(line) as JobEvent);
}

/** Ends the locks of a worker that is gone, as the time does. */
async function unlockJobsOf(workerId: string, redis: Redis, prefix: string): Promise<void> {
  for (const job of await redis.lrange(`${prefix}:${QUEUE}:active`, 0, -1)) {
    const lock = `${prefix}:${QUEUE}:${job}:lock`;
    if ((await redis.get(lock))?.startsWith(workerId) === true) await redis.del(lock);
  }
}

function grouped<T>(values: readonly T[], keyOf: (value: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const value of values) groups.set(keyOf(value), [...(groups.get(keyOf(value)) ?? []), value]);
  return groups;
}

/** By how much a job came at most after its time. */
function mostLateMs(events: readonly JobEvent[]): number {
  const came = new Map<string, number>();
  const due = new Map<string, number>();
  let most = 0;
  for (const [micros, event, job, , , delayMs] of events) {
    if (event === 'came') most = Math.max(most, micros / 1000 - (due.get(job) ?? Infinity));
    if (event === 'came') came.set(job, micros / 1000);
    // It was delayed after it came, and by that much from then on.
    if (event === 'delayed') due.set(job, came.get(job)! + delayMs);
  }
  return most;
}

/** One that is started again uses its own units. */
function passesOf(events: readonly JobEvent[]): Pass[] {
  const came = new Map<string, number>();
  const passes = new Map<string, Pass>();
  for (const [micros, event, job] of events) {
    if (event === 'came' && !came.has(job)) came.set(job, micros);
    if (event === 'delayed') came.delete(job);
    if (event === 'started' && !passes.has(job)) passes.set(job, { from: came.get(job)! / 1000, to: micros / 1000 });
  }
  return [...passes.values()];
}
