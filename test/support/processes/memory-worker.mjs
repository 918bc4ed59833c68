/**
 * A process that fills a store in process with counters, with the built package, and says what these take of its heap. Runs
 * with the flags `STEADY_HEAP`.
 */
import { CompiledLimit } from '../../../build/engine/limits/compiled-limit.js';
import { MemoryStore } from '../../../build/storage/stores/memory/memory.store.js';
import { runTask } from './process-task.mjs';

function heapUsed() {
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

/** The code that fills it has run before, or what is kept of it would count as well. */
async function measure(flood) {
  await fill({ ...flood, counters: 100, times: 3 });
  const before = heapUsed();
  const store = await fill(flood);
  const measured = { size: store.size, bytes: store.bytes, heap: heapUsed() - before };
  await store.close();
  return measured;
}

async function fill({ options, counters, times }) {
  let micros = 1_790_000_000_000_000;
  const store = new MemoryStore({ clock: () => micros });
  const limit = new CompiledLimit(options, { location: 'worker' });
  for (let time = 0; time < times; time++) {
    for (let i = 0; i < counters; i++) {
      micros += 3;
      await store.check([{ entries: [{ limit, identity: `user:${1e6 + i}`, cost: 1 }] }]);
    }
  }
  return store;
}

await runTask(async ({ floods }, startTogether) => {
  await startTogether();
  const all = [];
  for (const flood of floods) all.push(await measure(flood));
  return all;
});
