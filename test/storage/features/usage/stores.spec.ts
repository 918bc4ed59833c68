import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { AlgorithmOptions, Store } from '../../../../lib/index.js';
import { CompiledLimit } from '../../../../lib/testing/store/index.js';
import {
  ask,
  chargeOf,
  connectRedis,
  featuresOfOptions,
  featureTerms,
  ManualClock,
  storeKinds,
} from '../../../support/limits/stores.js';
import { ALL, pagesOf, unitsOf } from '../../../support/limits/usage.js';

const DAY_MS = 86_400_000;
const identity = 'user:42';

function recorded(options: AlgorithmOptions, usage: unknown = '400d', more: object = {}): CompiledLimit {
  return new CompiledLimit(options, {
    location: 'test',
    featuresOfOptions,
    name: 'api',
    features: featureTerms({ usage, ...options, ...more }, 'test'),
    ...more,
  });
}

const window: AlgorithmOptions = { algo: 'fixed-window', rate: 100, interval: '1h' };

/** All rows of an export, sorted by day and key. */
async function rowsOf(store: Store, limit: CompiledLimit, range = ALL, batch = 100): Promise<string[]> {
  const rows: string[] = [];
  for await (const page of pagesOf(store, limit, range, batch)) {
    for (const { key, days } of page) for (const { day, units } of days) rows.push(`${day} ${key} ${units}`);
  }
  return rows.toSorted();
}

let redis: Redis;
beforeAll(async () => {
  // An export reads thousands of parts of an index: together, they cost a tenth.
  redis = await connectRedis({ enableAutoPipelining: true });
});
afterAll(() => redis.disconnect());

