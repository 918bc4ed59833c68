import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for something that another part of the process is about to do. Throws if it does not happen in time. */
export async function until(happened: () => boolean | Promise<boolean>, timeoutMs = 5000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await happened())) {
    if (Date.now() > deadline) throw new Error(`it did not happen: ${happened.toString()}`);
    await sleep(5);
  }
}
