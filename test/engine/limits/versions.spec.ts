import { describe, expect, it } from '@jest/globals';
import type { AlgorithmOptions } from '../../../lib/index.js';
import { CompiledLimit, type MetBy } from '../../../lib/testing/store/index.js';
import { compile } from '../../support/limits/stores.js';
import type { FeaturedLimit, FeatureTerms, LimitFeature } from '../../support/limits/features.js';

const options: AlgorithmOptions = { algo: 'gcra', rate: 10, interval: '1s' };

/** The plan of a request, by which it meets a limit in these tests. */
const planOf = (by: MetBy) => (by as { plan?: string }).plan;

/** The rate that a request asks for, by which it meets a limit in others. */
const rateOf = ({ rate }: MetBy) => rate as number | undefined;

/** A feature by which requests of a plan meet a quota of their own. */
const plans: LimitFeature = {
  name: 'plans',
  versions: {
    idOf: planOf,
    make: (parameters, by) => ({
      parameters: { ...parameters, quota: planOf(by) === 'free' ? 2 : 20 },
      metBy: { plan: planOf(by) },
      line: planOf(by)!,
    }),
    notListed: (location) => `${location}: no plan`,
    notReservable: () => 'no plan',
  },
};
const variant: LimitFeature = {
  name: 'variant',
  variant: { ...compile(options).algorithm, scriptPrefix: 'variant+' },
  ofPart: () => ({}),
};
const plain: LimitFeature = { name: 'plain' };

function limitWith(...features: readonly LimitFeature[]): CompiledLimit {
  const terms = features.map((feature): FeatureTerms => ({ of: () => feature, terms: {} }));
  return new CompiledLimit(options, { location: 'test', name: 'api', features: terms });
}

describe('a limit that requests meet in versions by a feature', () => {
  const limit = limitWith(plain, plans);
  const free = limit.meet({ plan: 'free' });

  it('has one for those who say the same', () => {
    expect(free).not.toBe(limit);
    expect(limit.meet({ plan: 'free', priority: 'critical' })).toBe(free);
    expect(limit.meet({ plan: 'paid' }).quota).toBe(20);
    expect(limit.meet({ priority: 'critical' })).toBe(limit);
  });

  it('decides by its parameters, on the same counter', () => {
    expect(free).toMatchObject({ quota: 2, id: limit.id, line: 'free', metBy: { plan: 'free' } });
    expect([free.unmet, free.whole]).toEqual([limit, free]);
    expect([limit.unmet, limit.whole, limit.line]).toEqual([limit, limit, undefined]);
  });

  it('is met in another version from a version', () => {
    expect(free.meet({ plan: 'paid' })).toBe(limit.meet({ plan: 'paid' }));
    expect(free.meet({})).toBe(free);
  });
});

describe('a version that may take a part of the quota', () => {
  const halves: LimitFeature = {
    name: 'halves',
    versions: {
      ofAll: { isPaid: true },
      byPriority: true,
      idOf: (by) => String(by['isPaid'] === true),
      make: (parameters, { isPaid }) =>
        isPaid === true
          ? undefined
          : { parameters: { ...parameters, quota: 5, kept: 5 }, metBy: { isPaid }, line: 'free', isPart: true },
    },
  };
  const limit = limitWith(plain, halves);
  const half = limit.meet({});

  it('is read and written by the limit with all of it, which others meet', () => {
    expect(half).toMatchObject({ quota: 5, nearFrom: 4, whole: limit, unmet: limit, line: 'free' });
    expect([limit.meet({ isPaid: true }), half.meet({ isPaid: true })]).toEqual([limit, limit]);
    expect([limit.meet(limit.metBy), limit.meet(half.metBy)]).toEqual([limit, half]);
  });

  it('may depend on the priority of requests', () => {
    expect([limit, half, limitWith(plans)].map(({ keepsUnits }) => keepsUnits)).toEqual([true, true, false]);
  });

  it('is there of its candidate, too', () => {
    const candidate: AlgorithmOptions = { ...options, rate: 20 };
    const features = [
      { of: () => plain, terms: {} },
      { of: () => halves, terms: {} },
    ];
    const watched = new CompiledLimit(options, { location: 'test', name: 'api', features, candidate });
    expect(watched.candidate).toMatchObject({ quota: 20, features: [halves] });
    expect(watched.meet({}).candidate).toBe(watched.candidate!.meet({}));
  });
});

describe('a version that decides by other options', () => {
  const rates: LimitFeature = {
    name: 'rates',
    ofOptions: true,
    versions: {
      idOf: (by) => rateOf(by)?.toString(),
      make: (_, by) => ({
        options: (written) => ({ ...written, rate: rateOf(by) }) as AlgorithmOptions,
        metBy: { rate: rateOf(by) },
      }),
    },
  };
  const candidate: AlgorithmOptions = { algo: 'fixed-window', rate: 1, interval: '1m' };
  const settings = {
    location: 'test',
    name: 'api',
    features: [plain, plans].map((feature): FeatureTerms => ({ of: () => feature, terms: {} })),
    featuresOfOptions: [
      (given: FeaturedLimit) => ((given.options as { rate?: number }).rate === 10 ? rates : undefined),
    ],
  };
  const limit = new CompiledLimit(options, { ...settings, candidate });
  const faster = limit.meet({ rate: 30 });

  it('is compiled like a limit of its own, on the same counter', () => {
    expect(faster).toMatchObject({ quota: 30, id: limit.id, options: { rate: 30 }, metBy: { rate: 30 } });
    expect([faster.unmet, limit.meet(faster.metBy)]).toEqual([faster, faster]);
    expect(faster.candidate).toMatchObject({ quota: 30, algorithm: { name: 'fixed-window' } });
  });

  it('has its other features, and is met in versions by them', () => {
    expect(faster.features).toEqual([plain, plans]);
    const free = limit.meet({ rate: 30, plan: 'free' });
    expect(free).toMatchObject({ quota: 2, unmet: faster, options: { rate: 30 }, metBy: { rate: 30, plan: 'free' } });
    expect(limit.meet({ plan: 'free' })).toMatchObject({ quota: 2, unmet: limit });
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
