import { execFileSync } from 'node:child_process';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import {
  type AlgorithmOptions,
  MemoryStore,
  type OnStoreError,
  RateLimitStoreError,
  RedisStore,
  type Store,
} from '../../../lib/index.js';
import { type Check, CompiledLimit, type Counter, type StoreDecision } from '../../../lib/testing/store/index.js';
import { clientOf, findRedisServer } from '../../support/redis/redis-binary.mjs';
import { startRedis, type RedisServer } from '../../support/redis/redis-servers.js';
import { ask, featureTerms, freshPrefix } from '../../support/limits/stores.js';
import { fallingBack, type StoreReport } from '../../support/limits/layers.js';
import { libraryClient } from '../../support/redis/library-client.js';

/** Longer than a busy machine takes for an answer; where it is waited for, the clock is moved. */
const TIMEOUT_MS = 5000;
/** So many failures in a row open the breaker. */
const FAILURES = 5;

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  jest.restoreAllMocks();
});

/** A Redis of its own, and the store that asks it. */
async function start() {
  const server = await startRedis();
  // The connection outlives the deadlines of a test.
  const redis = await libraryClient(server.url, 10 * TIMEOUT_MS);
  const reports: StoreReport[] = [];
  const local = new MemoryStore();
  const primary = new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: TIMEOUT_MS, ownsClient: true });
  const store = fallingBack(primary, local, { report: (report) => reports.push(report) });
  await store.open();
  // The server is stopped first: a store that asks one that is paused would wait.
  cleanups.push(
    () => store.close(),
    () => server.stop(),
  );
  const states = () => reports.map(({ state }) => state);
  return { server, redis, local, primary, store, states };
}

function limitOf(onStoreError: OnStoreError, { rate = 3, shadow = false, name = 'limit' } = {}): CompiledLimit {
  const settings = { location: 'test', name, shadow, onStoreError };
  return new CompiledLimit({ algo: 'fixed-window', rate, interval: '1h' }, settings);
}

/** Asks until Redis decides again. */
async function untilRedis(store: Store, limit: CompiledLimit): Promise<StoreDecision> {
  const deadline = Date.now() + 240_000;
  for (;;) {
    const decision = await ask(store, limit, { identity: 'probe' });
    if (decision.source === 'redis') return decision;
    if (Date.now() > deadline) throw new Error('Redis was not asked again within 4 minutes');
    await sleep(50);
  }
}

/** Makes calls on a clock that stands still, and moves it by the deadline; less does not do. */
async function afterDeadline<const T>(call: () => Promise<T>[]): Promise<[T, ...T[]]> {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'Date'] });
  try {
    let ended = 0;
    const calls = call().map((each) => each.finally(() => ended++));
    await turns();
    await jest.advanceTimersByTimeAsync(TIMEOUT_MS - 1);
    await turns();
    expect(ended).toBe(0);
    await jest.advanceTimersByTimeAsync(1);
    return (await Promise.all(calls)) as [T, ...T[]];
  } finally {
    jest.useRealTimers();
  }
}

/** What waits neither for a timer nor for a server. */
function atOnce<T>(answer: Promise<T>): Promise<T> {
  const late = turns().then(() => Promise.reject(new Error('it was waited for')));
  return Promise.race([answer, late]);
}

/** Lets all come to rest that does not wait for a timer or a server. */
async function turns(): Promise<void> {
  for (let i = 0; i < 10; i++) await turn();
}

/** The process's own clock, which stands still until the test moves it, as the clock of a busy process seems to do. */
async function onMovedClock(act: () => Promise<void>): Promise<void> {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'Date'] });
  try {
    await act();
  } finally {
    jest.useRealTimers();
  }
}

/** Holds the process up until the server has answered all that it was sent. */
function waitForAnswers({ port }: RedisServer): void {
  execFileSync(clientOf(findRedisServer()!), ['-p', String(port), 'PING']);
}

/** A store that answers nothing but an error. */
function failing(reason: Error): Store {
  const fail = () => Promise.reject(reason);
  return {
    check: fail,
    reserve: fail,
    penalize: fail,
    block: fail,
    renew: fail,
    refund: fail,
    reset: fail,
    history: fail,
    open: fail,
    close: () => Promise.resolve(),
  };
}

