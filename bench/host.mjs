import { readFile } from 'node:fs/promises';

/**
 * Processor time of this machine since it started, in ticks: all of it, and what its host gave to others meanwhile. Only
 * Linux tells.
 */
async function processorTime() {
  try {
    const [, ...fields] = (await readFile('/proc/stat', 'utf8')).split('\n', 1)[0].trim().split(/\s+/);
    const ticks = fields.slice(0, 8).map(Number);
    return { all: ticks.reduce((sum, each) => sum + each, 0), stolen: ticks[7] };
  } catch {
    return undefined;
  }
}

/** What `measure` finds, and the share of the processors that the host of a virtual machine gave to others meanwhile. */
export async function besideHost(measure) {
  const before = await processorTime();
  const found = await measure();
  const after = await processorTime();
  const all = before && after ? after.all - before.all : 0;
  return { found, stolen: all > 0 ? (after.stolen - before.stolen) / all : undefined };
}
