import { describe, expect, it } from '@jest/globals';
import { type AlgorithmOptions, CompiledLimit, type MetBy } from '../../lib/index.js';
import { algorithms } from '../../lib/algorithms/index.js';
import type { FeatureTerms, LimitFeature } from '../../lib/limits/limit-feature.js';

const options: AlgorithmOptions = { algo: 'gcra', rate: 10, interval: '1s' };

/** The plan of a request, by which it meets a limit in these tests. */
const planOf = (by: MetBy) => (by as { plan?: string }).plan;

/** A feature by which requests of a plan meet a quota of their own. */
const plans: LimitFeature = {
  name: 'plans',
  versions: {
    idOf: planOf,
    make: (parameters, by) => ({
      parameters: { ...parameters, quota: planOf(by) === 'free' ? 2 : 20 },
      metBy: { plan: planOf(by) } as MetBy,
      line: planOf(by)!,
    }),
    notListed: (location) => `${location}: no plan`,
    notReservable: () => 'no plan',
  },
};
const variant: LimitFeature = {
  name: 'variant',
  variant: { ...algorithms.get('gcra')!, scriptPrefix: 'variant+' },
  ofPart: () => ({}),
};
const plain: LimitFeature = { name: 'plain' };

function limitWith(...features: readonly LimitFeature[]): CompiledLimit {
  const terms = features.map((feature): FeatureTerms => ({ of: () => feature, terms: {} }));
  return new CompiledLimit(options, { location: 'test', name: 'api', features: terms });
}

describe('a limit that requests meet in versions by a feature', () => {
  const limit = limitWith(plain, plans);
  const free = limit.meet({ plan: 'free' } as MetBy);

  it('has one for those who say the same', () => {
    expect(free).not.toBe(limit);
    expect(limit.meet({ plan: 'free', priority: 'critical' } as MetBy)).toBe(free);
    expect(limit.meet({ plan: 'paid' } as MetBy).quota).toBe(20);
    expect(limit.meet({ priority: 'critical' })).toBe(limit);
  });

  it('decides by its parameters, on the same counter', () => {
    expect(free).toMatchObject({ quota: 2, id: limit.id, line: 'free', metBy: { plan: 'free' } });
    expect([free.unmet, free.whole]).toEqual([limit, free]);
    expect([limit.unmet, limit.whole, limit.line]).toEqual([limit, limit, undefined]);
  });

  it('is met in another version from a version', () => {
    expect(free.meet({ plan: 'paid' } as MetBy)).toBe(limit.meet({ plan: 'paid' } as MetBy));
    expect(free.meet({})).toBe(free);
  });
});

describe('a limit with a variant of its algorithm', () => {
  const limit = limitWith(plain, variant);

  it('counts by the variant under the keys of the algorithm', () => {
    expect(limit.algorithm).toBe(variant.variant);
    expect(limit.id).toBe(limitWith().id);
  });

  it('has it in its parts, without features that have no terms for a part', () => {
    expect(limit.partOf(0.5)).toMatchObject({ quota: 5, features: [variant], algorithm: variant.variant });
    expect(limitWith(plain).partOf(0.5).features).toBeUndefined();
  });
});

describe('what code may still say of the version that requests meet', () => {
  const month = { algo: 'calendar-window', rate: 10, period: 'month' } as const;
  const reserving = { location: 'test', name: 'api', reserveFor: { critical: 0.3 } };
  const limit = new CompiledLimit(options, reserving);
  const anchored = new CompiledLimit({ ...month, anchor: () => 0 }, reserving);

  it('is the same version by another name', () => {
    const sheddable = limit.meet({ priority: 'sheddable' });
    expect([limit.forPriority().quota, limit.forPriority('critical').quota]).toEqual([7, 10]);
    expect([limit.asMet(sheddable), sheddable.asMet(limit)]).toEqual([sheddable, limit]);
    expect([limit.within('other').id, limit.share(0.5).quota]).toEqual(['other:api:gd', 5]);
    expect([limit.ofAllTenants, limit.tenant, limit.isShared]).toEqual([limit, undefined, false]);
  });

  it('keeps the priority where only a tenant or an anchor is named', () => {
    const sheddable = limit.meet({ priority: 'sheddable' });
    expect([limit.forTenant({ id: 'acme', weight: 1 }), limit.forAnchor(0)]).toEqual([limit, limit]);
    expect(sheddable.forTenant({ id: 'acme', weight: 1 })).toBe(sheddable);
    const atEpoch = anchored.forAnchor(0);
    expect([atEpoch.quota, atEpoch.forPriority().quota]).toEqual([10, 7]);
    expect(anchored.asMet(atEpoch)).toBe(atEpoch);
  });
});