describe('while Redis does not answer', () => {
  it('a check is answered at its deadline, by the fallback', async () => {
    const { server, store } = await start();
    const limit = limitOf('local');
    expect((await ask(store, limit)).source).toBe('redis');
    server.pause();
    const answers = await afterDeadline(() => [ask(store, limit)]);
    expect(answers).toMatchObject([{ allowed: true, source: 'fallback' }]);
  });

  it('many checks at once are as well', async () => {
    const { server, store } = await start();
    const limit = limitOf('local', { rate: 1000 });
    server.pause();
    const answers = await afterDeadline(() => Array.from({ length: 200 }, () => ask(store, limit)));
    expect(new Set(answers.map(({ source }) => source))).toEqual(new Set(['fallback']));
    expect(answers.at(-1)!.remaining).toBe(800);
  });

  it("'local' counts in process and refuses beyond the quota", async () => {
    const { server, store } = await start();
    const limit = limitOf('local');
    server.pause();
    const decisions = await afterDeadline(() => [1, 2, 3, 4].map(() => ask(store, limit)));
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, false]);
    expect(decisions.map(({ remaining }) => remaining)).toEqual([2, 1, 0, 0]);
    expect(decisions.map(({ source }) => source)).toEqual(Array(4).fill('fallback'));
    expect(decisions[3]!.retryAfterMs).toBeGreaterThan(3_590_000);
  });

  it("'allow' lets all pass", async () => {
    const { server, store } = await start();
    server.pause();
    const decisions = await afterDeadline(() => Array.from({ length: 10 }, () => ask(store, limitOf('allow'))));
    for (const decision of decisions) {
      expect(decision).toEqual({
        allowed: true,
        limit: 'limit',
        quota: 3,
        remaining: 3,
        retryAfterMs: 0,
        resetAfterMs: 0,
        delayMs: 0,
        source: 'fallback',
      });
    }
  });

  it("'deny' rejects, unless the limit is a shadow", async () => {
    const { server, store } = await start();
    server.pause();
    const shadow = limitOf('deny', { shadow: true });
    const [denied, passed] = await afterDeadline<unknown>(() => [
      ask(store, limitOf('deny')).catch((error: unknown) => error),
      ask(store, shadow),
    ]);
    expect(denied).toBeInstanceOf(RateLimitStoreError);
    expect(passed).toMatchObject({ allowed: true, source: 'fallback' });
  });

  it('each limit of one check does what it says', async () => {
    const { server, store, local } = await start();
    server.pause();
    const limits = [
      limitOf('allow', { name: 'a', rate: 7 }),
      limitOf('local', { name: 'b', rate: 2 }),
      limitOf('deny', { name: 'c', shadow: true }),
      limitOf('local', { name: 'd', rate: 9 }),
    ];
    const entries = limits.map((limit) => ({ limit, identity: 'user:1', cost: 2 }));
    const [[first]] = await afterDeadline(() => [store.check([{ entries }])]);
    expect(first!.map(({ limit, allowed, remaining }) => [limit, allowed, remaining])).toEqual([
      ['a', true, 7],
      ['b', true, 0],
      ['c', true, 3],
      ['d', true, 7],
    ]);
    const [[second]] = await afterDeadline(() => [store.check([{ entries }])]);
    expect(second!.map(({ limit, allowed, remaining }) => [limit, allowed, remaining])).toEqual([
      ['a', true, 7],
      ['b', false, 0],
      ['c', true, 3],
      ['d', true, 7],
    ]);
    expect(local.size).toBe(2);
    const mixed = [...entries, { limit: limitOf('deny', { name: 'e' }), identity: 'user:1', cost: 1 }];
    const [failure] = await afterDeadline<unknown>(() => [
      store.check([{ entries: mixed }]).catch((error: unknown) => error),
    ]);
    expect(failure).toBeInstanceOf(RateLimitStoreError);
  });

  it('it is asked no more, and comes back by itself', async () => {
    const { server, primary, store, states } = await start();
    const check = jest.spyOn(primary, 'check');
    const limit = limitOf('local', { rate: 1000 });
    server.pause();
    for (let i = 0; i < FAILURES; i++) await afterDeadline(() => [ask(store, limit)]);
    for (let i = 0; i < 5; i++) {
      expect((await atOnce(ask(store, limit))).source).toBe('fallback');
    }
    expect(check).toHaveBeenCalledTimes(FAILURES);
    expect(states()).toEqual(['failing']);
    server.resume();
    const decision = await untilRedis(store, limit);
    expect(decision.allowed).toBe(true);
    expect((await ask(store, limit)).source).toBe('redis');
    expect(states()).toEqual(['failing', 'recovered']);
  });

  it('one check probes it, and the others do not wait for the answer', async () => {
    const { server, primary, store } = await start();
    const limit = limitOf('local', { rate: 1000 });
    server.pause();
    await afterDeadline(() => Array.from({ length: FAILURES }, () => ask(store, limit)));
    await sleep(1050);
    const check = jest.spyOn(primary, 'check');
    await onMovedClock(async () => {
      const [probe, ...others] = Array.from({ length: 20 }, () => ask(store, limit));
      for (const { source } of await atOnce(Promise.all(others))) expect(source).toBe('fallback');
      await jest.advanceTimersByTimeAsync(TIMEOUT_MS);
      expect((await probe!).source).toBe('fallback');
    });
    expect(check).toHaveBeenCalledTimes(1);
  });
});

