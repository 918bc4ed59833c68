import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import type { Store } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { assertSideBySide, expectEqual, propertyRuns } from '../../support/limits/property-runs.js';
import {
  ask,
  chargeOf,
  comparable,
  compile,
  connectRedis,
  featuresOfOptions,
  featureTerms,
  freshPrefix,
  ManualClock,
  storeKinds,
} from '../../support/limits/stores.js';

const identity = 'ip:203.0.113.7';
const DAY = 86_400_000;

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.quit());

function byRequest(others: object = {}, settings: object = {}): CompiledLimit {
  const options = { algo: 'calendar-window', rate: 3, period: 'month', anchor: () => null, ...others } as const;
  const features = featureTerms({ ...options, ...settings }, 'test');
  return new CompiledLimit(options, { location: 'test', name: 'plan', features, featuresOfOptions, ...settings });
}

it('are told once, where an instance of an older release lists one again', async () => {
  const clock = new ManualClock();
  const prefix = freshPrefix();
  const store = storeKinds['RedisStore']!(clock, redis, prefix);
  const limit = byRequest({ rate: 10, rollover: 1, retain: '90d' });
  const anchored = limit.meet({ anchor: '2026-01-15' });
  clock.micros = Date.parse('2026-09-20') * 1000;
  await ask(store, anchored, { cost: 4 });
  clock.micros = Date.parse('2026-10-20') * 1000;
  await ask(store, anchored, { cost: 1 });
  const [key] = (await redis.keys(`${prefix}:*:history`)) as [string];
  await redis.rpush(key, ...(await redis.lrange(key, -3, -1)));
  const told = await store.history({ limit, identity });
  expect(told.map(({ count }) => count)).toEqual([1, 4]);
});

