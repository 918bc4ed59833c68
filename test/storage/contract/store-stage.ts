import { afterEach, beforeEach } from '@jest/globals';
import type { Store } from '../../../lib/index.js';
import { ManualClock } from '../../support/limits/stores.js';

/** A store on a clock that tests move, fresh for each test. */
export interface StoreStage {
  readonly clock: ManualClock;
  readonly store: Store;
  /** Moves the clock to so many milliseconds after the start. */
  readonly at: (ms: number) => void;
}

/** Sets the stage for each test. `make` makes a store that asks the clock for the time; `start` is in milliseconds since the epoch. */
export function storeStage(make: (clock: ManualClock) => Store, start: number): StoreStage {
  let clock: ManualClock;
  let store: Store;

  beforeEach(() => {
    clock = new ManualClock();
    at(0);
    store = make(clock);
  });
  afterEach(() => store.close());

  function at(ms: number): void {
    clock.micros = Math.round((start + ms) * 1000);
  }

  return {
    get clock() {
      return clock;
    },
    get store() {
      return store;
    },
    at,
  };
}
