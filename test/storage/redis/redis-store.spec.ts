import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { type AlgorithmOptions, RateLimitStoreError, type RedisClient, RedisStore } from '../../../lib/index.js';
import { algorithmNames } from '../../support/limits/arbitraries.js';
import { withOwnRedis } from '../../support/redis/own-redis.js';
import type { RedisServer } from '../../support/redis/redis-servers.js';
import { startRedis } from '../../support/redis/redis-servers.js';
import { whileNoTimeIsOver } from '../../support/time/no-time-is-over.js';
import { ask, compile, freshPrefix, keyOf, ManualClock } from '../../support/limits/stores.js';
import { appStore } from '../../support/redis/app-store.js';
import { connectClient, libraryClient } from '../../support/redis/library-client.js';
import { scripts } from '../../support/redis/scripts.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const cleanups: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

let server: RedisServer;
let redis: Redis;
withOwnRedis((client, started) => {
  [redis, server] = [client, started];
});
beforeEach(() => redis.flushall());

const hundred: Record<(typeof algorithmNames)[number], AlgorithmOptions> = {
  'fixed-window': { algo: 'fixed-window', rate: 100, interval: '1h' },
  'calendar-window': { algo: 'calendar-window', rate: 100, period: 'year' },
  'sliding-window': { algo: 'sliding-window', rate: 100, interval: '1h' },
  'sliding-log': { algo: 'sliding-log', rate: 100, interval: '1h' },
  'token-bucket': { algo: 'token-bucket', rate: 100, interval: '1d' },
  'leaky-bucket': { algo: 'leaky-bucket', rate: 100, interval: '1d', queue: 99 },
  gcra: { algo: 'gcra', rate: 100, interval: '1d' },
};

/** How often the server ran a command since its last `resetStats`. */
async function calls(command: string): Promise<number> {
  const line = new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(await redis.info('commandstats'));
  return Number(line?.[1] ?? 0);
}

const resetStats = () => redis.config('RESETSTAT');

const freshStore = () => new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });

const changes = (info: string) => /rdb_changes_since_last_save:(\d+)/.exec(info)?.[1];

function doubles(value: Buffer | null): number[] {
  return Array.from({ length: value!.length / 8 }, (_, i) => value!.readDoubleLE(i * 8));
}

const turn = () => new Promise(setImmediate);

const size = (key: string) => redis.memory('USAGE', key, 'SAMPLES', 0) as Promise<number>;

const own = async (client: RedisClient) => {
  const store = new RedisStore(client, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS, ownsClient: true });
  await store.open();
  return store;
};

