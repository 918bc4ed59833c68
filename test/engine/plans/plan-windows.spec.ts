import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import type { Store } from '../../../lib/index.js';
import { CompiledLimit, type Refund } from '../../../lib/testing/store/index.js';
import { assertSideBySide, expectEqual, propertyRuns } from '../../support/limits/property-runs.js';
import {
  ask,
  chargeOf,
  comparable,
  connectRedis,
  featuresOfOptions,
  featureTerms,
  freshPrefix,
  keyOf,
  ManualClock,
  storeKinds,
} from '../../support/limits/stores.js';
import { ALL, unitsOf } from '../../support/limits/usage.js';

const identity = 'user:42';
const DAY = 86_400_000;

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.quit());

function plan(others: object = {}, settings: object = {}): CompiledLimit {
  const options = { algo: 'calendar-window', rate: 10, period: 'day', rollover: 0.5, ...others } as const;
  const features = featureTerms({ ...options, ...settings }, 'test');
  return new CompiledLimit(options, { location: 'test', name: 'plan', features, featuresOfOptions, ...settings });
}

const credits = (others: object = {}, settings: object = {}) =>
  plan({ rollover: undefined, credits: true, ...others }, settings);

describe.each(Object.entries(storeKinds))('a plan in %s', (kind, make) => {
  const stage = () => {
    const clock = new ManualClock();
    clock.micros = Date.UTC(2026, 8, 21, 12) * 1000;
    const prefix = freshPrefix();
    const store = make(clock, redis, prefix);
    const consume = (limit: CompiledLimit, cost = 1) => ask(store, limit, { identity, cost });
    const peek = (limit: CompiledLimit, cost = 1) => ask(store, limit, { identity, cost, peek: true });
    const credit = (limit: CompiledLimit, units: number, id?: string) => store.credit!({ limit, identity, units, id });
    const days = (by: number) => clock.advanceMs(by * DAY);
    return { clock, store, prefix, consume, peek, credit, days };
  };

  it('moves a share of what is left on, once', async () => {
    const { consume, peek, days } = stage();
    const limit = plan();
    expect(await consume(limit, 4)).toMatchObject({ quota: 10, remaining: 6 });
    days(1);
    expect(await peek(limit)).toMatchObject({ quota: 13, remaining: 13 });
    // What moved is used first, so that all of the rate is left.
    expect(await consume(limit, 3)).toMatchObject({ quota: 13, remaining: 10 });
    days(1);
    expect(await consume(limit, 15)).toMatchObject({ allowed: true, quota: 15, remaining: 0 });
    expect(await consume(limit)).toMatchObject({ allowed: false, retryAfterMs: DAY / 2 });
    days(1);
    expect(await consume(limit, 11)).toMatchObject({ allowed: false, quota: 10, remaining: 10 });
  });

  it('moves a full share of a window that nobody used, and nothing of two', async () => {
    const { consume, peek, days } = stage();
    const limit = plan();
    await consume(limit, 10);
    days(1);
    expect(await peek(limit)).toMatchObject({ quota: 10 });
    days(1);
    expect(await peek(limit)).toMatchObject({ quota: 15 });
    days(1);
    expect(await peek(limit)).toMatchObject({ quota: 10 });
  });

  it('waits for the window that fits', async () => {
    const { consume, days } = stage();
    const limit = plan();
    // Of a key that is not known nothing moves.
    expect(await consume(limit, 11)).toMatchObject({ allowed: false, retryAfterMs: Infinity });
    await consume(limit, 6);
    expect(await consume(limit, 12)).toMatchObject({ allowed: false, retryAfterMs: DAY / 2 });
    expect(await consume(limit, 15)).toMatchObject({ allowed: false, retryAfterMs: 1.5 * DAY });
    expect(await consume(limit, 16)).toMatchObject({ allowed: false, retryAfterMs: Infinity });
    days(1.5);
    expect(await consume(limit, 15)).toMatchObject({ allowed: true, remaining: 0 });
  });

  it('takes units that are given back, and penalties, of what moved and of the rate', async () => {
    const { store, consume, peek, days } = stage();
    const limit = plan();
    await consume(limit, 2);
    days(1);
    await consume(limit, 14);
    await store.refund([{ limit, identity, units: 6 }]);
    expect(await peek(limit)).toMatchObject({ quota: 14, remaining: 6 });
    await store.penalize({ limit, identity, units: 6 });
    days(1);
    expect(await peek(limit)).toMatchObject({ quota: 10 });
  });

  it('has what moved under a live rate', async () => {
    const { consume, peek, days } = stage();
    await consume(plan(), 4);
    days(1);
    // What is left of a window is left of the smallest rate.
    expect(await peek(plan({ rate: 100 }))).toMatchObject({ quota: 103 });
    expect(await peek(plan({ rate: 6 }))).toMatchObject({ quota: 7 });
  });

  it('moves nothing of a rate that a window was not charged under', async () => {
    const { consume, peek, days } = stage();
    const [small, large] = [plan({ rate: 1000 }), plan({ rate: 10_000 })];
    await consume(small, 400);
    expect(await consume(large)).toMatchObject({ remaining: 9599 });
    // A wait knows it, too.
    expect(await consume(large, 10_299)).toMatchObject({ allowed: false, retryAfterMs: DAY / 2 });
    expect(await consume(large, 10_300)).toMatchObject({ allowed: false, retryAfterMs: 1.5 * DAY });
    days(1);
    expect(await peek(large)).toMatchObject({ quota: 10_299 });
    // A window that was charged under the larger rate alone is one of that.
    await consume(large, 1299);
    days(1);
    expect(await peek(large)).toMatchObject({ quota: 14_500 });
    await consume(large, 4500);
    await consume(small, 100);
    await consume(large, 100);
    days(1);
    expect(await peek(large)).toMatchObject({ quota: 10_400 });
  });

  it('moves a share of the rate charged last of a window that nobody used', async () => {
    const { consume, peek, days } = stage();
    const [small, large] = [plan({ rate: 1000 }), plan({ rate: 10_000 })];
    await consume(small, 1000);
    days(1);
    expect(await consume(large, 10_501)).toMatchObject({ allowed: false, retryAfterMs: Infinity });
    expect(await consume(large, 10_500)).toMatchObject({ allowed: false, retryAfterMs: DAY / 2 });
    days(1);
    expect(await peek(large)).toMatchObject({ quota: 10_500 });
    await consume(large, 10_500);
    days(2);
    expect(await peek(large)).toMatchObject({ quota: 15_000 });
    expect(await peek(small)).toMatchObject({ quota: 1500 });
  });

  it('keeps shares of the quota, and remembers finished windows', async () => {
    const { store, consume, days } = stage();
    const limit = plan({ retain: '7d' }, { reserveFor: { critical: 0.2 } });
    await consume(limit.meet({ priority: 'default' }), 4);
    days(1);
    expect(await consume(limit.meet({ priority: 'default' }), 11)).toMatchObject({ quota: 11, remaining: 0 });
    expect(await consume(limit.meet({ priority: 'critical' }), 2)).toMatchObject({ quota: 13, remaining: 0 });
    expect((await store.history({ limit, identity })).map(({ count }) => count)).toEqual([13, 4]);
  });

  it('takes credits once the window is used up, and they do not lapse with it', async () => {
    const { store, consume, peek, credit, days } = stage();
    const limit = credits();
    expect(await credit(limit, 7)).toBe(7);
    expect(await consume(limit, 4)).toMatchObject({ quota: 17, remaining: 13, credits: 7 });
    expect(await consume(limit, 8)).toMatchObject({ allowed: true, remaining: 5, credits: 5 });
    await store.refund([{ limit, identity, units: 1 }]);
    expect(await peek(limit)).toMatchObject({ remaining: 6, credits: 6 });
    days(1);
    expect(await peek(limit)).toMatchObject({ quota: 16, remaining: 16, credits: 6 });
    expect(await consume(limit, 16)).toMatchObject({ allowed: true, remaining: 0, credits: 0 });
    expect(await consume(limit, 11)).toMatchObject({ allowed: false, retryAfterMs: Infinity });
    expect(await consume(limit, 10)).toMatchObject({ allowed: false, retryAfterMs: DAY / 2 });
    expect(await credit(limit, 2)).toBe(2);
    days(400);
    expect(await peek(limit)).toMatchObject({ quota: 12, credits: 2 });
  });

  it('counts a credit once, and takes back what is left', async () => {
    const { store, consume, peek, credit, days } = stage();
    const limit = credits();
    expect([await credit(limit, 5, 'pay_1'), await credit(limit, 5, 'pay_1'), await credit(limit, 3, 'pay_2')]).toEqual(
      [5, 5, 8],
    );
    days(34);
    expect(await credit(limit, 5, 'pay_1')).toBe(8);
    expect(await credit(limit, -2)).toBe(6);
    await consume(limit, 12);
    await store.reset([{ limit, identity }]);
    // A reset forgets what was counted, but credits that were used are used.
    expect(await peek(limit)).toMatchObject({ remaining: 14, credits: 4 });
    expect(await credit(limit, -(2 ** 51))).toBe(0);
    expect(await credit(credits({}, { generation: 3 }), 9)).toBe(9);
    expect(await peek(limit)).toMatchObject({ credits: 9 });
  });

  it('has credits under a live rate', async () => {
    const { consume, peek, credit } = stage();
    await credit(credits(), 5);
    await consume(credits(), 12);
    expect(await peek(credits({ rate: 11 }))).toMatchObject({ credits: 4, remaining: 4 });
    expect(await peek(credits({ rate: 20 }))).toMatchObject({ credits: 5, remaining: 13 });
    expect(await peek(credits({ rate: 2 }))).toMatchObject({ credits: 0, remaining: 0 });
  });

  it('keeps the credits that it tells when it is reset', async () => {
    const { store, consume, peek, credit } = stage();
    for (const [rate, left] of [
      [110, 100],
      [20, 10],
    ] as const) {
      const limit = credits({ rate });
      await credit(limit, 100);
      await consume(credits(), 110);
      expect(await peek(limit)).toMatchObject({ credits: left });
      await store.reset([{ limit, identity }]);
      expect(await peek(limit)).toMatchObject({ credits: left, remaining: rate + left });
      await credit(limit, -left);
    }
  });

  it('holds units of credits at an estimate, and settles them', async () => {
    const { store, peek, credit, days } = stage();
    const limit = new CompiledLimit(
      { algo: 'budget', limit: 10, period: 'day', credits: true, rollover: 0.5, hold: '2d' },
      { location: 'test', featuresOfOptions },
    );
    await credit(limit, 20);
    const reserve = async (cost: number) => {
      const [decisions] = await store.check([{ entries: [{ limit, identity, cost }], hold: true, refundable: true }]);
      const { ticket, chargedAt, allowed } = decisions![0]!;
      return { ticket, chargedAt, allowed };
    };
    const { ticket, chargedAt } = await reserve(25);
    expect(await peek(limit)).toMatchObject({ remaining: 5, credits: 5 });
    await store.refund([{ limit, identity, units: 25, ticket, chargedAt, actual: 12 }]);
    expect(await peek(limit)).toMatchObject({ remaining: 18, credits: 18 });
    const late = await reserve(3);
    days(1);
    await store.refund([{ limit, identity, units: 3, ...late, actual: 0 }]);
    // What was taken in a window that is over stays taken.
    expect(await peek(limit)).toMatchObject({ credits: 15 });
  });

  it('goes on without its hold, whatever was reserved before', async () => {
    const { store, consume, peek, credit } = stage();
    const [held, without] = [credits({ hold: '2d' }), credits()];
    await credit(held, 20);
    const entry = { limit: held, identity, cost: 15 };
    const [decisions] = await store.check([{ entries: [entry], hold: true, refundable: true }]);
    expect(decisions![0]!.allowed).toBe(true);
    expect(await consume(without, 2)).toMatchObject({ allowed: true });
    const { remaining } = await peek(without);
    await store.refund([{ ...chargeOf(entry, decisions![0]!), actual: 12 }]);
    expect(await peek(without)).toMatchObject({ remaining: remaining + 3 });
  });

  it('reckons credits by the rate of the last check, whoever gives units back by an older one', async () => {
    const { store, consume, peek, credit, days } = stage();
    const [old, current] = [credits({ hold: '2d' }), credits({ hold: '2d', rate: 50 })];
    await credit(old, 100);
    const reserve = async (cost: number) => {
      const entry = { limit: old, identity, cost };
      const [decisions] = await store.check([{ entries: [entry], hold: true, refundable: true }]);
      return chargeOf({ limit: old, identity, cost }, decisions![0]!);
    };
    const [more, less] = [await reserve(3), await reserve(4)];
    expect(await consume(current, 40)).toMatchObject({ credits: 100 });
    await store.refund([{ ...more, actual: 5 }]);
    await store.refund([{ ...less, actual: 1 }]);
    await store.refund([{ limit: old, identity, units: 1 }]);
    expect(await peek(current)).toMatchObject({ remaining: 105, credits: 100 });
    days(1);
    expect(await peek(current)).toMatchObject({ remaining: 150, credits: 100 });
  });

  it('is as silent as before where somebody asks what was used', async () => {
    const { store, consume, peek, days } = stage();
    const features = featureTerms({ usage: '40d' }, 'test');
    const limit = plan({ hold: '1h', onLapse: 'release' }, { features });
    await consume(limit, 1);
    for (let i = 0; i < 4; i++) {
      days(1);
      await unitsOf(store, { limit, identity }, ALL);
    }
    expect(await peek(limit)).toMatchObject({ quota: 10, remaining: 10 });
  });

  if (kind === 'RedisStore') {
    it('stores the smallest rate before the value that other releases read, where it is not the last', async () => {
      const { prefix, consume, days } = stage();
      const [small, large] = [plan({ rate: 10 }), plan({ rate: 20 })];
      const stored = () => redis.getBuffer(keyOf(prefix, { limit: small, identity }));
      await consume(small, 4);
      const before = await stored();
      await consume(large);
      const both = await stored();
      expect([before!.length, both!.length, both![0], both!.readDoubleLE(1)]).toEqual([56, 65, 254, 10]);
      expect(both!.subarray(9, 25)).toEqual(before!.subarray(0, 16));
      days(1);
      await consume(large);
      expect((await stored())!.length).toBe(56);
    });

    it('leaves no key without a time to live', async () => {
      const { prefix, consume, credit } = stage();
      const limit = credits({ rollover: 0.5 });
      await consume(limit, 3);
      await credit(limit, 5, 'pay_1');
      const key = keyOf(prefix, { limit, identity });
      const keys = (await redis.keys(`${prefix}*`)).toSorted();
      expect(keys).toEqual([key, `${key}:credits`, expect.stringMatching(/:credits:[\w-]+$/)]);
      for (const each of keys) expect(await redis.pttl(each)).toBeGreaterThan(0);
      expect(await redis.pttl(`${key}:credits`)).toBeGreaterThan(3650 * DAY);
    });
  }
});

