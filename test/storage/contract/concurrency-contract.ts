import { describe, expect, it } from '@jest/globals';
import type { Store } from '../../../lib/index.js';
import type { CompiledLimit } from '../../../lib/testing/store/index.js';
import { ask, compile, type ManualClock } from '../../support/limits/stores.js';
import { storeStage } from './store-stage.js';

const DAY = 86_400_000;
const identity = 'ip:203.0.113.7';

/** What is held of a limit for `ttl`. */
const held = (limit: number, ttl: number | string = '10s', name = 'concurrency') =>
  compile({ algo: 'concurrency', limit, ttl }, name);

const sized = (limit: number, ttl = '10s') => held(limit, ttl, 'changing');

interface Held {
  readonly units: number;
  readonly ticket: number;
}

/** What every store has to do with what is held. `make` makes one that asks the clock for the time. */
export function concurrencyContract(make: (clock: ManualClock) => Store): void {
  const start = Date.parse('2026-09-21T10:00:00Z');
  const stage = storeStage(make, start);
  const { at } = stage;

  const three = held(3);
  const take = (limit: CompiledLimit, cost = 1) => ask(stage.store, limit, { cost });
  const peek = (limit: CompiledLimit, cost = 1) => ask(stage.store, limit, { cost, peek: true });

  async function hold(limit: CompiledLimit, units = 1): Promise<Held> {
    const { allowed, ticket } = await take(limit, units);
    expect([allowed, typeof ticket]).toEqual([true, 'number']);
    return { units, ticket: ticket! };
  }

  const release = (limit: CompiledLimit, lease: Held) => stage.store.refund([{ limit, identity, ...lease }]);
  const renew = (limit: CompiledLimit, lease: Held) => stage.store.renew({ limit, identity, ...lease });

  describe('what is held', () => {
    it('is granted up to the limit, and no more until one is released', async () => {
      const leases = [];
      for (const remaining of [2, 1, 0]) {
        const decision = await take(three);
        expect(decision).toMatchObject({
          allowed: true,
          quota: 3,
          remaining,
          retryAfterMs: 0,
          resetAfterMs: 10_000,
          delayMs: 0,
        });
        leases.push({ units: 1, ticket: decision.ticket! });
      }
      expect(new Set(leases.map(({ ticket }) => ticket)).size).toBe(3);
      const refused = await take(three);
      expect(refused).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 10_000, resetAfterMs: 10_000 });
      expect(refused.ticket).toBeUndefined();
      await release(three, leases[1]!);
      await expect(take(three)).resolves.toMatchObject({ allowed: true, remaining: 0 });
      await expect(take(three)).resolves.toMatchObject({ allowed: false });
    });

    it('is free again as soon as it is released, and then equals a fresh one', async () => {
      const leases = [await hold(three), await hold(three, 2)];
      for (const lease of leases) await release(three, lease);
      await expect(peek(three)).resolves.toMatchObject({ allowed: true, remaining: 3, resetAfterMs: 0 });
    });

    it('is free when its time is over: the next end that frees enough is when to ask again', async () => {
      await hold(three);
      at(1000);
      await hold(three);
      at(4000);
      await hold(three);
      const waits = async () => {
        const answers = [];
        for (const cost of [1, 2, 3]) answers.push((await take(three, cost)).retryAfterMs);
        return answers;
      };
      expect(await waits()).toEqual([6000, 7000, 10_000]);
      at(9999.999);
      expect(await waits()).toEqual([1, 1001, 4001]);
      at(10_000);
      await expect(peek(three)).resolves.toMatchObject({ allowed: true, remaining: 1, resetAfterMs: 4000 });
      at(11_000);
      await expect(peek(three, 3)).resolves.toMatchObject({ allowed: false, remaining: 2, retryAfterMs: 3000 });
      at(14_000);
      await expect(take(three, 3)).resolves.toMatchObject({ allowed: true, remaining: 0, resetAfterMs: 10_000 });
    });

    it('weighs what it costs', async () => {
      const heavy = await hold(three, 2);
      await expect(take(three, 2)).resolves.toMatchObject({ allowed: false, remaining: 1, retryAfterMs: 10_000 });
      await expect(take(three, 4)).resolves.toMatchObject({ allowed: false, retryAfterMs: Infinity });
      at(3000);
      const light = await hold(three);
      // The heavy one ends first, and frees enough for two, but not for three.
      await expect(take(three, 2)).resolves.toMatchObject({ retryAfterMs: 7000 });
      await expect(take(three, 3)).resolves.toMatchObject({ retryAfterMs: 10_000 });
      await release(three, light);
      await expect(peek(three)).resolves.toMatchObject({ remaining: 1, resetAfterMs: 7000 });
      await release(three, heavy);
      await expect(peek(three)).resolves.toMatchObject({ remaining: 3 });
    });

    it('is freed once, however often it is released', async () => {
      const [first, second] = [await hold(three), await hold(three, 2)];
      await release(three, first);
      await release(three, first);
      await stage.store.refund([
        { limit: three, identity, ...first },
        { limit: three, identity, ...first },
      ]);
      await expect(peek(three)).resolves.toMatchObject({ remaining: 1, resetAfterMs: 10_000 });
      await stage.store.refund([
        { limit: three, identity, ...second },
        { limit: three, identity, ...second },
      ]);
      await expect(peek(three)).resolves.toMatchObject({ remaining: 3, resetAfterMs: 0 });
    });

    it('is freed by no one who does not hold it', async () => {
      const lease = await hold(three, 2);
      await release(three, { units: 2, ticket: lease.ticket + 1 });
      await release(three, { units: 1, ticket: lease.ticket });
      await stage.store.refund([{ limit: three, identity, units: 2 }]);
      await stage.store.refund([{ limit: three, identity: 'other', ...lease }]);
      await expect(peek(three)).resolves.toMatchObject({ remaining: 1 });
      expect(await renew(three, { units: 1, ticket: lease.ticket })).toBe(false);
      expect(await renew(three, { units: 2, ticket: lease.ticket + 1 })).toBe(false);
    });

    it('frees nothing when it is released after its end', async () => {
      const lease = await hold(three, 2);
      at(10_000);
      await hold(three, 3);
      await release(three, lease);
      await expect(peek(three)).resolves.toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 10_000 });
    });

    it('is counted anew after it has ended, in whatever order', async () => {
      const late = held(3, '1m');
      await hold(late);
      at(30_000);
      const second = await hold(late);
      at(60_000);
      // The first one has ended, and nobody has written that down.
      await release(late, second);
      await expect(peek(late)).resolves.toMatchObject({ remaining: 3, resetAfterMs: 0 });
      await hold(late, 3);
      await expect(take(late)).resolves.toMatchObject({ allowed: false, retryAfterMs: 60_000 });
    });

    it('is forgotten by a reset', async () => {
      const lease = await hold(three, 3);
      await stage.store.reset([{ limit: three, identity }]);
      await expect(peek(three)).resolves.toMatchObject({ remaining: 3, resetAfterMs: 0 });
      expect(await renew(three, lease)).toBe(false);
      await hold(three, 3);
      await release(three, lease);
      await expect(peek(three)).resolves.toMatchObject({ remaining: 0 });
    });

    it('is no more than the limit among many who ask at the same time', async () => {
      const limit = held(10);
      const answers = await Promise.all(Array.from({ length: 50 }, () => take(limit)));
      expect(answers.filter(({ allowed }) => allowed)).toHaveLength(10);
      const places = answers.flatMap(({ ticket }) => ticket ?? []);
      expect(new Set(places).size).toBe(10);
    });

    it('is reserved like it is held', async () => {
      const { ticket, ...decision } = await stage.store.reserve({ limit: three, identity, cost: 3, maxWaitMs: DAY });
      expect(decision).toMatchObject({ allowed: true, remaining: 0, delayMs: 0 });
      await expect(stage.store.reserve({ limit: three, identity, cost: 1, maxWaitMs: DAY })).resolves.toMatchObject({
        allowed: false,
        retryAfterMs: 10_000,
      });
      await release(three, { units: 3, ticket: ticket! });
      await expect(peek(three)).resolves.toMatchObject({ remaining: 3 });
    });
  });

  describe('renewing', () => {
    it('holds for as long again, from now', async () => {
      const lease = await hold(three, 3);
      for (const ms of [9999, 15_000, 24_999]) {
        at(ms);
        expect(await renew(three, lease)).toBe(true);
        await expect(take(three)).resolves.toMatchObject({ allowed: false, retryAfterMs: 10_000 });
      }
      at(34_998.999);
      await expect(take(three)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
      at(34_999);
      expect(await renew(three, lease)).toBe(false);
      await expect(take(three, 3)).resolves.toMatchObject({ allowed: true });
    });

    it('moves only the one that is renewed', async () => {
      const leases = [await hold(three), await hold(three), await hold(three)];
      at(4000);
      expect(await renew(three, leases[1]!)).toBe(true);
      await expect(take(three, 2)).resolves.toMatchObject({ allowed: false, retryAfterMs: 6000 });
      await expect(take(three, 3)).resolves.toMatchObject({
        allowed: false,
        retryAfterMs: 10_000,
        resetAfterMs: 10_000,
      });
      at(10_000);
      await expect(peek(three)).resolves.toMatchObject({ remaining: 2, resetAfterMs: 4000 });
    });

    it('is refused once it is released, and brings nothing back', async () => {
      const lease = await hold(three);
      await release(three, lease);
      expect(await renew(three, lease)).toBe(false);
      await expect(peek(three)).resolves.toMatchObject({ remaining: 3, resetAfterMs: 0 });
    });

    it('and looking in one turn agree with each other', async () => {
      const long = held(3, '1m', 'changed');
      const lease = await hold(long);
      const short = held(3, '40s', 'changed');
      const [renewed, looked] = await Promise.all([renew(short, lease), peek(short)]);
      expect(renewed).toBe(true);
      expect(looked).toMatchObject({ remaining: 2, resetAfterMs: 40_000 });
    });

    it('is for whoever is blocked, too', async () => {
      const lease = await hold(three);
      await stage.store.block({ limit: three, identity }, DAY);
      at(9000);
      expect(await renew(three, lease)).toBe(true);
      at(18_000);
      await stage.store.block({ limit: three, identity }, 0);
      await expect(peek(three)).resolves.toMatchObject({ remaining: 2, resetAfterMs: 1000 });
    });

    it('does not exist where nothing is held', async () => {
      const limit = compile({ algo: 'fixed-window', rate: 3, interval: '10s' });
      await take(limit);
      await expect(
        Promise.resolve().then(() => stage.store.renew({ limit, identity, units: 1, ticket: 1 })),
      ).resolves.toBe(false);
    });
  });

  describe('a limit that changes', () => {
    it('to less grants none until enough has gone', async () => {
      const leases = [];
      for (const ms of [0, 1000, 2000, 3000]) {
        at(ms);
        leases.push(await hold(sized(5)));
      }
      await expect(take(sized(2))).resolves.toMatchObject({
        allowed: false,
        quota: 2,
        remaining: 0,
        // Three of four have to go.
        retryAfterMs: 9000,
        resetAfterMs: 10_000,
      });
      await release(sized(2), leases[3]!);
      await expect(take(sized(2))).resolves.toMatchObject({ allowed: false, retryAfterMs: 8000 });
      await release(sized(2), leases[0]!);
      await expect(take(sized(2))).resolves.toMatchObject({ allowed: false, retryAfterMs: 8000 });
      await release(sized(2), leases[1]!);
      await expect(take(sized(2))).resolves.toMatchObject({ allowed: true, remaining: 0 });
    });

    it('to more grants at once', async () => {
      await hold(sized(2), 2);
      await expect(take(sized(5), 3)).resolves.toMatchObject({ allowed: true, remaining: 0 });
    });

    it('to a longer time holds what comes and what is renewed for longer', async () => {
      const first = await hold(sized(3));
      const second = await hold(sized(3));
      expect(await renew(sized(3, '1m'), second)).toBe(true);
      await hold(sized(3, '1m'));
      at(10_000);
      expect(await renew(sized(3, '1m'), first)).toBe(false);
      await expect(peek(sized(3, '1m'))).resolves.toMatchObject({ remaining: 1, resetAfterMs: 50_000 });
    });

    it('to a much shorter time takes nothing from those who hold it by the longer one', async () => {
      const [long, short] = [sized(2, '1m'), sized(2, '1s')];
      const leases = [await hold(long), await hold(long)];
      await expect(take(short)).resolves.toMatchObject({ allowed: false, retryAfterMs: 60_000 });
      // As often as an instance that still has the longer time renews them.
      for (let ms = 20_000; ms < 200_000; ms += 20_000) {
        at(ms);
        await expect(take(short)).resolves.toMatchObject({ allowed: false, remaining: 0 });
        for (const lease of leases) expect(await renew(long, lease)).toBe(true);
      }
      await release(long, leases[0]!);
      await hold(short);
      await expect(take(short)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1000 });
      at(181_000);
      await expect(peek(short)).resolves.toMatchObject({ remaining: 1, resetAfterMs: 59_000 });
      // A renewed lease lasts by the time of whoever renews it.
      expect(await renew(short, leases[1]!)).toBe(true);
      await expect(peek(short)).resolves.toMatchObject({ remaining: 1, resetAfterMs: 1000 });
    });

    it('to a much shorter time revives nothing that has ended', async () => {
      const [long, short] = [held(3, '1m', 'changing'), sized(3, '1s')];
      await hold(short);
      await hold(long);
      at(1000);
      await expect(peek(short)).resolves.toMatchObject({ remaining: 2 });
      await expect(peek(sized(3, '10ms'))).resolves.toMatchObject({ remaining: 2 });
      // Also where a clock was set back by more than any time to live.
      at(-200_000);
      await hold(sized(3, '1m'));
      at(-DAY);
      await expect(peek(short)).resolves.toMatchObject({ remaining: 0, resetAfterMs: 60_000 });
    });

    it('and a clock that is set back: what is held lasts no longer than the longest time from now', async () => {
      const [long, short] = [sized(2, '1m'), sized(2, '1s')];
      await hold(long);
      await hold(short);
      at(-59_000);
      await expect(take(short)).resolves.toMatchObject({ allowed: false, retryAfterMs: 60_000 });
      at(-60_000);
      await expect(take(short)).resolves.toMatchObject({ allowed: false, retryAfterMs: 60_000 });
      at(-1);
      await expect(take(short)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
      at(0);
      await expect(peek(short)).resolves.toMatchObject({ remaining: 2 });
    });
  });

  describe('a clock that is set back', () => {
    it('by less than the time to live: what is held is held until its end', async () => {
      const lease = await hold(three, 3);
      at(-9000);
      await expect(take(three)).resolves.toMatchObject({ allowed: false, retryAfterMs: 19_000 });
      at(1000);
      await expect(take(three)).resolves.toMatchObject({ allowed: false, retryAfterMs: 9000 });
      at(-9000);
      await release(three, lease);
      await expect(take(three)).resolves.toMatchObject({ allowed: true, remaining: 2, resetAfterMs: 10_000 });
    });

    it('by less: what is renewed is held from now on', async () => {
      const lease = await hold(three, 3);
      at(-4000);
      expect(await renew(three, lease)).toBe(true);
      await expect(take(three)).resolves.toMatchObject({ allowed: false, retryAfterMs: 10_000, resetAfterMs: 10_000 });
    });

    it('by more: what is held counts as taken now', async () => {
      const leases = [await hold(three)];
      at(2000);
      leases.push(await hold(three, 2));
      at(-DAY);
      await expect(take(three)).resolves.toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 10_000 });
      at(-DAY + 9999);
      await expect(take(three)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
      await release(three, leases[1]!);
      await expect(peek(three)).resolves.toMatchObject({ remaining: 2, resetAfterMs: 1 });
      at(-DAY + 10_000);
      await expect(peek(three)).resolves.toMatchObject({ remaining: 3, resetAfterMs: 0 });
    });

    it('by more: what is taken or renewed then is held for its own time', async () => {
      const [long, short] = [sized(5, '1m'), sized(5, '1s')];
      const lease = await hold(long);
      await hold(long);
      at(-DAY);
      expect(await renew(short, lease)).toBe(true);
      await hold(short, 2);
      await expect(take(short, 2)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1000 });
      at(-DAY + 1000);
      await expect(peek(short)).resolves.toMatchObject({ remaining: 4, resetAfterMs: 59_000 });
    });

    it('by more: it can be released and renewed at once', async () => {
      const [first, second] = [await hold(three), await hold(three, 2)];
      at(-DAY);
      await release(three, first);
      expect(await renew(three, first)).toBe(false);
      expect(await renew(three, second)).toBe(true);
      await expect(peek(three)).resolves.toMatchObject({ remaining: 1, resetAfterMs: 10_000 });
      await expect(take(three)).resolves.toMatchObject({ allowed: true, remaining: 0, resetAfterMs: 10_000 });
      at(-DAY + 10_000);
      await expect(peek(three)).resolves.toMatchObject({ remaining: 3 });
    });
  });

  describe('together with other limits', () => {
    const rate = compile({ algo: 'gcra', rate: 5, interval: '10s' }, 'rate');
    const window = compile({ algo: 'sliding-log', rate: 2, interval: '10s' }, 'window');
    const all = [rate, three, window];
    const check = (peeked = false) =>
      stage.store.check([{ entries: all.map((limit) => ({ limit, identity, cost: 1 })), peek: peeked }]);
    const remaining = async () => (await check(true))[0]!.map((decision) => decision.remaining);

    it('all is granted, or nothing is held', async () => {
      await check();
      await check();
      expect(await remaining()).toEqual([3, 1, 0]);
      const [refused] = await check();
      expect(refused!.map(({ allowed }) => allowed)).toEqual([true, true, false]);
      expect(await remaining()).toEqual([3, 1, 0]);
    });

    it('nothing is charged if too much is held', async () => {
      const lease = await hold(three, 3);
      const [refused] = await check();
      expect(refused!.map(({ allowed }) => allowed)).toEqual([true, false, true]);
      expect(await remaining()).toEqual([5, 0, 2]);
      await release(three, lease);
      const [granted] = await check();
      expect(granted!.every(({ allowed }) => allowed)).toBe(true);
      expect(await remaining()).toEqual([4, 2, 1]);
    });

    it('each has its own lease', async () => {
      const limits = [held(2, '10s', 'concurrency one'), held(3, '20s', 'concurrency two')];
      const [decisions] = await stage.store.check([{ entries: limits.map((limit) => ({ limit, identity, cost: 2 })) }]);
      for (const [index, limit] of limits.entries()) {
        await release(limit, { units: 2, ticket: decisions![index]!.ticket! });
        await expect(peek(limit)).resolves.toMatchObject({ remaining: limit.quota, resetAfterMs: 0 });
      }
    });
  });

  it('a thousand leases are held, each for itself', async () => {
    const limit = held(1000, '1m');
    const leases: Held[] = [];
    for (let batch = 0; batch < 10; batch++) {
      at(batch * 1000);
      const decisions = (
        await stage.store.check(Array.from({ length: 100 }, () => ({ entries: [{ limit, identity, cost: 1 }] })))
      ).flat();
      for (const { allowed, ticket } of decisions) {
        expect(allowed).toBe(true);
        leases.push({ units: 1, ticket: ticket! });
      }
    }
    expect(new Set(leases.map(({ ticket }) => ticket)).size).toBe(1000);
    await expect(take(limit)).resolves.toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 51_000 });
    await expect(take(limit, 101)).resolves.toMatchObject({ allowed: false, retryAfterMs: 52_000 });
    await expect(take(limit, 1000)).resolves.toMatchObject({ allowed: false, retryAfterMs: 60_000 });
    for (let i = 0; i < 1000; i += 2) await release(limit, leases[i]!);
    await expect(peek(limit)).resolves.toMatchObject({ remaining: 500 });
    at(60_000);
    await expect(peek(limit)).resolves.toMatchObject({ remaining: 550, resetAfterMs: 9000 });
    await stage.store.refund(leases.map((lease) => ({ limit, identity, ...lease })));
    await expect(peek(limit)).resolves.toMatchObject({ remaining: 1000, resetAfterMs: 0 });
  });
}
