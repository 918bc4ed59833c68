import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { AlgorithmOptions } from '../../lib/algorithms/index.js';
import { CompiledLimit } from '../../lib/limits/compiled-limit.js';
import { refundOf } from '../../lib/stores/store-decision.js';
import type { Refund, Store } from '../../lib/stores/store.js';
import { ask, compile, ManualClock } from '../support/stores.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;
const START = Date.parse('2026-09-21T10:00:00Z');
const identity = 'ip:203.0.113.7';

type OnLapse = 'charge' | 'release';

/** Ten units, in windows of a minute or a month. */
const ten: Record<string, (onLapse: OnLapse) => AlgorithmOptions> = {
  'fixed-window': (onLapse) => ({ algo: 'fixed-window', rate: 10, interval: '1m', hold: '5s', onLapse }),
  'calendar-window': (onLapse) => ({ algo: 'calendar-window', rate: 10, period: 'minute', hold: '5s', onLapse }),
  'sliding-window': (onLapse) => ({ algo: 'sliding-window', rate: 10, interval: '1m', hold: '5s', onLapse }),
  'sliding-log': (onLapse) => ({ algo: 'sliding-log', rate: 10, interval: '1m', hold: '5s', onLapse }),
  budget: (onLapse) => ({ algo: 'budget', limit: 10, period: 'month', hold: '5s', onLapse }),
};

