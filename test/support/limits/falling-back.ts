import type { Store } from '../../../lib/index.js';
import { FallbackStore, type FallbackStoreOptions } from '../../../lib/storage/stores/layers/fallback.store.js';

/** News of a store that fails, or is back. */
export type StoreReport = Parameters<NonNullable<FallbackStoreOptions['report']>>[0];

/** A store that counts on the first one, and on the second one while the first one fails, as an app does with Redis and its memory. */
export function fallingBack(primary: Store, local: Store, options?: FallbackStoreOptions): FallbackStore {
  return new FallbackStore(primary, local, options);
}
