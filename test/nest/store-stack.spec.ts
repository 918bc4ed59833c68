import { describe, expect, it } from '@jest/globals';
import { MemoryStore, type Store } from '../../lib/index.js';
import { createStoreStack, type StoreSettings } from '../../lib/nest/store-stack.js';
import { StoreLayer } from '../../lib/storage/stores/layers/store-layer.js';
import { DecisionStream } from '../../lib/storage/telemetry/decision-stream.js';
import { connectRedis, freshPrefix } from '../support/limits/stores.js';

/** The names of a store's layers, from top to bottom. */
function layersOf(store: Store): string[] {
  const below = store instanceof StoreLayer ? layersOf((store as unknown as { inner: Store }).inner) : [];
  return [store.constructor.name, ...below];
}

/** The layers below that of candidates, which is always there and above all others. */
async function layersWith(more: Partial<StoreSettings>): Promise<string[]> {
  const common = { prefix: freshPrefix(), timeoutMs: 250, maxKeys: 1000, report: () => undefined };
  const stack = await createStoreStack({ ...common, ...more });
  const layers = layersOf(stack);
  await stack.close();
  expect(layers.slice(0, 2)).toEqual(['StoreStack', 'CandidateStore']);
  return layers.slice(2);
}

const decisions = new DecisionStream();

describe('the layers of a store', () => {
  it('are none in process but that of the observers', async () => {
    expect(await layersWith({ decisions, refusalCache: true })).toEqual(['ObservedStore', 'MemoryStore']);
  });

  it('are none over a store that decides in place of all others', async () => {
    expect(await layersWith({ decisions, replacement: new MemoryStore() })).toEqual(['ObservedStore', 'MemoryStore']);
  });

  it('are those for failures and for limits of one instance over a store of the user', async () => {
    const layers = ['InstanceScopeStore', 'FallbackStore', 'MemoryStore'];
    expect(await layersWith({ store: new MemoryStore(), refusalCache: true })).toEqual(layers);
  });

  it('are those of lists, once somebody is on one, but over a store that decides in place of all others', async () => {
    const used = { isEmpty: false, whenUsed: (begin: () => void) => begin(), verdict: () => undefined };
    const layers = ['ObservedStore', 'ListStore', 'MemoryStore'];
    expect(await layersWith({ decisions, lists: used })).toEqual(layers);
    expect(await layersWith({ lists: used })).toEqual(layers.slice(1));
    expect(await layersWith({ decisions, lists: { ...used, whenUsed: () => undefined } })).toEqual([
      'ObservedStore',
      'MemoryStore',
    ]);
    expect(await layersWith({ lists: used, replacement: new MemoryStore() })).toEqual(['MemoryStore']);
  });

  it('are all over Redis', async () => {
    const redis = await connectRedis();
    const below = ['FallbackStore', 'RedisStore'];
    expect(await layersWith({ redis, decisions, refusalCache: true })).toEqual([
      'ObservedStore',
      'InstanceScopeStore',
      'PrefetchStore',
      'RefusalCacheStore',
      ...below,
    ]);
    expect(await layersWith({ redis })).toEqual(['InstanceScopeStore', 'PrefetchStore', ...below]);
    redis.disconnect();
  });
});