describe('calls', () => {
  it('a check that comes alone, as the one before it, is sent at once, and what follows in its turn goes together', async () => {
    const store = freshStore();
    await store.open();
    const limit = compile(hundred.gcra);
    const evalsha = jest.spyOn(redis, 'evalsha');
    try {
      await ask(store, limit);
      await turn();
      expect(evalsha).toHaveBeenCalledTimes(1);
      const first = ask(store, limit);
      expect(evalsha).toHaveBeenCalledTimes(2);
      await Promise.all([first, ask(store, limit), ask(store, limit)]);
      expect(evalsha).toHaveBeenCalledTimes(3);
      // Where several came last, the first waits for the others again.
      const next = [ask(store, limit), ask(store, limit)];
      expect(evalsha).toHaveBeenCalledTimes(3);
      const remaining = (await Promise.all(next)).map((decision) => decision.remaining);
      expect(remaining).toEqual([95, 94]);
      expect(evalsha).toHaveBeenCalledTimes(4);
    } finally {
      evalsha.mockRestore();
    }
  });

  it('all checks of one turn travel in one', async () => {
    const shared = freshStore();
    await shared.open();
    await resetStats();
    const limits = algorithmNames.map((algo) => compile(hundred[algo]));
    const checks = Array.from({ length: 200 }, (_, i) =>
      shared.check([{ entries: limits.map((limit) => ({ limit, identity: `user:${i % 10}`, cost: 1 })) }]),
    );
    const answers = await Promise.all(checks);
    expect(answers.flat(2).every(({ allowed, source }) => allowed && source === 'redis')).toBe(true);
    expect(answers[190]!.flat().map(({ remaining }) => remaining)).toEqual(limits.map(() => 80));
    expect(await calls('evalsha')).toBe(1);
    // The server's clock is asked once, each counter is read with the others or once, and written once.
    expect(await calls('time')).toBe(1);
    expect(await calls('mget')).toBe(1);
    expect(await calls('set')).toBe(60);
  });

  it('a refused check only reads', async () => {
    const shared = freshStore();
    const limits = algorithmNames.map((algo) => compile(hundred[algo]));
    const entries = limits.map((limit) => ({ limit, identity: 'user:42', cost: 60 }));
    await shared.check([{ entries }]);
    const before = await redis.info('persistence');
    await resetStats();
    await expect(shared.check([{ entries }])).resolves.toMatchObject([limits.map(() => ({ allowed: false }))]);
    const writing = ['set', 'del', 'pexpire', 'rpush', 'lset', 'ltrim'];
    expect(await Promise.all(writing.map(calls))).toEqual(writing.map(() => 0));
    expect(changes(await redis.info('persistence'))).toBe(changes(before));
  });

  it('checks of different turns travel apart', async () => {
    const shared = freshStore();
    await shared.open();
    await resetStats();
    const limit = compile(hundred.gcra);
    for (let i = 0; i < 3; i++) await ask(shared, limit);
    expect(await calls('evalsha')).toBe(3);
  });

  it('a thousand checks of one turn travel in two, in their order', async () => {
    const shared = freshStore();
    await shared.open();
    await resetStats();
    const limit = compile({ algo: 'sliding-log', rate: 700, interval: '1h' });
    const answers = await Promise.all(Array.from({ length: 1000 }, () => ask(shared, limit)));
    expect(answers.map(({ allowed }) => allowed)).toEqual(Array.from({ length: 1000 }, (_, i) => i < 700));
    expect(await calls('evalsha')).toBe(2);
  });

  it('use the clock of the server, whatever ours says', async () => {
    const limit = compile({ algo: 'fixed-window', rate: 100, interval: '1h' });
    const prefix = freshPrefix();
    const serverMicros = async () => {
      const [seconds, micros] = await redis.time();
      return Number(seconds) * 1e6 + Number(micros);
    };
    const before = await serverMicros();
    await ask(new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS }), limit, { identity: 'a' });
    const after = await serverMicros();
    const [start, , count] = doubles(await redis.getBuffer(keyOf(prefix, { limit, identity: 'a' })));
    expect(count).toBe(1);
    expect(start).toBeGreaterThanOrEqual(before);
    expect(start).toBeLessThanOrEqual(after);
  });
});

describe('a calendar window that is not the one of the server', () => {
  const day = compile({ algo: 'calendar-window', rate: 2, period: 'day', retain: '7d' });
  const fixed = compile(hundred['fixed-window']);
  const realNow = Date.now;
  afterEach(() => {
    Date.now = realNow;
  });

  it.each([-400, -1, 1, 400])('is found, with our clock %d days off, and nothing is charged twice', async (days) => {
    const store = new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    Date.now = () => realNow() + days * 86_400_000;
    const entries = [day, fixed].map((limit) => ({ limit, identity: 'user:42', cost: 1 }));
    const other = { entries: [{ limit: fixed, identity: 'user:43', cost: 1 }] };
    const [decisions, [alone]] = await Promise.all([store.check([{ entries }]), store.check([other])]);
    expect(decisions[0]!.map(({ remaining }) => remaining)).toEqual([1, 99]);
    expect(alone).toMatchObject([{ remaining: 99 }]);
    const midnight = Math.floor(realNow() / 86_400_000) * 86_400_000;
    await expect(store.history({ limit: day, identity: 'user:42' })).resolves.toEqual([
      { start: midnight, end: midnight + 86_400_000, count: 1 },
    ]);
    // From here on it knows how far its clock is off.
    await resetStats();
    await store.check([{ entries }]);
    expect(await calls('evalsha')).toBe(1);
  });

  it('is found by a history that is asked first', async () => {
    Date.now = () => realNow() + 5 * 86_400_000;
    const store = new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    await expect(store.history({ limit: day, identity: 'user:42' })).resolves.toEqual([]);
  });
});

