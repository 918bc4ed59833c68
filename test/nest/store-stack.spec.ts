/**
 * Limits with candidates and prefetch, whose layers join all stacks of the process. Here none is declared before:
 * @library own
 */
import { describe, expect, it } from '@jest/globals';
import { MemoryStore, type Store } from '../../lib/index.js';
import { CompiledLimit, type Counter, type LimitSettings } from '../../lib/testing/store/index.js';
import { createStoreStack, type StoreSettings } from '../../lib/nest/store-stack.js';
import { LowestLayer } from '../../lib/storage/stores/layers/store-layer.js';
import { DecisionStream } from '../../lib/storage/telemetry/decision-stream.js';
import { connectRedis, featureTerms, freshPrefix } from '../support/limits/stores.js';

/** The names of a store's layers, from top to bottom. */
function layersOf(store: Store): string[] {
  if (store instanceof LowestLayer) return [store.store.constructor.name];
  return [store.constructor.name, ...layersOf((store as unknown as { inner: Store }).inner)];
}

function stackWith(more: Partial<StoreSettings>) {
  const common = { prefix: freshPrefix(), timeoutMs: 250, maxKeys: 1000, report: () => undefined };
  return createStoreStack({ ...common, ...more });
}

/** The layers below the uppermost one, which is always there. */
async function layersWith(more: Partial<StoreSettings>): Promise<string[]> {
  const stack = await stackWith(more);
  const [uppermost, ...layers] = layersOf(stack);
  await stack.close();
  expect(uppermost).toBe('StoreStack');
  return layers;
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

  it('include that of a deadline over a store of ours whose methods the app replaces', async () => {
    class Own extends MemoryStore {
      override reset(counters: readonly Counter[]) {
        return super.reset(counters);
      }
    }
    const layers = ['InstanceScopeStore', 'FallbackStore', 'DeadlineStore'];
    expect(await layersWith({ store: new Own() })).toEqual([...layers, 'Own']);
    const check = () => new Promise<never>(() => undefined);
    const changed = Object.assign(new MemoryStore(), { check });
    expect(await layersWith({ store: changed })).toEqual([...layers, 'MemoryStore']);
    const replacing = new Proxy(new MemoryStore(), {
      get: (store, name) => (name === 'check' ? check : Reflect.get(store, name)),
    });
    expect(await layersWith({ store: replacing })).toEqual([...layers, 'MemoryStore']);
  });

  it('are those of a store of ours alone over a subclass that overrides none of its methods', async () => {
    class Own extends MemoryStore {
      readonly more = true;
    }
    expect(await layersWith({ store: new Own() })).toEqual(['InstanceScopeStore', 'FallbackStore', 'Own']);
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

  it('are those of what limits need, once the first one needs it, over Redis', async () => {
    const redis = await connectRedis();
    const below = ['RefusalCacheStore', 'FallbackStore', 'RedisStore'];
    const settings = { redis, decisions, refusalCache: true };
    const stack = await stackWith(settings);
    expect(layersOf(stack)).toEqual(['StoreStack', 'ObservedStore', 'InstanceScopeStore', ...below]);
    const closed = await stackWith(settings);
    await closed.close();

    const options = { algo: 'fixed-window', rate: 10, interval: '1s' } as const;
    const compile = (more: Partial<LimitSettings>) =>
      new CompiledLimit(options, { location: 'test', name: 'api', ...more });
    compile({ features: featureTerms({ ...options, prefetch: { units: 2, ttl: '100ms' } }, 'test') });
    const withPrefetch = ['ObservedStore', 'InstanceScopeStore', 'PrefetchStore', ...below];
    expect(layersOf(stack)).toEqual(['StoreStack', ...withPrefetch]);
    compile({ candidate: { ...options, rate: 5 } });
    const all = ['CandidateStore', ...withPrefetch];
    expect(layersOf(stack)).toEqual(['StoreStack', ...all]);
    expect(await layersWith(settings)).toEqual(all);
    expect(layersOf(closed)).not.toContain('CandidateStore');
    await stack.close();
    redis.disconnect();
  });
});
