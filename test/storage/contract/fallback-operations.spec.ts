import { beforeEach, describe, expect, it } from '@jest/globals';
import { type AlgorithmOptions, MemoryStore, type OnStoreError, RateLimitStoreError } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { ask, ManualClock } from '../../support/limits/stores.js';
import { fallingBack } from '../../support/limits/layers.js';

const IDENTITY = 'ip:203.0.113.7';

const limitOf = (options: AlgorithmOptions, onStoreError: OnStoreError = 'local') =>
  new CompiledLimit(options, { location: 'test', name: options.algo, onStoreError });

const gcra: AlgorithmOptions = { algo: 'gcra', rate: 10, interval: '1h' };

/** A store that can be switched off. */
class Switched extends MemoryStore {
  off = false;

  override check(...args: Parameters<MemoryStore['check']>) {
    return this.off ? this.fail() : super.check(...args);
  }
  override reserve(...args: Parameters<MemoryStore['reserve']>) {
    return this.off ? this.fail() : super.reserve(...args);
  }
  override refund(...args: Parameters<MemoryStore['refund']>) {
    return this.off ? this.fail() : super.refund(...args);
  }
  override penalize(...args: Parameters<MemoryStore['penalize']>) {
    return this.off ? this.fail() : super.penalize(...args);
  }
  override block(...args: Parameters<MemoryStore['block']>) {
    return this.off ? this.fail() : super.block(...args);
  }
  override learn(...args: Parameters<MemoryStore['learn']>) {
    return this.off ? this.fail() : super.learn(...args);
  }
  override renew(...args: Parameters<MemoryStore['renew']>) {
    return this.off ? this.fail() : super.renew(...args);
  }

  private fail(): Promise<never> {
    return Promise.reject(new RateLimitStoreError('switched off'));
  }
}

