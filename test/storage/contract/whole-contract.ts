import { describe } from '@jest/globals';
import type { Store } from '../../../lib/index.js';
import type { ManualClock } from '../../support/limits/stores.js';
import { concurrencyContract } from './concurrency-contract.js';
import { holdsContract } from './holds-contract.js';
import { operationsContract } from './operations-contract.js';
import { storeContract } from './store-contract.js';

/** Everything that a store must do. */
export function wholeContract(make: (clock: ManualClock) => Store): void {
  storeContract(make);
  describe('operations', () => operationsContract(make));
  describe('concurrency', () => concurrencyContract(make));
  describe('holds', () => holdsContract(make));
}