describe('a server that does not know the script', () => {
  it('is given it once by all checks in flight, of which each counts once', async () => {
    const store = new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    const limit = compile({ algo: 'gcra', rate: 300, interval: '1d' });
    await store.open();
    for (let round = 0; round < 3; round++) {
      await redis.script('FLUSH');
      await resetStats();
      const checks = [];
      for (let i = 0; i < 50; i++) {
        checks.push(ask(store, limit));
        await turn();
      }
      const answers = await Promise.all(checks);
      expect(answers.every(({ allowed }) => allowed)).toBe(true);
      expect(await calls('script\\|load')).toBe(1);
    }
    await expect(ask(store, limit, { peek: true })).resolves.toMatchObject({ remaining: 150 });
  });

  it('is given it for a refund and a history as well', async () => {
    const store = new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    const counter = { limit: compile(hundred['calendar-window']), identity: 'user:42' };
    await ask(store, counter.limit, { ...counter, cost: 3 });
    await redis.script('FLUSH');
    await store.refund([{ ...counter, units: 2 }]);
    await redis.script('FLUSH');
    await expect(store.history(counter)).resolves.toMatchObject([{ count: 1 }]);
  });

  it('fails the check if it cannot be given, by SCRIPT LOAD or EVAL', async () => {
    await redis.script('FLUSH');
    await redis.call('ACL', 'SETUSER', 'default', '-script', '-eval');
    cleanups.push(() => redis.call('ACL', 'SETUSER', 'default', '+script', '+eval'));
    const store = new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    const limit = compile(hundred.gcra);
    await expect(ask(store, limit)).rejects.toThrow(RateLimitStoreError);
    await expect(ask(store, limit)).rejects.toThrow(/NOPERM/);
  });
});

describe('the script', () => {
  it('is made of what lua/ holds now', async () => {
    await expect(promisify(execFile)(process.execPath, ['lua/embed.mjs', '--check'])).resolves.toMatchObject({
      stderr: '',
    });
  });

  it('holds no comments', () => {
    expect(scripts.decisions).not.toMatch(/--/);
    expect(scripts.decisions).not.toMatch(/^\s/m);
  });
});

describe('keys', () => {
  const secrets = ['a user with blanks', `long-${'s3cr3t'.repeat(100)}`, 'emoji-🔑-s3cr3t', 'a{b}c', 'a\nb', 'line\n'];

  it('tell nothing of identities that are long or hold more than plain characters', async () => {
    const store = new RedisStore(redis, { prefix: 'app', timeoutMs: PATIENCE_MS });
    const limits = algorithmNames.map((algo) => compile(hundred[algo], 'one'));
    for (const identity of secrets) {
      await store.check([{ entries: limits.map((limit) => ({ limit, identity, cost: 1 })) }]);
    }
    const keys = await redis.keys('*');
    expect(keys).toHaveLength(secrets.length * limits.length);
    for (const key of keys) expect(key).toMatch(/^app:\{#[\w-]{43}\}::one:[a-z]{2}$/);
  });

  it('show plain identities', async () => {
    const store = new RedisStore(redis, { prefix: 'app', timeoutMs: PATIENCE_MS });
    for (const identity of ['ip:203.0.113.7', 'user:jane@example.org', 'global']) {
      await ask(store, compile(hundred.gcra, 'one'), { identity });
    }
    expect((await redis.keys('*')).toSorted()).toEqual([
      'app:{global}::one:gd',
      'app:{ip:203.0.113.7}::one:gd',
      'app:{user:jane@example.org}::one:gd',
    ]);
  });

  it('are of their prefix, and prefixes do not meet', async () => {
    const limit = compile({ algo: 'fixed-window', rate: 1, interval: '1h' });
    for (const prefix of ['a', 'b']) {
      const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS });
      await expect(ask(store, limit)).resolves.toMatchObject({ allowed: true });
    }
  });

  it('of another type are not taken for a state', async () => {
    const prefix = freshPrefix();
    const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS });
    const limit = compile(hundred.gcra);
    await redis.rpush(keyOf(prefix, { limit, identity: 'a' }), 'somebody', 'else');
    await expect(ask(store, limit, { identity: 'a' })).resolves.toMatchObject({ allowed: true, remaining: 99 });
  });
});

