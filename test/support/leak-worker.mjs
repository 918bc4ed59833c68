/**
 * A process that makes many checks of every kind, with the built package, and measures what it holds before and after.
 * Runs with `--expose-gc`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CompiledLimit } from '../../dist/algorithms/limit.js';
import { createStore } from '../../dist/stores/create-store.js';
import { runTask } from './process-task.mjs';

/** Their counters are more than are kept in the process. */
const IDENTITIES = 40;
const MAX_KEYS = 200;
/** So many checks are made at once. */
const CROWD = 100;

await runTask(async ({ redis, prefix, limits, warmUp, checks }) => {
  const store = await createStore({
    redis,
    prefix,
    timeoutMs: 5000,
    maxKeys: MAX_KEYS,
    refusalCache: true,
    report() {},
  });
  const compiled = limits.map((options) => new CompiledLimit(options, { place: 'worker' }));
  await store.open();
  const sources = new Set();
  let made = 0;
  const make = async (count) => {
    for (let left = count; left > 0; left -= CROWD) {
      await Promise.all(Array.from({ length: CROWD }, () => one(made++)));
      // What is decided in this process leaves no turn to timers and sockets by itself.
      await sleep(0);
    }
  };
  const one = async (number) => {
    const identity = `user:${number % IDENTITIES}`;
    const limit = compiled[number % compiled.length];
    const several = number % 5 === 0;
    const entries = (several ? compiled : [limit]).map((each) => ({ limit: each, identity, cost: 1 }));
    const peek = number % 7 === 0;
    const [decisions] = await store.check([{ entries, peek, refundable: true }]);
    for (const { source } of decisions) sources.add(source);
    const mayGiveBack = !peek && number % 3 === 0 && decisions.every(({ allowed }) => allowed);
    if (!mayGiveBack) return;
    await store.refund(entries.map((entry, index) => refundOf(entry, decisions[index])));
  };
  await make(warmUp);
  const before = await held();
  await make(checks);
  const after = await held();
  await store.close();
  return { before, after, sources: [...sources] };
});

function refundOf(entry, { place, at, source }) {
  return { ...entry, units: 1, place, at, source };
}

/**
 * What the process holds when nothing is under way: bytes of the heap, and how many timers, sockets and the like. What is held
 * for a moment only is not counted.
 */
async function held() {
  const heaps = [];
  for (let i = 0; i < 10; i++) {
    await sleep(50);
    globalThis.gc();
    heaps.push(process.memoryUsage().heapUsed);
  }
  return { heap: Math.min(...heaps), resources: process.getActiveResourcesInfo().length };
}
