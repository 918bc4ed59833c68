import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Logger, type LoggerService, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import {
  type OnStoreError,
  RateLimit,
  RateLimitModule,
  type RateLimitModuleOptions,
  RateLimitStoreError,
  type Store,
} from '../../lib/index.js';
import { CompiledLimit, type StoreDecision } from '../../lib/testing/store/index.js';
import { isLong, scenarioMs, until } from '../support/processes/chaos.js';
import { OwnTime } from '../support/time/own-time.mjs';
import { startRedis, type RedisServer } from '../support/redis/redis-servers.js';
import { ask, freshPrefix } from '../support/limits/stores.js';
import { TcpProxy } from '../support/redis/tcp-proxy.js';
import type { StoreReport } from '../support/limits/layers.js';
import { appStore } from '../support/redis/app-store.js';
import { holdUp } from '../support/time/hold-up.js';

const TIMEOUT_MS = 250;
/** How far beyond the deadline a check may be answered, in the time that this process had: some turns of the event loop. */
const SLACK_MS = isLong ? 20 : 50;
/** While Redis is not asked it is probed by one check, and by no other for so long. */
const PROBE_AFTER_MS = 1000;
/** Checks at once of each limit. */
const CROWD = 20;
const QUOTA = 100;
const PASSWORD = 'not-known-to-the-app';

interface Setting {
  readonly server: RedisServer;
  readonly proxy: TcpProxy;
  /** A connection of another user of the server. */
  readonly admin: Redis;
  /** Makes another one. */
  readonly connect: () => Redis;
}

interface Outage {
  readonly begin: (setting: Setting) => unknown;
  readonly end: (setting: Setting) => unknown;
  /** Arguments of the server. */
  readonly args?: readonly string[];
  /** Whether it has begun before the store is opened. */
  readonly fromTheStart?: boolean;
}

const answersWith = (admin: Redis, error: string) =>
  until(error, () =>
    admin.get('any').then(
      () => false,
      (reason: Error) => reason.message.startsWith(error),
    ),
  );

const outages: Record<string, Outage> = {
  'is stopped': { begin: ({ server }) => server.pause(), end: ({ server }) => server.resume() },
  'is killed': { begin: ({ server }) => server.kill(), end: ({ server }) => server.start() },
  'has not started yet': {
    begin: ({ server }) => server.kill(),
    end: ({ server }) => server.start(),
    fromTheStart: true,
  },
  'is stopped before anybody connects': {
    begin: ({ server }) => server.pause(),
    end: ({ server }) => server.resume(),
    fromTheStart: true,
  },
  'gets no packet': { begin: ({ proxy }) => proxy.hold('requests'), end: ({ proxy }) => proxy.pass() },
  'sends no packet that arrives': { begin: ({ proxy }) => proxy.hold('replies'), end: ({ proxy }) => proxy.pass() },
  'answers LOADING': {
    args: ['--enable-debug-command', 'yes'],
    begin: async ({ admin, connect }) => {
      const loader = connect();
      await loader.call('DEBUG', 'POPULATE', '20000', 'filler', '1000');
      await loader.config('SET', 'loading-process-events-interval-bytes', '1024');
      await loader.config('SET', 'key-load-delay', '5000');
      void loader.call('DEBUG', 'RELOAD').catch(() => undefined);
      await answersWith(admin, 'LOADING');
    },
    end: ({ admin }) => admin.config('SET', 'key-load-delay', '0'),
  },
  'answers READONLY': {
    begin: ({ admin }) => admin.call('REPLICAOF', '127.0.0.1', '1'),
    end: ({ admin }) => admin.call('REPLICAOF', 'NO', 'ONE'),
  },
  'answers OOM': {
    begin: ({ admin }) => admin.config('SET', 'maxmemory', '1', 'maxmemory-policy', 'noeviction'),
    end: ({ admin }) => admin.config('SET', 'maxmemory', '0'),
  },
  'answers NOAUTH': {
    // Only who connects from now on is asked for the password.
    begin: async ({ admin }) => {
      await admin.config('SET', 'requirepass', PASSWORD);
      await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    },
    end: ({ admin }) => admin.config('SET', 'requirepass', ''),
  },
  'answers NOPERM': {
    begin: ({ admin }) => admin.call('ACL', 'SETUSER', 'default', '-evalsha', '-eval'),
    end: ({ admin }) => admin.call('ACL', 'SETUSER', 'default', '+evalsha', '+eval'),
  },
  'answers BUSY': {
    args: ['--lua-time-limit', '50'],
    begin: async ({ admin, connect }) => {
      void connect()
        .eval('while true do end', 0)
        .catch(() => undefined);
      await answersWith(admin, 'BUSY');
    },
    end: ({ admin }) => admin.script('KILL'),
  },
};

/** What a test has to undo. Some run side by side, so each has its own. */
type Cleanups = (() => unknown)[];

