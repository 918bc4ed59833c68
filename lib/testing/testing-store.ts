import { MemoryStore } from '../storage/features/own-stores.js';
import { TestClock } from './test-clock.js';

/** The options of `createTestingStore`. */
export interface TestingStoreOptions {
  /**
   * Its clock.
   * @default a new clock, which only moves when you move it
   */
  clock?: TestClock | undefined;
}

/**
 * Creates a store that counts in this process, on a clock that the test moves. Use it for `RateLimitTesting.useStore` or for the module's
 * option `store`.
 *
 * @param options its clock
 */
export function createTestingStore({ clock = new TestClock() }: TestingStoreOptions = {}): MemoryStore {
  return new MemoryStore({ clock: clock.now });
}
