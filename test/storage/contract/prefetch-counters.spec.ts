import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { RateLimitStoreError } from '../../../lib/index.js';
import { LocalChannel } from '../../support/limits/local-channel.js';
import { askAll, holdThree, leftOf, prefetchedLimit, TTL_MS } from '../../support/limits/prefetching.js';
import { SharedStore } from '../../support/redis/shared-store.js';
import { takingInAdvance } from '../../support/limits/layers.js';

const limit = prefetchedLimit('busy');
const [one, other] = [
  { limit, identity: 'user:1' },
  { limit, identity: 'user:2' },
];

describe('the counters of which units were taken in advance', () => {
  let shared: SharedStore;
  let listened: number;
  let store: ReturnType<typeof takingInAdvance>;

  beforeEach(async () => {
    jest.useFakeTimers();
    // No unit was ever taken before.
    jest.advanceTimersByTime(2 * TTL_MS);
    shared = new SharedStore();
    // The store in process has a timer from its first counter on.
    await askAll(shared, { ...one, identity: 'user:0' });
    const channel = new LocalChannel();
    listened = 0;
    jest.spyOn(channel, 'listen').mockImplementation(() => listened++);
    store = takingInAdvance(shared, channel);
  });
  afterEach(async () => {
    await store.close();
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it('have units each for itself', async () => {
    for (const counter of [one, other]) await holdThree(store, counter);
    shared.checks.length = 0;
    for (const counter of [one, other, one, other]) {
      expect(await askAll(store, counter)).toMatchObject([{ source: 'prefetch' }]);
    }
    expect(shared.checks).toEqual([]);
  });

  it.each([
    [64, 'prefetch'],
    [65, 'memory'],
  ])('are those of identities of at most 64 characters: of %d come units of %s', async (length, source) => {
    const counter = { limit, identity: 'x'.repeat(length) };
    await holdThree(store, counter);
    expect(await askAll(store, counter)).toMatchObject([{ source }]);
  });

  it('are listened for once, from the first one on', async () => {
    await askAll(store, { limit: prefetchedLimit('plain', { features: undefined }), identity: 'user:1' });
    expect(listened).toBe(0);
    for (const counter of [one, other]) await holdThree(store, counter);
    expect(listened).toBe(1);
  });

  it('are forgotten once their units are back for as long as these could be used, and the timer with the last one', async () => {
    const before = jest.getTimerCount();
    await holdThree(store, one);
    await jest.advanceTimersByTimeAsync(TTL_MS / 2);
    await holdThree(store, other);
    expect(jest.getTimerCount()).toBe(before + 1);
    await jest.advanceTimersByTimeAsync(1.5 * TTL_MS);
    expect([await leftOf(shared, one), await leftOf(shared, other)]).toEqual([996, 996]);
    // Of the first one nothing is known any more: one at a time, as in the beginning. Of the other one it is.
    shared.checks.length = 0;
    for (const counter of [one, other]) await askAll(store, counter);
    expect(shared.checks.map(({ entries }) => entries[0]!.cost)).toEqual([1, 1]);
    await jest.advanceTimersByTimeAsync(2 * TTL_MS - 1);
    expect(jest.getTimerCount()).toBe(before + 1);
    await jest.advanceTimersByTimeAsync(1);
    expect(jest.getTimerCount()).toBe(before);
    await holdThree(store, one);
    expect(jest.getTimerCount()).toBe(before + 1);
    await jest.advanceTimersByTimeAsync(TTL_MS);
    expect(await leftOf(shared, one)).toBe(996 - 1 - 4);
  });

  it('take no memory once they are forgotten, and what was given back takes none', async () => {
    for (const counter of [one, other]) await holdThree(store, counter);
    const { units, returning } = store as unknown as Record<'units' | 'returning', Map<unknown, unknown>>;
    await jest.advanceTimersByTimeAsync(TTL_MS);
    expect(shared.refunds).toHaveLength(2);
    expect([units.size, returning.size]).toEqual([1, 0]);
    await jest.advanceTimersByTimeAsync(TTL_MS);
    expect(units.size).toBe(0);
  });

  it('have given all units back before the store below is closed', async () => {
    const before = jest.getTimerCount();
    await holdThree(store, one);
    const underWay: (() => void)[] = [];
    shared.meanwhile = () => new Promise((resolve) => void underWay.push(resolve));
    const closing = store.close();
    expect(shared.refunds).toMatchObject([{ ...one, units: 3, source: 'prefetch' }]);
    await jest.advanceTimersByTimeAsync(1000);
    expect(shared.closed).toBe(0);
    for (const arrive of underWay) arrive();
    await closing;
    expect([shared.closed, jest.getTimerCount()]).toEqual([1, before - 1]);
  });

  it('end, too, when their units cannot be given back', async () => {
    await holdThree(store, one);
    shared.meanwhile = () => {
      throw new RateLimitStoreError('down');
    };
    await store.close();
    expect(shared.closed).toBe(1);
  });
});
