import { jest } from '@jest/globals';

/**
 * Stops the time of the process until `jest.useRealTimers()`; `jest.advanceTimersByTime()` moves it. Both clocks go on from where
 * they were. Timers that run already keep to real time, as do promises and what servers answer.
 */
export function stopTime(): void {
  const now = performance.now();
  jest.useFakeTimers({ now: Date.now() - now });
  jest.advanceTimersByTime(Math.ceil(now));
}
