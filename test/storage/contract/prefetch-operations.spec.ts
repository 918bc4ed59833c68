import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { CompiledLimit, type Lesson } from '../../../lib/testing/store/index.js';
import { LocalChannel } from '../../support/limits/local-channel.js';
import { askAll, holdThree, leftOf, prefetchedLimit, takingAhead, TTL_MS } from '../../support/limits/prefetching.js';
import { SharedStore } from '../../support/redis/shared-store.js';
import { takingInAdvance } from '../../support/limits/layers.js';

const busy = { limit: prefetchedLimit('busy'), identity: 'user:1' };
const calm = { limit: prefetchedLimit('calm'), identity: 'user:1' };
const plain = { limit: prefetchedLimit('plain', { features: undefined }), identity: 'user:1' };

const lesson: Lesson = { ageMs: 0, inFlight: 0, instance: 1 };

describe('units that were taken in advance, and an operation that', () => {
  let shared: SharedStore;
  let channel: LocalChannel;
  let here: ReturnType<typeof takingInAdvance>;
  let there: ReturnType<typeof takingInAdvance>;

  beforeEach(async () => {
    jest.useFakeTimers();
    // No unit was ever taken before.
    jest.advanceTimersByTime(2 * TTL_MS);
    shared = new SharedStore();
    channel = new LocalChannel();
    here = takingInAdvance(shared, channel);
    there = takingInAdvance(shared, channel);
    for (const store of [here, there]) await holdThree(store, busy);
    shared.meanwhile = (check) => {
      if (check === undefined) jest.advanceTimersByTime(7);
    };
  });
  afterEach(async () => {
    for (const store of [here, there]) await store.close();
    jest.useRealTimers();
  });

  /** How many calls the next unit takes, on both instances. */
  async function calls(): Promise<number> {
    shared.checks.length = 0;
    for (const store of [here, there]) expect(await askAll(store, busy)).toMatchObject([{ allowed: true }]);
    return shared.checks.length;
  }

  it('blocks: are given back on all instances, which hear of it from when it began', async () => {
    const since = performance.now();
    await here.block(busy, 5000);
    expect(channel.published).toEqual([[expect.any(String), since]]);
    expect(shared.refunds.map(({ units }) => units)).toEqual([3, 3]);
    for (const store of [here, there]) expect(await askAll(store, busy)).toMatchObject([{ allowed: false }]);
  });

  it('learns that an upstream refuses all calls: are given back on all instances, too', async () => {
    const since = performance.now();
    await here.learn!(busy, { ...lesson, blockMs: 5000 });
    expect(channel.published).toEqual([[expect.any(String), since]]);
    expect(shared.refunds.map(({ units }) => units)).toEqual([3, 3]);
    for (const store of [here, there]) expect(await askAll(store, busy)).toMatchObject([{ allowed: false }]);
  });

  it.each([undefined, 0])('learns anything else of an upstream: are held on (%p)', async (blockMs) => {
    await here.learn!(busy, { ...lesson, blockMs });
    expect([channel.published, shared.refunds]).toEqual([[], []]);
    expect(await calls()).toBe(0);
  });

  it('resets: are forgotten on all instances, and given back by none', async () => {
    const since = performance.now();
    await here.reset([busy]);
    expect(channel.published).toEqual([[expect.any(String), since]]);
    expect(shared.refunds).toEqual([]);
    expect(await calls()).toBe(2);
    expect(await leftOf(shared, busy)).toBe(998);
  });

  it('is of counters of which nothing is held: are held on, and the operation is done', async () => {
    for (const act of [() => here.block(calm, 5000), () => here.learn!(calm, { ...lesson, blockMs: 5000 })]) {
      await act();
      expect(await leftOf(here, calm)).toBe(0);
      await here.reset([calm]);
      expect(await leftOf(here, calm)).toBe(1000);
    }
    expect(await calls()).toBe(0);
  });

  it('is of limits without units in advance: are no matter that instances tell each other of', async () => {
    await here.block(plain, 5000);
    await here.reset([plain]);
    expect(channel.published).toEqual([]);
    await here.reset([plain, calm]);
    expect(channel.published).toHaveLength(1);
  });

  it('reserves what was claimed, or starts beside: are left for others', async () => {
    const limit = new CompiledLimit(
      { algo: 'gcra', rate: 1000, interval: '1h' },
      { location: 'test', name: 'smooth', features: takingAhead(64, 100_000) },
    );
    const smooth = { limit, identity: 'user:1' };
    await holdThree(here, smooth);
    const entry = { ...smooth, cost: 1, maxWaitMs: 0 };
    const claimed = { ...entry, claim: { id: 'job', keepMs: 1000 } };
    const ofStarts = { ...entry, ofStarts: true };
    shared.checks.length = 0;
    await here.reserve(claimed);
    expect(await here.reserve(claimed)).toMatchObject({ allowed: true, wasClaimed: true });
    await here.reserve(ofStarts);
    expect(shared.reserved).toEqual([claimed, claimed, ofStarts]);
    expect(await here.reserve(entry)).toMatchObject({ allowed: true, source: 'prefetch' });
    expect([shared.reserved.length, shared.checks.length]).toEqual([3, 0]);
  });
});
