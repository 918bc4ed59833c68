import { prefetch } from '../../../lib/storage/features/prefetch/prefetch.js';
import type { FeatureTerms } from '../../../lib/engine/limits/limit-feature.js';
import type { Store } from '../../../lib/index.js';
import {
  CompiledLimit,
  type Counter,
  type LimitSettings,
  type StoreDecision,
} from '../../../lib/testing/store/index.js';

/** How long units can be used that were taken in advance. */
export const TTL_MS = 100;

/** What a limit says that takes units in advance, which can be used for so many microseconds. */
export function takingAhead(units: number, ttl: number): FeatureTerms[] {
  return [{ of: prefetch.of!, terms: { units, ttl } }];
}

/** 1000 units an hour, taken in advance. */
export function prefetchedLimit(name: string, settings: Partial<LimitSettings> = {}, rate = 1000): CompiledLimit {
  const options = { algo: 'fixed-window', rate, interval: '1h' } as const;
  return new CompiledLimit(options, { location: 'test', name, features: takingAhead(64, TTL_MS * 1000), ...settings });
}

/** Asks for a unit of each counter at once. */
export async function askAll(store: Store, ...counters: Counter[]): Promise<StoreDecision[]> {
  const [decisions] = await store.check([{ entries: counters.map((counter) => ({ ...counter, cost: 1 })) }]);
  return decisions!;
}

/** Uses 4 units of a counter, which charges 7: three are held then. */
export async function holdThree(store: Store, counter: Counter): Promise<void> {
  for (let times = 0; times < 4; times++) await askAll(store, counter);
}

/** What a store says that a counter has left. */
export async function leftOf(store: Store, counter: Counter): Promise<number> {
  const [decisions] = await store.check([{ entries: [{ ...counter, cost: 1 }], peek: true }]);
  return decisions![0]!.remaining;
}
