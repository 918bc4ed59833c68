import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import fc from 'fast-check';
import { LimiterService, MemoryStore, RateLimitModule, type Store } from '../../../lib/index.js';
import { type Check, CompiledLimit } from '../../../lib/testing/store/index.js';
import { BoundedMap, Kept } from '../../../lib/engine/util/bounded-maps.js';
import { RefusalCacheStore } from '../../../lib/storage/stores/layers/refusal-cache.store.js';
import { SplitMap } from '../../../lib/engine/util/split-map.js';
import type { InstanceChannel } from '../../../lib/storage/redis/instance-channel.js';
import { expectEqual } from '../../support/limits/property-runs.js';
import { ask, compile, ManualClock } from '../../support/limits/stores.js';

const plain = compile({ algo: 'gcra', rate: 10, interval: '1h' }, 'plain');
const held = compile({ algo: 'concurrency', limit: 1000, ttl: '1h' }, 'concurrency');
const login = new CompiledLimit(
  { algo: 'fixed-window', rate: 1, interval: '1m' },
  { location: 'test', name: 'login', blockFor: 3_600_000_000 },
);

let clock: ManualClock;
let stores: MemoryStore[];

beforeEach(() => {
  clock = new ManualClock();
  stores = [];
});
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
});

function storeOf(bounds: { maxKeys?: number; maxBytes?: number }): MemoryStore {
  const store = new MemoryStore({ ...bounds, clock: clock.now });
  stores.push(store);
  return store;
}

async function flood(store: MemoryStore, count: number, limit = plain): Promise<void> {
  for (let i = 0; i < count; i++) await ask(store, limit, { identity: `flood:${i}` });
}

describe('a flood of other identities', () => {
  it('does not evict a block', async () => {
    const store = storeOf({ maxKeys: 100 });
    await store.block({ limit: plain, identity: 'user:1' }, 3_600_000);
    await flood(store, 1000);
    await expect(ask(store, plain, { identity: 'user:1' })).resolves.toMatchObject({ allowed: false });
  });

  it("does not evict whom 'blockFor' blocks", async () => {
    const store = storeOf({ maxKeys: 100 });
    for (let i = 0; i < 2; i++) await ask(store, login, { identity: 'user:1' });
    await flood(store, 1000);
    clock.advanceMs(120_000);
    await expect(ask(store, login, { identity: 'user:1' })).resolves.toMatchObject({ allowed: false });
  });

  it('does not evict leases that are held', async () => {
    const store = storeOf({ maxKeys: 100 });
    await ask(store, held, { identity: 'user:1', cost: 1000 });
    await flood(store, 1000);
    await expect(ask(store, held, { identity: 'user:1' })).resolves.toMatchObject({ allowed: false });
  });

  it('evicts a block that has ended like any other counter once it is used', async () => {
    const store = storeOf({ maxKeys: 100 });
    await store.block({ limit: plain, identity: 'user:1' }, 1000);
    clock.advanceMs(2000);
    await ask(store, plain, { identity: 'user:1' });
    await flood(store, 1000);
    await expect(ask(store, plain, { identity: 'user:1', peek: true })).resolves.toMatchObject({ remaining: 10 });
  });
});

describe('offences', () => {
  const hour = 3_600_000_000;
  const banned = new CompiledLimit(
    { algo: 'fixed-window', rate: 1, interval: '1m' },
    { location: 'test', name: 'login', escalation: { steps: [hour, 2 * hour], forgetAfter: 10 * hour } },
  );

  it('are not evicted by a flood, also when the block is over and the counter was used', async () => {
    const store = storeOf({ maxKeys: 100 });
    await ask(store, banned, { identity: 'user:1', cost: 2 });
    clock.advanceMs(3_600_000);
    await ask(store, banned, { identity: 'user:1' });
    await flood(store, 1000);
    await expect(ask(store, banned, { identity: 'user:1' })).resolves.toMatchObject({ allowed: false, offences: 2 });
  });

  it('take no room once they are forgotten', async () => {
    const store = storeOf({ maxKeys: 100 });
    await ask(store, banned, { identity: 'user:1', cost: 2 });
    clock.advanceMs(11 * 3_600_000);
    await ask(store, banned, { identity: 'user:1' });
    await flood(store, 1000);
    await expect(ask(store, banned, { identity: 'user:1', peek: true })).resolves.toMatchObject({ remaining: 1 });
  });
});

describe('a flood of blocks', () => {
  it('is bounded, and leaves half of the room to plain counters', async () => {
    const store = storeOf({ maxKeys: 100 });
    for (let i = 0; i < 40; i++) await ask(store, plain, { identity: `user:${i}` });
    for (let i = 0; i < 1000; i++) await store.block({ limit: plain, identity: `flood:${i}` }, 3_600_000);
    expect(store.size).toBe(100);
    for (let i = 0; i < 40; i++) {
      await expect(ask(store, plain, { identity: `user:${i}`, peek: true })).resolves.toMatchObject({ remaining: 9 });
    }
    await expect(ask(store, plain, { identity: 'flood:999' })).resolves.toMatchObject({ allowed: false });
  });

  it('of leases is bounded in bytes', async () => {
    const store = storeOf({ maxBytes: 100_000 });
    for (let i = 0; i < 100; i++) {
      for (let lease = 0; lease < 100; lease++) await ask(store, held, { identity: `user:${i}` });
    }
    expect(store.bytes).toBeLessThanOrEqual(100_000);
    await expect(ask(store, held, { identity: 'user:99', peek: true })).resolves.toMatchObject({ remaining: 900 });
  });
});

