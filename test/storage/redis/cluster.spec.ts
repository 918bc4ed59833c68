import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import { Cluster } from 'ioredis';
import { type AlgorithmOptions, MemoryStore, RateLimitStoreError, RedisStore } from '../../../lib/index.js';
import { type Check, type CheckEntry, CompiledLimit, type StoreDecision } from '../../../lib/testing/store/index.js';
import { algorithmNames } from '../../support/limits/arbitraries.js';
import { type RedisCluster, startCluster } from '../../support/redis/redis-servers.js';
import {
  ask,
  chargeOf,
  comparable,
  compile,
  connectCluster,
  featuresOfOptions,
  freshPrefix,
  ManualClock,
} from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { fallingBack, type StoreReport } from '../../support/limits/layers.js';
import { libraryClient } from '../../support/redis/library-client.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

/** A limit of so many units of which none comes back while a test runs. */
function optionsOf(algo: (typeof algorithmNames)[number], quota: number): AlgorithmOptions {
  switch (algo) {
    case 'calendar-window':
      return { algo, rate: quota, period: 'year', retain: '1d' };
    case 'leaky-bucket':
      return { algo, rate: 1, interval: '1d', queue: quota - 1 };
    case 'token-bucket':
    case 'gcra':
      return { algo, rate: 1, interval: '1d', burst: quota };
    default:
      return { algo, rate: quota, interval: '1d' };
  }
}

/** Identities that lie in as many slots. */
function inDifferentSlots(count: number): string[] {
  const bySlot = new Map<number, string>();
  for (let i = 0; bySlot.size < count; i++) bySlot.set(calculateSlot(`{user:${i}}`), `user:${i}`);
  return [...bySlot.values()];
}

const [one, two, three] = inDifferentSlots(3) as [string, string, string];

