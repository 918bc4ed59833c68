import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for something that another part of the process is about to do. Throws if it does not happen in time. */
export async function until(
  happened: () => boolean | Promise<boolean>,
  timeoutMs = 240_000,
  everyMs = 5,
): Promise<void> {
  if (!(await polled(happened, timeoutMs, everyMs))) throw new Error(`it did not happen: ${happened.toString()}`);
}

/** From this poll on there is time between two: what takes that long, a failover or a start, keeps processors busy enough itself. */
const PATIENT_AFTER_POLLS = 100;
const PATIENT_MS = 50;

/** Whether something is so in time. The pauses between its polls are counted: on a busy machine each poll takes longer. */
export async function polled(test: () => unknown, timeoutMs: number, everyMs: number): Promise<boolean> {
  let pausedMs = 0;
  for (let polls = 1; !(await test()); polls++) {
    if (pausedMs > timeoutMs) return false;
    const pauseMs = polls < PATIENT_AFTER_POLLS ? everyMs : Math.max(everyMs, PATIENT_MS);
    await sleep(pauseMs);
    pausedMs += pauseMs;
  }
  return true;
}
