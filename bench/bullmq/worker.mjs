/** A process with one worker. It tells when it is ready, begins when it is told, and says at the end what it has used. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Worker } from 'bullmq';
import { contenders } from './contenders.mjs';
import { recordDelay, recordStart } from './recording.mjs';

const terms = JSON.parse(process.argv[2]);
const { hostname: host, port } = new URL(terms.redisUrl);
const starts = new Redis(terms.startsUrl);

async function work(job) {
  await recordStart(starts, job);
  await sleep(terms.workMs);
}

let worker;
const { processor, workerOptions, close } = await contenders[terms.contender].make({
  ...terms,
  work,
  worker: () => worker,
});

/** What is thrown to say that a job comes later is none of its failures. */
async function counted(job, token) {
  try {
    return await processor(job, token);
  } catch (error) {
    if (error.name === 'DelayedError') await recordDelay(starts, job);
    throw error;
  }
}

worker = new Worker(terms.queue, counted, {
  connection: { host, port: Number(port) },
  autorun: false,
  concurrency: terms.concurrency,
  lockDuration: 10_000,
  stalledInterval: 5_000,
  ...workerOptions,
});
worker.on('error', (error) => console.error(error.message));
worker.on('failed', (_job, error) => console.error(error.message));
await worker.waitUntilReady();

process.on('message', (message) => {
  if (message === 'go') void worker.run();
  if (message === 'end') {
    const { user, system } = process.cpuUsage();
    process.send({ cpuMicros: user + system });
    void end();
  }
});
process.on('disconnect', () => process.exit());
process.send({ ready: true });

async function end() {
  await worker.close(true);
  await close();
  process.exit();
}
