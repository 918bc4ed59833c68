import { jest } from '@jest/globals';
import { CONNECT_TIMEOUT_MS } from '../../../lib/storage/redis/client.js';

const start = globalThis.setTimeout;

function startOnlyShort(callback: () => void, ms = 0, ...args: []): NodeJS.Timeout {
  return ms < CONNECT_TIMEOUT_MS ? start(callback, ms, ...args) : start(() => undefined, ms).unref();
}

/** Runs what must not depend on the time that a connection is given: its timers never end. Shorter ones do. */
export async function whileNoTimeIsOver<T>(run: () => Promise<T>): Promise<T> {
  const spy = jest.spyOn(globalThis, 'setTimeout').mockImplementation(startOnlyShort);
  try {
    return await run();
  } finally {
    spy.mockRestore();
  }
}