describe.each(Object.entries(storeKinds))('windows from an anchor in %s', (_, make) => {
  const stage = () => {
    const clock = new ManualClock();
    const store = make(clock, redis, freshPrefix());
    const at = (time: string) => (clock.micros = Date.parse(time) * 1000);
    return { store, at };
  };

  it('turn on the last day of a shorter month, and on the 31st again', async () => {
    const { store, at } = stage();
    const limit = compile({ algo: 'calendar-window', rate: 1, period: 'month', anchor: '2026-01-31T09:00' });
    for (const [allowed, refused, next] of [
      ['2026-02-01T00:00Z', '2026-02-28T08:59:59.999Z', '2026-02-28T09:00Z'],
      ['2026-02-28T09:00Z', '2026-03-31T08:59:59.999Z', '2026-03-31T09:00Z'],
      ['2026-03-31T09:00Z', '2026-04-30T08:59:59.999Z', '2026-04-30T09:00Z'],
    ] as const) {
      at(allowed);
      expect(await ask(store, limit)).toMatchObject({
        allowed: true,
        resetAfterMs: Date.parse(next) - Date.parse(allowed),
      });
      at(refused);
      expect(await ask(store, limit)).toMatchObject({ allowed: false, retryAfterMs: 1 });
    }
  });

  it('are those of the request, and a changed anchor takes what was counted along', async () => {
    const { store, at } = stage();
    const limit = byRequest({ retain: '90d' });
    at('2026-09-21T10:00Z');
    const byTheTenth = limit.meet({ anchor: new Date('2026-01-10') });
    expect(await ask(store, byTheTenth, { cost: 2 })).toMatchObject({ remaining: 1 });
    expect(await ask(store, byTheTenth, { peek: true })).toMatchObject({
      resetAfterMs: Date.parse('2026-10-10') - Date.parse('2026-09-21T10:00Z'),
    });
    const byTheFifteenth = limit.meet({ anchor: '2026-01-15' });
    expect(await ask(store, byTheFifteenth)).toMatchObject({
      remaining: 0,
      resetAfterMs: Date.parse('2026-10-15') - Date.parse('2026-09-21T10:00Z'),
    });
    at('2026-10-14T23:59Z');
    expect(await ask(store, byTheFifteenth)).toMatchObject({ allowed: false, retryAfterMs: 60_000 });
    at('2026-10-15T00:00Z');
    expect(await ask(store, byTheFifteenth)).toMatchObject({ allowed: true, remaining: 2 });
    // It was counted from the first anchor's window on.
    expect(await store.history({ limit, identity })).toEqual([
      { start: Date.parse('2026-10-15'), end: Date.parse('2026-11-15'), count: 1 },
      { start: Date.parse('2026-09-15'), end: Date.parse('2026-10-15'), count: 3 },
    ]);
  });

  it('give nothing back that was charged before them', async () => {
    const { store, at } = stage();
    const limit = byRequest();
    const [before, after] = [limit.meet({ anchor: '2026-01-01' }), limit.meet({ anchor: '2026-01-15' })];
    at('2026-01-20');
    const charged = { limit: before, identity, units: 2, chargedAt: Date.parse('2026-01-20') * 1000 };
    await ask(store, before, { cost: 2 });
    at('2026-02-03');
    await ask(store, before, { cost: 3 });
    expect(await ask(store, after)).toMatchObject({ allowed: false });
    await store.refund([charged]);
    expect(await ask(store, after)).toMatchObject({ allowed: false, remaining: 0 });
  });

  it('are kept to by what does not know the anchor', async () => {
    const { store, at } = stage();
    const limit = byRequest();
    at('2026-09-21T10:00Z');
    expect(await ask(store, limit, { peek: true })).toMatchObject({ remaining: 3, resetAfterMs: 0 });
    const anchored = limit.meet({ anchor: '2026-01-15' });
    await ask(store, anchored, { cost: 3 });
    const resetAfterMs = Date.parse('2026-10-15') - Date.parse('2026-09-21T10:00Z');
    expect(await ask(store, limit, { peek: true })).toMatchObject({ remaining: 0, resetAfterMs });
    await store.refund([{ limit, identity, units: 1 }]);
    await store.penalize({ limit, identity, units: 2 });
    at('2026-10-02T00:00Z');
    expect(await ask(store, anchored)).toMatchObject({ allowed: false, retryAfterMs: 13 * DAY });
    await store.reset([{ limit, identity }]);
    expect(await ask(store, anchored)).toMatchObject({ allowed: true, remaining: 2 });
  });

  it('hold units that are settled without it', async () => {
    const { store, at } = stage();
    const limit = byRequest({ algo: 'budget', limit: 10, rate: undefined, hold: '1d', onLapse: 'release' });
    at('2026-09-21T10:00Z');
    const anchored = limit.meet({ anchor: '2026-01-15' });
    const [decisions] = await store.check([
      { entries: [{ limit: anchored, identity, cost: 6 }], hold: true, refundable: true },
    ]);
    const { ticket, chargedAt } = decisions![0]!;
    await store.refund([{ limit, identity, units: 6, ticket, chargedAt, actual: 2 }]);
    expect(await ask(store, anchored, { peek: true })).toMatchObject({ remaining: 8 });
  });

  it('are settled nowhere where they are over, and nothing says which one is next', async () => {
    for (const onLapse of ['charge', 'release'] as const) {
      const { store, at } = stage();
      const limit = byRequest({ algo: 'budget', limit: 10, rate: undefined, retain: '90d', hold: '2d', onLapse });
      const anchored = limit.meet({ anchor: '2026-01-15' });
      at('2026-10-14T10:00Z');
      const entries = [{ limit: anchored, identity, cost: 6 }];
      const [decisions] = await store.check([{ entries, hold: true, refundable: true }]);
      at('2026-10-15T10:00Z');
      await store.refund([{ ...chargeOf({ limit, identity, cost: 6 }, decisions![0]!), actual: 9 }]);
      expect(await ask(store, anchored, { peek: true })).toMatchObject({ remaining: 10 });
      expect((await store.history({ limit: anchored, identity })).map(({ count }) => count)).toEqual([9]);
    }
  });

  describe('of a plan', () => {
    const monthly = byRequest({
      rate: 1000,
      rollover: 0.5,
      credits: true,
      retain: '90d',
      hold: '1d',
      onLapse: 'release',
    });
    const anchored = monthly.meet({ anchor: '2026-01-15' });
    const counter = { limit: monthly, identity };

    /** What is done without an anchor, in a month in which nobody asked. */
    const operations: Record<string, (store: Store) => Promise<unknown>> = {
      'a credit': (store) => store.credit!({ ...counter, units: 5 }),
      'a withdrawal': (store) => store.credit!({ ...counter, units: -5 }),
      'a refund': (store) => store.refund([{ ...counter, units: 3 }]),
      'a block that is lifted': (store) => store.block(counter, 1).then(() => store.block(counter, 0)),
      'a look': (store) => ask(store, monthly, { peek: true }),
    };

    it.each(Object.entries(operations))('stay as they are by %s', async (what, operation) => {
      const { store, at } = stage();
      at('2026-09-20T10:00Z');
      await store.credit!({ ...counter, units: 5 });
      await ask(store, anchored, { cost: 400 });
      // September's window ends on 15 October, and nobody asked in the one behind it.
      at('2026-11-20T10:00Z');
      await operation(store);
      const credits = what === 'a credit' ? 10 : what === 'a withdrawal' ? 0 : 5;
      expect(await ask(store, anchored, { peek: true })).toMatchObject({ quota: 1500 + credits, credits });
      expect((await store.history(counter)).map(({ count }) => count)).toEqual([400]);
      await operation(store);
      await ask(store, anchored, { cost: 1 });
      expect((await store.history(counter)).map(({ count }) => count)).toEqual([1, 400]);
    });

    it('give back what lapsed in them once', async () => {
      const { store, at } = stage();
      at('2026-09-20T10:00Z');
      await store.credit!({ ...counter, units: 500 });
      const entries = [{ limit: anchored, identity, cost: 1400 }];
      const [decisions] = await store.check([{ entries, hold: true, refundable: true }]);
      at('2026-10-20T10:00Z');
      expect(await store.credit!({ ...counter, units: 1 })).toBe(501);
      expect(await store.credit!({ ...counter, units: 1 })).toBe(502);
      await store.refund([{ ...chargeOf({ ...counter, cost: 1400 }, decisions![0]!), actual: 30 }]);
      expect(await ask(store, anchored, { peek: true })).toMatchObject({ quota: 2002, credits: 502 });
      expect((await store.history(counter)).map(({ count }) => count)).toEqual([30]);
    });
  });

  it('keep shares of the quota, and count a second version by the same anchor', async () => {
    const { store, at } = stage();
    const limit = byRequest(
      {},
      {
        reserveFor: { critical: 0.3 },
        candidate: { algo: 'calendar-window', rate: 9, period: 'month', anchor: () => 1 },
      },
    );
    at('2026-09-21T10:00Z');
    const anchored = limit.meet({ anchor: '2026-01-15' });
    expect(anchored.meet({ priority: 'default' }).quota).toBe(2);
    expect(anchored.candidate!.windowMs(Date.parse('2026-09-21'))).toBe(30 * DAY);
    expect(await ask(store, anchored.meet({ priority: 'default' }), { cost: 2 })).toMatchObject({ remaining: 0 });
    expect(await ask(store, anchored.meet({ priority: 'default' }))).toMatchObject({ allowed: false });
    expect(await ask(store, anchored.meet({ priority: 'critical' }))).toMatchObject({ allowed: true, remaining: 0 });
    const met = limit.meet(anchored.meet({ priority: 'default' }).metBy);
    expect([met, limit.meet({ anchor: null }).asksForAnchor]).toEqual([anchored.meet({ priority: 'default' }), false]);
  });
});