describe('while the first store fails', () => {
  let clock: ManualClock;
  let first: Switched;
  let local: MemoryStore;
  let store: ReturnType<typeof fallingBack>;

  beforeEach(() => {
    clock = new ManualClock();
    first = new Switched({ clock: clock.now });
    local = new MemoryStore({ clock: clock.now });
    store = fallingBack(first, local);
  });

  const reserve = (limit: CompiledLimit) => store.reserve({ limit, identity: IDENTITY, cost: 4, maxWaitMs: 0 });

  it('units are reserved as each limit says', async () => {
    first.off = true;
    expect(await reserve(limitOf(gcra))).toMatchObject({ allowed: true, remaining: 6, source: 'fallback' });
    expect(await reserve(limitOf(gcra, 'allow'))).toMatchObject({ allowed: true, remaining: 10, source: 'fallback' });
    await expect(reserve(limitOf(gcra, 'deny'))).rejects.toThrow('switched off');
  });

  it('an upstream is learnt of in process, with its rate', async () => {
    const counter = { limit: limitOf(gcra), identity: IDENTITY };
    const rate = { accepted: 0, refused: true, largest: 1, slowestMs: 60_000 };
    const lesson = { ageMs: 0, inFlight: 0, instance: 1, blockMs: 5000 };
    expect(await store.learn!(counter, { ...lesson, rate })).toMatchObject({ rate: 30 });
    first.off = true;
    clock.advanceMs(5000);
    expect(await store.learn!(counter, { ...lesson, rate })).toMatchObject({ rate: 15 });
    expect(await ask(local, counter.limit)).toMatchObject({ allowed: false, retryAfterMs: 5000 });
    await expect(store.learn!(counter, lesson)).rejects.toThrow('switched off');
    await expect(store.learn!(counter, { ...lesson, blockMs: 0, rate })).rejects.toThrow('switched off');
  });

  it('units go back to whom they were taken from', async () => {
    const limit = limitOf(gcra);
    const counter = { limit, identity: IDENTITY };
    await ask(store, limit, { cost: 5 });
    first.off = true;
    const { source } = await ask(store, limit, { cost: 3 });
    first.off = false;
    await store.refund([{ ...counter, units: 3, source }]);
    expect(await ask(first, limit, { peek: true })).toMatchObject({ remaining: 5 });
    expect(await ask(local, limit, { peek: true })).toMatchObject({ remaining: 10 });
    first.off = true;
    await expect(store.refund([{ ...counter, units: 1, source: 'redis' }])).rejects.toThrow('switched off');
    await ask(local, limit, { cost: 2 });
    await store.refund([{ ...counter, units: 1 }]);
    expect(await ask(local, limit, { peek: true })).toMatchObject({ remaining: 9 });
  });

  it('penalties are charged here, or where what they belong to was charged', async () => {
    const limit = limitOf(gcra);
    const counter = { limit, identity: IDENTITY };
    await store.penalize({ ...counter, units: 1, source: 'fallback' });
    first.off = true;
    await store.penalize({ ...counter, units: 2 });
    expect(await ask(local, limit, { peek: true })).toMatchObject({ remaining: 7 });
    expect(first.size).toBe(0);
  });

  it.each<[string, OnStoreError, boolean]>([
    ["'deny'", 'deny', true],
    ["a function that says 'deny'", () => 'deny', true],
    ["'deny' in shadow mode", 'deny', false],
    ["'allow'", 'allow', false],
  ])('units are neither charged nor given back under %s', async (what, onStoreError, rejects) => {
    const shadow = what.includes('shadow');
    const limit = new CompiledLimit(gcra, { location: 'test', name: 'gcra', onStoreError, shadow });
    const counter = { limit, identity: IDENTITY };
    await ask(first, limit, { cost: 5 });
    first.off = true;
    for (const call of [
      () => store.penalize({ ...counter, units: 2 }),
      () => store.refund([{ ...counter, units: 2 }]),
    ]) {
      if (rejects) await expect(call()).rejects.toThrow(RateLimitStoreError);
      else await call();
    }
    first.off = false;
    expect(await ask(first, limit, { peek: true })).toMatchObject({ remaining: 5 });
    expect(local.size).toBe(0);
  });

  it('a function says for each charge and refund what to do', async () => {
    const asked: unknown[] = [];
    const limit = limitOf(gcra, (_, check) => {
      asked.push(check);
      return check.cost > 1 ? 'deny' : 'local';
    });
    const counter = { limit, identity: IDENTITY };
    await ask(local, limit, { cost: 5 });
    first.off = true;
    await store.penalize({ ...counter, units: 1 });
    await expect(store.penalize({ ...counter, units: 2 })).rejects.toThrow('switched off');
    await expect(
      store.refund([
        { ...counter, units: 1 },
        { ...counter, units: 3 },
      ]),
    ).rejects.toThrow('switched off');
    expect(await ask(local, limit, { peek: true })).toMatchObject({ remaining: 5 });
    expect(asked).toEqual([1, 2, 1, 3].map((cost) => ({ limit: 'gcra', key: IDENTITY, cost })));
  });

  it('a block holds here, and the caller is told that it holds only here', async () => {
    const limit = limitOf(gcra);
    first.off = true;
    await expect(store.block({ limit, identity: IDENTITY }, 1000)).rejects.toThrow('switched off');
    expect(await ask(store, limit)).toMatchObject({ allowed: false, source: 'fallback' });
  });

  it('what is held is renewed and released where it is held', async () => {
    const limit = limitOf({ algo: 'concurrency', limit: 1, ttl: '1m' });
    first.off = true;
    const { ticket, source } = await ask(store, limit);
    const lease = { limit, identity: IDENTITY, units: 1, ticket: ticket!, source };
    expect(await store.renew(lease)).toBe(true);
    await expect(store.renew({ ...lease, source: 'redis' })).rejects.toThrow('switched off');
    first.off = false;
    await store.refund([lease]);
    expect(await store.renew(lease)).toBe(false);
  });

  it('a mistake is no failure of the store', async () => {
    first.penalize = () => Promise.reject(new TypeError('a bug'));
    first.refund = () => Promise.reject(new TypeError('a bug'));
    first.reserve = () => Promise.reject(new TypeError('a bug'));
    const counter = { limit: limitOf(gcra), identity: IDENTITY };
    await expect(store.penalize({ ...counter, units: 1 })).rejects.toThrow('a bug');
    await expect(store.refund([{ ...counter, units: 1 }])).rejects.toThrow('a bug');
    await expect(store.reserve({ ...counter, cost: 1, maxWaitMs: 0 })).rejects.toThrow('a bug');
  });
});