describe('memory', () => {
  const prefix = 's';
  const identity = 'ip:203.0.113.7';

  it('of a sliding log is at most 16 bytes a request', async () => {
    const clock = new ManualClock();
    const store = new RedisStore(redis, { prefix, clock, timeoutMs: PATIENCE_MS });
    const requests = 2000;
    const limit = compile({ algo: 'sliding-log', rate: requests, interval: '1h' }, 'log');
    for (let i = 0; i < requests; i++) {
      // Times are distinct and uneven.
      clock.micros += 1 + ((i * 7919) % 300_000);
      await ask(store, limit, { identity });
    }
    const key = keyOf(prefix, { limit, identity });
    expect(await redis.llen(key)).toBe(2 * requests + 1);
    await expect(ask(store, limit, { identity, peek: true })).resolves.toMatchObject({ remaining: 0 });
    expect((await size(key)) / requests).toBeLessThanOrEqual(16);
    // What has run out goes with the next charge.
    clock.advanceMs(3_599_999);
    await ask(store, limit, { identity });
    expect(await size(key)).toBeLessThan(300);
  });

  it.each(['fixed-window', 'calendar-window', 'token-bucket', 'leaky-bucket', 'gcra'] as const)(
    'of %s is at most 130 bytes, however much it counted',
    async (algo) => {
      const clock = new ManualClock();
      const store = new RedisStore(redis, { prefix, clock, timeoutMs: PATIENCE_MS });
      const limit = compile(hundred[algo], 'n');
      const key = keyOf(prefix, { limit, identity });
      expect(key.length).toBeLessThanOrEqual(32);
      const sizes = [];
      for (let i = 0; i < 50; i++) {
        clock.advanceMs(i * 10);
        await ask(store, limit, { identity });
        sizes.push(await size(key));
      }
      expect(Math.max(...sizes)).toBeLessThanOrEqual(130);
    },
  );

  it('of a sliding window does not grow with what it counted', async () => {
    const clock = new ManualClock();
    const store = new RedisStore(redis, { prefix, clock, timeoutMs: PATIENCE_MS });
    const limit = compile({ algo: 'sliding-window', rate: 100_000, interval: '10s', slices: 10 }, 'n');
    const key = keyOf(prefix, { limit, identity });
    let largest = 0;
    for (let i = 0; i < 300; i++) {
      clock.advanceMs(137);
      await ask(store, limit, { identity, cost: 100 });
      largest = Math.max(largest, await size(key));
    }
    expect(largest).toBeLessThanOrEqual(200);
  });
});