async function withCleanups(run: (cleanups: Cleanups) => Promise<void>): Promise<void> {
  const cleanups: Cleanups = [];
  try {
    await run(cleanups);
  } finally {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  }
}

const time = new OwnTime();
afterAll(() => time.stop());

async function startSetting(cleanups: Cleanups, args: readonly string[] = []): Promise<Setting> {
  const server = await startRedis({ args });
  cleanups.push(() => server.stop());
  const proxy = await TcpProxy.start(server);
  cleanups.push(() => proxy.close());
  const connect = () => {
    const client = new Redis(server.url, { disconnectTimeout: 50 });
    client.on('error', () => undefined);
    cleanups.push(() => client.disconnect());
    return client;
  };
  const admin = connect();
  await admin.ping();
  return { server, proxy, admin, connect };
}

/** What an app gives as `redis`. */
type Connect = (cleanups: Cleanups, url: string) => RateLimitModuleOptions['redis'];

const connections: Record<string, Connect> = {
  'a URL': (_, url) => url,
  'a client of node-redis': (cleanups, url) => {
    const client = createClient({ url });
    client.on('error', () => undefined);
    void client.connect().catch(() => undefined);
    cleanups.push(() => client.destroy());
    return client;
  },
};

async function startStore(cleanups: Cleanups, { url }: { url: string }, connect: Connect) {
  const reports: StoreReport[] = [];
  const report = (news: StoreReport) => reports.push(news);
  const prefix = freshPrefix();
  const redis = connect(cleanups, url);
  const store = await appStore(redis, { prefix, timeoutMs: TIMEOUT_MS, report });
  cleanups.push(() => store.close());
  await store.open?.();
  return { store, states: () => reports.map(({ state }) => state) };
}

function limitOf(onStoreError: OnStoreError): CompiledLimit {
  const options = { algo: 'fixed-window', rate: QUOTA, interval: '1d' } as const;
  return new CompiledLimit(options, { location: 'test', name: String(onStoreError), onStoreError });
}

const limits = (['local', 'allow', 'deny'] as const).map(limitOf);

interface Answer {
  readonly limit: CompiledLimit;
  /** In the time that this process had. */
  readonly ms: number;
  /** Whether it took a turn of the event loop, or more. */
  readonly waited: boolean;
  readonly decision?: StoreDecision;
  readonly error?: unknown;
}

async function answerOf(store: Store, limit: CompiledLimit, identity?: string): Promise<Answer> {
  const start = time.now();
  let waited = false;
  setImmediate(() => (waited = true));
  const answer = await ask(store, limit, identity === undefined ? {} : { identity }).then(
    (decision) => ({ decision }),
    (error: unknown) => ({ error }),
  );
  return { limit, ms: time.now() - start, waited, ...answer };
}

/** So many checks at once of each limit. */
const crowd = (store: Store, each: number, identity?: string) =>
  Promise.all(Array.from({ length: each }, () => limits.map((limit) => answerOf(store, limit, identity))).flat());

const slowest = (answers: readonly Answer[]) => Math.max(...answers.map(({ ms }) => ms));

/** Each was answered, in the way that its limit asks for. */
function expectAnswersOf(answers: readonly Answer[]): void {
  for (const { limit, decision, error } of answers) {
    if (limit.onStoreError === 'deny') expect(error).toBeInstanceOf(RateLimitStoreError);
    else expect({ source: decision?.source, error }).toEqual({ source: 'fallback', error: undefined });
  }
  const allowed = (onStoreError: OnStoreError) =>
    answers.filter(({ limit, decision }) => limit.onStoreError === onStoreError && decision?.allowed).length;
  const asked = answers.length / limits.length;
  expect(allowed('allow')).toBe(asked);
  expect(allowed('local')).toBe(Math.min(asked, QUOTA));
}

const allByRedis = (answers: readonly Answer[]) => answers.every(({ decision }) => decision?.source === 'redis');

/** Until Redis decides all checks of a crowd, and that is told. On a busy machine one or another may come too late. */
const untilRedis = (store: Store, states: () => string[]) =>
  until(
    'Redis decides',
    async () => allByRedis(await crowd(store, CROWD, 'probe')) && states().at(-1) !== 'failing',
    500_000,
  );

/** It failed, and then was back, as often as that may be. */
function expectRecovery(states: readonly string[]): void {
  expect(states.length).toBeGreaterThanOrEqual(2);
  expect(states).toEqual(states.map((_, index) => (index % 2 === 0 ? 'failing' : 'recovered')));
  expect(states.at(-1)).toBe('recovered');
}