describe('maxBytes', () => {
  it('bounds counters that take much memory each', async () => {
    const store = storeOf({ maxBytes: 1_000_000 });
    const sliced = compile({ algo: 'sliding-window', rate: 10, interval: '1h', slices: 1000 });
    await flood(store, 1000, sliced);
    expect(store.bytes).toBeLessThanOrEqual(1_000_000);
    expect(store.size).toBeGreaterThan(100);
    expect(store.size).toBeLessThan(130);
    await expect(ask(store, sliced, { identity: 'flood:999', peek: true })).resolves.toMatchObject({ remaining: 9 });
  });

  it('leaves room for large counters by default, where few are kept', async () => {
    const store = storeOf({ maxKeys: 200 });
    await flood(store, 300, compile({ algo: 'sliding-window', rate: 10, interval: '1h', slices: 1000 }));
    expect(store.size).toBe(200);
  });

  it('has a check charge all of its counters, though one grows and another one is evicted for it', async () => {
    const maxBytes = 100_000;
    const store = storeOf({ maxBytes });
    const log = compile({ algo: 'sliding-log', rate: 1000, interval: '1h' }, 'log');
    const both = async () => {
      clock.advanceMs(1);
      const entries = [log, plain].map((limit) => ({ limit, identity: 'user:1', cost: 1 }));
      const [decisions] = await store.check([{ entries }]);
      return decisions!.map(({ remaining }) => remaining);
    };
    await both();
    await both();
    for (let i = 0; store.bytes < maxBytes - 1500; i++) await ask(store, plain, { identity: `flood:${i}` });
    // Each of these takes 20 bytes more.
    while (store.bytes + 20 <= maxBytes) {
      clock.advanceMs(1);
      await ask(store, log, { identity: 'user:2' });
    }
    const { size } = store;
    expect([await both(), await both()]).toEqual([
      [997, 7],
      [996, 6],
    ]);
    expect(store.size).toBeLessThan(size);
  });

  it('is an option of the module', async () => {
    const app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ maxBytes: 20_000 })] }).compile();
    await app.init();
    const limiter = app.get(LimiterService).for({ algo: 'sliding-window', rate: 10, interval: '1h', slices: 1000 });
    for (const key of ['user:1', 'user:2', 'user:3']) await limiter.consume(key);
    const left = await Promise.all(
      ['user:1', 'user:2', 'user:3'].map(async (key) => (await limiter.peek(key)).remaining),
    );
    expect(left).toEqual([10, 9, 9]);
    await app.close();
  });

  it('keeps one counter, however large it is', async () => {
    const store = storeOf({ maxBytes: 1 });
    await flood(store, 10);
    expect(store.size).toBe(1);
    await expect(ask(store, plain, { identity: 'flood:9', peek: true })).resolves.toMatchObject({ remaining: 9 });
  });

  it('leaves room for maxKeys plain counters by default', async () => {
    const store = storeOf({ maxKeys: 1000 });
    const long = 'x'.repeat(200);
    for (let i = 0; i < 2000; i++) await ask(store, plain, { identity: `${long}${i}` });
    expect(store.size).toBe(1000);
  });
});

describe('a new identity', () => {
  it('takes no longer once others are evicted for it', async () => {
    const maxKeys = 100_000;
    const store = storeOf({ maxKeys });
    let next = 0;
    const costOf = async () => {
      const costs: number[] = [];
      for (let run = 0; run < 50; run++) {
        const before = process.cpuUsage();
        for (let i = 0; i < 1000; i++) await ask(store, plain, { identity: `user:${next++}` });
        const { user, system } = process.cpuUsage(before);
        costs.push(user + system);
      }
      return costs.toSorted((a, b) => a - b)[25]!;
    };
    await costOf();
    const filling = await costOf();
    expect(next).toBe(maxKeys);
    // A map that looks for its oldest key among the holes of deleted ones takes 20 times as long.
    expect(await costOf()).toBeLessThan(5 * filling);
    expect(store.size).toBe(maxKeys);
  });
});

