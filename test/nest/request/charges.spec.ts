import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { MemoryStore, RateLimitStoreError } from '../../../lib/index.js';
import { type Check, CompiledLimit, type StoreDecision } from '../../../lib/testing/store/index.js';
import { leaseBegan, leaseEnded, withExpectedWait } from '../../../lib/app/limiter/lease.js';
import { layerOf } from '../../../lib/storage/stores/layers/store-layer.js';
import { PendingCheck } from '../../../lib/nest/request/request-check.js';
import type { RuleEntry } from '../../../lib/app/rules/resolve/resolve.js';
import type { CheckAnswer } from '../../../lib/storage/stores/store.js';
import { createTestingStore, TestClock } from '../../../lib/testing/index.js';
import { SharedStore } from '../../support/redis/shared-store.js';
import { giveBack, type RequestCharge, requestChargesOf } from '../../../lib/nest/request/charges.js';
import type { Rule } from '../../../lib/app/rules/rule.js';
import { ruleOf } from '../../support/limits/rules.js';

describe('the check of a request', () => {
  const limitOf = (name: string, rate: number) =>
    new CompiledLimit({ algo: 'fixed-window', rate, interval: '1m' }, { location: 'test', name });
  const slots = () =>
    new CompiledLimit({ algo: 'concurrency', limit: 1, ttl: '1m' }, { location: 'test', name: 'slots' });
  const entryOf = (limit: CompiledLimit) => ({ limit, identity: 'k', cost: 1 }) as RuleEntry;

  const broken = new Error('broken');

  /** A store that fails at once. */
  class BrokenStore extends MemoryStore {
    override decide(_: Check, answer: CheckAnswer): void {
      answer.failed(broken);
    }
  }

  /** A store that fails later. */
  class BreakingStore extends MemoryStore {
    override check() {
      return Promise.reject(broken);
    }
  }

  /** Counts answers, each with what the check knew of it by then. */
  class Tap {
    readonly counted: unknown[] = [];

    constructor(private readonly check: PendingCheck) {}

    decided(entries: readonly unknown[], decisions: readonly StoreDecision[], latencyMs: number): void {
      this.counted.push({ entries, allowed: decisions.map(({ allowed }) => allowed), latencyMs, ...this.known() });
    }

    failed(): void {
      this.counted.push({ failed: true, ...this.known() });
    }

    private known() {
      return { known: this.check.decisions.length };
    }
  }

  describe('a check that waits for its answer', () => {
    it('waits for nothing where a store answers at once', () => {
      const check = new PendingCheck([entryOf(limitOf('a', 3))], layerOf(createTestingStore()), false, undefined);
      expect(check.answered).toBeUndefined();
      expect(check.decisions).toMatchObject([{ limit: 'a', remaining: 2 }]);
      expect(() => check.conclude()).not.toThrow();
    });

    it('is told once a store answers later, of what it was asked', async () => {
      const store = new SharedStore();
      const entries = [entryOf(limitOf('a', 3))];
      const check = new PendingCheck(entries, layerOf(store), true, '203.0.113.1');
      expect([check.answered instanceof Promise, check.decisions]).toEqual([true, []]);
      await check.answered;
      expect(check.decisions).toMatchObject([{ limit: 'a', remaining: 2 }]);
      expect(store.checks).toEqual([{ entries, refundable: true, address: '203.0.113.1' }]);
      await store.close();
    });

    it('throws what its store failed with once it is concluded, and not before', async () => {
      const atOnce = new PendingCheck([entryOf(limitOf('a', 3))], layerOf(new BrokenStore()), false, undefined);
      expect(atOnce.answered).toBeUndefined();
      expect(() => atOnce.conclude()).toThrow(broken);
      const later = new PendingCheck([entryOf(limitOf('a', 3))], layerOf(new BreakingStore()), false, undefined);
      await later.answered;
      expect(() => later.conclude()).toThrow(broken);
    });

    it('is counted before it is told, and untimed', async () => {
      const store = new SharedStore();
      const entries = [entryOf(limitOf('a', 1)), entryOf(limitOf('b', 3))];
      const check = new PendingCheck(entries, layerOf(store), false, undefined);
      const tap = new Tap(check);
      check.countBy(tap);
      await check.answered;
      expect(tap.counted).toEqual([{ entries, allowed: [true, true], latencyMs: -1, known: 0 }]);
      await store.close();
    });

    it('is counted as failed where its store fails', async () => {
      const check = new PendingCheck([entryOf(limitOf('a', 3))], layerOf(new BreakingStore()), false, undefined);
      const tap = new Tap(check);
      check.countBy(tap);
      await check.answered;
      expect(tap.counted).toEqual([{ failed: true, known: 0 }]);
    });

    it('keeps the decisions that allow as the store made them', () => {
      const check = new PendingCheck([entryOf(limitOf('a', 3))], layerOf(createTestingStore()), false, undefined);
      const { decisions } = check;
      check.conclude();
      expect(check.decisions).toBe(decisions);
    });

    it('expects a place to be free long before its lease expires, whatever other limits say', () => {
      const store = createTestingStore();
      const limit = slots();
      leaseBegan(limit, 0);
      leaseEnded(limit, 500);
      const entries = [entryOf(limitOf('a', 3)), entryOf(limit)];
      const allowed = new PendingCheck(entries, layerOf(store), false, undefined);
      expect(allowed.decisions).toMatchObject([{ allowed: true }, { allowed: true }]);
      const refused = new PendingCheck(entries, layerOf(store), false, undefined);
      expect(refused.decisions).toMatchObject([{ allowed: true }, { allowed: false, retryAfterMs: 60_000 }]);
      refused.conclude();
      expect(refused.decisions).toMatchObject([{ allowed: true }, { allowed: false, retryAfterMs: 500 }]);
    });
  });
});

