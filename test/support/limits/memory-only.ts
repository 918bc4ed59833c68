import { storeKinds as allKinds } from './stores.js';

export * from './stores.js';

/**
 * Stands in for the stores of `stores.ts` where mutants are looked for: a spec of every store tries the one in process, which runs
 * the mutants. What asks for Redis by name gets it.
 */
export const storeKinds = Object.defineProperty({ MemoryStore: allKinds['MemoryStore']! }, 'RedisStore', {
  value: allKinds['RedisStore'],
  enumerable: false,
});