/** Has so many checks refused, and says whether another one is asked of the store. */
async function refusals(limits: number, identities: number): Promise<(identity: string) => Promise<boolean>> {
  let asked = 0;
  const refusal = { allowed: false, quota: 1, remaining: 0, delayMs: 0, source: 'redis' } as const;
  const inner = {
    check: async (checks: readonly Check[]) => {
      asked += checks.length;
      const decision = { ...refusal, limit: 'login', retryAfterMs: 3_600_000, resetAfterMs: 3_600_000 };
      return checks.map(({ entries }) => entries.map(() => ({ ...decision })));
    },
  } as Store;
  const store = new RefusalCacheStore(inner, {} as InstanceChannel);
  store.onMessage();
  const each = Array.from({ length: limits }, (_, i) => {
    const settings = { location: 'test', name: `login${i}`, remembersRefusals: true };
    return new CompiledLimit({ algo: 'fixed-window', rate: 1, interval: '1h' }, settings);
  });
  const isAsked = async (identity: string) => {
    const before = asked;
    await store.check([{ entries: each.map((limit) => ({ limit, identity, cost: 1 })) }]);
    return asked > before;
  };
  for (let i = 0; i < identities; i++) await isAsked(`user:${i}`);
  return isAsked;
}

describe('remembered refusals', () => {
  it('are 10,000 at most, the last ones', async () => {
    const isAsked = await refusals(1, 12_000);
    expect(await isAsked('user:2001')).toBe(false);
    expect(await isAsked('user:11999')).toBe(false);
    expect(await isAsked('user:1999')).toBe(true);
  });

  it('of checks with many limits are fewer', async () => {
    const isAsked = await refusals(100, 1000);
    expect(await isAsked('user:999')).toBe(false);
    expect(await isAsked('user:0')).toBe(true);
  });
});

describe('a BoundedMap', () => {
  it('evicts as a list in the order of use says', () => {
    const call = fc.record({
      what: fc.constantFrom('put', 'protect', 'touch', 'delete'),
      key: fc.integer({ min: 0, max: 9 }).map(String),
      bytes: fc.integer({ min: 1, max: 5 }),
    });
    const bounds = fc.record({ maxKeys: fc.integer({ min: 1, max: 6 }), maxBytes: fc.integer({ min: 1, max: 20 }) });
    fc.assert(
      fc.property(bounds, fc.array(call, { maxLength: 60 }), ({ maxKeys, maxBytes }, calls) => {
        const map = new BoundedMap(maxKeys, maxBytes);
        let model: { key: string; bytes: number; isProtected: boolean }[] = [];
        const sum = (of: typeof model) => of.reduce((total, { bytes }) => total + bytes, 0);
        for (const { what, key, bytes } of calls) {
          const entry = map.get(key);
          const known = model.find((each) => each.key === key);
          expect(entry === undefined).toBe(known === undefined);
          if (what === 'delete') {
            if (entry !== undefined) map.delete(entry);
            model = model.filter((each) => each !== known);
          } else if (what === 'touch') {
            // Below half of the bounds the order is that of the last change.
            if (entry === undefined || (sum(model) * 2 <= maxBytes && model.length * 2 <= maxKeys)) continue;
            map.touch(entry);
            model = [...model.filter((each) => each !== known), known!];
          } else {
            const isProtected = what === 'protect';
            // What stays as it is and has room need not move.
            const isSame = known?.isProtected === isProtected && known.bytes === bytes;
            const isRoomy = model.length * 2 <= maxKeys && sum(model) * 2 <= maxBytes;
            map.put(entry ?? new Kept(key), bytes, isProtected);
            if (isSame && isRoomy) continue;
            model = [...model.filter((each) => each !== known), { key, bytes, isProtected }];
            while (model.length > 1 && (model.length > maxKeys || sum(model) > maxBytes)) {
              const safe = model.filter((each) => each.isProtected);
              const crowded = safe.length > maxKeys / 2 || sum(safe) > maxBytes / 2;
              const others = model.filter((each) => each.key !== key);
              const victim = others.find((each) => each.isProtected === crowded) ?? others[0];
              model = model.filter((each) => each !== victim);
            }
          }
          expect(map.size).toBe(model.length);
          expect(map.bytes).toBe(sum(model));
          expect([...map.values()].map((each) => each.key).toSorted()).toEqual(
            model.map((each) => each.key).toSorted(),
          );
        }
      }),
    );
  });
});

describe('a SplitMap', () => {
  const keys = Array.from({ length: 40_000 }, (_, i) => `scope:name:gc\nip:2001:db8:${i.toString(16)}::/64`);

  it('holds what it was given, in maps of some thousand keys', () => {
    const map = new SplitMap<string>();
    for (const key of keys) map.set(key, key);
    const parts = new Set(map['parts']);
    expect(parts.size).toBeGreaterThanOrEqual(4);
    for (const { entries } of parts) expect(entries.size).toBeLessThanOrEqual(16_000);
    expect(keys.every((key) => map.get(key) === key)).toBe(true);
    expectEqual([...map.values()].toSorted(), keys.toSorted());
    for (const key of keys.slice(100)) map.delete(key);
    expect([...map.values()].toSorted()).toEqual(keys.slice(0, 100).toSorted());
    expect(map.get(keys[100]!)).toBeUndefined();
  });

  it('is one map again when it was cleared', () => {
    const map = new SplitMap<string>();
    for (const key of keys) map.set(key, key);
    map.clear();
    expect(map.get(keys[0]!)).toBeUndefined();
    expect([...map.values()]).toEqual([]);
  });
});