/** Where windows begin, by the request. */
const anchors = [undefined, null, '2026-01-31', '2026-01-31T23:30', '2024-02-29', 1_767_225_600_000] as const;

const steps = fc.array(
  fc.record({
    /** In hours. */
    clock: fc.oneof(
      { weight: 5, arbitrary: fc.double({ min: 0, max: 400, noNaN: true }) },
      fc.double({ min: -1500, max: 3000, noNaN: true }),
    ),
    anchor: fc.nat(anchors.length - 1),
    cost: fc.integer({ min: 1, max: 6 }),
    operation: fc.constantFrom(
      'check',
      'check',
      'check',
      'peek',
      'refund',
      'late refund',
      'penalize',
      'history',
      'hold',
    ),
  }),
  { minLength: 1, maxLength: 25 },
);

const options = fc.record(
  {
    algo: fc.constantFrom('calendar-window' as const),
    rate: fc.integer({ min: 1, max: 8 }),
    period: fc.constantFrom('day', 'week', 'month', 'quarter', 'year'),
    timezone: fc.constantFrom('Europe/Berlin', 'America/Havana'),
    retain: fc.constantFrom('40d', '1y'),
    hold: fc.constantFrom('1h', '3d'),
    onLapse: fc.constantFrom('charge', 'release'),
    anchor: fc.constant(() => null),
  },
  { requiredKeys: ['algo', 'rate', 'period', 'anchor'] },
);

