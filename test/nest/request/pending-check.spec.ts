import { describe, expect, it } from '@jest/globals';
import { MemoryStore } from '../../../lib/index.js';
import { type Check, CompiledLimit, type StoreDecision } from '../../../lib/testing/store/index.js';
import { leaseBegan, leaseEnded } from '../../../lib/app/limiter/hold-times.js';
import { PendingCheck } from '../../../lib/nest/request/pending-check.js';
import type { RuleEntry } from '../../../lib/app/rules/resolve/resolve.js';
import type { CheckAnswer } from '../../../lib/storage/stores/store.js';
import { createTestingStore } from '../../../lib/testing/index.js';
import { SharedStore } from '../../support/redis/shared-store.js';

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
    const check = new PendingCheck([entryOf(limitOf('a', 3))], createTestingStore(), false, undefined);
    expect(check.answered).toBeUndefined();
    expect(check.decisions).toMatchObject([{ limit: 'a', remaining: 2 }]);
    expect(() => check.conclude()).not.toThrow();
  });

  it('is told once a store answers later, of what it was asked', async () => {
    const store = new SharedStore();
    const entries = [entryOf(limitOf('a', 3))];
    const check = new PendingCheck(entries, store, true, '203.0.113.1');
    expect([check.answered instanceof Promise, check.decisions]).toEqual([true, []]);
    await check.answered;
    expect(check.decisions).toMatchObject([{ limit: 'a', remaining: 2 }]);
    expect(store.checks).toEqual([{ entries, refundable: true, address: '203.0.113.1' }]);
    await store.close();
  });

  it('throws what its store failed with once it is concluded, and not before', async () => {
    const atOnce = new PendingCheck([entryOf(limitOf('a', 3))], new BrokenStore(), false, undefined);
    expect(atOnce.answered).toBeUndefined();
    expect(() => atOnce.conclude()).toThrow(broken);
    const later = new PendingCheck([entryOf(limitOf('a', 3))], new BreakingStore(), false, undefined);
    await later.answered;
    expect(() => later.conclude()).toThrow(broken);
  });

  it('is counted before it is told, and untimed', async () => {
    const store = new SharedStore();
    const entries = [entryOf(limitOf('a', 1)), entryOf(limitOf('b', 3))];
    const check = new PendingCheck(entries, store, false, undefined);
    const tap = new Tap(check);
    check.countBy(tap);
    await check.answered;
    expect(tap.counted).toEqual([{ entries, allowed: [true, true], latencyMs: -1, known: 0 }]);
    await store.close();
  });

  it('is counted as failed where its store fails', async () => {
    const check = new PendingCheck([entryOf(limitOf('a', 3))], new BreakingStore(), false, undefined);
    const tap = new Tap(check);
    check.countBy(tap);
    await check.answered;
    expect(tap.counted).toEqual([{ failed: true, known: 0 }]);
  });

  it('keeps the decisions that allow as the store made them', () => {
    const check = new PendingCheck([entryOf(limitOf('a', 3))], createTestingStore(), false, undefined);
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
    const allowed = new PendingCheck(entries, store, false, undefined);
    expect(allowed.decisions).toMatchObject([{ allowed: true }, { allowed: true }]);
    const refused = new PendingCheck(entries, store, false, undefined);
    expect(refused.decisions).toMatchObject([{ allowed: true }, { allowed: false, retryAfterMs: 60_000 }]);
    refused.conclude();
    expect(refused.decisions).toMatchObject([{ allowed: true }, { allowed: false, retryAfterMs: 500 }]);
  });
});