describe('when Redis is killed and comes back', () => {
  it('the fallback decides meanwhile, and Redis again afterwards', async () => {
    const { server, redis, store, states } = await start();
    const limit = limitOf('local');
    expect(await ask(store, limit)).toMatchObject({ source: 'redis', remaining: 2 });
    await server.kill();
    while (redis.status === 'ready') await sleep(5);
    const answers = [];
    for (let i = 0; i < 10; i++) answers.push(await atOnce(ask(store, limit)));
    expect(new Set(answers.map(({ source }) => source))).toEqual(new Set(['fallback']));
    expect(answers.map(({ allowed }) => allowed)).toEqual([...Array(3).fill(true), ...Array(7).fill(false)]);
    expect(states()).toEqual(['failing']);
    await server.start();
    await untilRedis(store, limit);
    // The server is a new one: it is given the script, and counts from nothing.
    expect(await ask(store, limit)).toMatchObject({ source: 'redis', remaining: 2 });
    expect(states()).toEqual(['failing', 'recovered']);
  });

  it('a check that is on its way is answered by the fallback', async () => {
    const { server, store } = await start();
    server.pause();
    const checking = ask(store, limitOf('local'));
    await sleep(50);
    await server.kill();
    expect((await checking).source).toBe('fallback');
  });

  it('what was refunded meanwhile does not fail', async () => {
    const { server, store } = await start();
    const limit = limitOf('local');
    server.pause();
    await afterDeadline(() => [ask(store, limit, { cost: 3 })]);
    await afterDeadline(() => [store.refund([{ limit, identity: 'ip:203.0.113.7', units: 2 }])]);
    const [answer] = await afterDeadline(() => [ask(store, limit)]);
    expect(answer.remaining).toBe(1);
  });
});

