import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { CompiledLimit, type Refund } from '../../../lib/testing/store/index.js';
import { assertSideBySide, expectEqual, propertyRuns } from '../../support/limits/property-runs.js';
import {
  ask,
  chargeOf,
  connectRedis,
  featuresOfOptions,
  freshPrefix,
  keyOf,
  ManualClock,
  storeKinds,
} from '../../support/limits/stores.js';

const identity = 'user:42';
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.quit());

const plan = (others: object = {}, settings: object = {}) =>
  new CompiledLimit(
    { algo: 'calendar-window', rate: 100, period: 'day', hold: '1h', onLapse: 'release', ...others },
    { location: 'test', featuresOfOptions, name: 'plan', ...settings },
  );

describe.each(Object.entries(storeKinds))('holds of a plan that lapse unseen, in %s', (kind, make) => {
  const stage = () => {
    const clock = new ManualClock();
    clock.micros = Date.UTC(2026, 8, 21, 12) * 1000;
    const prefix = freshPrefix();
    const store = make(clock, redis, prefix);
    const consume = (limit: CompiledLimit, cost = 1) => ask(store, limit, { identity, cost });
    const peek = (limit: CompiledLimit) => ask(store, limit, { identity, peek: true });
    const credit = (limit: CompiledLimit, units: number) => store.credit!({ limit, identity, units });
    const hours = (by: number) => clock.advanceMs(by * HOUR);
    const reserve = async (limit: CompiledLimit, cost: number) => {
      const entries = [{ limit, identity, cost }];
      const [decisions] = await store.check([{ entries, hold: true, refundable: true }]);
      expect(decisions![0]!.allowed).toBe(true);
      return chargeOf({ limit, identity, cost }, decisions![0]!);
    };
    return { clock, store, prefix, consume, peek, credit, hours, reserve };
  };

  it('give their credits back, whenever somebody asks next', async () => {
    for (const days of [1, 2, 400]) {
      const { credit, hours, reserve, peek, consume } = stage();
      const limit = plan({ credits: true });
      await credit(limit, 900);
      await reserve(limit, 1000);
      expect(await peek(limit)).toMatchObject({ remaining: 0, credits: 0 });
      hours(24 * days);
      expect(await peek(limit)).toMatchObject({ remaining: 1000, credits: 900 });
      expect(await consume(limit, 300)).toMatchObject({ remaining: 700, credits: 700 });
      hours(24);
      expect(await peek(limit)).toMatchObject({ remaining: 800, credits: 700 });
    }
  });

  it('give none back if they lapse after the end of their window', async () => {
    const { credit, hours, reserve, peek } = stage();
    const limit = plan({ credits: true });
    await credit(limit, 900);
    hours(11);
    await reserve(limit, 1000);
    hours(1);
    expect(await peek(limit)).toMatchObject({ credits: 0 });
    hours(24);
    expect(await peek(limit)).toMatchObject({ credits: 0 });
  });

  it('give back what was taken beyond the rate, once, and what was settled is theirs no more', async () => {
    const { store, credit, hours, reserve, peek } = stage();
    const limit = plan({ credits: true });
    await credit(limit, 900);
    const settled = await reserve(limit, 80);
    const lapsing = await reserve(limit, 40);
    await reserve(limit, 10);
    await store.refund([{ ...settled, actual: 90 }]);
    expect(await peek(limit)).toMatchObject({ credits: 860 });
    hours(24);
    expect(await credit(limit, 5)).toBe(905);
    expect(await credit(limit, 5)).toBe(910);
    // It is settled too late: the window is over.
    await store.refund([{ ...lapsing, actual: 40 }]);
    expect(await peek(limit)).toMatchObject({ credits: 910, remaining: 1010 });
  });

  it('are back before a reset, which keeps credits', async () => {
    const { store, credit, hours, reserve, peek } = stage();
    const limit = plan({ credits: true });
    await credit(limit, 20);
    await reserve(limit, 120);
    hours(2);
    await store.reset([{ limit, identity }]);
    expect(await peek(limit)).toMatchObject({ remaining: 120, credits: 20 });
    await reserve(limit, 120);
    hours(24);
    await store.reset([{ limit, identity }]);
    expect(await peek(limit)).toMatchObject({ remaining: 120, credits: 20 });
    await reserve(limit, 115);
    await store.reset([{ limit, identity }]);
    expect(await peek(limit)).toMatchObject({ remaining: 105, credits: 5 });
  });

  it('leave as much as they gave back to move on', async () => {
    const { consume, hours, reserve, peek } = stage();
    const limit = plan({ rollover: 0.5 });
    await consume(limit, 10);
    await reserve(limit, 40);
    hours(24);
    expect(await peek(limit)).toMatchObject({ quota: 145, remaining: 145 });
    await consume(limit, 1);
    expect(await peek(limit)).toMatchObject({ quota: 145, remaining: 144 });
  });

  it('let a request wait no longer than until what they leave has moved on', async () => {
    const { consume, peek, hours, reserve } = stage();
    const limit = plan({ rollover: 0.5 });
    await reserve(limit, 70);
    expect(await consume(limit, 120)).toMatchObject({ allowed: false, retryAfterMs: 12 * HOUR });
    expect(await consume(limit, 151)).toMatchObject({ allowed: false, retryAfterMs: Infinity });
    hours(11.5);
    await reserve(limit, 30);
    expect(await consume(limit, 150)).toMatchObject({ allowed: false, retryAfterMs: 24.5 * HOUR });
    hours(0.5);
    expect(await peek(limit)).toMatchObject({ quota: 135 });
  });

  it('let no request wait that takes more than all', async () => {
    const { store, consume, reserve } = stage();
    const limit = plan({ credits: true });
    await reserve(limit, 5);
    await store.refund([{ limit, identity, units: 5 }]);
    expect(await consume(limit, 101)).toMatchObject({ allowed: false, retryAfterMs: Infinity });
    expect(await consume(limit, 100)).toMatchObject({ allowed: true });
  });

  it('leave what lapses after the end of its window used', async () => {
    const { consume, hours, reserve, peek } = stage();
    const limit = plan({ rollover: 0.5 });
    await consume(limit, 10);
    hours(11.5);
    await reserve(limit, 40);
    hours(2);
    expect(await peek(limit)).toMatchObject({ quota: 125 });
  });

  it('are all of their window, however many there are', async () => {
    const { store, credit, hours, peek, consume } = stage();
    const limit = plan({ credits: true, rollover: 1 });
    await credit(limit, 900);
    const entry = { limit, identity, cost: 1 };
    await store.check(Array.from({ length: 700 }, () => ({ entries: [entry], hold: true, refundable: true })));
    hours(24);
    expect(await peek(limit)).toMatchObject({ quota: 1100, credits: 900 });
    for (let i = 0; i < 3; i++) await consume(limit);
    expect(await peek(limit)).toMatchObject({ quota: 1100, credits: 900, remaining: 1097 });
  });

  it('are corrected in the history once', async () => {
    const { store, hours, consume, reserve } = stage();
    const limit = plan({ rollover: 1, credits: true, retain: '7d' });
    const counts = async () => (await store.history({ limit, identity })).map(({ count }) => count);
    await reserve(limit, 30);
    await consume(limit, 5);
    hours(24);
    expect(await counts()).toEqual([5]);
    await consume(limit, 1);
    await consume(limit, 1);
    expect(await counts()).toEqual([2, 5]);
  });

  if (kind === 'RedisStore') {
    it('are kept as long as the credits that they give back', async () => {
      const { prefix, store, credit, reserve, hours, consume } = stage();
      const limit = plan({ credits: true });
      const key = keyOf(prefix, { limit, identity });
      const ttls = () => Promise.all([key, `${key}:holds`].map((each) => redis.pttl(each)));
      await credit(limit, 900);
      const held = await reserve(limit, 50);
      for (const ttl of await ttls()) expect(ttl).toBeLessThan(2 * DAY);
      // This takes the credits that the hold gives back.
      await consume(limit, 60);
      for (const ttl of await ttls()) expect(ttl).toBeGreaterThan(3650 * DAY);
      await store.refund([{ ...held, actual: 50 }]);
      expect((await ttls())[0]).toBeLessThan(2 * DAY);
      await reserve(limit, 50);
      for (const ttl of await ttls()) expect(ttl).toBeGreaterThan(3650 * DAY);
      hours(2);
      await consume(limit);
      for (const ttl of await ttls()) expect(ttl).toBeLessThan(2 * DAY);
    });
  }
});

