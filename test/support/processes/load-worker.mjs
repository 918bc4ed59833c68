/**
 * One of several processes that ask a store, made as an app makes it, until they are told to stop, with the built package.
 * Its input says which limits, of whom, and with how many requests in flight; its result counts what was allowed, and by whom.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CompiledLimit } from '../../../build/engine/limits/compiled-limit.js';
import { createStoreStack } from '../../../build/nest/store-stack.js';
import { OwnTime } from '../time/own-time.mjs';
import { runTask, tell } from './process-task.mjs';

/** Checks of one lane are this far apart, so that the machine is not the bottleneck. */
const PAUSE_MS = 5;
/** How much longer they go on at most, until Redis has decided for all counters and is told to answer again. */
const RECOVERY_MS = 90_000;

/** What an app gives as `redis`: options as they are, or a client of node-redis, which it opens. */
async function connectionOf(redis) {
  if (redis.nodeRedis === undefined) return redis;
  const { createCluster, createSentinel } = await import('redis');
  const { nodes, sentinels, name } = redis.nodeRedis;
  const client =
    nodes === undefined
      ? createSentinel({ name, sentinelRootNodes: sentinels })
      : createCluster({ rootNodes: nodes.map((socket) => ({ socket })) });
  client.on('error', () => undefined);
  return client.connect();
}

await runTask(async (input, startTogether, stopped) => {
  const { prefix, counters, inFlight, timeoutMs, refusalCache, pairs } = input;
  const redis = await connectionOf(input.redis);
  const reports = [];
  const report = ({ state }) => {
    reports.push(state);
    tell(state);
  };
  const store = await createStoreStack({ redis, prefix, timeoutMs, maxKeys: 1000, refusalCache, report });
  const checked = counters.map(({ options, identity, onStoreError }, index) => {
    const limit = new CompiledLimit(options, { location: 'worker', name: `limit-${index}`, onStoreError });
    return { limit, identity, cost: 1 };
  });
  const allowed = { redis: counters.map(() => 0), fallback: counters.map(() => 0) };
  const unknown = counters.map(() => 0);
  const counts = { asked: 0, answered: 0, slowestMs: 0, longestGapMs: 0 };
  const time = new OwnTime();
  await store.open();
  await startTogether();
  const undecided = new Set();
  let goOnUntil = Infinity;
  const stop = async () => {
    await stopped;
    // One that remembers refusals need not ask.
    if (!refusalCache) for (const index of counters.keys()) undecided.add(index);
    goOnUntil = time.now() + RECOVERY_MS;
  };
  void stop();
  const isOver = () => {
    if (goOnUntil === Infinity) return false;
    return (undecided.size === 0 && reports.at(-1) !== 'failing') || time.now() > goOnUntil;
  };
  let lastOfRedis = time.now();
  const ask = async (...indexes) => {
    const start = time.now();
    counts.asked += 1;
    const decisions = await store.check([{ entries: indexes.map((index) => checked[index]) }]).then(
      ([first]) => first,
      (error) => {
        if (error.name !== 'RateLimitStoreError') throw error;
        return indexes.map(() => ({ allowed: false, source: 'none' }));
      },
    );
    const now = time.now();
    counts.answered += 1;
    counts.slowestMs = Math.max(counts.slowestMs, now - start);
    const isAllowed = decisions.every((decision) => decision.allowed);
    // While a node fails, Redis still counts the limits of a check that are on others.
    for (const [at, { source }] of decisions.entries()) {
      const index = indexes[at];
      if (isAllowed) allowed[source][index] += 1;
      if (source === 'redis') undecided.delete(index);
      else unknown[index] += 1;
    }
    if (decisions.some(({ source }) => source === 'redis')) {
      counts.longestGapMs = Math.max(counts.longestGapMs, now - lastOfRedis);
      lastOfRedis = now;
    }
  };
  const lane = async (first) => {
    for (let index = first; !isOver(); index++) {
      const [one, other] = [index % counters.length, (index + 1) % counters.length];
      await (pairs && index % 2 === 0 ? ask(one, other) : ask(one));
      await sleep(PAUSE_MS);
    }
  };
  // The last checks of all may fail: then it goes on.
  while (!isOver()) await Promise.all(Array.from({ length: inFlight }, (_, index) => lane(index)));
  counts.longestGapMs = Math.max(counts.longestGapMs, time.now() - lastOfRedis);
  time.stop();
  await store.close();
  if (redis !== input.redis) redis.destroy();
  return { ...counts, allowed, unknown, reports };
});