describe.each(Object.keys(storeKinds))('the usage of limits in a %s', (kind) => {
  let clock: ManualClock;
  let store: Store;
  beforeEach(() => {
    clock = new ManualClock();
    clock.micros = Date.UTC(2026, 10, 22, 12) * 1000;
    store = storeKinds[kind]!(clock, redis);
  });

  const usage = (limit: CompiledLimit, range = ALL, who = identity) => unitsOf(store, { limit, identity: who }, range);

  it.each<AlgorithmOptions>([
    window,
    { algo: 'calendar-window', rate: 100, period: 'hour' },
    { algo: 'budget', limit: 100, period: 'hour' },
    { algo: 'sliding-window', rate: 100, interval: '1h' },
    { algo: 'sliding-log', rate: 100, interval: '1h' },
    { algo: 'token-bucket', rate: 100, interval: '1h' },
    { algo: 'gcra', rate: 100, interval: '1h' },
    { algo: 'leaky-bucket', rate: 100, interval: '1h' },
    { algo: 'gcra', rate: 100, interval: '1h', warmUp: { for: '1m', from: 0.9 } },
  ])('are the units that %j was charged, by days', async (options) => {
    const limit = recorded(options);
    await ask(store, limit, { identity, cost: 60 });
    await ask(store, limit, { identity, cost: 70 });
    await ask(store, limit, { identity, cost: 5, peek: true });
    await ask(store, limit, { identity, cost: 3 });
    clock.advanceMs(DAY_MS);
    await ask(store, limit, { identity, cost: 20 });
    expect(await usage(limit)).toEqual([
      { day: '2026-11-22', units: 63 },
      { day: '2026-11-23', units: 20 },
    ]);
    expect(await rowsOf(store, limit)).toEqual(['2026-11-22 user:42 63', '2026-11-23 user:42 20']);
  });

  it('begin with the day of the time zone, also where the clocks change', async () => {
    const limit = recorded(window, { keep: '40d', timezone: 'Europe/Berlin' });
    // The day on which summer time ends has 25 hours.
    clock.micros = Date.UTC(2026, 9, 24, 21, 59, 59, 999) * 1000;
    await ask(store, limit, { identity, cost: 1 });
    clock.advanceMs(1);
    await ask(store, limit, { identity, cost: 2 });
    clock.advanceMs(25 * 3_600_000 - 1);
    await ask(store, limit, { identity, cost: 4 });
    clock.advanceMs(1);
    await ask(store, limit, { identity, cost: 8 });
    expect(await usage(limit)).toEqual([
      { day: '2026-10-24', units: 1 },
      { day: '2026-10-25', units: 6 },
      { day: '2026-10-26', units: 8 },
    ]);
  });

  it('lack what was given back, on the day on which it was charged', async () => {
    const limit = recorded({ algo: 'fixed-window', rate: 100, interval: '1m' });
    const [decisions] = await store.check([{ entries: [{ limit, identity, cost: 9 }], refundable: true }]);
    clock.advanceMs(3 * DAY_MS);
    await ask(store, limit, { identity, cost: 5 });
    await store.refund([{ ...chargeOf({ limit, identity, cost: 9 }, decisions![0]!), units: 4 }]);
    expect(await usage(limit)).toEqual([
      { day: '2026-11-22', units: 5 },
      { day: '2026-11-25', units: 5 },
    ]);
    // Nobody says of when these are: of the newest day, then of the one before.
    await store.refund([{ limit, identity, units: 7 }]);
    expect(await usage(limit)).toEqual([{ day: '2026-11-22', units: 3 }]);
    await store.refund([{ limit, identity, units: 70 }]);
    expect(await usage(limit)).toEqual([]);
    expect(await rowsOf(store, limit)).toEqual([]);
  });

  it('lack all that was given back nobody says when, whichever days have units', async () => {
    const limit = recorded({ algo: 'fixed-window', rate: 100, interval: '1m' });
    await ask(store, limit, { identity, cost: 16 });
    // Of these days all comes back that was charged.
    for (let day = 0; day < 2; day++) {
      clock.advanceMs(DAY_MS);
      await ask(store, limit, { identity, cost: 3 });
      await store.refund([{ limit, identity, units: 3 }]);
    }
    clock.advanceMs(DAY_MS);
    await store.refund([{ limit, identity, units: 6 }]);
    expect(await usage(limit)).toEqual([{ day: '2026-11-22', units: 10 }]);
    for (let day = 0; day < 20; day++) {
      clock.advanceMs(DAY_MS);
      await ask(store, limit, { identity, cost: 2 });
    }
    await store.refund([{ limit, identity, units: 39 }]);
    expect(await usage(limit)).toEqual([
      { day: '2026-11-22', units: 10 },
      { day: '2026-11-26', units: 1 },
    ]);
    await store.refund([{ limit, identity, units: 2 }]);
    expect(await usage(limit)).toEqual([{ day: '2026-11-22', units: 9 }]);
  });

  it('lack what had lapsed when its counter was reset', async () => {
    const limit = recorded({ algo: 'budget', limit: 3000, period: 'month', hold: '1h', onLapse: 'release' });
    const reserve = (cost: number, times = 1) =>
      store.check(
        Array.from({ length: times }, () => ({ entries: [{ limit, identity, cost }], refundable: true, hold: true })),
      );
    await reserve(1, 1100);
    clock.advanceMs(1_800_000);
    await reserve(7);
    await ask(store, limit, { identity, cost: 2 });
    clock.advanceMs(1_800_000);
    await store.reset([{ limit, identity }]);
    // What is held yet is forgotten, and nobody knows what it will have cost.
    expect(await usage(limit)).toEqual([{ day: '2026-11-22', units: 9 }]);
    clock.advanceMs(DAY_MS);
    expect(await usage(limit)).toEqual([{ day: '2026-11-22', units: 9 }]);
  });

  it('lack what was reserved before its lapses were charged', async () => {
    const limit = recorded({ ...window, hold: '1h', onLapse: 'release' });
    const charging = recorded({ ...window, hold: '1h', onLapse: 'charge' });
    for (const who of [identity, 'user:43']) {
      for (const each of [limit, charging]) {
        await store.check([{ entries: [{ limit: each, identity: who, cost: 10 }], refundable: true, hold: true }]);
      }
    }
    clock.advanceMs(3_600_000);
    expect(await usage(charging)).toEqual([{ day: '2026-11-22', units: 10 }]);
    expect(await rowsOf(store, charging)).toEqual(['2026-11-22 user:42 10', '2026-11-22 user:43 10']);
  });

  it('lack thousands of units whose holds have lapsed, and so does the history', async () => {
    const plan = { algo: 'calendar-window', rate: 9000, period: 'month', retain: '90d' } as const;
    const limit = recorded({ ...plan, hold: '1h', onLapse: 'release' });
    const entry = { limit, identity, cost: 1 };
    await store.check(Array.from({ length: 2100 }, () => ({ entries: [entry], refundable: true, hold: true })));
    await ask(store, limit, { identity, cost: 2 });
    clock.advanceMs(3_600_000);
    expect((await store.history({ limit, identity })).map(({ count }) => count)).toEqual([2]);
    expect(await usage(limit)).toEqual([{ day: '2026-11-22', units: 2 }]);
    clock.advanceMs(60 * DAY_MS);
    expect((await store.history({ limit, identity })).map(({ count }) => count)).toEqual([2]);
  });

  it('hold what was settled in place of what was reserved', async () => {
    const limit = recorded({ algo: 'budget', limit: 100, period: 'day', hold: '2d', onLapse: 'release' });
    const reserve = async (cost: number) => {
      const [decisions] = await store.check([{ entries: [{ limit, identity, cost }], refundable: true, hold: true }]);
      return chargeOf({ limit, identity, cost }, decisions![0]!);
    };
    const [more, less, none, lapses] = [await reserve(10), await reserve(20), await reserve(30), await reserve(40)];
    expect(await usage(limit)).toEqual([{ day: '2026-11-22', units: 100 }]);
    clock.advanceMs(DAY_MS);
    await store.refund([{ ...more, actual: 15 }]);
    await store.refund([{ ...less, actual: 2 }]);
    await store.refund([{ ...none, actual: 0 }]);
    await store.refund([{ ...less, actual: 9 }]);
    expect(await usage(limit)).toEqual([{ day: '2026-11-22', units: 57 }]);
    clock.advanceMs(DAY_MS + 1);
    expect(await usage(limit)).toEqual([{ day: '2026-11-22', units: 17 }]);
    await store.refund([{ ...lapses, actual: 41 }]);
    expect(await usage(limit)).toEqual([{ day: '2026-11-22', units: 58 }]);
  });

  it('are exported without those whose hold has lapsed', async () => {
    const limit = recorded({ ...window, hold: '1h', onLapse: 'release' });
    const reserve = (who: string) =>
      store.check([{ entries: [{ limit, identity: who, cost: 10 }], refundable: true, hold: true }]);
    await reserve(identity);
    await ask(store, limit, { identity, cost: 2 });
    clock.advanceMs(2 * 3_600_000);
    await reserve('user:43');
    expect(await rowsOf(store, limit)).toEqual(['2026-11-22 user:42 2', '2026-11-22 user:43 10']);
  });

  it('hold penalties, reservations and what a claim took once', async () => {
    const limit = recorded({ algo: 'gcra', rate: 60, interval: '1h' });
    await store.penalize({ limit, identity, units: 500 });
    expect(await usage(limit)).toEqual([{ day: '2026-11-22', units: 120 }]);
    const other = 'user:43';
    const claim = { id: 'job-1', keepMs: 60_000 };
    const entry = { limit, identity: other, cost: 7, maxWaitMs: 3_600_000 };
    await store.reserve({ ...entry, claim });
    await store.reserve({ ...entry, claim });
    await store.reserve({ ...entry, ofStarts: true });
    expect(await usage(limit, ALL, other)).toEqual([{ day: '2026-11-22', units: 7 }]);
    await store.reserve({ ...entry, cost: 60, claim: { ...claim, id: 'job-2' } });
    await store.refund([{ limit, identity: other, units: 60, claim: { id: 'job-2', isSpent: false } }]);
    expect(await usage(limit, ALL, other)).toEqual([{ day: '2026-11-22', units: 7 }]);
    expect(await rowsOf(store, limit)).toEqual(['2026-11-22 user:42 120', '2026-11-22 user:43 7']);
  });

  it('are left as they are by blocks, resets, other rates and other algorithms', async () => {
    const limit = recorded(window, '400d', { blockFor: 60_000_000 });
    await ask(store, limit, { identity, cost: 90 });
    await ask(store, limit, { identity, cost: 90 });
    await store.block({ limit, identity }, 0);
    await store.reset([{ limit, identity }]);
    const anew = recorded(window, '400d', { generation: 1 });
    await ask(store, anew, { identity, cost: 90 });
    const other = recorded({ algo: 'gcra', rate: 100, interval: '1h' });
    await ask(store, other, { identity, cost: 30 });
    const grown = recorded({ ...window, rate: 200 }, '400d', { carry: { mode: 'proportional', quotaBefore: 100 } });
    await ask(store, grown, { identity, cost: 1 });
    for (const each of [limit, anew, other, grown]) {
      expect(await usage(each)).toEqual([{ day: '2026-11-22', units: 211 }]);
    }
  });

  it('are what a limit charges in shadow mode, with priorities and shares, and nothing of a candidate', async () => {
    const shadow = recorded({ algo: 'gcra', rate: 5, interval: '1h' }, '400d', { name: 'shadow', shadow: true });
    await ask(store, shadow, { identity, cost: 4 });
    await ask(store, shadow, { identity, cost: 4 });
    expect(await usage(shadow)).toEqual([{ day: '2026-11-22', units: 4 }]);
    const kept = recorded(window, '400d', { name: 'kept', reserveFor: { critical: 0.5 } });
    await ask(store, kept.meet({ priority: 'default' }), { identity, cost: 40 });
    await ask(store, kept.meet({ priority: 'default' }), { identity, cost: 40 });
    await ask(store, kept.meet({ priority: 'critical' }), { identity, cost: 40 });
    expect(await usage(kept)).toEqual([{ day: '2026-11-22', units: 80 }]);
    const shared = recorded({ algo: 'gcra', rate: 10, interval: '1h' }, '400d', {
      name: 'shared',
      features: featureTerms({ usage: '400d', share: { by: 'global' } }, 'test'),
    });
    await ask(store, shared.meet({ tenant: { id: 'a', weight: 1 } }), { identity, cost: 3 });
    await ask(store, shared.meet({ tenant: { id: 'b', weight: 1 } }), { identity, cost: 4 });
    expect(await usage(shared)).toEqual([{ day: '2026-11-22', units: 7 }]);
    const watched = recorded(window, '400d', { name: 'watched', candidate: { ...window, rate: 1 } });
    await ask(store, watched, { identity });
    await ask(store, watched.candidate!, { identity });
    expect(await usage(watched)).toEqual([{ day: '2026-11-22', units: 1 }]);
  });

  it('of all limits of a check, or of none', async () => {
    const roomy = recorded(window, '400d', { name: 'roomy' });
    const narrow = recorded({ ...window, rate: 1 }, '400d', { name: 'narrow' });
    const plain = new CompiledLimit({ ...window, rate: 50 }, { location: 'test', featuresOfOptions, name: 'plain' });
    const entries = [roomy, narrow, plain].map((limit) => ({ limit, identity, cost: 1 }));
    await Promise.all([store.check([{ entries }]), store.check([{ entries }]), store.check([{ entries }])]);
    expect(await usage(roomy)).toEqual([{ day: '2026-11-22', units: 1 }]);
    expect(await usage(narrow)).toEqual([{ day: '2026-11-22', units: 1 }]);
  });

  it('add up where many checks of a key and of others are asked at once', async () => {
    const limit = recorded({ ...window, rate: 1000 });
    const asked = Array.from({ length: 300 }, (_, i) =>
      ask(store, limit, { identity: `user:${i % 7}`, cost: 1 + (i % 3) }),
    );
    await Promise.all(asked);
    const rows = await rowsOf(store, limit, ALL, 4);
    expect(rows).toHaveLength(7);
    expect(rows.reduce((sum, row) => sum + Number(row.split(' ')[2]), 0)).toBe(600);
  });

  it('are kept as long as the option says, and no longer', async () => {
    const limit = recorded(window, '2d');
    await ask(store, limit, { identity, cost: 1 });
    clock.advanceMs(DAY_MS);
    await ask(store, limit, { identity, cost: 2 });
    // The first day ended at midnight.
    clock.micros = Date.UTC(2026, 10, 25) * 1000 - 1;
    expect(await usage(limit)).toEqual([
      { day: '2026-11-22', units: 1 },
      { day: '2026-11-23', units: 2 },
    ]);
    clock.micros++;
    expect(await usage(limit)).toEqual([{ day: '2026-11-23', units: 2 }]);
    expect(await rowsOf(store, limit)).toEqual(['2026-11-23 user:42 2']);
  });

  it('of a range are those of all days that overlap it', async () => {
    const limit = recorded(window);
    for (let i = 0; i < 5; i++) {
      await ask(store, limit, { identity, cost: i + 1 });
      clock.advanceMs(DAY_MS);
    }
    const range = { from: Date.UTC(2026, 10, 23, 23) * 1000, to: Date.UTC(2026, 10, 25) * 1000 + 1 };
    const days = [
      { day: '2026-11-23', units: 2 },
      { day: '2026-11-24', units: 3 },
      { day: '2026-11-25', units: 4 },
    ];
    expect(await usage(limit, range)).toEqual(days);
    expect(await rowsOf(store, limit, range)).toEqual(days.map(({ day, units }) => `${day} user:42 ${units}`));
    expect(await usage(limit, { ...range, to: range.to - 1 })).toEqual(days.slice(0, 2));
  });

  it('stay whole where the clock is set back over midnight', async () => {
    const limit = recorded(window);
    for (const [day, cost] of [
      [22, 1],
      [25, 2],
      [23, 4],
      [22, 8],
      [24, 16],
      [25, 32],
      [21, 64],
    ] as const) {
      clock.micros = Date.UTC(2026, 10, day, 12) * 1000;
      await store.reset([{ limit, identity }]);
      await ask(store, limit, { identity, cost });
    }
    clock.micros = Date.UTC(2026, 10, 26) * 1000;
    expect((await usage(limit)).map(({ units }) => units)).toEqual([64, 9, 4, 16, 34]);
  });

  it('of keys that are long or odd are found by the key, and exported by what stands for it', async () => {
    const limit = recorded(window);
    const odd = ['ключ', 'x'.repeat(200), 'a b'];
    for (const who of odd) await ask(store, limit, { identity: who, cost: 3 });
    for (const who of odd) expect(await usage(limit, ALL, who)).toEqual([{ day: '2026-11-22', units: 3 }]);
    const keys = (await rowsOf(store, limit)).map((row) => row.split(' ')[1]);
    for (const key of keys) expect(key).toMatch(/^#[\w-]{43}$/);
    expect(new Set(keys).size).toBe(3);
  });

  it('stay on their days if the time zone is changed', async () => {
    const before = recorded(window, { keep: '40d', timezone: 'Asia/Tokyo' });
    for (let i = 0; i < 20; i++) {
      clock.advanceMs(DAY_MS);
      await ask(store, before, { identity, cost: 1 });
    }
    const after = recorded(window, { keep: '40d', timezone: 'America/New_York' });
    await ask(store, after, { identity, cost: 1 });
    const days = await usage(after);
    expect(days.reduce((sum, { units }) => sum + units, 0)).toBe(21);
    expect(await rowsOf(store, after)).toEqual(days.map(({ day, units }) => `${day} user:42 ${units}`));
  });
});
