import { CompiledLimit, type Counter, type LimitSettings, type Store, type StoreDecision } from '../../lib/index.js';

/** How long units can be used that were taken in advance. */
export const TTL_MS = 100;

/** 1000 units an hour, taken in advance. */
export function prefetchedLimit(name: string, settings: Partial<LimitSettings> = {}, rate = 1000): CompiledLimit {
  const prefetch = { units: 64, ttl: TTL_MS * 1000 };
  const options = { algo: 'fixed-window', rate, interval: '1h' } as const;
  return new CompiledLimit(options, { location: 'test', name, prefetch, ...settings });
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
