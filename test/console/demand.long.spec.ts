import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { CompiledLimit } from '../../lib/testing/store/index.js';
import {
  ALL_HASHES,
  DemandSampler,
  DemandWindow,
  mergeDemand,
  MOST_KEYS,
  readDemand,
  writeDemand,
} from '../../lib/console/telemetry/demand-sampler.js';
import { summed } from '../../lib/console/views/demands.js';
import { until } from '../support/time/until.js';
import { freshPrefix } from '../support/limits/stores.js';
import { ConsoleApp, type Demand, type TopKeys } from './console-app.js';
import { propertyRuns } from '../support/limits/property-runs.js';

const DAILY = { algo: 'calendar-window', rate: 5, period: 'day', key: 'ip' } as const;

const asked = fc.array(fc.tuple(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 1, max: 5 })), { maxLength: 800 });

const fed = (items: readonly (readonly [key: number, units: number])[]) => {
  const window = new DemandWindow();
  for (const [key, units] of items) window.add(`user:${key}`, units);
  return window;
};
const exact = (items: readonly (readonly [key: number, units: number])[]) => {
  const units = new Map<number, number>();
  for (const [key, each] of items) units.set(key, (units.get(key) ?? 0) + each);
  return [...units.values()].toSorted((one, other) => one - other);
};

describe('the demand of a window', () => {
  it('has the exact units of the clients that it counts, and at most so many of them', () => {
    fc.assert(
      fc.property(asked, (items) => {
        const { units, below } = fed(items);
        const all = exact(items);
        expect(units.size).toBeLessThanOrEqual(MOST_KEYS);
        if (below === ALL_HASHES) expect([...units.values()].toSorted((one, other) => one - other)).toEqual(all);
        else expect(units.size).toBeLessThan(all.length);
      }),
      { numRuns: propertyRuns(100) },
    );
  });

  it('is the same however its requests are spread over instances', () => {
    fc.assert(
      fc.property(asked, fc.integer({ min: 1, max: 4 }), (items, instances) => {
        const parts = Array.from({ length: instances }, (_, part) =>
          fed(items.filter((__, at) => at % instances === part)),
        );
        const merged = mergeDemand(parts);
        const whole = fed(items);
        const below = Math.min(merged.below, whole.below);
        const shared = (units: ReadonlyMap<number, number>) => new Map([...units].filter(([hash]) => hash < below));
        expect(shared(merged.units)).toEqual(shared(whole.units));
      }),
      { numRuns: propertyRuns(100) },
    );
  });

  it('is read as it was written, and nothing else is', () => {
    const window = fed([
      [1, 4],
      [2, 3],
    ]);
    expect(readDemand(writeDemand(window))).toEqual({ below: window.below, units: window.units });
    for (const text of ['', '{}', '[1,2]', '[-1]', '[4294967296,1,"2"]', 'null', undefined]) {
      expect(readDemand(text)).toBeUndefined();
    }
  });

  it('takes a sample of the clients that is as large as it says', () => {
    const window = new DemandWindow();
    for (let client = 0; client < 20_000; client++) window.add(`ip:10.0.${client >> 8}.${client & 255}`, 1);
    const { clients, sample } = summed([window], null);
    expect(sample).toBeLessThan(0.02);
    expect(clients / 20_000).toBeGreaterThan(0.6);
    expect(clients / 20_000).toBeLessThan(1.5);
  });
});

describe('what a rate would have refused', () => {
  const windows = [
    fed([
      [1, 10],
      [2, 2],
    ]),
    fed([
      [1, 4],
      [3, 1],
    ]),
  ];

  it('is each unit beyond it in a window, and the clients that had one', () => {
    const { rates, clients, distribution } = summed(windows, 7);
    expect(clients).toBe(3);
    const of = (rate: number) => rates.find((each) => each.rate === rate);
    expect(of(1)).toEqual({ rate: 1, refused: (9 + 1 + 3) / 17, clients: 2 });
    expect(of(4)).toEqual({ rate: 4, refused: 6 / 17, clients: 1 });
    expect(of(7)).toEqual({ rate: 7, refused: 3 / 17, clients: 1 });
    expect(of(10)).toEqual({ rate: 10, refused: 0, clients: 0 });
    expect(distribution.reduce((sum, each) => sum + each.clients, 0)).toBe(3);
  });

  it('is nothing of nothing', () => {
    expect(summed([], 5)).toEqual({ clients: 0, sample: 1, distribution: [], rates: [] });
  });

  it('falls as the rate rises', () => {
    fc.assert(
      fc.property(asked, (items) => {
        const { rates } = summed([fed(items)], null);
        for (const [at, { refused, clients }] of rates.entries()) {
          const before = rates[at - 1];
          if (before === undefined) continue;
          expect(refused).toBeLessThanOrEqual(before.refused);
          expect(clients).toBeLessThanOrEqual(before.clients);
        }
      }),
      { numRuns: propertyRuns(100) },
    );
  });
});

