import { describe, it } from '@jest/globals';
import type { Store } from '../../../lib/index.js';
import { storeConformance } from '../../../lib/testing/store/index.js';
import { ManualClock } from '../../support/limits/stores.js';
import { concurrencyContract } from './concurrency-contract.js';
import { holdsContract } from './holds-contract.js';
import { operationsContract } from './operations-contract.js';
import { storeContract } from './store-contract.js';

/** A clock that tells the time of another one. */
class FollowingClock extends ManualClock {
  constructor(now: () => number) {
    super();
    Object.defineProperty(this, 'micros', { get: now });
  }
}

/** Everything that a store must do: what authors of stores test theirs by, and what only our stores do. */
export function wholeContract(make: (clock: ManualClock) => Store): void {
  storeConformance(({ clock }) => make(new FollowingClock(clock)), { describe, it, name: 'conformance' });
  storeContract(make);
  describe('operations', () => operationsContract(make));
  describe('concurrency', () => concurrencyContract(make));
  describe('holds', () => holdsContract(make));
}
