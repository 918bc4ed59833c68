/**
 * A process that makes rounds of checks of every kind, with the built package, and measures what it holds after each round.
 * With `leak` it keeps one small object a check, so that a test can prove that it would tell. Runs with the flags `STEADY_HEAP`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CompiledLimit } from '../../../build/engine/limits/compiled-limit.js';
import { createStoreStack } from '../../../build/nest/store-stack.js';
import { runTask } from './process-task.mjs';
import { PATIENCE_MS } from '../redis/patience.mjs';

/** Their counters are more than are kept in the process. */
const IDENTITIES = 40;
const MAX_KEYS = 200;
/** So many checks are made at once. */
const CROWD = 100;

await runTask(async ({ redis, prefix, limits, warmUp, rounds, checks, leak }) => {
  const store = await createStoreStack({
    redis,
    prefix,
    timeoutMs: PATIENCE_MS,
    maxKeys: MAX_KEYS,
    refusalCache: true,
    report() {},
  });
  const compiled = limits.map((options) => new CompiledLimit(options, { location: 'worker' }));
  await store.open();
  const sources = new Set();
  const leaked = [];
  let made = 0;
  const make = async (count) => {
    for (let left = count; left > 0; left -= CROWD) {
      await Promise.all(Array.from({ length: CROWD }, () => one(made++)));
      // What is decided in this process leaves no turn to timers and sockets by itself.
      await sleep(0);
    }
  };
  const one = async (number) => {
    if (leak) leaked.push({ number });
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
  const heaps = [];
  const resources = [];
  for (let round = 0; round < rounds; round++) {
    await make(checks);
    heaps.push(await heapInUse());
    resources.push(process.getActiveResourcesInfo().length);
  }
  await store.close();
  return { heaps, resources, sources: [...sources], leaked: leaked.length };
});

function refundOf(entry, { ticket, chargedAt, source }) {
  return { ...entry, units: 1, ticket, chargedAt, source };
}

/** Bytes of the heap in use when nothing is under way. What is held for a moment only is not counted. */
async function heapInUse() {
  const heaps = [];
  for (let i = 0; i < 2; i++) {
    await sleep(20);
    globalThis.gc();
    heaps.push(process.memoryUsage().heapUsed);
  }
  return Math.min(...heaps);
}