describe('while Redis answers errors', () => {
  const prepare: Record<
    string,
    (redis: Awaited<ReturnType<typeof start>>['redis'], server: RedisServer) => Promise<unknown>
  > = {
    'OOM, its memory being full': (redis) => redis.config('SET', 'maxmemory', '1'),
    'READONLY, being a replica': (redis) => redis.call('REPLICAOF', '127.0.0.1', '1'),
    'NOPERM, the user having no right': (redis) => redis.call('ACL', 'SETUSER', 'default', '-evalsha', '-eval'),
  };

  it.each(Object.entries(prepare))('%s, the fallback decides', async (_, change) => {
    const { redis, server, store, states } = await start();
    const limit = limitOf('local');
    await change(redis, server);
    const decisions = await Promise.all([1, 2, 3, 4].map(() => ask(store, limit)));
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, false]);
    expect(new Set(decisions.map(({ source }) => source))).toEqual(new Set(['fallback']));
    await expect(ask(store, limitOf('deny'))).rejects.toBeInstanceOf(RateLimitStoreError);
    expect(states()).toEqual(['failing']);
  });

  it.each(['LOADING Redis is loading the dataset in memory', 'CLUSTERDOWN The cluster is down', 'BUSY Redis is busy'])(
    '%s, the fallback decides',
    async (message) => {
      const primary = failing(new RateLimitStoreError(message));
      const report = jest.fn();
      const store = fallingBack(primary, new MemoryStore(), { report });
      const limit = limitOf('local');
      for (const remaining of [2, 1, 0]) {
        expect(await ask(store, limit)).toMatchObject({ allowed: true, remaining, source: 'fallback' });
      }
      expect(await ask(store, limit)).toMatchObject({ allowed: false, source: 'fallback' });
      expect(report).toHaveBeenCalledTimes(1);
      expect(report).toHaveBeenCalledWith({ state: 'failing', error: expect.objectContaining({ message }) });
      await store.close();
    },
  );

  it('asks it no more after five, and says why', async () => {
    const primary = failing(new RateLimitStoreError('LOADING'));
    const check = jest.spyOn(primary, 'check');
    const store = fallingBack(primary, new MemoryStore());
    for (let i = 0; i < 20; i++) await ask(store, limitOf('allow'));
    expect(check).toHaveBeenCalledTimes(FAILURES);
    await expect(ask(store, limitOf('deny'))).rejects.toThrow(
      'Redis failed repeatedly and is skipped for now (circuit open)',
    );
    await store.close();
  });

  it('to some checks only, it is told of once', async () => {
    const bad = new CompiledLimit({ algo: 'concurrency', limit: 99, ttl: '1m' }, { location: 'test', name: 'bad' });
    const good = limitOf('local', { rate: 99 });
    const primary = new MemoryStore();
    const check = primary.check.bind(primary);
    primary.check = (checks) =>
      checks[0]!.entries[0]!.limit === bad ? Promise.reject(new RateLimitStoreError('NOPERM')) : check(checks);
    const report = jest.fn();
    const store = fallingBack(primary, new MemoryStore(), { report });
    for (let i = 0; i < 20; i++) await ask(store, i % 2 ? good : bad);
    expect(report.mock.calls).toEqual([[{ state: 'failing', error: expect.any(RateLimitStoreError) }]]);
    await store.close();
  });

  it('what is no failure of the store is told to the caller', async () => {
    const report = jest.fn();
    const store = fallingBack(failing(new TypeError('a mistake')), new MemoryStore(), { report });
    await expect(ask(store, limitOf('local'))).rejects.toThrow(TypeError);
    expect(report).not.toHaveBeenCalled();
    await store.close();
  });

  it('open does not reject, and tells of it', async () => {
    const report = jest.fn();
    const store = fallingBack(failing(new Error('nobody there')), new MemoryStore(), { report });
    await store.open();
    await ask(store, limitOf('allow')).catch(() => undefined);
    expect(report).toHaveBeenCalledTimes(1);
    await store.close();
  });
});

/** A store of two nodes, of which each can be switched off, and one can be replaced. */
class Nodes extends MemoryStore {
  readonly off = new Set<string>();
  readonly moved = new Map<string, string>();

  nodeOf({ identity }: Counter): string {
    return this.moved.get(identity) ?? identity;
  }
  hasNode(node: string): boolean {
    return ![...this.moved.keys()].includes(node) && node !== '';
  }
  override check(checks: readonly Check[]) {
    const node = this.nodeOf(checks[0]!.entries[0]!);
    if (!this.off.has(node)) return super.check(checks);
    return Promise.reject(Object.assign(new RateLimitStoreError('down'), { node }));
  }
}