const steps = fc.array(
  fc.record({
    /** In hours. */
    clock: fc.oneof(
      { weight: 6, arbitrary: fc.double({ min: 0, max: 20, noNaN: true }) },
      { weight: 2, arbitrary: fc.double({ min: 0, max: 90, noNaN: true }) },
      fc.double({ min: -60, max: 0, noNaN: true }),
    ),
    cost: fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 1, max: 6 }) }, fc.integer({ min: 1, max: 40 })),
    other: fc.boolean(),
    anchor: fc.nat(3),
    priority: fc.constantFrom('critical' as const, 'default' as const),
    operation: fc.constantFrom(
      'check',
      'check',
      'check',
      'check',
      'peek',
      'refund',
      'late refund',
      'penalize',
      'credit',
      'credit',
      'withdraw',
      'history',
      'hold',
      'hold',
      'settle',
      'reset',
    ),
  }),
  { minLength: 1, maxLength: 30 },
);

const options = fc.record({
  rate: fc.integer({ min: 1, max: 12 }),
  rollover: fc.constantFrom(0.5, 1, 1 / 3, 0.29, undefined),
  credits: fc.constantFrom(true, true, undefined),
  period: fc.constantFrom('day', 'day', 'week', 'month'),
  retain: fc.constantFrom('3d', undefined, undefined),
  held: fc.constantFrom({ hold: '6h' }, { hold: '6h', onLapse: 'release' }, { hold: '2d', onLapse: 'release' }, {}),
  otherRate: fc.integer({ min: 1, max: 20 }),
  byRequest: fc.boolean(),
  keeps: fc.boolean(),
});

