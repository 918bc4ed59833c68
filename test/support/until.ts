import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 5;

/**
 * Waits for something that another part of the process is about to do. Throws if it does not happen in time; its polls are
 * counted, as on a busy machine each takes longer.
 */
export async function until(happened: () => boolean | Promise<boolean>, timeoutMs = 5000): Promise<void> {
  for (let left = timeoutMs / POLL_MS; !(await happened()); left--) {
    if (left <= 0) throw new Error(`it did not happen: ${happened.toString()}`);
    await sleep(POLL_MS);
  }
}
