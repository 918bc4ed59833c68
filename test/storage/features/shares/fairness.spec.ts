import { describe, expect, it } from '@jest/globals';
import { type AlgorithmOptions, MemoryStore } from '../../../../lib/index.js';
import { TenantWeights } from '../../../../lib/storage/features/shares/tenant-weights.js';
import { ask, ManualClock } from '../../../support/limits/stores.js';
import { variants } from '../../../support/tier.js';
import { allocate, type Demand, jain, maxMin, sharedLimit } from './simulation.js';

const RATE = 100;
/** The figures of docs/reference/fair-shares.md. */
const limits: [string, AlgorithmOptions][] = [
  ['sliding-window', { algo: 'sliding-window', rate: RATE, interval: '1m', slices: 60 }],
  ['token-bucket', { algo: 'token-bucket', rate: RATE, interval: '1m' }],
  ['token-bucket with a small burst', { algo: 'token-bucket', rate: RATE, interval: '1m', burst: RATE / 5 }],
  ['gcra', { algo: 'gcra', rate: RATE, interval: '1m' }],
];

/** One greedy tenant, and nine modest ones that ask for so much an interval. */
function demandsOf(greedy: number, modest: number, weights: readonly number[] = []): Demand[] {
  return Array.from({ length: 10 }, (_, index) => ({
    id: `t${index}`,
    weight: weights[index] ?? 1,
    perInterval: index === 0 ? greedy : modest,
  }));
}

async function simulate(options: AlgorithmOptions, demands: readonly Demand[], { shared = true } = {}) {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock: clock.now });
  const length = { intervals: 6, warmUp: 2 };
  const limit = sharedLimit(options);
  const own = shared ? limit : Object.create(limit, { meet: { value: () => limit } });
  const got = [...(await allocate(store, clock, own as typeof limit, demands, { ...length, stepMs: 1000 })).values()];
  const each = got.map((units) => units / (length.intervals - length.warmUp));
  const fair = maxMin(demands, RATE);
  return {
    each,
    /** Of what each got of its max-min fair part. */
    fairness: jain(each.map((units, index) => units / fair[index]!)),
    utilisation: each.reduce((sum, units) => sum + units, 0) / RATE,
  };
}

describe.each(variants(limits))('%s under saturation by one greedy and nine modest tenants', (_, options) => {
  it.each([11, 15])('is shared alike by those who ask for more than their parts: %d an interval', async (modest) => {
    const { each, fairness, utilisation } = await simulate(options, demandsOf(3 * RATE, modest));
    expect(jain(each)).toBeGreaterThanOrEqual(0.98);
    expect(fairness).toBeGreaterThanOrEqual(0.98);
    expect(utilisation).toBeGreaterThanOrEqual(0.95);
  });

  it.each([3, 6])('leaves the greedy one what others do not ask for, %d an interval', async (modest) => {
    const { each, fairness, utilisation } = await simulate(options, demandsOf(3 * RATE, modest));
    expect(fairness).toBeGreaterThanOrEqual(0.98);
    expect(utilisation).toBeGreaterThanOrEqual(0.95);
    expect(each[0]).toBeGreaterThan(RATE / 4);
  });

  it('is shared by weight', async () => {
    const { fairness, utilisation } = await simulate(options, demandsOf(3 * RATE, RATE / 2, [1, 5, 4]));
    expect(fairness).toBeGreaterThanOrEqual(0.98);
    expect(utilisation).toBeGreaterThanOrEqual(0.95);
  });
});

it('is taken by the greedy one where nothing is shared', async () => {
  const { each, fairness } = await simulate(limits[1]![1], demandsOf(3 * RATE, 11), { shared: false });
  expect(fairness).toBeLessThan(0.7);
  expect(each[0]).toBeGreaterThan(RATE / 2);
});