const limitOf = (interval: string) =>
  new CompiledLimit({ algo: 'fixed-window', rate: 10, interval }, { location: 'test', name: 'api' });

/** Each second of an hour; the seconds in which it counts. */
const secondsOf = (sampler: DemandSampler, interval: string, seconds = 3600) => {
  const each = limitOf(interval);
  return Array.from({ length: seconds }, (_, second) => sampler.windowOf('api', each, second * 1000 + 2)).filter(
    (window) => window !== undefined,
  );
};

describe('the sampler', () => {
  it('counts in some of the intervals, and in all while somebody looks', () => {
    expect(new Set(secondsOf(new DemandSampler(() => false), '1s')).size).toBe(6);
    expect(new Set(secondsOf(new DemandSampler(() => false), '1m')).size).toBe(6);
    expect(new Set(secondsOf(new DemandSampler(() => true), '1m')).size).toBe(60);
    expect(secondsOf(new DemandSampler(() => false), '1h')).toHaveLength(3600);
    expect(secondsOf(new DemandSampler(() => true), '1d')).toHaveLength(0);
  });

  it('counts in the same intervals in all instances', () => {
    const one = secondsOf(new DemandSampler(() => false), '10s').length;
    expect(secondsOf(new DemandSampler(() => false), '10s')).toHaveLength(one);
  });

  it('leaves out an interval of which it has missed the start, and keeps an hour', () => {
    const sampler = new DemandSampler(() => true);
    const each = limitOf('10s');
    expect(sampler.windowOf('api', each, 15_000)).toBeUndefined();
    for (let second = 20; second <= 8000; second++) sampler.windowOf('api', each, second * 1000 + 2)?.add('anna', 1);
    const { done } = sampler.windows('api')!;
    expect(done.length).toBeLessThanOrEqual(64);
    expect(done.at(-1)).toMatchObject({ window: 799, demand: { units: new Map([[expect.any(Number), 10]]) } });
    expect(sampler.take(1000).length).toBeLessThanOrEqual(500);
    expect(sampler.take(1000)).toEqual([]);
  });
});

describe('the demand of a limit', () => {
  const REDIS = process.env['TEST_REDIS_URL']!;
  const second = { algo: 'fixed-window', rate: 5, interval: '1s', key: 'ip' } as const;

  it('is that of all instances together, in intervals that end while somebody looks', async () => {
    const limits = { redis: REDIS, prefix: freshPrefix(), define: { api: second, daily: DAILY } };
    const apps = await Promise.all([0, 1].map(() => ConsoleApp.start({ controllers: [], limits })));
    try {
      const [one, other] = apps as [ConsoleApp, ConsoleApp];
      let demand: Demand | undefined;
      await until(async () => {
        // Who looks at the page of a limit asks for its keys, too.
        await one.read<TopKeys>('top?limit=api');
        await Promise.all(apps.map(({ service }) => service.for('api').consume('anna')));
        await other.service.for('api').consume('bert');
        demand = await one.read<Demand>('demand?limit=api');
        return demand.windows >= 2 && demand.clients === 2;
      });
      expect(demand).toMatchObject({ limit: 'api', intervalMs: 1000, current: 5, sample: 1 });
      expect(demand!.coverage.instances).toHaveLength(2);
      const [first] = demand!.rates;
      expect(first!.rate).toBe(1);
      expect(first!.refused).toBeGreaterThan(0);
      expect(demand!.rates.at(-1)).toMatchObject({ refused: 0, clients: 0 });
      expect(await one.read<Demand>('demand?limit=daily')).toMatchObject({ intervalMs: null, rates: [] });
      expect((await one.get('ops/limits/api/demand?limit=none')).status).toBe(400);
    } finally {
      await Promise.all(apps.map((app) => app.close()));
    }
  });
});
