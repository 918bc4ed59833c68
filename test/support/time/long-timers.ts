import { jest } from '@jest/globals';

/**
 * Starts no timer of `leastMs` milliseconds or more until mocks are restored, so the code under test can't have waited for one.
 * Shorter timers run.
 */
export function stopTimersFrom(leastMs: number): { mockRestore(): void } {
  const start = globalThis.setTimeout;
  const startOnlyShort = (callback: () => void, ms = 0, ...args: []) =>
    ms < leastMs ? start(callback, ms, ...args) : start(() => undefined, ms).unref();
  return jest.spyOn(globalThis, 'setTimeout').mockImplementation(startOnlyShort);
}
