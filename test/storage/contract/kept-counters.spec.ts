import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MemoryStore } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { defaultMaxBytes } from '../../../lib/storage/stores/memory/counter-table.js';
import { type Entry, keyOf } from '../../../lib/storage/stores/memory/limit-counters.js';
import { ask, compile, ManualClock } from '../../support/limits/stores.js';

const limit = compile({ algo: 'gcra', rate: 5, interval: '10s' }, 'gcra');
const identity = 'user:42';
const counter = { limit, identity };

let clock: ManualClock;
let store: MemoryStore;

beforeEach(() => {
  clock = new ManualClock();
  store = new MemoryStore({ clock: clock.now });
});
afterEach(() => store.close());

/** What the store keeps of a counter. */
function entryOf(of = limit, kept = store): Entry | undefined {
  return kept['table'].of(of).get(identity);
}

/** How long it keeps it, in milliseconds from now. */
const livesFor = (of = limit, kept = store) => (entryOf(of, kept)!.expiresAt - clock.micros) / 1000;

const logOf = (interval: string) => compile({ algo: 'sliding-log', rate: 1, interval }, 'log');

/** When a check was charged, as its decision tells. */
async function chargedAt(others: { peek?: boolean; refundable?: boolean }) {
  const [decisions] = await store.check([{ entries: [{ ...counter, cost: 1 }], ...others }]);
  return decisions![0]!.chargedAt;
}