describe('a connection', () => {
  const limit = compile(hundred.gcra);
  it.each<[string, () => Parameters<typeof libraryClient>[0]]>([
    ['a URL', () => server.url],
    ['options', () => ({ host: server.host, port: server.port, db: 1 })],
  ])('is made from %s, and closed', async (_, given) => {
    const client = await libraryClient(given());
    expect(client).toBeInstanceOf(Redis);
    expect(client.status).toBe('wait');
    const store = await own(client);
    await expect(ask(store, limit)).resolves.toMatchObject({ source: 'redis', remaining: 99 });
    const ended = new Promise((resolve) => client.once('end', resolve));
    await store.close();
    await ended;
    await expect(ask(store, limit)).rejects.toThrow(RateLimitStoreError);
    await store.close();
  });

  it('that exists is used and not closed', async () => {
    const store = await appStore(redis, { timeoutMs: PATIENCE_MS });
    await store.open?.();
    await expect(ask(store, limit)).resolves.toMatchObject({ source: 'redis' });
    await store.close();
    expect(redis.status).toBe('ready');
    await expect(redis.ping()).resolves.toBe('PONG');
  });

  it('waits in no queue and sends nothing twice', async () => {
    const client = await libraryClient({ host: server.host, port: server.port, enableOfflineQueue: true });
    cleanups.push(() => client.disconnect());
    expect(client.options).toMatchObject({ enableOfflineQueue: false, autoResendUnfulfilledCommands: false });
    const store = new RedisStore(client);
    // It is not connected yet.
    await expect(ask(store, limit)).rejects.toThrow("Redis is not connected (status 'wait')");
  });

  it('that is not let in is given up at once, with the reason', async () => {
    let trying = true;
    const client = await libraryClient({
      host: server.host,
      port: server.port,
      username: 'nobody',
      password: 'none',
      retryStrategy: () => (trying ? 50 : null),
    });
    cleanups.push(async () => {
      trying = false;
      await new Promise((resolve) => client.once('end', resolve));
    });
    await whileNoTimeIsOver(() => expect(connectClient(client)).rejects.toThrow(/WRONGPASS/));
  });

  it('that is refused is given up at once, and keeps trying', async () => {
    const lonely = await startRedis();
    await lonely.kill();
    cleanups.push(() => lonely.stop());
    const client = await libraryClient(lonely.url);
    cleanups.push(() => client.disconnect());
    await whileNoTimeIsOver(() => expect(connectClient(client)).rejects.toThrow(/ECONNREFUSED/));
    await lonely.start();
    if (client.status !== 'ready') await new Promise((resolve) => client.once('ready', resolve));
    await expect(client.ping()).resolves.toBe('PONG');
  });
});

/** Lets all come to rest that does not wait for a timer or a server. */
async function turns(): Promise<void> {
  for (let i = 0; i < 10; i++) await turn();
}

describe('closing', () => {
  it('waits for what was asked before, however often it is asked for', async () => {
    const store = freshStore();
    const limit = compile(hundred.gcra);
    const answered = [ask(store, limit), ask(store, limit)];
    await Promise.all([store.close(), store.close(), store.close()]);
    const [first, second] = await Promise.all(answered);
    expect([first!.remaining, second!.remaining]).toEqual([99, 98]);
  });
});

describe('the deadline', () => {
  it('ends a check of a server that does not answer', async () => {
    const timeoutMs = 2000;
    const paused = await startRedis();
    cleanups.push(() => paused.stop());
    const client = await libraryClient(paused.url, 10 * timeoutMs);
    const store = new RedisStore(client, { prefix: freshPrefix(), timeoutMs, ownsClient: true });
    await store.open();
    const limit = compile(hundred.gcra);
    await ask(store, limit);
    paused.pause();
    // The clock stands still, and is moved by the deadline.
    jest.useFakeTimers();
    cleanups.push(() => void jest.useRealTimers());
    const counter = { limit, identity: 'user:42' };
    const calendar = { limit: compile(hundred['calendar-window']), identity: 'user:42' };
    const calls = [
      ask(store, limit),
      store.refund([{ ...counter, units: 1 }]),
      store.reset([counter]),
      store.history(calendar),
    ];
    let ended = 0;
    for (const call of calls) call.catch(() => ended++);
    await turns();
    await jest.advanceTimersByTimeAsync(timeoutMs - 1);
    await turns();
    expect(ended).toBe(0);
    await jest.advanceTimersByTimeAsync(1);
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.map(({ status }) => status)).toEqual(calls.map(() => 'rejected'));
    for (const outcome of outcomes) {
      expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(RateLimitStoreError);
    }
    // It is given as long to say goodbye.
    const closing = store.close();
    await turns();
    await jest.advanceTimersByTimeAsync(timeoutMs);
    await closing;
    jest.useRealTimers();
    paused.resume();
  });
});
