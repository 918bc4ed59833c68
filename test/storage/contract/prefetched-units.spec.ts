import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { AlgorithmOptions } from '../../../lib/index.js';
import { type Check, CompiledLimit, type Refund, type StoreDecision } from '../../../lib/testing/store/index.js';
import { limitPrefetchOf } from '../../../lib/storage/features/prefetch/terms.js';
import { PrefetchedUnits } from '../../../lib/storage/features/prefetch/prefetched-units.js';
import { takingAhead } from '../../support/limits/prefetching.js';

const TTL_MS = 100;
const IDENTITY = 'user:1';

const limitOf = (options: AlgorithmOptions, units = 64) =>
  new CompiledLimit(options, { location: 'test', name: 'busy', features: takingAhead(units, TTL_MS * 1000) });

const window = limitOf({ algo: 'fixed-window', rate: 1000, interval: '1m' });
const log = limitOf({ algo: 'sliding-log', rate: 1000, interval: '1m' });

/** What a test says of a decision; `undefined` takes out what it has otherwise. */
type Told = { [K in keyof StoreDecision]?: StoreDecision[K] | undefined };

let now = 0;

/** A call of the store, which a test answers. */
class Call {
  readonly promise: Promise<StoreDecision>;
  private resolve!: (decision: StoreDecision) => void;
  private reject!: (error: unknown) => void;

  constructor(readonly check: Check) {
    this.promise = new Promise((resolve, reject) => Object.assign(this, { resolve, reject }));
  }

  get cost(): number {
    return this.check.entries[0]!.cost;
  }

  async answer(decision: Told = {}): Promise<void> {
    const waits = { retryAfterMs: 0, resetAfterMs: 60_000, delayMs: 0 };
    const open = { allowed: true, limit: 'busy', quota: 1000, remaining: 900, ...waits, source: 'redis' } as const;
    this.resolve({ ...open, chargedAt: 7, ...decision } as StoreDecision);
    await settled();
  }

