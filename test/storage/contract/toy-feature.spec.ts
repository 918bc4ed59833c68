import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { MemoryStore, RedisStore, type Store } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { composeScript } from '../../../lua/compose.mjs';
import { ask, connectRedis, freshPrefix } from '../../support/limits/stores.js';
import type { FeatureTerms, LimitFeature } from '../../support/limits/features.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

/** Adds up what keys are charged. It has no hook beyond these, as its numbers depend on no time. */
const fragment = `
-- lives: seconds for which a sum is kept

local function add(terms, key, units)
  redis.call('INCRBY', key, string.format('%.0f', units))
  redis.call('EXPIRE', key, terms.lives)
end

return {
  parameters = { 'lives' },
  charged = function(terms, beside, units) add(terms, KEYS[beside[1]], units) end,
  corrected = function(terms, beside, difference) add(terms, KEYS[beside[1]], difference) end,
}
`;

const sums = new Map<string, number>();
const add = (identity: string, units: number) => void sums.set(identity, (sums.get(identity) ?? 0) + units);
const memory: NonNullable<LimitFeature['memory']> = {
  keep: () => sums,
  charged: (_, identity, units) => add(identity, units),
  corrected: (_, identity, { difference }) => add(identity, difference),
};
const tally: LimitFeature = {
  name: 'tally',
  memory,
  script: {
    keys: 1,
    work: 1,
    numbers: () => [60],
    beside: (prefix, tag) => ({ keys: [`${prefix}:{${tag}}:tally`], texts: [] }),
  },
};
const terms: FeatureTerms = { of: () => tally, terms: {} };
const limit = new CompiledLimit(
  { algo: 'fixed-window', rate: 10, interval: '1h' },
  { location: 'test', name: 'api', features: [terms] },
);
const identity = 'user:42';
const prefix = freshPrefix();

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

const kinds: Record<string, [() => Store, () => unknown]> = {
  MemoryStore: [() => new MemoryStore(), () => sums.get(identity)],
  RedisStore: [
    () => new RedisStore(redis, { prefix, script: composeScript({}, { tally: fragment }), timeoutMs: PATIENCE_MS }),
    async () => Number(await redis.get(`${prefix}:{${identity}}:tally`)),
  ],
};

describe.each(Object.entries(kinds))('a feature from outside, on a %s', (_, [storeOf, sum]) => {
  it('learns what is charged and what comes back', async () => {
    const store = storeOf();
    await ask(store, limit, { identity, cost: 3 });
    await ask(store, limit, { identity, cost: 4 });
    await ask(store, limit, { identity, cost: 4 });
    await ask(store, limit, { identity, peek: true });
    expect(await sum()).toBe(7);
    await store.refund([{ limit, identity, units: 2 }]);
    expect(await sum()).toBe(5);
    await store.close();
  });
});
