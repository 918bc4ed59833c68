import { MemoryStore } from '../stores/memory/memory.store.js';
import { TestClock } from './test-clock.js';

/** What a store for tests is made of. */
export interface TestingStoreOptions {
  /**
   * Its clock.
   * @default one that stands still
   */
  clock?: TestClock;
}

/**
 * A store that counts in this process, on a clock that the test moves: for `RateLimitTesting.useStore`, or for the option
 * `store` of the module.
 *
 * @param options its clock
 */
export function createTestingStore({ clock = new TestClock() }: TestingStoreOptions = {}): MemoryStore {
  return new MemoryStore({ clock: clock.now });
}