describe('a shared limit', () => {
  const limit = sharedLimit({ algo: 'sliding-window', rate: 100, interval: '1m' });
  const of = (id: string, weight = 1, shared = limit) => shared.meet({ tenant: { id, weight } });

  function started() {
    const clock = new ManualClock();
    const store = new MemoryStore({ clock: clock.now });
    const take = async (tenant: string, units: number, weight = 1, shared = limit) => {
      let taken = 0;
      for (let i = 0; i < units; i++) {
        if ((await ask(store, of(tenant, weight, shared), { identity: 'global' })).allowed) taken++;
      }
      return taken;
    };
    return { clock, store, take };
  }

  it('keeps for a tenant that was refused what it asked for, and no more', async () => {
    const { clock, take } = started();
    expect(await take('greedy', 150)).toBe(100);
    expect(await take('small', 7)).toBe(0);
    clock.advanceMs(66_000);
    expect(await take('greedy', 200)).toBe(93);
    expect(await take('small', 7)).toBe(7);
    expect(await take('greedy', 1)).toBe(0);
  });

  it('keeps a part for a tenant that asked for more than that', async () => {
    const { clock, take } = started();
    await take('greedy', 150);
    await take('other', 150, 3);
    clock.advanceMs(66_000);
    expect(await take('greedy', 200)).toBe(25);
    expect(await take('other', 200, 3)).toBe(75);
  });

  it('keeps nothing for a tenant that asks no longer', async () => {
    const { clock, take } = started();
    await take('greedy', 150);
    await take('other', 150, 3);
    clock.advanceMs(144_000);
    expect(await take('greedy', 200)).toBe(100);
  });

  it('leaves the floor to a tenant whose weight is less', async () => {
    const { clock, take } = started();
    const floored = sharedLimit({ algo: 'sliding-window', rate: 100, interval: '1m' }, { floor: 0.2, name: 'floor' });
    await take('small', 150, 1, floored);
    await take('large', 150, 99, floored);
    clock.advanceMs(66_000);
    expect(await take('small', 200, 1, floored)).toBe(20);
    expect(await take('large', 200, 99, floored)).toBe(80);
  });

  it('gives units back to the tenant that had them', async () => {
    const { clock, store, take } = started();
    await take('a', 150);
    await take('b', 150);
    clock.advanceMs(66_000);
    expect(await take('a', 200)).toBe(50);
    await store.refund([{ limit: of('a'), identity: 'global', units: 5 }]);
    expect(await take('a', 200)).toBe(5);
  });

  it('is of the same tenant as a part of it, and elsewhere', () => {
    const half = of('a', 3).partOf(0.5);
    expect([half.quota, half.metBy['tenant'], half.algorithm]).toEqual([50, { id: 'a', weight: 3 }, limit.algorithm]);
    expect(of('a', 3).inNamespace('elsewhere')).toMatchObject({
      namespace: 'elsewhere',
      metBy: { tenant: { id: 'a', weight: 3 } },
    });
    expect(of('a', 3)).toBe(of('a', 3));
    expect(limit.meet({ tenant: undefined })).toBe(limit);
  });

  it('looks without a trace', async () => {
    const { clock, store, take } = started();
    await take('a', 100);
    await ask(store, of('b'), { identity: 'global', peek: true });
    clock.advanceMs(66_000);
    expect(await take('a', 200)).toBe(100);
  });

  it('forgets tenants that ask no longer, also where there are many', async () => {
    const { clock, store, take } = started();
    for (let i = 0; i < 500; i++) await take(`t${i}`, 1);
    const { bytes } = store;
    clock.advanceMs(200_000);
    await take('a', 1);
    expect(store.bytes).toBeLessThan(bytes / 10);
  });
});

describe('a client that makes up a name for each request', () => {
  const weight = { 'user:acme': 1, 'user:globex': 1 };
  /** What it gets in six intervals, beside two tenants that ask for 40 an interval. */
  const flood = async (unlisted: 'each' | 'together', floor: number) => {
    const clock = new ManualClock();
    const store = new MemoryStore({ clock: clock.now });
    const limit = sharedLimit({ algo: 'token-bucket', rate: RATE, interval: '1m' }, { floor });
    const tenants = new TenantWeights({ by: 'user', weight, unlisted, floor }, 'test');
    const got: Record<string, number> = { flood: 0, 'user:acme': 0, 'user:globex': 0 };
    for (let step = 0; step < 6000; step++) {
      const asking = [['flood', true], ...Object.keys(weight).map((name, at) => [name, step % 15 === at])];
      for (const [who] of asking.filter(([, asks]) => asks) as [string][]) {
        const name = who === 'flood' ? `user:${step}` : who;
        const decision = await ask(store, limit.meet({ tenant: tenants.tenant(name, 'gpu') }), { identity: 'global' });
        if (decision.allowed && step >= 2400) got[who]! += 1 / 6;
      }
      clock.advanceMs(100);
    }
    return Object.values(got).map(Math.round);
  };

  it('takes all from those who are named, where each name counts', async () => {
    expect(await flood('each', 0.3)).toEqual([100, 0, 0]);
  });

  it('gets one part, where all who are not named count together', async () => {
    const [client, ...named] = await flood('together', 0.3);
    expect(client).toBeLessThanOrEqual(RATE / 3 + 1);
    for (const units of named) expect(units).toBeGreaterThanOrEqual(Math.floor(RATE / 3) - 1);
  });
});