const steps = fc.array(
  fc.record({
    hours: fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 0, max: 9 }) }, fc.integer({ min: 0, max: 80 })),
    operation: fc.constantFrom('reserve', 'reserve', 'consume', 'settle', 'settle', 'credit', 'reset'),
    cost: fc.integer({ min: 1, max: 30 }),
    which: fc.nat(4),
    larger: fc.boolean(),
  }),
  { minLength: 1, maxLength: 25 },
);

const options = fc.record({
  rate: fc.integer({ min: 1, max: 20 }),
  rollover: fc.constantFrom(undefined, 0.5, 1),
  hold: fc.constantFrom('1h', '5h', '30h'),
});

describe.each(Object.entries(storeKinds))('what lapses in a plan, in %s', (_, make) => {
  it('is the same whether or not anybody looks when it does', async () => {
    const property = fc.asyncProperty(options, steps, async ({ rate, ...own }, history) => {
      const [small, large] = [plan({ rate, credits: true, ...own }), plan({ rate: rate + 7, credits: true, ...own })];
      const clock = new ManualClock();
      clock.micros = Date.UTC(2026, 8, 21, 12) * 1000;
      const [blind, watched] = [make(clock, redis), make(clock, redis)];
      const stores = [blind, watched];
      const held = new Map(stores.map((store) => [store, [] as Refund[]]));
      let charged = '';
      const day = () => new Date(clock.micros / 1000).toISOString().slice(0, 10);
      for (const { hours, operation, cost, which, larger } of history) {
        for (let hour = 0; hour < hours; hour++) {
          clock.advanceMs(HOUR);
          // A window that nobody uses stays one: to write it would be to use it.
          if (day() === charged) await watched.refund([{ limit: small, identity, units: 0 }]);
        }
        const limit = larger ? large : small;
        const counter = { limit, identity };
        const [one, other] = await Promise.all(
          stores.map(async (store): Promise<unknown> => {
            const known = held.get(store)!;
            if (operation === 'credit') return store.credit!({ ...counter, units: cost });
            if (operation === 'reset') return store.reset([counter]);
            if (operation === 'settle') {
              const refund = known.at(-1 - which);
              return store.refund(refund === undefined ? [] : [{ ...refund, actual: cost }]);
            }
            const hold = operation === 'reserve';
            const [decisions] = await store.check([{ entries: [{ ...counter, cost }], hold, refundable: true }]);
            const { ticket: _ticket, source: _source, ...decision } = decisions![0]!;
            if (hold && decision.allowed) known.push(chargeOf({ ...counter, cost }, decisions![0]!));
            if (decision.allowed) charged = day();
            return decision;
          }),
        );
        expectEqual(one, other);
        const [here, there] = await Promise.all(
          stores.map(async (store) => {
            const { source: _source, ...decision } = await ask(store, limit, { identity, peek: true });
            return decision;
          }),
        );
        expectEqual(here, there);
      }
      await Promise.all(stores.map((store) => store.close()));
    });
    await assertSideBySide(property, propertyRuns(60));
  });
});