describe('a node that is left alone', () => {
  const limit = limitOf('local', { rate: 1000 });
  const breakNode = async (nodes: Nodes, store: Store, node: string) => {
    nodes.off.add(node);
    for (let i = 0; i < 5; i++) await ask(store, limit, { identity: node });
  };
  let nodes: Nodes;
  let reports: StoreReport[];
  let store: ReturnType<typeof fallingBack>;

  beforeEach(() => {
    nodes = new Nodes();
    reports = [];
    store = fallingBack(nodes, new MemoryStore(), { report: (report) => reports.push(report) });
    cleanups.push(() => store.close());
  });

  it('is forgotten once others have taken over, and that is told of', async () => {
    await breakNode(nodes, store, 'a');
    expect(store.isBroken).toBe(true);
    nodes.moved.set('a', 'c');
    expect(store.isBroken).toBe(false);
    expect((await ask(store, limit, { identity: 'a' })).source).toBe('memory');
    expect(reports.map(({ state, node }) => [state, node])).toEqual([
      ['failing', 'a'],
      ['replaced', 'a'],
    ]);
    // It comes back as a master, and is as good as any.
    nodes.moved.clear();
    nodes.off.clear();
    expect((await ask(store, limit, { identity: 'a' })).source).toBe('memory');
    expect(reports).toHaveLength(2);
  });

  it('is found back by a probe, with no other traffic', async () => {
    await breakNode(nodes, store, 'a');
    nodes.off.clear();
    // Not before a second is over.
    await store.probe();
    expect(store.isBroken).toBe(true);
    while (store.isBroken) {
      await sleep(50);
      await store.probe();
    }
    expect(reports.map(({ state, node }) => [state, node])).toEqual([
      ['failing', 'a'],
      ['recovered', 'a'],
    ]);
  });

  it('says nothing of all nodes, once these are known', async () => {
    await breakNode(nodes, store, '');
    expect(store.isBroken).toBe(false);
  });
});

const storeThatIsDown = () => fallingBack(failing(new RateLimitStoreError('down')), new MemoryStore());

describe('a function as onStoreError', () => {
  it('says for each check what to do', async () => {
    const policy = jest.fn<Exclude<OnStoreError, string>>((_, { key }) => (key === 'user:1' ? 'allow' : 'deny'));
    const store = storeThatIsDown();
    const limit = limitOf(policy);
    expect(await ask(store, limit, { identity: 'user:1', cost: 2 })).toMatchObject({ allowed: true, remaining: 3 });
    await expect(ask(store, limit, { identity: 'user:2' })).rejects.toThrow('down');
    const asked = { limit: 'limit', key: 'user:1', cost: 2 };
    expect(policy.mock.calls[0]).toEqual([expect.any(RateLimitStoreError), asked]);
    expect(policy).toHaveBeenCalledTimes(2);
    await store.close();
  });

  it.each<[string, OnStoreError, string]>([
    [
      'fails',
      () => {
        throw new TypeError('a mistake');
      },
      'a mistake',
    ],
    [
      'gives nothing',
      () => undefined as never,
      "expected 'local', 'allow' or 'deny' and no promise, received undefined",
    ],
    [
      'gives a promise that is rejected',
      () => Promise.reject(new TypeError('a mistake')) as never,
      "expected 'local', 'allow' or 'deny' and no promise",
    ],
  ])('that %s has the limit counted in process, and the log says so once', async (_, policy, reason) => {
    const log = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const store = storeThatIsDown();
    const decisions = [];
    for (let i = 0; i < 4; i++) decisions.push(await ask(store, limitOf(policy)));
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, false]);
    expect(log.mock.calls).toEqual([
      [
        "the function 'onStoreError' of limit 'limit' failed, so this process counts the limit in memory",
        expect.stringContaining(reason),
      ],
    ]);
    await store.close();
  });
});

