import type { Store } from '../../../lib/index.js';
import { CandidateStore } from '../../../lib/storage/features/candidates/candidates.js';
import { PrefetchStore } from '../../../lib/storage/features/prefetch/prefetch.store.js';
import { FallbackStore, type FallbackStoreOptions } from '../../../lib/storage/stores/layers/fallback.store.js';
import { InstanceScopeStore } from '../../../lib/storage/stores/layers/instance.store.js';
import { RefusalCacheStore } from '../../../lib/storage/stores/layers/refusal-cache.store.js';
import type { LocalChannel } from './local-channel.js';

// Each layer of an app's store, alone over stores of the test.

/** News of a store that fails, or is back. */
export type StoreReport = Parameters<NonNullable<FallbackStoreOptions['report']>>[0];

/** Counts on the first store, and on the second one while the first one fails, as an app does with Redis and its memory. */
export function fallingBack(primary: Store, local: Store, options?: FallbackStoreOptions): FallbackStore {
  return new FallbackStore(primary, local, options);
}

/** Counts limits of `scope: 'instance'` in a store of their own. */
export function perInstance(shared: Store, own: Store): InstanceScopeStore {
  return new InstanceScopeStore(shared, own);
}

/** Takes units of a store in advance, and hears from other instances by a channel. */
export function takingInAdvance(store: Store, channel: LocalChannel): PrefetchStore {
  return new PrefetchStore(store, channel.asChannel);
}

/** Remembers what a store refused, and hears from other instances by a channel. */
export function remembering(store: Store, channel: LocalChannel): RefusalCacheStore {
  return new RefusalCacheStore(store, channel.asChannel);
}

/** Counts the candidates of limits, too. */
export function withCandidates(store: Store): CandidateStore {
  return new CandidateStore(store);
}
