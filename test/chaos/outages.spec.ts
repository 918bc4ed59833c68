import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Logger, type LoggerService, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { CompiledLimit, type OnStoreError } from '../../lib/limits/compiled-limit.js';
import { RateLimitStoreError } from '../../lib/errors/errors.js';
import { RateLimit } from '../../lib/nest/decorators/rate-limit.decorator.js';
import { RateLimitModule } from '../../lib/nest/rate-limit.module.js';
import { createStoreStack } from '../../lib/nest/store-stack.js';
import type { StoreReport } from '../../lib/stores/layers/circuits.js';
import type { Store, StoreDecision } from '../../lib/stores/store.js';
import { isLong, percentile, scenarioMs, until } from '../support/chaos.js';
import { startRedis, type RedisServer } from '../support/redis-servers.js';
import { ask, freshPrefix } from '../support/stores.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const TIMEOUT_MS = 250;
/** How far beyond the deadline the slowest of 100 checks may be answered, and half of them; other specs run beside the short form. */
const SLACK_MS = isLong ? { p99: 20, median: 20 } : { p99: 150, median: 50 };
/** How long they may take while Redis is not asked. */
const OPEN_MS = { p99: isLong ? 1 : 30, median: 1 };
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
    begin: ({ admin }) => admin.call('ACL', 'SETUSER', 'default', '-evalsha'),
    end: ({ admin }) => admin.call('ACL', 'SETUSER', 'default', '+evalsha'),
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

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function startSetting(args: readonly string[] = []): Promise<Setting> {
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

async function startStore({ url }: { url: string }) {
  const reports: StoreReport[] = [];
  const report = (news: StoreReport) => reports.push(news);
  const prefix = freshPrefix();
  const store = await createStoreStack({ redis: url, prefix, timeoutMs: TIMEOUT_MS, maxKeys: 1000, report });
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
  readonly ms: number;
  readonly decision?: StoreDecision;
  readonly error?: unknown;
}

async function answerOf(store: Store, limit: CompiledLimit): Promise<Answer> {
  const start = performance.now();
  const answer = await ask(store, limit).then(
    (decision) => ({ decision }),
    (error: unknown) => ({ error }),
  );
  return { limit, ms: performance.now() - start, ...answer };
}

/** So many checks at once of each limit. */
const crowd = (store: Store, each: number) =>
  Promise.all(Array.from({ length: each }, () => limits.map((limit) => answerOf(store, limit))).flat());

const sourcesOf = (answers: readonly Answer[]) => [...new Set(answers.map(({ decision }) => decision?.source))];

const times = (answers: readonly Answer[]) => answers.map(({ ms }) => ms);

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

const untilRedis = (store: Store, timeoutMs?: number) => {
  const decides = async () => (await ask(store, limits[0]!, { identity: 'probe' })).source === 'redis';
  return until('Redis decides again', decides, timeoutMs);
};

describe.each(Object.entries(outages))('while Redis %s', (_, { args, begin, end, fromTheStart = false }) => {
  it(
    'no check waits longer than its deadline, hardly any once Redis is not asked, and each is answered',
    async () => {
      const setting = await startSetting(args);
      if (fromTheStart) await begin(setting);
      const { store, states } = await startStore(setting.proxy);
      if (!fromTheStart) {
        expect(sourcesOf(await crowd(store, CROWD))).toEqual(['redis']);
        await begin(setting);
      }
      // They fail together, which is enough for Redis not to be asked.
      const first = await crowd(store, CROWD);
      expect(percentile(times(first), 50)).toBeLessThan(TIMEOUT_MS + SLACK_MS.median);
      expect(percentile(times(first), 99)).toBeLessThan(TIMEOUT_MS + SLACK_MS.p99);

      const later: Answer[] = [];
      for (const stop = Date.now() + scenarioMs(400); Date.now() < stop;) {
        later.push(...(await crowd(store, 1)));
        await sleep(1);
      }
      expect(percentile(times(later), 50)).toBeLessThan(OPEN_MS.median);
      expect(percentile(times(later), 99)).toBeLessThan(OPEN_MS.p99);
      expect(Math.max(...times(later))).toBeLessThan(TIMEOUT_MS + SLACK_MS.p99);
      expectAnswersOf([...first, ...later]);
      expect(states()).toEqual(['failing']);

      await end(setting);
      await untilRedis(store);
      expect(sourcesOf(await crowd(store, CROWD))).toEqual(['redis']);
      expect(states()).toEqual(['failing', 'recovered']);
    },
    scenarioMs(0) + 30_000,
  );
});

describe('connections that a firewall has forgotten', () => {
  it('are given up, and others made', async () => {
    const setting = await startSetting();
    const { store, states } = await startStore(setting.proxy);
    expect(sourcesOf(await crowd(store, CROWD))).toEqual(['redis']);
    setting.proxy.lose();
    expectAnswersOf(await crowd(store, CROWD));
    await untilRedis(store, 5000);
    expect(states()).toEqual(['failing', 'recovered']);
  });
});

describe('a process that is busy for longer than the deadline, again and again', () => {
  it('takes all answers of Redis, under load', async () => {
    const { store, states } = await startStore((await startSetting()).server);
    for (let turns = 0; turns < 6; turns++) {
      const checks = crowd(store, CROWD);
      for (let turn = 0; turn < turns; turn++) await nextTurn();
      const free = performance.now() + TIMEOUT_MS + 100;
      while (performance.now() < free);
      expect(sourcesOf(await checks)).toEqual(['redis']);
    }
    expect(states()).toEqual([]);
  });
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

  it('starts without Redis, says so once, and once that it is back', async () => {
    const { server } = await startSetting();
    await server.kill();
    const logger = new Lines();
    const start = performance.now();
    const limits = RateLimitModule.forRoot({ redis: server.url, prefix: freshPrefix() });
    class AppModule {}
    Module({ imports: [limits], controllers: [ReportsController] })(AppModule);
    const app = await NestFactory.create(AppModule, { logger });
    cleanups.push(() => app.close());
    await app.listen(0, '127.0.0.1');
    expect(performance.now() - start).toBeLessThan(2000 + 2000);
    const url = await app.getUrl();
    const get = async () => (await fetch(url, { headers: { connection: 'close' } })).status;
    for (let request = 0; request < 20; request++) expect(await get()).toBe(200);
    expect(logger.lines).toEqual([expect.stringContaining('the store failed')]);
    await server.start();
    await until('it says more', async () => (await get()) === 200 && logger.lines.length > 1);
    for (let request = 0; request < 20; request++) expect(await get()).toBe(200);
    expect(logger.lines).toEqual([expect.stringMatching(/^error the store failed/), expect.stringMatching(/^log /)]);
  });
});