describe.each(Object.entries(connections))(
  'with %s no check waits longer than its deadline, none but probes once Redis is not asked, and each is answered',
  (_kind, connect) => {
    it.each(Object.entries(outages))(
      'while Redis %s',
      (_, { args, begin, end, fromTheStart = false }) =>
        withCleanups(async (cleanups) => {
          const setting = await startSetting(cleanups, args);
          if (fromTheStart) await begin(setting);
          const { store, states } = await startStore(cleanups, setting.proxy, connect);
          if (!fromTheStart) {
            await untilRedis(store, states);
            await begin(setting);
          }
          const before = fromTheStart ? 0 : states().length;
          // They fail together, which is enough for Redis not to be asked.
          const first = await crowd(store, CROWD);
          expect(slowest(first)).toBeLessThan(TIMEOUT_MS + SLACK_MS);

          const later: Answer[] = [];
          const since = performance.now();
          for (const stop = since + scenarioMs(400); performance.now() < stop || later.length <= limits.length;) {
            later.push(...(await crowd(store, 1)));
            await sleep(1);
          }
          const probes = 1 + Math.floor((performance.now() - since) / PROBE_AFTER_MS);
          expect(later.length).toBeGreaterThan(limits.length);
          expect(later.filter(({ waited }) => waited).length).toBeLessThanOrEqual(probes);
          expect(slowest(later)).toBeLessThan(TIMEOUT_MS + SLACK_MS);
          expectAnswersOf([...first, ...later]);
          expect(states().slice(before)).toEqual(['failing']);

          await end(setting);
          await untilRedis(store, states);
          expectRecovery(states().slice(before));
        }),
      scenarioMs(0) + 600_000,
    );
  },
);

describe('connections that a firewall has forgotten', () => {
  it('are given up, and others made', () =>
    withCleanups(async (cleanups) => {
      const setting = await startSetting(cleanups);
      const { store, states } = await startStore(cleanups, setting.proxy, connections['a URL']!);
      await untilRedis(store, states);
      const before = states().length;
      setting.proxy.lose();
      expectAnswersOf(await crowd(store, CROWD));
      await untilRedis(store, states);
      expectRecovery(states().slice(before));
    }));
});

describe('a process that is busy for longer than the deadline, again and again', () => {
  it.each(Object.entries(connections))('takes all answers of Redis, under load, with %s', (_, connect) =>
    withCleanups(async (cleanups) => {
      const { store, states } = await startStore(cleanups, (await startSetting(cleanups)).server, connect);
      let late = 0;
      for (let turns = 0; turns < 6; turns++) {
        await until('Redis decides', async () => {
          const checks = crowd(store, CROWD);
          for (let turn = 0; turn < turns; turn++) await nextTurn();
          holdUp(TIMEOUT_MS + 100);
          if (allByRedis(await checks)) return true;
          // Redis itself may get no turn where the machine is busy, but not each time.
          late += 1;
          if (late > 10) throw new Error('Redis was not heard, again and again');
          return false;
        });
      }
      if (late === 0) expect(states()).toEqual([]);
    }),
  );
});

@Controller()
class ReportsController {
  @Get()
  @RateLimit({ name: 'reports', algo: 'fixed-window', rate: 1000, interval: '1h' })
  list() {}
}

/** Remembers what an app says. */
class Lines implements LoggerService {
  readonly lines: string[] = [];
  log = (line: string, context?: string) => void (context === 'RateLimitModule' && this.lines.push(`log ${line}`));
  warn = (line: string) => void this.lines.push(`warn ${line}`);
  error = (line: string) => void this.lines.push(`error ${line}`);
}

describe('an app', () => {
  afterEach(() => Logger.overrideLogger(true));

  it('starts without Redis, says so once, and once that it is back', () =>
    withCleanups(async (cleanups) => {
      const { server } = await startSetting(cleanups);
      await server.kill();
      const logger = new Lines();
      const start = time.now();
      // On a busy machine a server that is back may take longer than the usual deadline.
      const limits = RateLimitModule.forRoot({ redis: server.url, prefix: freshPrefix(), timeout: '10s' });
      class AppModule {}
      Module({ imports: [limits], controllers: [ReportsController] })(AppModule);
      const app = await NestFactory.create(AppModule, { logger });
      cleanups.push(() => app.close());
      await app.listen(0, '127.0.0.1');
      // It waits for a connection no longer than 2 s.
      expect(time.now() - start).toBeLessThan(2000 + 2000);
      const url = await app.getUrl();
      const get = async () => (await fetch(url, { headers: { connection: 'close' } })).status;
      for (let request = 0; request < 20; request++) expect(await get()).toBe(200);
      expect(logger.lines).toEqual([expect.stringContaining('the store failed')]);
      await server.start();
      await until('it says more', async () => (await get()) === 200 && logger.lines.length > 1);
      for (let request = 0; request < 20; request++) expect(await get()).toBe(200);
      expect(logger.lines).toEqual([expect.stringMatching(/^error the store failed/), expect.stringMatching(/^log /)]);
    }));
});
