import { describe, expect, it } from '@jest/globals';
import { sharedLimit } from './simulation.js';

const limit = sharedLimit({ algo: 'sliding-window', rate: 1_000_000, interval: '11s' });
const START = 1_700_000_000_000_000;
const MOST = 10_000;

/** What a counter in process knows of its tenants. */
interface Known {
  shares: {
    sums: Readonly<Record<'weights' | 'expected' | 'used', number[]>>;
    tenants: ReadonlyMap<string, { expected: number }>;
  };
}

function take(stored: Known | undefined, tenant: string, now: number, weight = 1): Known {
  const { algorithm, parameters } = limit.meet({ tenant: { id: tenant, weight } });
  const state = algorithm.open(parameters, stored as never, now);
  algorithm.take(parameters, state, 1);
  return algorithm.save(parameters, state) as unknown as Known;
}

const total = (counts: readonly number[]) => counts.reduce((sum, each) => sum + each, 0);

describe('what is known in process of tenants', () => {
  it('is of the last 10,000, and so are the sums', () => {
    let state: Known | undefined;
    for (let round = 0; round < 2; round++) {
      for (let index = 0; index < MOST + 50; index++) state = take(state, `t${index}`, START, 2);
    }
    const { sums, tenants } = state!.shares;
    expect(tenants.size).toBe(MOST);
    expect(total(sums.weights)).toBe(2 * MOST);
    expect(total(sums.expected)).toBe(total([...tenants.values()].map(({ expected }) => expected)));
    expect(total(sums.used)).toBeLessThanOrEqual(total(sums.expected));
  });

  it('comes back to nothing once nobody asks', () => {
    let state: Known | undefined;
    for (let index = 0; index < 200; index++) state = take(state, `t${index}`, START + index * 10_000);
    state = take(state, 'last', START + 30_000_000);
    const { sums, tenants } = state.shares;
    expect([...tenants.keys()]).toEqual(['last']);
    expect([total(sums.weights), total(sums.expected), total(sums.used)]).toEqual([1, 1, 1]);
  });
});