describe('RedisStore on a Cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  let store: RedisStore;

  beforeAll(async () => {
    cluster = await startCluster();
    client = await connectCluster(cluster);
    store = new RedisStore(client, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS, ownsClient: true });
    await store.open();
  });
  afterAll(async () => {
    await store?.close();
    await cluster?.stop();
  });

  const calls = async (): Promise<number> => {
    const stats = await Promise.all(client.nodes('master').map((node) => node.info('commandstats')));
    return stats.reduce((sum, text) => sum + Number(/cmdstat_evalsha:calls=(\d+)/.exec(text)?.[1] ?? 0), 0);
  };
  const decide = async (...entries: CheckEntry[]): Promise<StoreDecision[]> => (await store.check([{ entries }]))[0]!;
  const remaining = async (limit: CompiledLimit, identity: string): Promise<number> =>
    (await ask(store, limit, { identity, peek: true })).remaining;

  it('decides all limits of one identity in one call, all or none', async () => {
    const limits = algorithmNames.map((algo, index) => compile(optionsOf(algo, 5 + index), `atomic-${algo}`));
    const entries = limits.map((limit) => ({ limit, identity: 'user:atomic', cost: 3 }));
    const before = await calls();
    const first = await decide(...entries);
    expect(await calls()).toBe(before + 1);
    expect(first.map(({ allowed }) => allowed)).toEqual(limits.map(() => true));
    expect(first.map(({ remaining }) => remaining)).toEqual([2, 3, 4, 5, 6, 7, 8]);
    // The first one refuses, so none is charged.
    const second = await decide(...entries);
    expect(second.map(({ allowed }) => allowed)).toEqual([false, ...limits.slice(1).map(() => true)]);
    const after = await Promise.all(limits.map((limit) => remaining(limit, 'user:atomic')));
    expect(after).toEqual([2, 3, 4, 5, 6, 7, 8]);
  });

  it('holds units of all limits of one identity in one call, and those of several slots one after the other', async () => {
    const money = compile({ algo: 'budget', limit: 10, period: 'year' }, 'money');
    const windows = [money, compile({ algo: 'sliding-log', rate: 10, interval: '1d', hold: '1m' }, 'calls')];
    const reserve = async (cost: number, ...entries: Omit<CheckEntry, 'cost'>[]) => {
      const asked = entries.map((entry) => ({ ...entry, cost }));
      const [decisions] = await store.check([{ entries: asked, hold: true, refundable: true }]);
      return asked.map(({ limit, identity }, index) => chargeOf({ limit, identity, cost }, decisions![index]!));
    };
    const before = await calls();
    const together = await reserve(6, ...windows.map((limit) => ({ limit, identity: one })));
    expect(await calls()).toBe(before + 1);
    await store.refund(together.map((refund) => ({ ...refund, actual: 2 })));
    expect(await Promise.all(windows.map((limit) => remaining(limit, one)))).toEqual([8, 8]);
    // The second slot has less left, so the first one gives back what it held.
    await reserve(5, { limit: money, identity: two });
    await reserve(7, { limit: money, identity: one }, { limit: money, identity: two });
    expect([await remaining(money, one), await remaining(money, two)]).toEqual([8, 5]);
    const apart = await reserve(4, { limit: money, identity: one }, { limit: money, identity: two });
    await store.refund(apart.map((refund) => ({ ...refund, actual: 1 })));
    expect([await remaining(money, one), await remaining(money, two)]).toEqual([7, 4]);
  });

  it.each(['slave', 'all'] as const)('asks masters only, given a connection that reads from %s', async (scaleReads) => {
    const reader = new Cluster(cluster.nodes, { scaleReads });
    const reading = new RedisStore(reader, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS, ownsClient: true });
    await reading.open();
    const replicas = reader.nodes('slave');
    expect(replicas).toHaveLength(3);
    await Promise.all(replicas.map((node) => node.config('RESETSTAT')));
    const limit = compile(optionsOf('calendar-window', 5), 'masters-only');
    // A replica would answer READONLY, or what it has not heard of yet.
    for (const identity of [one, two, three]) {
      for (const remaining of [4, 3]) {
        expect(await ask(reading, limit, { identity })).toMatchObject({ source: 'redis', remaining });
        expect(await ask(reading, limit, { identity, peek: true })).toMatchObject({ source: 'redis', remaining });
      }
      expect(await reading.history({ limit, identity })).toMatchObject([{ count: 2 }]);
      await reading.reset([{ limit, identity }]);
      expect(await ask(reading, limit, { identity, peek: true })).toMatchObject({ remaining: 5 });
    }
    for (const node of replicas) expect(await node.info('commandstats')).not.toMatch(/cmdstat_(evalsha|eval|script)/);
    await reading.close();
  });

  it('counts 200 identities in their slots', async () => {
    const limit = compile(optionsOf('gcra', 2), 'many');
    const identities = Array.from({ length: 200 }, (_, i) => `user:${i}:${Math.random().toString(36).slice(2)}`);
    for (const expected of [1, 0]) {
      const decisions = await Promise.all(identities.map((identity) => ask(store, limit, { identity })));
      expect(decisions.map(({ allowed }) => allowed)).toEqual(identities.map(() => true));
      expect(decisions.map(({ remaining }) => remaining)).toEqual(identities.map(() => expected));
    }
    const refused = await Promise.all(identities.map((identity) => ask(store, limit, { identity })));
    expect(refused.map(({ allowed }) => allowed)).toEqual(identities.map(() => false));
    const sizes = await Promise.all(client.nodes('master').map((node) => node.dbsize()));
    expect(sizes).toHaveLength(3);
    expect(Math.min(...sizes)).toBeGreaterThan(0);
  });

  it('is given the script again after all nodes lost it', async () => {
    const limit = compile(optionsOf('fixed-window', 1000), 'flushed');
    const identities = Array.from({ length: 200 }, (_, i) => `user:${i % 100}`);
    await Promise.all(client.nodes('master').map((node) => node.script('FLUSH')));
    const decisions = await Promise.all(identities.map((identity) => ask(store, limit, { identity })));
    expect(decisions.every(({ allowed, source }) => allowed && source === 'redis')).toBe(true);
    // Each was counted once.
    const used = await Promise.all(identities.slice(0, 100).map((identity) => remaining(limit, identity)));
    expect(used).toEqual(Array(100).fill(998));
  });

  describe.each(algorithmNames)('a check of several slots, with %s', (algo) => {
    const limits = (name: string, ...quotas: number[]) =>
      quotas.map((quota, index) => compile(optionsOf(algo, quota), `${name}-${index}`));

    it('is allowed by all', async () => {
      const [a, b, c] = limits('all', 10, 20, 30) as [CompiledLimit, CompiledLimit, CompiledLimit];
      const decisions = await decide(
        { limit: a, identity: one, cost: 1 },
        { limit: b, identity: two, cost: 2 },
        { limit: c, identity: three, cost: 3 },
      );
      expect(decisions.map(({ limit }) => limit)).toEqual([a.name, b.name, c.name]);
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true]);
      expect(decisions.map(({ remaining }) => remaining)).toEqual([9, 18, 27]);
      expect([await remaining(a, one), await remaining(b, two), await remaining(c, three)]).toEqual([9, 18, 27]);
    });

    it.each([0, 1, 2])('charges nothing if the slot at %d refuses', async (refusing) => {
      const quotas = [10, 20, 30];
      const [a, b, c] = limits(`refused-${refusing}`, ...quotas) as [CompiledLimit, CompiledLimit, CompiledLimit];
      const entries = [
        { limit: a, identity: one, cost: 2 },
        { limit: b, identity: two, cost: 2 },
        { limit: c, identity: three, cost: 2 },
      ];
      // Some was used before; the one that refuses has a single unit left.
      const used = quotas.map((quota, index) => (index === refusing ? quota - 1 : 3));
      for (const [index, entry] of entries.entries()) await decide({ ...entry, cost: used[index]! });
      const left = quotas.map((quota, index) => quota - used[index]!);

      const decisions = await decide(...entries);
      expect(decisions.map(({ allowed }) => allowed)).toEqual(entries.map((_, index) => index !== refusing));
      expect(decisions.map(({ remaining }) => remaining)).toEqual(left);
      expect(decisions[refusing]!.retryAfterMs).toBeGreaterThan(0);
      expect([await remaining(a, one), await remaining(b, two), await remaining(c, three)]).toEqual(left);
    });

    it('decides as one process would', async () => {
      const clock = new ManualClock();
      const onCluster = new RedisStore(client, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS, clock });
      const inProcess = new MemoryStore({ clock: clock.now, slackMs: clock.slackMs });
      const [a, b] = limits('like', 6, 4) as [CompiledLimit, CompiledLimit];
      const peeked: Check = {
        entries: [
          { limit: a, identity: one, cost: 1 },
          { limit: b, identity: two, cost: 1 },
        ],
        peek: true,
      };
      const check: Check = { entries: peeked.entries };
      const tooMuch: Check = { entries: [check.entries[0]!, { limit: b, identity: two, cost: 5 }] };
      for (const each of [peeked, tooMuch, check, check, peeked, check, check]) {
        const [actual, expected] = [await onCluster.check([each]), await inProcess.check([each])];
        expect(comparable(actual)).toEqual(comparable(expected));
      }
      await inProcess.close();
    });

    it('never allows too much when many ask at once, and gives all back', async () => {
      const [a, b] = limits('crowd', 100, 10) as [CompiledLimit, CompiledLimit];
      const entries = [
        { limit: a, identity: one, cost: 1 },
        { limit: b, identity: two, cost: 1 },
      ];
      const all = await Promise.all(Array.from({ length: 50 }, () => decide(...entries)));
      const passed = all.filter((decisions) => decisions.every(({ allowed }) => allowed));
      expect(passed).toHaveLength(10);
      expect(await remaining(b, two)).toBe(0);
      // The first one has room for as many as the second one refused, and was left unused. What may have flowed in a bucket
      // since it was charged comes back by itself, in about that time.
      await until(async () => {
        const left = await remaining(a, one);
        expect([89, 90]).toContain(left);
        return left === 90;
      });
    });
  });

  it('takes the same number of units in all slots', async () => {
    const limit = compile({ algo: 'fixed-window', rate: 9, interval: '1d' }, 'taken');
    const few = compile({ algo: 'fixed-window', rate: 5, interval: '1d' }, 'few');
    const entries = [
      { limit, identity: one, cost: 7 },
      { limit: few, identity: two, cost: 7 },
      { limit, identity: three, cost: 7 },
    ];
    const take = async () => (await store.check([{ entries, upTo: true }]))[0]!;
    expect(await take()).toMatchObject([
      { allowed: true, taken: 5, remaining: 4 },
      { allowed: true, taken: 5, remaining: 0 },
      { allowed: true, taken: 5, remaining: 4 },
    ]);
    expect(await take()).toMatchObject([{ allowed: true }, { allowed: false, taken: 0 }, { allowed: true }]);
    for (const identity of [one, three]) {
      expect(await ask(store, limit, { identity, peek: true })).toMatchObject({ remaining: 4 });
    }
  });

  it('is not refused by a shadow limit in another slot', async () => {
    const limit = compile(optionsOf('gcra', 10), 'beside-shadow');
    const shadow = new CompiledLimit(optionsOf('gcra', 1), {
      location: 'test',
      featuresOfOptions,
      name: 'shadow',
      shadow: true,
    });
    const entries = [
      { limit: shadow, identity: one, cost: 1 },
      { limit, identity: two, cost: 1 },
    ];
    await decide(...entries);
    const decisions = await decide(...entries);
    expect(decisions.map(({ allowed }) => allowed)).toEqual([false, true]);
    expect(await remaining(limit, two)).toBe(8);
  });

  it('gives nothing back of a limit that took nothing', async () => {
    const limit = compile(optionsOf('gcra', 10), 'only-last');
    const shadow = new CompiledLimit(optionsOf('gcra', 2), {
      location: 'test',
      featuresOfOptions,
      name: 'first-shadow',
      shadow: true,
    });
    await decide({ limit: shadow, identity: one, cost: 2 });
    const decisions = await decide({ limit: shadow, identity: one, cost: 1 }, { limit, identity: two, cost: 11 });
    expect(decisions.map(({ allowed }) => allowed)).toEqual([false, false]);
    expect(decisions[1]!.retryAfterMs).toBe(Infinity);
    expect(await remaining(shadow, one)).toBe(0);
    expect(await remaining(limit, two)).toBe(10);
  });

  it('forgets and tells of the windows of a calendar', async () => {
    const limit = compile(optionsOf('calendar-window', 5), 'windows');
    await ask(store, limit, { identity: one, cost: 2 });
    expect(await store.history({ limit, identity: one })).toMatchObject([{ count: 2 }]);
    await store.reset([{ limit, identity: one }]);
    expect(await remaining(limit, one)).toBe(5);
  });

  it('learns what an upstream says of many keys, each in its slot', async () => {
    const limit = compile({ algo: 'gcra', rate: 20, interval: '1d' }, 'upstream');
    const identities = Array.from({ length: 50 }, (_, i) => `account:${i}`);
    const rate = { quota: 20, windowMs: 5000, accepted: 1, refused: false, largest: 1, slowestMs: 60_000 };
    const lesson = { remaining: 7, resetAfterMs: 60_000, window: 1, ageMs: 0, inFlight: 2, instance: 1, rate };
    const learnt = await Promise.all(identities.map((identity) => store.learn({ limit, identity }, lesson)));
    expect(new Set(learnt.map((each) => JSON.stringify(each)))).toEqual(
      new Set(['{"rate":20,"intervalMs":5000,"burst":20}']),
    );
    const left = await Promise.all(identities.map((identity) => remaining(limit, identity)));
    expect(new Set(left)).toEqual(new Set([5]));
    await store.reset(identities.map((identity) => ({ limit, identity })));
    const { rate: _, ...plain } = lesson;
    expect(await store.learn({ limit, identity: identities[0]! }, { ...plain, remaining: undefined })).toBeUndefined();
    expect(await remaining(limit, identities[0]!)).toBe(20);
  });

  // The last test: a replica takes the place of the node.
  it('leaves a node alone that does not answer, and asks the others', async () => {
    const timeoutMs = 1000;
    const impatient = await libraryClient({ nodes: cluster.nodes });
    const primary = new RedisStore(impatient, { prefix: freshPrefix(), timeoutMs, ownsClient: true });
    const [victim] = await cluster.masters();
    const reports: StoreReport[] = [];
    const guarded = fallingBack(primary, new MemoryStore(), { report: (report) => reports.push(report) });
    try {
      await guarded.open();
      const limit = compile(optionsOf('gcra', 1_000_000));
      const identities = inDifferentSlots(60);
      const nodeOf = (identity: string) => primary.nodeOf!({ limit, identity });
      const name = `${victim!.host}:${victim!.port}`;
      const lost = identities.filter((identity) => nodeOf(identity) === name);
      const rest = identities.filter((identity) => nodeOf(identity) !== name);
      expect(lost.length).toBeGreaterThan(3);
      for (const identity of identities) expect((await ask(guarded, limit, { identity })).source).toBe('redis');
      victim!.pause();
      // No deadline ends on a clock that stands still: what is told is told at once.
      jest.useFakeTimers();
      const during = identities.map((identity) => ask(guarded, limit, { identity }));
      const sourcesOf = async (some: readonly string[]) => {
        const decisions = await Promise.all(during.filter((_, index) => some.includes(identities[index]!)));
        return new Set(decisions.map(({ source }) => source));
      };
      expect(await sourcesOf(rest)).toEqual(new Set(['redis']));
      jest.advanceTimersByTime(timeoutMs);
      expect(await sourcesOf(lost)).toEqual(new Set(['fallback']));
      // Two slots: of a check that needs both, the node that answers is not to blame.
      const both = [lost[0]!, rest[0]!].map((identity) => ({ limit, identity, cost: 1 }));
      for (let i = 0; i < 20; i++) {
        const [decisions] = await guarded.check([{ entries: both }]);
        expect(decisions!.map(({ source }) => source)).toEqual(['fallback', 'redis']);
      }
      // A timer that has not ended would never end on the real clock.
      jest.advanceTimersByTime(timeoutMs);
      jest.useRealTimers();
      for (const identity of rest) expect((await ask(guarded, limit, { identity })).source).toBe('redis');
      expect(reports).toEqual([{ state: 'failing', node: name, error: expect.any(RateLimitStoreError) }]);
      // Its replica takes over, which is another node.
      await until(async () => (await ask(guarded, limit, { identity: lost[0]! })).source === 'redis', undefined, 50);
    } finally {
      jest.useRealTimers();
      await guarded.close();
      victim!.resume();
    }
  });
});
