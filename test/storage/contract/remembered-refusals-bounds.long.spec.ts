import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Store } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { startRemembering } from '../../support/limits/remembering.js';
import type { SharedStore } from '../../support/redis/shared-store.js';

const limitOf = (name: string) =>
  new CompiledLimit(
    { algo: 'fixed-window', rate: 1, interval: '1h' },
    { location: 'test', name, remembersRefusals: true },
  );

describe('refusals that are remembered', () => {
  let shared: SharedStore;
  let store: Store;

  beforeEach(async () => {
    jest.spyOn(performance, 'now').mockReturnValue(1000);
    ({ shared, store } = await startRemembering());
  });
  afterEach(async () => {
    await store.close();
    jest.restoreAllMocks();
  });

  /** Has a check refused that never fits, and says whether the store was asked for it. */
  async function refuse(identity: string, limits: readonly CompiledLimit[]): Promise<boolean> {
    const asked = shared.checks.length;
    await store.check([{ entries: limits.map((limit) => ({ limit, identity, cost: 2 })) }]);
    return shared.checks.length > asked;
  }

  async function refuseMany(from: number, to: number, limits: readonly CompiledLimit[]): Promise<void> {
    for (let index = from; index < to; index++) await refuse(`user:${index}`, limits);
  }

  it.each<[string, CompiledLimit[], number, number]>([
    // About 200 kB each, and about 180 kB.
    ['whose limits have long names', [limitOf('x'.repeat(100_000))], 90, 110],
    ['of many limits', Array.from({ length: 500 }, (_, index) => limitOf(`limit${index}`)), 95, 130],
  ])('are fewer of those %s: of 20 MB in all', async (_, limits, fit, tooMany) => {
    await refuseMany(0, fit, limits);
    expect(await refuse('user:0', limits)).toBe(false);
    await refuseMany(fit, tooMany, limits);
    expect(await refuse(`user:${tooMany - 1}`, limits)).toBe(false);
    expect(await refuse('user:0', limits)).toBe(true);
  });

  it('are 10,000 at most: the oldest goes first', async () => {
    const limits = [limitOf('limit')];
    await refuseMany(0, 10_001, limits);
    expect([await refuse('user:10000', limits), await refuse('user:1', limits)]).toEqual([false, false]);
    expect(await refuse('user:0', limits)).toBe(true);
  });

  it('are one of checks that were asked for at the same time', async () => {
    const limits = [limitOf('limit')];
    await Promise.all([refuse('user:0', limits), refuse('user:0', limits)]);
    await refuseMany(1, 10_000, limits);
    expect(await refuse('user:0', limits)).toBe(false);
  });
});
