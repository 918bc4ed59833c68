/**
 * One of several processes that ask a store, made as an app makes it, until they are told to stop, with the built package.
 * Its input says which limits, of whom, and with how many requests in flight; its result counts what was allowed, and by whom.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CompiledLimit } from '../../dist/algorithms/limit.js';
import { createStore } from '../../dist/stores/create-store.js';
import { runTask } from './process-task.mjs';

/** Checks of one lane are this far apart, so that the machine is not the bottleneck. */
const PAUSE_MS = 5;

await runTask(async (input, startTogether, stopped) => {
  const { redis, prefix, counters, inFlight, timeoutMs, refusalCache = false } = input;
  const reports = [];
  const report = ({ state }) => reports.push(state);
  const store = await createStore({ redis, prefix, timeoutMs, maxKeys: 1000, refusalCache, report });
  const checked = counters.map(({ options, identity, onStoreError }, index) => {
    const limit = new CompiledLimit(options, { place: 'worker', name: `limit-${index}`, onStoreError });
    return { limit, identity, cost: 1 };
  });
  const allowed = { redis: counters.map(() => 0), fallback: counters.map(() => 0) };
  const counts = { asked: 0, answered: 0, slowestMs: 0, longestGapMs: 0 };
  await store.open();
  await startTogether();
  let stopping = false;
  void stopped.then(() => (stopping = true));
  let lastOfRedis = performance.now();
  const ask = async (index) => {
    const start = performance.now();
    counts.asked += 1;
    const decision = await store.check([{ entries: [checked[index]] }]).then(
      ([[only]]) => only,
      (error) => {
        if (error.name !== 'RateLimitStoreError') throw error;
        return { allowed: false, source: 'none' };
      },
    );
    const now = performance.now();
    counts.answered += 1;
    counts.slowestMs = Math.max(counts.slowestMs, now - start);
    if (decision.source === 'redis') {
      counts.longestGapMs = Math.max(counts.longestGapMs, now - lastOfRedis);
      lastOfRedis = now;
    }
    if (decision.allowed) allowed[decision.source][index] += 1;
  };
  const lane = async (first) => {
    for (let index = first; !stopping; index++) {
      await ask(index % counters.length);
      await sleep(PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, index) => lane(index)));
  await store.close();
  return { ...counts, allowed, reports };
});