/** What every store does with units that are held until they are settled. */
export function holdsContract(make: (clock: ManualClock) => Store): void {
  let clock: ManualClock;
  let store: Store;

  beforeEach(() => {
    clock = new ManualClock();
    at(0);
    store = make(clock);
  });
  afterEach(() => store.close());

  function at(ms: number): void {
    clock.micros = Math.round((START + ms) * 1000);
  }

  async function reserveAll(limits: readonly [limit: CompiledLimit, units: number][]) {
    const entries = limits.map(([limit, cost]) => ({ limit, identity, cost }));
    const [decisions] = await store.check([{ entries, hold: true, refundable: true }]);
    const held = entries.map(({ limit, cost: units }, index) =>
      refundOf({ limit, identity, units }, decisions![index]!),
    );
    return { decisions: decisions!, held };
  }

  async function reserve(limit: CompiledLimit, units: number): Promise<Refund & { allowed: boolean }> {
    const { decisions, held } = await reserveAll([[limit, units]]);
    return { ...held[0]!, allowed: decisions[0]!.allowed };
  }

  const settle = (held: Refund, actual: number) => store.refund([{ ...held, actual }]);
  const left = async (limit: CompiledLimit) => (await ask(store, limit, { peek: true })).remaining;

  describe.each(Object.entries(ten))('%s', (_, options) => {
    it('counts what is held, and what was really used once it is settled', async () => {
      const limit = compile(options('charge'));
      const held = await reserve(limit, 6);
      expect([held.allowed, await left(limit)]).toEqual([true, 4]);
      expect((await reserve(limit, 5)).allowed).toBe(false);
      await settle(held, 2);
      expect(await left(limit)).toBe(8);
    });

    it('settles once, and knows what was given back no more', async () => {
      const limit = compile(options('charge'));
      const held = await reserve(limit, 6);
      await Promise.all([settle(held, 2), settle(held, 2), settle(held, 2)]);
      expect(await left(limit)).toBe(8);
      const other = await reserve(limit, 3);
      await store.refund([other]);
      await store.refund([other]);
      await settle(other, 3);
      expect(await left(limit)).toBe(8);
    });

    it('settles more than there was, and allows nothing until that is paid off', async () => {
      const limit = compile(options('charge'));
      const held = await reserve(limit, 6);
      await settle(held, 13);
      await expect(ask(store, limit)).resolves.toMatchObject({ allowed: false, remaining: 0 });
      await store.refund([{ limit, identity, units: 4 }]);
      expect(await left(limit)).toBe(1);
    });

    it('keeps units charged whose hold lapses, and corrects them later', async () => {
      const limit = compile(options('charge'));
      const held = await reserve(limit, 6);
      at(5 * SECOND);
      expect(await left(limit)).toBe(4);
      await settle(held, 1);
      expect(await left(limit)).toBe(9);
    });

    it('releases units whose hold lapses, and corrects them later', async () => {
      const limit = compile(options('release'));
      const held = await reserve(limit, 6);
      at(5 * SECOND - 1);
      expect(await left(limit)).toBe(4);
      at(5 * SECOND);
      expect(await left(limit)).toBe(10);
      await ask(store, limit, { cost: 2 });
      expect(await left(limit)).toBe(8);
      await settle(held, 7);
      await settle(held, 7);
      expect(await left(limit)).toBe(1);
    });

    it('tells a refusal when the units come back that a hold releases', async () => {
      const limit = compile(options('release'));
      await reserve(limit, 3);
      at(2 * SECOND);
      await reserve(limit, 4);
      at(3 * SECOND);
      await ask(store, limit, { cost: 3 });
      await expect(ask(store, limit, { cost: 3 })).resolves.toMatchObject({ allowed: false, retryAfterMs: 2 * SECOND });
      await expect(ask(store, limit, { cost: 4 })).resolves.toMatchObject({ retryAfterMs: 4 * SECOND });
      at(7 * SECOND - 1);
      await expect(ask(store, limit, { cost: 7, peek: true })).resolves.toMatchObject({ allowed: false });
      at(7 * SECOND);
      await expect(ask(store, limit, { cost: 7 })).resolves.toMatchObject({ allowed: true, remaining: 0 });
    });

    it('changes nothing by a look, nor by a refusal', async () => {
      const limit = compile(options('release'));
      const held = await reserve(limit, 6);
      at(5 * SECOND);
      expect((await reserve(limit, 11)).allowed).toBe(false);
      for (let i = 0; i < 3; i++) expect(await left(limit)).toBe(10);
      await settle(held, 6);
      expect(await left(limit)).toBe(4);
    });

    it('forgets what is held with a reset', async () => {
      const limit = compile(options('charge'));
      const held = await reserve(limit, 6);
      await store.reset([{ limit, identity }]);
      await settle(held, 9);
      expect(await left(limit)).toBe(10);
    });
  });

  const longer: Record<string, AlgorithmOptions> = {
    'fixed-window': { algo: 'fixed-window', rate: 10, interval: '1d', hold: '5m' },
    'calendar-window': { algo: 'calendar-window', rate: 10, period: 'day', hold: '5m' },
    'sliding-window': { algo: 'sliding-window', rate: 10, interval: '1d', hold: '5m' },
    'sliding-log': { algo: 'sliding-log', rate: 10, interval: '1d', hold: '5m' },
    budget: { algo: 'budget', limit: 10, period: 'year', hold: '5m' },
  };

  it.each(Object.entries(longer))(
    '%s: takes nothing off the longer window that a new one is',
    async (algo, options) => {
      const short = 'interval' in options ? { interval: '1s' } : { period: 'second' };
      // A log knows until when it was that its units count: those that it still has do so.
      const units = algo === 'sliding-log' ? 3 : 8;
      for (const onLapse of ['charge', 'release'] as const) {
        const [first, then] = [
          compile({ ...ten[algo]!(onLapse), ...short } as AlgorithmOptions, onLapse),
          compile({ ...options, onLapse } as AlgorithmOptions, onLapse),
        ];
        at(0);
        const [settled, lapsing] = [await reserve(first, 3), await reserve(first, 2)];
        at(2 * SECOND);
        expect((await reserve(then, units)).allowed).toBe(true);
        await settle({ ...settled, limit: then }, 0);
        at(10 * SECOND);
        expect(await left(then)).toBe(algo === 'sliding-log' ? 2 : 10 - units);
        await settle({ ...lapsing, limit: then }, 1);
        expect(await left(then)).toBe(algo === 'sliding-log' ? 2 : 10 - units);
      }
    },
  );

  /** Windows that have lost by a while later what was charged before, and those of `ten`. */
  const shorter: Record<string, Partial<Record<string, string>>> = {
    'fixed-window': { interval: '1s' },
    'calendar-window': { period: 'second' },
    'sliding-window': { interval: '1s' },
    'sliding-log': { interval: '1s' },
    budget: { period: 'second' },
  };

  describe.each(Object.keys(shorter))('%s, of windows that were changed and changed back', (algo) => {
    const limits = (onLapse: OnLapse) => {
      const options = ten[algo]!(onLapse);
      return [compile(options, 'one'), compile({ ...options, ...shorter[algo] } as AlgorithmOptions, 'one')] as const;
    };

    it.each<OnLapse>(['charge', 'release'])('takes nothing off what others use, by %s', async (onLapse) => {
      const [own, short] = limits(onLapse);
      const [settled, lapsing] = [await reserve(own, 3), await reserve(own, 2)];
      at(2 * SECOND);
      await ask(store, short);
      at(3 * SECOND);
      // What is left of those that are held counts for the others.
      const before = await left(own);
      const units = before - 1;
      expect((await reserve(own, units)).allowed).toBe(true);
      await settle({ ...settled, limit: own }, 0);
      expect(await left(own)).toBe(1);
      at(5 * SECOND);
      expect(await left(own)).toBe(1);
      await settle({ ...lapsing, limit: own }, 0);
      expect(await left(own)).toBe(1);
      await settle({ ...lapsing, limit: own }, 9);
      expect(await left(own)).toBe(1);
    });

    it('settles what is reserved from then on', async () => {
      const [own, short] = limits('charge');
      await reserve(own, 3);
      at(2 * SECOND);
      const there = await left(short);
      const other = await reserve(short, 4);
      await settle(other, 1);
      expect(await left(short)).toBe(there - 1);
      at(4 * SECOND);
      const before = await left(own);
      const held = await reserve(own, 2);
      await settle(held, 1);
      expect(await left(own)).toBe(before - 1);
    });

    it('settles what was held while nothing was charged under the others', async () => {
      const [own, short] = limits('charge');
      const held = await reserve(own, 6);
      at(2 * SECOND);
      expect(await left(short)).toBeGreaterThanOrEqual(4);
      await settle({ ...held, limit: short }, 1);
      await settle(held, 2);
      expect(await left(own)).toBe(8);
    });
  });

  it.each(Object.entries(ten))('%s: gives back what is reserved after `onLapse` is changed', async (_, options) => {
    const [charging, releasing] = [compile(options('charge')), compile(options('release'))];
    const held = await reserve(charging, 6);
    at(6 * SECOND);
    expect(await left(releasing)).toBe(4);
    await reserve(releasing, 3);
    at(11 * SECOND);
    expect(await left(releasing)).toBe(4);
    await ask(store, releasing);
    await settle({ ...held, limit: releasing }, 2);
    expect(await left(releasing)).toBe(7);
    const late = await reserve(releasing, 4);
    at(16 * SECOND);
    expect(await left(charging)).toBe(3);
    await settle({ ...late, limit: charging }, 1);
    expect(await left(charging)).toBe(6);
  });

  it('settles all that was used, whatever is kept for others', async () => {
    for (const algo of Object.keys(ten)) {
      const limit = new CompiledLimit(ten[algo]!('charge'), { location: 'test', reserveFor: { critical: 0.8 } });
      const held = await reserve(limit.forPriority('default'), 1);
      expect((await reserve(limit.forPriority('critical'), 6)).allowed).toBe(true);
      await settle(held, 4);
      expect(await left(limit)).toBe(0);
    }
  });

  it('releases a few hundred holds at once, and the others with the next check', async () => {
    const limit = compile({ algo: 'budget', limit: 300, period: 'month', hold: '5s', onLapse: 'release' });
    const entry = { limit, identity, cost: 1 };
    await store.check(Array.from({ length: 300 }, () => ({ entries: [entry], hold: true, refundable: true })));
    at(5 * SECOND);
    await expect(ask(store, limit, { cost: 300 })).resolves.toMatchObject({ allowed: false, remaining: 256 });
    await expect(ask(store, limit, { cost: 300 })).resolves.toMatchObject({ allowed: true, remaining: 0 });
  });

  it('keeps a thousand holds that have lapsed, and forgets the oldest first', async () => {
    const limit = compile({ algo: 'budget', limit: 5000, period: 'month', hold: '5s' });
    const held: Refund[] = [];
    for (let ms = 0; ms < 3; ms++) {
      at(ms);
      held.push(await reserve(limit, 3));
    }
    at(3);
    const entry = { limit, identity, cost: 1 };
    await store.check(Array.from({ length: 998 }, () => ({ entries: [entry], hold: true, refundable: true })));
    at(5 * SECOND + 3);
    await reserve(limit, 1);
    await settle(held[0]!, 0);
    expect(await left(limit)).toBe(5000 - 9 - 999);
    await settle(held[1]!, 0);
    expect(await left(limit)).toBe(5000 - 6 - 999);
  });

  it('reserves of all limits or of none, each at its own cost', async () => {
    const requests = compile({ algo: 'sliding-window', rate: 2, interval: '1m' }, 'requests');
    const tokens = compile({ algo: 'fixed-window', rate: 1000, interval: '1m', hold: '1m' }, 'tokens');
    const money = compile({ algo: 'budget', limit: 50_000, period: 'month' }, 'money');
    const first = await reserveAll([
      [requests, 1],
      [tokens, 600],
      [money, 30_000],
    ]);
    expect(first.decisions.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 1],
      [true, 400],
      [true, 20_000],
    ]);
    const second = await reserveAll([
      [requests, 1],
      [tokens, 400],
      [money, 20_001],
    ]);
    expect(second.decisions.map(({ allowed }) => allowed)).toEqual([true, true, false]);
    expect(await Promise.all([requests, tokens, money].map(left))).toEqual([1, 400, 20_000]);
    await Promise.all([settle(first.held[1]!, 450), settle(first.held[2]!, 12_345)]);
    expect(await Promise.all([requests, tokens, money].map(left))).toEqual([1, 550, 37_655]);
  });

  it('settles in the period of the reservation, never in the next one', async () => {
    const limit = compile({
      algo: 'budget',
      limit: 10,
      period: 'month',
      timezone: 'Europe/Berlin',
      retain: '90d',
      hold: '5m',
    });
    const end = Date.parse('2026-10-01T00:00:00+02:00') - START;
    at(end - MINUTE);
    const [first, second] = [await reserve(limit, 6), await reserve(limit, 3)];
    at(end);
    expect(await left(limit)).toBe(10);
    await settle(first, 2);
    await ask(store, limit, { cost: 4 });
    await settle(second, 8);
    expect(await left(limit)).toBe(6);
    const history = await store.history({ limit, identity });
    expect(history.map(({ count }) => count)).toEqual([4, 10]);
  });

  it('releases in the period of the reservation, never in the next one', async () => {
    const limit = compile({ algo: 'budget', limit: 10, period: 'day', retain: '7d', hold: '5m', onLapse: 'release' });
    const end = Date.parse('2026-09-22T00:00:00Z') - START;
    at(end - MINUTE);
    const held = await reserve(limit, 6);
    await ask(store, limit);
    at(end + MINUTE);
    await ask(store, limit, { cost: 4 });
    at(end + 4 * MINUTE);
    expect((await store.history({ limit, identity })).map(({ count }) => count)).toEqual([4, 1]);
    await ask(store, limit);
    expect((await store.history({ limit, identity })).map(({ count }) => count)).toEqual([5, 1]);
    await settle(held, 2);
    expect((await store.history({ limit, identity })).map(({ count }) => count)).toEqual([5, 3]);
    at(end + 7 * DAY);
    expect(await left(limit)).toBe(10);
  });

  it('counts money beyond four billion dollars to the micro-unit', async () => {
    const limit = compile({
      algo: 'budget',
      limit: Number.MAX_SAFE_INTEGER,
      period: 'year',
      hold: '5m',
      onLapse: 'release',
    });
    const held = await reserve(limit, 2 ** 52 + 1);
    expect(await left(limit)).toBe(2 ** 52 - 2);
    await settle(held, Number.MAX_SAFE_INTEGER - 1);
    expect(await left(limit)).toBe(1);
    const last = await reserve(limit, 1);
    await settle(last, Number.MAX_SAFE_INTEGER);
    await expect(ask(store, limit)).resolves.toMatchObject({ allowed: false, remaining: 0 });
  });
}
