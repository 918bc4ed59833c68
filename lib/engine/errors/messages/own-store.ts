import { listOf, wrongInput } from '../wording.js';

/** The messages of custom stores. */
export const ownStoreMessages = {
  cannotKeep: (limit: string, what: string, store: string) =>
    `limit '${limit}' has ${what}, which a ${store} does not support. Use 'redis', or remove it from the limit`,
  unreadable: (key: string, received: unknown) =>
    wrongInput(`store, key '${key}'`, 'the value that was stored there before', received),
  wrongCount: (received: unknown, keys: number) =>
    wrongInput('transact', `to be called back with a list of ${keys} values, one for each key`, received),
  neverChanged: (store: string) =>
    `transact of ${store} did not call the function that it was given. Call it with the stored values`,
  noRunner: () =>
    'storeConformance: found no global describe and it. Pass those of the test runner, such as { describe, it } of node:test',
  unknownAlgorithm: (received: unknown, known: readonly string[]) =>
    wrongInput('storeConformance.algorithms', listOf(known, 'or'), received),
};
