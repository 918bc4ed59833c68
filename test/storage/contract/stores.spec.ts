import { afterAll, beforeAll, describe } from '@jest/globals';
import type { Redis } from 'ioredis';
import { MemoryStore, RedisStore, type Store } from '../../../lib/index.js';
import { FallbackStore } from '../../../lib/storage/stores/layers/fallback.store.js';
import { type Client, openClient } from '../../support/node-redis.js';
import { connectRedis, freshPrefix, type ManualClock, storeKinds } from '../../support/stores.js';
import { concurrencyContract } from './concurrency-contract.js';
import { holdsContract } from './holds-contract.js';
import { operationsContract } from './operations-contract.js';
import { storeContract } from './store-contract.js';

/** All that every store has to do. */
function contract(make: (clock: ManualClock) => Store): void {
  storeContract(make);
  describe('operations', () => operationsContract(make));
  describe('concurrency', () => concurrencyContract(make));
  describe('holds', () => holdsContract(make));
}

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

describe.each(Object.entries(storeKinds))('%s', (_, make) => {
  contract((clock) => make(clock, redis));
});

describe('RedisStore on a client of node-redis', () => {
  let client: Client;
  beforeAll(async () => {
    client = await openClient();
  });
  afterAll(() => client.close());

  contract((clock) => new RedisStore(client, { clock, prefix: freshPrefix(), timeoutMs: 5000 }));
});

describe.each(Object.entries(storeKinds))('FallbackStore over %s', (_, make) => {
  contract((clock) => new FallbackStore(make(clock, redis), new MemoryStore({ clock: clock.now })));
});
