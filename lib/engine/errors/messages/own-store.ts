import { listOf, show } from '../wording.js';

/** What a store of the app's own cannot do, or was told wrongly. */
export const ownStoreMessages = {
  cannotKeep: (limit: string, what: string, store: string) =>
    `limit '${limit}' has ${what}, which a ${store} does not keep; wants 'redis', or the limit without it`,
  unreadable: (key: string, got: unknown) =>
    `the store has ${show(got)} under '${key}', wants what it was given to store there`,
  wrongCount: (got: unknown, keys: number) =>
    `transact called back with ${show(got)}, wants a list of ${keys} values, one for each key`,
  neverChanged: (store: string) =>
    `transact of ${store} did not call what it was given, wants it called with what is stored`,
  noRunner: () =>
    'storeConformance: found no global describe and it, wants those of the test runner, such as { describe, it } of node:test',
  unknownAlgorithm: (got: unknown, known: readonly string[]) =>
    `storeConformance: option 'algorithms' holds ${show(got)}, wants only ${listOf(known, 'or')}`,
};