const anchors = [undefined, null, '2026-01-31T13:00', '2026-01-05'];

describe('plans', () => {
  it('are counted alike by both stores', async () => {
    const property = fc.asyncProperty(
      options,
      steps,
      async ({ otherRate, byRequest, keeps, held, ...own }, history) => {
        const rollover = own.rollover ?? (own.credits === undefined ? 0.5 : undefined);
        const settings = keeps ? { reserveFor: { critical: 0.3 } } : {};
        const anchor = byRequest ? { anchor: () => null } : {};
        const limits = [own.rate, otherRate].map((rate) =>
          plan({ ...own, ...held, rollover, rate, ...anchor }, settings),
        );
        const clock = new ManualClock();
        const prefix = freshPrefix();
        const stores = Object.values(storeKinds).map((make) => make(clock, redis, prefix));
        const both = async (call: (store: Store) => Promise<unknown>) => {
          const [one, other] = await Promise.all(stores.map(call));
          expectEqual(one, other);
        };
        const reserved = new Map(stores.map((store) => [store, [] as Refund[]]));
        for (const { clock: hours, cost, other, anchor, priority, operation } of history) {
          clock.advanceMs(hours * 3_600_000);
          const base = limits[other ? 1 : 0]!;
          const given = anchors[anchor];
          const limit = base.meet({ anchor: given, priority });
          const counter = { limit, identity };
          const chargedAt = clock.micros - (operation === 'late refund' ? DAY * 1000 : 0);
          const checked = (more: object) => async (store: Store) => {
            const [decisions] = comparable(await store.check([{ entries: [{ ...counter, cost }], ...more }]));
            return decisions!.map(({ ticket: _, ...decision }) => decision);
          };
          const credit = (units: number, id?: string) => (store: Store) => store.credit!({ ...counter, units, id });
          const takes = own.credits === true;
          if (operation === 'peek' || (operation === 'credit' && !takes)) await both(checked({ peek: true }));
          else if (operation === 'hold') {
            await both(async (store) => {
              const [decisions] = await store.check([
                { entries: [{ ...counter, cost }], hold: true, refundable: true },
              ]);
              const { ticket: _, source: _source, ...decision } = decisions![0]!;
              if (decision.allowed) reserved.get(store)!.push(chargeOf({ ...counter, cost }, decisions![0]!));
              return decision;
            });
          } else if (operation === 'settle') {
            // It is settled by whoever knows the hold, and not always the last one.
            await both((store) => {
              const refund = reserved.get(store)!.at(-1 - (cost % 3));
              return store.refund(refund?.ticket === undefined ? [] : [{ ...refund, limit: base, actual: cost }]);
            });
          } else if (operation === 'history') await both((store) => store.history(counter));
          else if (operation === 'penalize') await both((store) => store.penalize({ ...counter, units: cost }));
          else if (operation === 'reset') await both((store) => store.reset([counter]));
          else if (operation === 'credit') await both(credit(cost, cost > 6 ? `p${cost}` : undefined));
          else if (operation === 'withdraw' && takes) await both(credit(-cost));
          else if (operation.endsWith('refund')) {
            await both((store) => store.refund([{ ...counter, units: cost, chargedAt }]));
          } else await both(checked({}));
          await both((store) => store.check([{ entries: [{ ...counter, cost: 1 }], peek: true }]).then(comparable));
        }
        await Promise.all(stores.map((store) => store.close()));
      },
    );
    await assertSideBySide(property, propertyRuns(200));
  });

  it('decide as a model that keeps every unit, and lose no credit', async () => {
    const property = fc.asyncProperty(options, steps, async ({ rate, rollover = 1, credits }, history) => {
      const limit = plan({ rate, rollover, credits });
      const clock = new ManualClock();
      const store = storeKinds['MemoryStore']!(clock, redis);
      const model = planModel(rate, Math.round(rollover * 1e6));
      for (const { clock: hours, cost, operation } of history) {
        clock.advanceMs(Math.abs(hours) * 3_600_000);
        const window = Math.floor(clock.micros / (DAY * 1000));
        if (operation === 'credit' && credits === true) {
          expect(await store.credit!({ limit, identity, units: cost })).toBe(model.credit(window, cost));
        } else {
          const { allowed, remaining, quota } = await ask(store, limit, { identity, cost });
          expect({ allowed, remaining, quota }).toEqual(model.consume(window, cost));
          expect(quota - model.credits(window) - rate).toBeLessThanOrEqual(rate * rollover);
        }
      }
      await store.close();
    });
    await assertSideBySide(property, propertyRuns(120));
  });
});