describe('the time that leases are held', () => {
  const compile = (limit: number, blockFor = 0) =>
    new CompiledLimit({ algo: 'concurrency', limit, ttl: '10s' }, { location: 'test', blockFor });

  const refusal = (quota: number, remaining: number, retryAfterMs = 9000): StoreDecision => ({
    allowed: false,
    limit: 'slots',
    quota,
    remaining,
    retryAfterMs,
    resetAfterMs: 10_000,
    delayMs: 0,
    source: 'memory',
  });

  const told = (limit: CompiledLimit, decision: StoreDecision, now: number, cost = 1) =>
    withExpectedWait(decision, { limit, cost }, now).retryAfterMs;

  describe('the wait for a lease', () => {
    it('is that of the store before the first lease', () => {
      expect(told(compile(1), refusal(1, 0), 0)).toBe(9000);
    });

    it('is the age of the first lease until the first release', () => {
      const limit = compile(1);
      leaseBegan(limit, 1000);
      leaseBegan(limit, 1200);
      expect([1000, 1250, 4000, 12_000].map((now) => told(limit, refusal(1, 0), now))).toEqual([
        1000, 1000, 3000, 9000,
      ]);
    });

    it('follows the mean time of released leases', () => {
      const limit = compile(4);
      leaseBegan(limit, 0);
      leaseEnded(limit, 500);
      expect(told(limit, refusal(4, 0), 60_000)).toBe(125);
      expect(told(limit, refusal(4, 1), 60_000, 4)).toBe(500);
      expect(told(limit, refusal(4, 0, 70), 60_000)).toBe(70);
      for (let i = 0; i < 100; i++) leaseEnded(limit, 2000);
      expect(told(limit, refusal(4, 0), 60_000)).toBe(500);
      leaseEnded(limit, 0);
      expect(told(limit, refusal(4, 0), 60_000)).toBe(438);
    });

    it('is that of the store where a block is longer, or the cost never fits', () => {
      const [limit, blocking] = [compile(1), compile(1, 1e6)];
      for (const each of [limit, blocking]) leaseBegan(each, 0);
      expect(told(limit, refusal(1, 0, 60_000), 1000)).toBe(60_000);
      expect(told(limit, refusal(1, 0, Infinity), 1000, 2)).toBe(Infinity);
      expect(told(blocking, refusal(1, 0), 1000)).toBe(9000);
    });

    it('is none for an allowed decision', () => {
      const limit = compile(1);
      leaseBegan(limit, 0);
      const allowed = { ...refusal(1, 0, 0), allowed: true };
      expect(withExpectedWait(allowed, { limit, cost: 1 }, 1000)).toBe(allowed);
    });
  });
});

