import { MemoryStore } from '../../lib/stores/memory/memory.store.js';
import type { ManualClock } from './stores.js';

export * from './stores.js';

/** Stands in for the stores of `stores.ts` where no Redis server runs. */
export const storeKinds = {
  MemoryStore: (clock: ManualClock) => new MemoryStore({ clock: clock.now }),
};

/** No spec talks to this one. */
export async function connectRedis() {
  return { disconnect: () => undefined };
}