  async fail(error: Error): Promise<void> {
    this.reject(error);
    await settled();
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Units that come back. */
const refund = (count: number, more: Partial<Refund> = {}) => ({
  limit: window,
  identity: IDENTITY,
  units: count,
  chargedAt: 7,
  source: 'prefetch',
  ...more,
});

/** What the store says to who looks. */
const seen = (allowed: boolean, remaining: number, retryAfterMs = 0) => ({
  allowed,
  limit: 'busy',
  quota: 10,
  remaining,
  retryAfterMs,
  resetAfterMs: 9,
  delayMs: 0,
  source: 'redis' as const,
});

describe('units of a counter that were taken in advance', () => {
  let calls: Call[];
  let given: Refund[];
  let units: PrefetchedUnits;

  beforeEach(() => {
    now = 1000;
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    begin(window);
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  function begin(limit: CompiledLimit): void {
    calls = [];
    given = [];
    const ask = (check: Check) => {
      const call = new Call(check);
      calls.push(call);
      return call.promise;
    };
    units = new PrefetchedUnits(limit, limitPrefetchOf(limit)!.terms, IDENTITY, ask, (refund) => given.push(refund));
  }

  /** Takes units in vain until so many are held: the first call takes one, and each next one twice as many. */
  async function hold(wanted: number, decision: Told = {}): Promise<void> {
    for (let tries = 0; tries < 10; tries++) {
      const taken = units.take(1);
      const call = calls.at(-1)!;
      await call.answer(decision);
      await taken;
      if (call.cost > wanted) break;
      while (units.use(1, now) !== undefined);
    }
    expect(units.left).toBe(wanted);
    calls.length = 0;
  }

  it('are taken in one call for all who wait, whose time counts from when the first asked', async () => {
    const first = units.take(2);
    now = 1003;
    const others = [units.take(3), units.take(4)];
    now = 1005;
    expect(calls.map(({ check }) => check)).toEqual([
      { entries: [{ limit: window, identity: IDENTITY, cost: 2 }], refundable: true, since: 1000 },
    ]);
    await calls[0]!.answer({ remaining: 100 });
    expect(calls[1]!.check).toEqual({
      entries: [{ limit: window, identity: IDENTITY, cost: 7 }],
      refundable: true,
      since: 1003,
    });
    await calls[1]!.answer({ remaining: 90 });
    const told = await Promise.all([first, ...others]);
    expect(told.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 100],
      [true, 94],
      [true, 90],
    ]);
    expect([calls.length, units.left, units.isIdle]).toEqual([2, 0, true]);
  });

  it('say what the counter would say', async () => {
    await hold(3, { quota: 20, remaining: 15, resetAfterMs: 5000 });
    now += 0.5;
    expect(units.use(2, now)).toStrictEqual({
      allowed: true,
      limit: 'busy',
      quota: 20,
      remaining: 16,
      retryAfterMs: 0,
      resetAfterMs: 5000,
      delayMs: 0,
      source: 'prefetch',
      chargedAt: 7,
    });
    now += 99;
    expect(units.use(1, now)).toMatchObject({ remaining: 15, resetAfterMs: 4901 });
    const taken = units.take(1);
    await calls[0]!.answer({ remaining: 1000, resetAfterMs: 0, chargedAt: undefined });
    expect(Object.keys(await taken)).not.toContain('chargedAt');
  });

  it('say no more than the quota is left, and of no time that has passed', async () => {
    begin(log);
    await hold(3, { remaining: 999, resetAfterMs: 50 });
    now += 70;
    expect(units.use(1, now)).toMatchObject({ remaining: 1000, resetAfterMs: 0 });
  });

  it('are used to the last one, until their time is over', async () => {
    await hold(3);
    expect(units.use(4, now)).toBeUndefined();
    expect(units.use(1, now + TTL_MS)).toBeUndefined();
    expect(units.left).toBe(3);
    expect(units.use(3, now + TTL_MS - 0.1)).toMatchObject({ allowed: true });
    expect(units.left).toBe(0);
  });

  it('are not used while others wait for more', async () => {
    await hold(3);
    const waiting = units.take(5);
    expect(given).toEqual([refund(3)]);
    units.left = 3;
    expect(units.use(1, now)).toBeUndefined();
    await calls[0]!.answer();
    await waiting;
  });

  it('have to be used before the window ends', async () => {
    await hold(1, { resetAfterMs: 41 });
    expect(units.until).toBe(1040);
    begin(log);
    await hold(1, { resetAfterMs: 41 });
    expect(units.until).toBe(1000 + TTL_MS);
  });

  it('count their time from when they were asked for', async () => {
    const taken = units.take(1);
    now = 1060;
    await calls[0]!.answer();
    await taken;
    expect(units.until).toBe(1000 + TTL_MS);
  });

  it.each<[string, Told, number, boolean]>([
    ['of the same charge are held again', {}, 99, true],
    ['whose time is over come back', {}, 100, false],
    ['of another charge come back', { chargedAt: 8 }, 0, false],
    ['of no known charge come back', { chargedAt: undefined }, 0, false],
  ])('that were not needed, %s', async (_, charge, after, isHeld) => {
    await hold(3);
    const decision = { ...units.use(2, now)!, ...charge } as StoreDecision;
    now += after;
    units.putBack(2, decision);
    expect(units.left).toBe(isHeld ? 3 : 1);
    expect(given).toEqual(isHeld ? [] : [refund(2, { chargedAt: decision.chargedAt })]);
  });

  it('that were not needed come back if it is not known when any were charged', async () => {
    await hold(3, { chargedAt: undefined });
    units.putBack(1, units.use(1, now)!);
    expect(given).toEqual([refund(1, { chargedAt: undefined })]);
  });

  it('that were not needed while others are being taken are also returned', async () => {
    await hold(3);
    const decision = units.use(2, now)!;
    const taken = units.take(4);
    expect(given.splice(0)).toEqual([refund(1)]);
    units.putBack(2, decision);
    await calls[0]!.answer({ chargedAt: 9 });
    await taken;
    expect(given).toEqual([refund(2)]);
    expect(units.left).toBe(calls[0]!.cost - 4);
  });

  it('count as left for who looks', async () => {
    await hold(3);
    expect(units.adjusted(seen(true, 5), 2, now)).toEqual(seen(true, 8));
    expect(units.adjusted(seen(true, 8), 2, now)).toEqual(seen(true, 10));
    expect(units.adjusted(seen(false, 1, 50), 4, now)).toEqual(seen(true, 4));
    expect(units.adjusted(seen(false, 1, 50), 5, now)).toEqual(seen(false, 4, 50));
    expect(units.adjusted(seen(false, 1, 50), 4, now + TTL_MS)).toEqual(seen(false, 1, 50));
  });

  it('come back when their time is over, and not before', async () => {
    await hold(3);
    units.expire(now + TTL_MS - 1);
    expect([units.left, units.isIdle, given]).toEqual([3, false, []]);
    units.expire(now + TTL_MS);
    expect([units.left, units.isIdle, given]).toEqual([0, true, [refund(3)]]);
    units.expire(now + TTL_MS);
    units.end();
    expect(given).toHaveLength(1);
  });

  it('are not idle while they are being taken', async () => {
    const taken = units.take(1);
    expect(units.isIdle).toBe(false);
    await calls[0]!.answer();
    await taken;
    expect(units.isIdle).toBe(true);
  });

  it('come back when they have to end, those too that are being taken', async () => {
    await hold(3);
    units.use(3, now);
    const taken = units.take(4);
    units.end();
    expect(units.until).toBe(0);
    await calls[0]!.answer({ chargedAt: 9 });
    expect(await taken).toMatchObject({ allowed: true });
    expect([units.left, units.until]).toEqual([0, 0]);
    expect(given).toEqual([refund(4, { chargedAt: 9 })]);
    // Those that are taken next are kept.
    const next = units.take(1);
    await calls[1]!.answer();
    await next;
    expect(units.until).toBe(now + TTL_MS);
  });

  it.each<[string, (() => void)[]]>([
    ['dropped', [() => units.drop()]],
    ['dropped and ended', [() => units.drop(), () => units.end()]],
    ['ended and dropped', [() => units.end(), () => units.drop()]],
  ])('are forgotten when they are %s, those too that are being taken', async (_, acts) => {
    await hold(3);
    units.use(1, now);
    for (const act of acts) act();
    expect([units.left, units.until]).toEqual([0, 0]);
    given.length = 0;
    await hold(3);
    units.use(3, now);
    const taken = units.take(4);
    for (const act of acts) act();
    await calls[0]!.answer();
    await taken;
    expect([units.left, units.until, given]).toEqual([0, 0, []]);
  });

  it('are fewer and fewer until they fit; then all who asked for as many are refused', async () => {
    const first = units.take(1);
    now = 1010;
    const twos = [units.take(2), units.take(2)];
    const three = units.take(3);
    await calls[0]!.answer({ remaining: 100 });
    expect(calls[1]!.cost).toBe(7);
    await calls[1]!.answer({ allowed: false, remaining: 5 });
    expect(calls[2]!.cost).toBe(5);
    await calls[2]!.answer({ allowed: false, remaining: 9 });
    expect(calls[3]!.cost).toBe(4);
    await calls[3]!.answer({ allowed: false, remaining: 1 });
    expect(calls[4]!.check).toMatchObject({ entries: [{ cost: 2 }], since: 1010 });
    await calls[4]!.answer({ allowed: false, remaining: 1, retryAfterMs: 77 });
    const refusals = await Promise.all(twos);
    expect(refusals).toMatchObject([{ allowed: false, retryAfterMs: 77 }, { allowed: false }]);
    expect(refusals[0]).not.toBe(refusals[1]);
    expect(calls[5]!.check).toMatchObject({ entries: [{ cost: 3 }], since: 1010 });
    await calls[5]!.answer();
    expect(await three).toMatchObject({ allowed: true });
    await first;
    expect(calls).toHaveLength(6);
  });

  it('count their time from the call that took them', async () => {
    await hold(7);
    units.use(7, now);
    now += 20;
    const taken = units.take(9);
    now += 20;
    await calls[0]!.answer({ allowed: false, remaining: 12 });
    now += 20;
    await calls[1]!.answer();
    await taken;
    expect(units.until).toBe(1040 + TTL_MS);
  });

  it('are at most half of what the store had left, but as many as somebody asks for', async () => {
    await hold(7);
    units.use(7, now);
    const sixteen = units.take(16);
    await calls.shift()!.answer({ remaining: 7 });
    await sixteen;
    const three = units.take(1);
    expect(calls[0]!.cost).toBe(3);
    await calls[0]!.answer({ remaining: 7 });
    await three;
    const five = units.take(5);
    expect(calls[1]!.cost).toBe(5);
    await calls[1]!.answer({ allowed: false, remaining: 0 });
    await five;
    const one = units.take(1);
    expect(calls[2]!.cost).toBe(1);
    await calls[2]!.answer();
    await one;
  });

  it.each([
    ['units', limitOf({ algo: 'fixed-window', rate: 1000, interval: '1m' }, 10), 10],
    ['quota', limitOf({ algo: 'fixed-window', rate: 6, interval: '1m' }, 10), 6],
  ])('are no more than the %s of the limit, unless one asks for more', async (_, limit, most) => {
    begin(limit);
    const first = units.take(1);
    const rest = Array.from({ length: 20 }, () => units.take(1));
    await calls[0]!.answer();
    expect(calls[1]!.cost).toBe(most);
    for (let index = 1; index < calls.length; index++) await calls[index]!.answer();
    await Promise.all([first, ...rest]);
    const large = units.take(11);
    expect(calls.at(-1)!.cost).toBe(11);
    await calls.at(-1)!.answer();
    await large;
  });

  it.each([
    [TTL_MS - 1, 16],
    [TTL_MS, 8],
    [2 * TTL_MS - 1, 8],
    [2 * TTL_MS, 1],
  ])('are twice as many in their time, as many a little later, and then one: %d ms', async (after, cost) => {
    await hold(7);
    units.use(7, now);
    now += after;
    const taken = units.take(1);
    expect(calls[0]!.cost).toBe(cost);
    await calls[0]!.answer();
    await taken;
  });

  it('are as many next as were used, once some have come back', async () => {
    await hold(7);
    units.use(2, now);
    now += TTL_MS;
    units.expire(now);
    expect(given).toEqual([refund(5)]);
    const taken = units.take(1);
    expect(calls[0]!.cost).toBe(3);
    await calls[0]!.answer();
    await taken;
  });

  it('fail for those who waited when they were asked for, and are asked for again by the others', async () => {
    const first = expect(units.take(1)).rejects.toThrow('no answer');
    const late = units.take(1);
    await calls[0]!.fail(new Error('no answer'));
    await first;
    await calls[1]!.answer();
    expect(await late).toMatchObject({ allowed: true });
    expect(units.isIdle).toBe(true);
  });

  it('are there for those who waited before, and for those who came later only in their time', async () => {
    await hold(7, { remaining: 900 });
    units.use(7, now);
    const early = units.take(1);
    const late = units.take(1);
    now += TTL_MS;
    await calls[0]!.answer({ chargedAt: 8 });
    expect(await early).toMatchObject({ chargedAt: 8 });
    expect(given).toEqual([refund(15, { chargedAt: 8 })]);
    await calls[1]!.answer({ chargedAt: 9 });
    expect(await late).toMatchObject({ chargedAt: 9 });
  });

  it('are there for those who came while they were taken', async () => {
    await hold(7);
    units.use(7, now);
    const waiting = [units.take(1), units.take(15)];
    now += TTL_MS - 1;
    await calls[0]!.answer({ chargedAt: 8 });
    expect(await Promise.all(waiting)).toMatchObject([{ chargedAt: 8 }, { chargedAt: 8 }]);
    expect([calls.length, units.left]).toEqual([1, 0]);
  });

  it('come back at once where the store falls back', async () => {
    await hold(7);
    units.use(7, now);
    const taken = units.take(1);
    await calls[0]!.answer({ source: 'fallback' });
    expect(await taken).toMatchObject({ source: 'fallback' });
    expect([units.left, units.until]).toEqual([0, 0]);
    expect(given).toEqual([refund(15, { source: 'fallback' })]);
  });
});