describe('the share of an instance', () => {
  it.each<[AlgorithmOptions, number, number]>([
    [{ algo: 'fixed-window', rate: 10, interval: '1h' }, 0.25, 2],
    [{ algo: 'calendar-window', rate: 10, period: 'year' }, 0.25, 2],
    [{ algo: 'sliding-window', rate: 10, interval: '1h' }, 0.25, 2],
    [{ algo: 'sliding-log', rate: 10, interval: '1h' }, 0.5, 5],
    [{ algo: 'gcra', rate: 10, interval: '1h', burst: 8 }, 0.25, 2],
    [{ algo: 'token-bucket', rate: 10, interval: '1h' }, 0.25, 2],
    [{ algo: 'leaky-bucket', rate: 10, interval: '1h', queue: 8 }, 0.25, 3],
    [{ algo: 'concurrency', limit: 10, ttl: '1h' }, 0.25, 2],
    [{ algo: 'fixed-window', rate: 10, interval: '1h' }, 0.01, 1],
    [{ algo: 'gcra', rate: 10, interval: '1h' }, 1, 10],
  ])('of %p, a share of %p, lets %p pass while the store fails', async (options, localShare, allowed) => {
    const store = fallingBack(failing(new RateLimitStoreError('down')), new MemoryStore(), { localShare });
    const limit = new CompiledLimit(options, { location: 'test', name: 'limit' });
    const decisions = [];
    for (let i = 0; i < 12; i++) decisions.push(await ask(store, limit));
    expect(decisions.filter((decision) => decision.allowed)).toHaveLength(allowed);
    expect(decisions.at(-1)).toMatchObject({ allowed: false, limit: 'limit', source: 'fallback' });
    await store.close();
  });

  it('is one counter for all tenants that share it, and is made once', async () => {
    const local = new MemoryStore();
    const store = fallingBack(failing(new RateLimitStoreError('down')), local, { localShare: 0.5 });
    const limit = new CompiledLimit(
      { algo: 'gcra', rate: 12, interval: '1h' },
      { location: 'test', name: 'limit', features: featureTerms({ share: { by: 'global' } }, 'test') },
    );
    const asked = new Set<CompiledLimit>();
    const check = local.decide.bind(local);
    local.decide = (asking, answer) => {
      for (const entry of asking.entries) asked.add(entry.limit.unmet);
      check(asking, answer);
    };
    const decisions = [];
    for (let i = 0; i < 9; i++)
      decisions.push(await ask(store, limit.meet({ tenant: { id: `t${i % 3}`, weight: 1 } })));
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(6);
    expect(decisions.at(-1)).toMatchObject({ quota: 6, source: 'fallback' });
    expect(asked.size).toBe(1);
    await store.close();
  });

  it('is given back and forgotten where it was taken', async () => {
    const store = fallingBack(failing(new RateLimitStoreError('down')), new MemoryStore(), { localShare: 0.5 });
    const limit = new CompiledLimit(
      { algo: 'fixed-window', rate: 4, interval: '1h' },
      { location: 'test', name: 'limit' },
    );
    const counter = { limit, identity: 'ip:203.0.113.7' };
    for (let i = 0; i < 2; i++) await ask(store, limit);
    await store.refund([{ ...counter, units: 1, source: 'fallback' }]);
    expect((await ask(store, limit)).allowed).toBe(true);
    expect((await ask(store, limit)).allowed).toBe(false);
    await store.reset([counter]).catch(() => undefined);
    expect((await ask(store, limit)).allowed).toBe(true);
    await store.close();
  });

  it('keeps the rate where less than a unit an interval is left of it', () => {
    const limit = new CompiledLimit({ algo: 'gcra', rate: 2, interval: '1s' }, { location: 'test' }).partOf(0.1);
    expect([limit.quota, limit.windowMs(0)]).toEqual([1, 5000]);
  });
});

describe('while Redis answers', () => {
  it('a refusal does not reach the fallback', async () => {
    const { store, local, states } = await start();
    const check = jest.spyOn(local, 'check');
    const limit = limitOf('local');
    const decisions = [];
    for (let i = 0; i < 20; i++) decisions.push(await ask(store, limit));
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(3);
    expect(new Set(decisions.map(({ source }) => source))).toEqual(new Set(['redis']));
    expect(check).not.toHaveBeenCalled();
    expect(states()).toEqual([]);
  });

  it.each(['before', 'after', 'at once after'])(
    'a process that was busy for longer than the deadline, from a moment %s the check was sent, takes the answer',
    async (moment) => {
      const { server, store, local, states } = await start();
      const check = jest.spyOn(local, 'check');
      const limit = limitOf('local');
      await onMovedClock(async () => {
        // After these two the next one waits for the end of its turn.
        await Promise.all([ask(store, limit), ask(store, limit)]);
        if (moment === 'at once after') {
          await ask(store, limitOf('local'), { identity: 'alone' });
          await turn();
        }
        const checking = ask(store, limit);
        if (moment !== 'before') {
          if (moment === 'after') await turn();
          waitForAnswers(server);
        }
        // All timers that are due run before the sockets are read.
        jest.advanceTimersByTime(TIMEOUT_MS + 150);
        expect(await checking).toMatchObject({ allowed: true, remaining: 0, source: 'redis' });
      });
      expect(check).not.toHaveBeenCalled();
      expect(states()).toEqual([]);
    },
  );
});
