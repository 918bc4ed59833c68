import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { RateLimitStoreError } from '../../../lib/index.js';
import type { Check } from '../../../lib/testing/store/index.js';
import { LocalChannel } from '../../support/limits/local-channel.js';
import { askAll, holdThree, leftOf, prefetchedLimit } from '../../support/limits/prefetching.js';
import { SharedStore } from '../../support/redis/shared-store.js';
import { takingInAdvance } from '../../support/limits/layers.js';

const identity = 'user:1';
const busy = { limit: prefetchedLimit('busy'), identity };
const scarce = { limit: prefetchedLimit('scarce', {}, 1), identity };
const plain = { limit: prefetchedLimit('plain', { features: undefined }), identity };
const used = { limit: prefetchedLimit('used', { features: undefined }, 1), identity };

describe('a check of several limits, some with units in advance,', () => {
  let shared: SharedStore;
  let store: ReturnType<typeof takingInAdvance>;

  beforeEach(async () => {
    jest.useFakeTimers();
    shared = new SharedStore();
    store = takingInAdvance(shared, new LocalChannel());
    await holdThree(store, busy);
    for (const counter of [scarce, used]) await askAll(shared, counter);
    shared.checks.length = 0;
  });
  afterEach(async () => {
    await store.close();
    jest.useRealTimers();
  });

  /** What was asked of the store below, by limits. */
  const asked = () => shared.checks.splice(0).map(({ entries }) => entries.map(({ limit: { name } }) => name));

  /** Closes the store, so that all units are back, and says how many are left of 1000. */
  async function leftInTheEnd(): Promise<number> {
    shared.close = () => Promise.resolve();
    await store.close();
    return leftOf(shared, busy);
  }

  it('is asked of the store below as it is if it is of none of these', async () => {
    const check: Check = { entries: [{ ...plain, cost: 1 }], strict: true, address: '203.0.113.7' };
    await store.check([check]);
    expect(shared.checks).toHaveLength(1);
    expect(shared.checks[0]).toBe(check);
  });

  it('asks the store below for the others alone', async () => {
    expect(await askAll(store, busy)).toMatchObject([{ source: 'prefetch' }]);
    expect(asked()).toEqual([]);
    expect(await askAll(store, plain, busy)).toMatchObject([
      { limit: 'plain', source: 'memory' },
      { limit: 'busy', source: 'prefetch' },
    ]);
    expect(asked()).toEqual([['plain']]);
  });

  it('takes units of all of these at once', async () => {
    const calm = { limit: prefetchedLimit('calm'), identity };
    await holdThree(store, calm);
    shared.checks.length = 0;
    expect(await askAll(store, busy, calm)).toMatchObject([
      { limit: 'busy', allowed: true, source: 'prefetch', remaining: 995 },
      { limit: 'calm', allowed: true, source: 'prefetch', remaining: 995 },
    ]);
    expect(asked()).toEqual([]);
  });

  it('takes none if one of these refuses, and says what is left without it', async () => {
    expect(await askAll(store, busy, scarce)).toMatchObject([
      { allowed: true, remaining: 996 },
      { allowed: false, remaining: 0 },
    ]);
    // All three are held still.
    for (let times = 0; times < 3; times++) await askAll(store, busy);
    expect(asked()).toEqual([['scarce']]);
    expect(await leftInTheEnd()).toBe(1000 - 7);
  });

  it('takes units where one that only watches refuses', async () => {
    const watching = { limit: prefetchedLimit('watching', { shadow: true }, 1), identity };
    await askAll(shared, watching);
    expect(await askAll(store, busy, watching)).toMatchObject([
      { allowed: true, remaining: 995 },
      { allowed: false, remaining: 0 },
    ]);
    expect(await leftInTheEnd()).toBe(1000 - 5);
  });

  it('takes none if one of these cannot be asked, and fails as that did', async () => {
    const failure = new RateLimitStoreError('down');
    shared.meanwhile = (check) => {
      if (check?.entries[0]!.limit === scarce.limit) throw failure;
    };
    for (const counters of [
      [busy, scarce],
      [scarce, busy],
    ]) {
      await expect(askAll(store, ...counters)).rejects.toBe(failure);
    }
    expect(await leftInTheEnd()).toBe(1000 - 4);
  });

  it('gives back a unit of a counter too long to be kept, by when it was charged, if another limit refuses', async () => {
    const long = { limit: busy.limit, identity: 'x'.repeat(65) };
    shared.refunds.length = 0;
    for (const remaining of [1000, 1000]) {
      expect(await askAll(store, long, used)).toMatchObject([{ allowed: true, remaining }, { allowed: false }]);
    }
    const chargedAt = expect.any(Number);
    const refund = { ...long, units: 1, chargedAt, source: 'memory' };
    expect(shared.refunds).toEqual([refund, refund]);
    expect(await leftOf(shared, long)).toBe(1000);
  });
});
