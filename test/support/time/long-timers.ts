import { jest } from '@jest/globals';

/**
 * Starts no timer of so many milliseconds or more until mocks are restored, so what happens did not wait for one. Shorter timers run.
 */
export function stopTimersFrom(leastMs: number): { mockRestore(): void } {
  const start = globalThis.setTimeout;
  const startOnlyShort = (callback: () => void, ms = 0, ...args: []) =>
    ms < leastMs ? start(callback, ms, ...args) : start(() => undefined, ms).unref();
  return jest.spyOn(globalThis, 'setTimeout').mockImplementation(startOnlyShort);
}
