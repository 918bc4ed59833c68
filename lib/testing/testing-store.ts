import { MemoryStore } from '../storage/features/own-stores.js';
import { TestClock } from './test-clock.js';

/** The options of `createTestingStore`. */
export interface TestingStoreOptions {
  /**
   * Its clock.
   * @default a new clock that stands still
   */
  clock?: TestClock | undefined;
}

/**
 * Makes a store that counts in this process, by a clock that the test moves: for `RateLimitTesting.useStore`, or for the module's
 * option `store`.
 *
 * @param options its clock
 */
export function createTestingStore({ clock = new TestClock() }: TestingStoreOptions = {}): MemoryStore {
  return new MemoryStore({ clock: clock.now });
}
