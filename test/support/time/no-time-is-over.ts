import { CONNECT_TIMEOUT_MS } from '../../../lib/storage/redis/client.js';
import { stopTimersFrom } from './long-timers.js';

/** Runs what must not depend on the time that a connection is given: its timers never end. Shorter ones do. */
export async function whileNoTimeIsOver<T>(run: () => Promise<T>): Promise<T> {
  const stopped = stopTimersFrom(CONNECT_TIMEOUT_MS);
  try {
    return await run();
  } finally {
    stopped.mockRestore();
  }
}