describe('the charges of a request', () => {
  const identity = 'ip:203.0.113.7';
  const five = { algo: 'fixed-window', rate: 5, interval: '1h' } as const;

  describe('what a check charged', () => {
    let clock: TestClock;
    let store: MemoryStore;
    beforeEach(() => {
      clock = new TestClock();
      store = createTestingStore({ clock });
    });
    afterEach(() => store.close());

    /** Checks one request against rules, and says what it charged. */
    async function charge(rules: readonly Rule[], cost = 1): Promise<RequestCharge[]> {
      const entries = rules.map((rule) => ({ rule, limit: rule.limit, identity, cost }));
      const [decisions] = await store.check([{ entries, refundable: true }]);
      return requestChargesOf({ entries, decisions: decisions!, store, refundable: true });
    }

    async function remaining({ limit }: Rule): Promise<number> {
      const [decisions] = await store.check([{ entries: [{ limit, identity, cost: 1 }], peek: true }]);
      return decisions![0]!.remaining;
    }

    const one = ruleOf(five, { name: 'one' });
    const two = ruleOf(five, { name: 'two' });

    it('is the cost of each limit, open until it is settled or given back', async () => {
      expect(await charge([one, two], 2)).toMatchObject([
        { rule: one, limit: one.limit, identity, units: 2, settled: false, returned: false, store },
        { rule: two, limit: two.limit, identity, units: 2, settled: false, returned: false, store },
      ]);
    });

    it('is nothing where a limit that only watches would have refused', async () => {
      const watched = ruleOf(five, { name: 'watched', shadow: true });
      await charge([watched], 5);
      expect(await charge([one, watched])).toMatchObject([{ rule: one }]);
    });

    it('comes back, and nothing of other requests', async () => {
      await charge([one, two], 2);
      const charges = await charge([one, two]);
      await giveBack(charges);
      expect([await remaining(one), await remaining(two)]).toEqual([3, 3]);
      expect(charges).toMatchObject([
        { settled: true, returned: true },
        { settled: true, returned: true },
      ]);
    });

    it('comes back once', async () => {
      await charge([one], 2);
      const charges = await charge([one]);
      await Promise.all([giveBack(charges), giveBack(charges)]);
      await giveBack(charges);
      expect(await remaining(one)).toBe(3);
    });

    it('comes back as far as it has not', async () => {
      const charges = await charge([one, two]);
      await giveBack(charges.slice(0, 1));
      await charge([one]);
      await giveBack(charges);
      expect([await remaining(one), await remaining(two)]).toEqual([4, 5]);
    });

    it('is as much as it was settled at', async () => {
      const charges = await charge([one], 3);
      charges[0]!.units = 1;
      await giveBack(charges);
      expect(await remaining(one)).toBe(3);
    });

    it('comes back without a call of the store where there is nothing', async () => {
      const refund = jest.spyOn(store, 'refund');
      await giveBack([]);
      const charges = await charge([one]);
      charges[0]!.units = 0;
      await giveBack(charges);
      expect(refund).not.toHaveBeenCalled();
      expect(charges).toMatchObject([{ settled: false, returned: false }]);
    });

    it('comes back in one call of the store', async () => {
      const refund = jest.spyOn(store, 'refund');
      await giveBack(await charge([one, two]));
      expect(refund.mock.calls).toMatchObject([[[{ limit: one.limit }, { limit: two.limit }]]]);
    });

    it('comes back to the limit that decides by now', async () => {
      const changing = ruleOf(five, { name: 'changing' });
      const charges = await charge([changing]);
      const limit = new CompiledLimit({ ...five, rate: 10 }, { location: 'test', name: 'changing' });
      changing.decideBy(limit);
      const refund = jest.spyOn(store, 'refund');
      await giveBack(charges);
      expect(refund.mock.calls[0]![0][0]!.limit).toBe(limit);
    });

    it('is not given back to a window that is over', async () => {
      const charges = await charge([one]);
      clock.advance('1h');
      await charge([one], 2);
      await giveBack(charges);
      expect(await remaining(one)).toBe(3);
    });

    it('is not given back while the store fails, which nobody is told of', async () => {
      const charges = await charge([one]);
      const refund = jest.spyOn(store, 'refund').mockRejectedValue(new RateLimitStoreError('down'));
      await expect(giveBack(charges)).resolves.toBeUndefined();
      // It is not tried again.
      await giveBack(charges);
      expect(refund).toHaveBeenCalledTimes(1);
    });

    it('is not given back by a store that fails otherwise, which whoever asked is told of', async () => {
      const charges = await charge([one]);
      jest.spyOn(store, 'refund').mockRejectedValue(new TypeError('a bug'));
      await expect(giveBack(charges)).rejects.toThrow('a bug');
    });
  });
});
