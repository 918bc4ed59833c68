/**
 * One of several processes that ask a store, made as an app makes it, until they are told to stop, with the built package.
 * Its input says which limits, of whom, and with how many requests in flight; its result counts what was allowed, and by whom.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CompiledLimit } from '../../dist/limits/compiled-limit.js';
import { createStoreStack } from '../../dist/nest/store-stack.js';
import { runTask } from './process-task.mjs';

/** Checks of one lane are this far apart, so that the machine is not the bottleneck. */
const PAUSE_MS = 5;
/** How much longer they go on at most, if Redis failed when they were told to stop. */
const RECOVERY_MS = 10_000;

await runTask(async (input, startTogether, stopped) => {
  const { redis, prefix, counters, inFlight, timeoutMs, refusalCache, pairs } = input;
  const reports = [];
  const report = ({ state }) => reports.push(state);
  const store = await createStoreStack({ redis, prefix, timeoutMs, maxKeys: 1000, refusalCache, report });
  const checked = counters.map(({ options, identity, onStoreError }, index) => {
    const limit = new CompiledLimit(options, { location: 'worker', name: `limit-${index}`, onStoreError });
    return { limit, identity, cost: 1 };
  });
  const allowed = { redis: counters.map(() => 0), fallback: counters.map(() => 0) };
  const counts = { asked: 0, answered: 0, slowestMs: 0, longestGapMs: 0 };
  await store.open();
  await startTogether();
  const state = { stopping: false };
  const stopInTime = async () => {
    await stopped;
    // A machine that is busy takes its time to notice that Redis answers again.
    for (const end = Date.now() + RECOVERY_MS; reports.at(-1) === 'failing' && Date.now() < end;) await sleep(PAUSE_MS);
    state.stopping = true;
  };
  void stopInTime();
  let lastOfRedis = performance.now();
  const ask = async (...indexes) => {
    const start = performance.now();
    counts.asked += 1;
    const decisions = await store.check([{ entries: indexes.map((index) => checked[index]) }]).then(
      ([first]) => first,
      (error) => {
        if (error.name !== 'RateLimitStoreError') throw error;
        return [{ allowed: false, source: 'none' }];
      },
    );
    const now = performance.now();
    const [{ source }] = decisions;
    counts.answered += 1;
    counts.slowestMs = Math.max(counts.slowestMs, now - start);
    if (source === 'redis') {
      counts.longestGapMs = Math.max(counts.longestGapMs, now - lastOfRedis);
      lastOfRedis = now;
    }
    if (decisions.every(({ allowed }) => allowed)) for (const index of indexes) allowed[source][index] += 1;
  };
  const lane = async (first) => {
    for (let index = first; !state.stopping; index++) {
      const [one, other] = [index % counters.length, (index + 1) % counters.length];
      await (pairs && index % 2 === 0 ? ask(one, other) : ask(one));
      await sleep(PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, index) => lane(index)));
  counts.longestGapMs = Math.max(counts.longestGapMs, performance.now() - lastOfRedis);
  await store.close();
  return { ...counts, allowed, reports };
});
