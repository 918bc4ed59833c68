/** The processor time and the memory that a step of this process takes. */
function memory() {
  globalThis.gc();
  globalThis.gc();
  const { rss, heapUsed, external } = process.memoryUsage();
  return { rss, heap: heapUsed + external };
}

/** @returns ms of processor time and of the clock, and MB of the process and of its heap */
export async function costsOf(step) {
  const before = memory();
  const cpu = process.cpuUsage();
  const start = performance.now();
  await step();
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  const after = memory();
  return {
    ms,
    cpuMs: (user + system) / 1000,
    mb: (after.rss - before.rss) / 1e6,
    heapMb: (after.heap - before.heap) / 1e6,
  };
}
