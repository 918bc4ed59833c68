import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for something that another part of the process is about to do. Throws if it does not happen in time. */
export async function until(
  happened: () => boolean | Promise<boolean>,
  timeoutMs = 240_000,
  everyMs = 5,
): Promise<void> {
  if (!(await polled(happened, timeoutMs, everyMs))) throw new Error(`it did not happen: ${happened.toString()}`);
}

/** Whether something is so in time. Its polls are counted: on a busy machine each takes longer. */
export async function polled(test: () => unknown, timeoutMs: number, everyMs: number): Promise<boolean> {
  for (let left = timeoutMs / everyMs; !(await test()); left--) {
    if (left <= 0) return false;
    await sleep(everyMs);
  }
  return true;
}