describe('windows whose anchor changes', () => {
  it('are counted alike by both stores', async () => {
    const property = fc.asyncProperty(options, steps, async ({ onLapse, ...own }, history) => {
      const terms = own.hold === undefined || onLapse === undefined ? {} : { onLapse };
      const limit = byRequest({ ...own, ...terms });
      const clock = new ManualClock();
      const prefix = freshPrefix();
      const stores = Object.values(storeKinds).map((make) => make(clock, redis, prefix));
      const both = async (call: (store: Store) => Promise<unknown>) => {
        const [one, other] = await Promise.all(stores.map(call));
        expectEqual(one, other);
      };
      for (const { clock: hours, anchor, cost, operation } of history) {
        clock.advanceMs(hours * 3_600_000);
        const given = anchors[anchor];
        const met = given === undefined ? limit : limit.meet({ anchor: given });
        const entries = [{ limit: met, identity, cost }];
        const chargedAt = clock.micros - (operation === 'late refund' ? 20 * DAY * 1000 : 0);
        const checked = (more: object) => async (store: Store) => {
          const [decisions] = comparable(await store.check([{ entries, ...more }]));
          return decisions!.map(({ ticket: _, ...decision }) => decision);
        };
        if (operation === 'check') await both(checked({}));
        else if (operation === 'peek') await both(checked({ peek: true }));
        else if (operation === 'hold') await both(checked({ hold: true, refundable: true }));
        else if (operation === 'history') await both((store) => store.history(entries[0]!));
        else if (operation === 'penalize') await both((store) => store.penalize({ ...entries[0]!, units: cost }));
        else await both((store) => store.refund([{ ...entries[0]!, units: cost, chargedAt }]));
        await both((store) => store.check([{ entries: [{ limit, identity, cost: 1 }], peek: true }]).then(comparable));
      }
      await Promise.all(stores.map((store) => store.close()));
    });
    await assertSideBySide(property, propertyRuns(120));
  });

  it('allow a quota a window, and one more for each change', async () => {
    const property = fc.asyncProperty(options, steps, async ({ rate, period, timezone = 'UTC' }, history) => {
      const limit = byRequest({ rate, period, timezone });
      const clock = new ManualClock();
      const store = storeKinds['MemoryStore']!(clock, redis);
      const ats = anchors.flatMap((anchor) => (typeof anchor === 'string' ? [anchor] : []));
      let turns = 1;
      let units = 0;
      let last: { end: number; anchor: string } | undefined;
      for (const { clock: hours, anchor, cost } of history) {
        clock.advanceMs(Math.abs(hours) * 3_600_000);
        const given = ats[anchor % ats.length]!;
        const met = limit.meet({ anchor: given });
        const { calendar } = met.parameters as unknown as { calendar: { windowAt(micros: number): { end: number } } };
        const { end } = calendar.windowAt(clock.micros);
        if (last !== undefined && clock.micros >= last.end) turns++;
        last = { end, anchor: given };
        const { allowed } = await ask(store, met, { cost });
        if (allowed) units += cost;
        expect(units).toBeLessThanOrEqual(turns * rate);
      }
      await store.close();
    });
    await assertSideBySide(property, propertyRuns(60));
  });
});
