/** Several processes that ask at the same time. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { median } from './measure.mjs';

const WORKER = fileURLToPath(new URL('instance.mjs', import.meta.url));

async function start(job) {
  const child = fork(WORKER, [JSON.stringify(job)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`an instance ended with ${code}`);
  });
  // What ends after the last answer was asked to.
  ended.catch(() => undefined);
  const answer = async () => (await Promise.race([once(child, 'message'), ended]))[0];
  await answer();
  return {
    run() {
      child.send('go');
      return answer();
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill();
      await once(child, 'exit');
    },
  };
}

/**
 * Starts so many processes that do the same job.
 * @returns what runs a round in all of them at once, and what ends them
 */
export async function startInstances(count, job) {
  const started = await Promise.allSettled(Array.from({ length: count }, (_, index) => start({ ...job, index })));
  const instances = started.flatMap(({ value }) => (value === undefined ? [] : [value]));
  const stop = () => Promise.all(instances.map((instance) => instance.stop()));
  const failed = started.find(({ status }) => status === 'rejected');
  if (failed !== undefined) {
    await stop();
    throw failed.reason;
  }
  return { run: () => Promise.all(instances.map((instance) => instance.run())), stop };
}

/**
 * Times contenders in processes of their own, in alternating rounds. `microsOfEach` tells the processor time of each server.
 * @returns for each the medians: decisions a second of all processes, client CPU a decision, and Redis CPU a decision of each server
 */
export async function compareInstances(names, { count, rounds, microsOfEach, ...job }) {
  const groups = [];
  try {
    for (const name of names) {
      groups.push({ name, results: [], ...(await startInstances(count, { ...job, contender: name })) });
    }
    for (let i = 0; i < rounds; i++) {
      for (const group of i % 2 === 0 ? groups : groups.toReversed()) {
        const before = await microsOfEach();
        const results = await group.run();
        const after = await microsOfEach();
        group.results.push(together(results, before, after));
      }
    }
  } finally {
    await Promise.all(groups.map((group) => group.stop()));
  }
  return groups.map(({ name, results }) => {
    const of = (valueOf) => median(results.map(valueOf));
    return {
      name,
      perSecond: of(({ perSecond }) => perSecond),
      cpuMicros: of(({ cpuMicros }) => cpuMicros),
      serverCpuMicros: of(({ eachServer }) => eachServer.reduce((sum, each) => sum + each, 0)),
      busiestMicros: of(({ eachServer }) => Math.max(...eachServer)),
    };
  });
}

function together(results, before, after) {
  const decisions = results.reduce((sum, { count }) => sum + count, 0);
  return {
    perSecond: results.reduce((sum, { perSecond }) => sum + perSecond, 0),
    cpuMicros: results.reduce((sum, { cpuMicros, count }) => sum + cpuMicros * count, 0) / decisions,
    eachServer: after.map((micros, index) => (micros - before[index]) / decisions),
  };
}