/** A plan of days as a list of all windows in which anything happened. */
function planModel(rate: number, millionths: number) {
  const windows = new Map<number, { moved: number; count: number }>();
  let added = 0;
  const share = (units: number) => Number((BigInt(units) * BigInt(millionths)) / 1_000_000n);
  const movedTo = (window: number): number => {
    const [before, earlier] = [windows.get(window - 1), windows.get(window - 2)];
    if (before !== undefined)
      return share(
        rate - Math.max(0, before.count - before.moved) < 0 ? 0 : rate - Math.max(0, before.count - before.moved),
      );
    return earlier === undefined ? 0 : share(rate);
  };
  const at = (window: number) => windows.get(window) ?? { moved: movedTo(window), count: 0 };
  /** All that was added, without what was used in windows before this one. */
  const gross = (window: number) => {
    let left = added;
    for (const [number, { moved, count }] of windows) if (number < window) left -= Math.max(0, count - rate - moved);
    return left;
  };
  return {
    consume(window: number, cost: number) {
      const { moved, count } = at(window);
      const quota = rate + moved + gross(window);
      const allowed = count + cost <= quota;
      if (allowed) windows.set(window, { moved, count: count + cost });
      return { allowed, remaining: quota - count - (allowed ? cost : 0), quota };
    },
    credit(window: number, units: number) {
      const state = at(window);
      const isKnown = [0, 1, 2].some((by) => windows.has(window - by));
      added += units;
      if (isKnown) windows.set(window, state);
      return gross(window) - Math.max(0, state.count - rate - state.moved);
    },
    credits: gross,
  };
}