describe('the memory that counters may take', () => {
  it('is 1,000 bytes for each of maxKeys, and 16 MB at least', () => {
    expect([1, 16_000, 16_001, 100_000].map(defaultMaxBytes)).toEqual([16e6, 16e6, 16_001_000, 1e8]);
    expect(defaultMaxBytes(Number.MAX_SAFE_INTEGER)).toBe(Number.MAX_SAFE_INTEGER);
  });

  it('grows with the length of keys and with what algorithms list', async () => {
    await ask(store, limit, { identity: 'a' });
    const short = store.bytes;
    await ask(store, limit, { identity: 'b'.repeat(11) });
    const long = store.bytes - short;
    expect(long - short).toBe(20);
    await ask(store, compile({ algo: 'sliding-window', rate: 5, interval: '10s' }, 'sw'), { identity: 'a' });
    expect(store.bytes - short - long).toBe(short + 8 * 11);
  });

  it('is bounded for an identity of any length', () => {
    expect(keyOf('x'.repeat(64))).toBe('x'.repeat(64));
    expect(keyOf('x'.repeat(65))).toMatch(/^#{64}[\w-]{43}$/);
    expect(keyOf('x'.repeat(10_000))).toHaveLength(107);
  });
});

describe('a counter is kept', () => {
  it('until it equals a fresh one', async () => {
    await ask(store, limit, counter);
    expect(livesFor()).toBe(2000);
    await ask(store, limit, { ...counter, cost: 4 });
    expect(livesFor()).toBe(10_000);
  });

  it('longer by what the store adds', async () => {
    const slack = new MemoryStore({ clock: clock.now, slackMs: 500 });
    await ask(slack, limit, counter);
    expect(livesFor(limit, slack)).toBe(2500);
    await ask(slack, logOf('10s'), counter);
    await ask(slack, logOf('1m'), counter);
    expect(livesFor(logOf('1m'), slack)).toBe(60_500);
    await slack.close();
  });

  it('no longer once all is given back', async () => {
    await ask(store, limit, { ...counter, cost: 2 });
    await store.refund([{ ...counter, units: 1 }]);
    expect(store.size).toBe(1);
    await store.refund([{ ...counter, units: 1 }]);
    expect([store.size, entryOf()]).toEqual([0, undefined]);
  });

  it('not for giving back what was never taken', async () => {
    await store.refund([{ ...counter, units: 1 }]);
    expect(store.size).toBe(0);
  });

  it('as long as its refusal waits, where it was stored under another rate', async () => {
    await ask(store, logOf('10s'), counter);
    expect(livesFor(logOf('10s'))).toBe(10_000);
    // A look keeps nothing longer.
    await ask(store, logOf('1m'), { ...counter, peek: true });
    expect(livesFor(logOf('1m'))).toBe(10_000);
    await expect(ask(store, logOf('1m'), counter)).resolves.toMatchObject({ allowed: false, retryAfterMs: 60_000 });
    expect(livesFor(logOf('1m'))).toBe(60_000);
    // A shorter wait makes it go no sooner.
    await ask(store, logOf('10s'), counter);
    expect(livesFor(logOf('1m'))).toBe(60_000);
  });

  it('as long as its block, without what was used', async () => {
    const blocked = new CompiledLimit(limit.options, { location: 'test', name: 'gcra', blockFor: 60_000_000 });
    await ask(store, blocked, { ...counter, cost: 5 });
    await expect(ask(store, blocked, counter)).resolves.toMatchObject({ allowed: false, retryAfterMs: 60_000 });
    expect(livesFor(blocked)).toBe(60_000);
    expect(entryOf(blocked)).toMatchObject({ state: undefined, block: { duration: 60_000_000, offences: 0 } });
  });

  it('as a migrated state says, unless a check only looks', async () => {
    const slower = compile({ algo: 'gcra', rate: 1, interval: '10s' }, 'gcra');
    await ask(store, limit, { ...counter, cost: 5 });
    await ask(store, slower, { ...counter, peek: true });
    expect(livesFor()).toBe(10_000);
    await ask(store, slower, counter);
    expect(livesFor()).toBe(50_000);
  });
});

describe('a decision of a store in process', () => {
  it('tells when it was charged if its units may come back', async () => {
    expect(await chargedAt({})).toBeUndefined();
    expect(await chargedAt({ refundable: true })).toBe(clock.micros);
    expect(await chargedAt({ refundable: true, peek: true })).toBeUndefined();
  });

  it('is that of each limit, however many are checked at once', async () => {
    for (const count of [8, 9, 20]) {
      const limits = Array.from({ length: count }, (_, index) =>
        compile({ algo: 'gcra', rate: index + 1, interval: '10s' }, `${count}.${index}`),
      );
      const [decisions] = await store.check([{ entries: limits.map((each) => ({ limit: each, identity, cost: 1 })) }]);
      expect(decisions!.map(({ limit: name, remaining }) => [name, remaining])).toEqual(
        limits.map(({ name }, index) => [name, index]),
      );
    }
  });

  it('reads the clock of the system unless another one is given', async () => {
    const system = new MemoryStore();
    const before = Date.now() * 1000;
    const [decisions] = await system.check([{ entries: [{ ...counter, cost: 1 }], refundable: true }]);
    const { chargedAt } = decisions![0]!;
    await system.close();
    expect(chargedAt).toBeGreaterThanOrEqual(before);
    expect(chargedAt).toBeLessThanOrEqual(Date.now() * 1000);
  });
});

describe('a lease that is renewed', () => {
  const slots = compile({ algo: 'concurrency', limit: 2, ttl: '10s' }, 'slots');

  it('is kept from then on', async () => {
    const { ticket } = await ask(store, slots, counter);
    clock.advanceMs(4000);
    const lease = { ...counter, limit: slots, units: 1, ticket: ticket! };
    await expect(store.renew(lease)).resolves.toBe(true);
    expect(livesFor(slots)).toBe(10_000);
    await expect(store.renew({ ...lease, ticket: -1 })).resolves.toBe(false);
    await expect(store.renew({ ...lease, limit })).resolves.toBe(false);
  });

  it('leaves nothing where it was not held', async () => {
    const lease = { limit: slots, identity, units: 1, ticket: 7 };
    await expect(store.renew(lease)).resolves.toBe(false);
    expect(store.size).toBe(0);
  });
});
