import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  BadRequestException,
  Controller,
  type ExecutionContext,
  Get,
  HttpException,
  type INestApplication,
} from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import {
  type AlgorithmOptions,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitConfigError,
  RateLimitExceededException,
  RateLimitGuard,
  RateLimitModule,
  RateLimitStoreError,
  RedisStore,
} from '../../lib/index.js';
import { algorithmNames } from '../support/limits/arbitraries.js';
import { npm, PACKAGE_FOLDER } from '../support/processes/npm.js';
import { startRedis, type RedisServer } from '../support/redis/redis-servers.js';
import { ask, compile, connectRedis, freshPrefix, keyOf, ManualClock, storeKinds } from '../support/limits/stores.js';
import { adapters, HttpApp } from './http-app.js';
import { whileNoTimeIsOver } from '../support/time/no-time-is-over.js';
import { PATIENCE } from '../support/redis/patience.mjs';

const DAY_MS = 86_400_000;

const two: LimitDefinition = { name: 'two', algo: 'fixed-window', rate: 2, interval: '1m' };
const six: LimitDefinition = { name: 'six', algo: 'fixed-window', rate: 6, interval: '1h' };

@Controller()
class ListController {
  @Get()
  @RateLimit(two, six)
  list() {}
}

/** Five units of each algorithm, of which none comes back while a test runs. */
const five: Record<(typeof algorithmNames)[number], AlgorithmOptions> = {
  'fixed-window': { algo: 'fixed-window', rate: 5, interval: '30m' },
  'calendar-window': { algo: 'calendar-window', rate: 5, period: 'year', retain: '1d' },
  'sliding-window': { algo: 'sliding-window', rate: 5, interval: '30m' },
  'sliding-log': { algo: 'sliding-log', rate: 5, interval: '30m' },
  'token-bucket': { algo: 'token-bucket', rate: 5, interval: '30m' },
  'leaky-bucket': { algo: 'leaky-bucket', rate: 5, interval: '30m', queue: 4 },
  gcra: { algo: 'gcra', rate: 5, interval: '30m' },
};

const cleanups: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  jest.restoreAllMocks();
});

/** A Redis of its own, and a connection with all that ioredis does by default, such as its queue. */
async function startWithClient(): Promise<{ server: RedisServer; client: Redis }> {
  const server = await startRedis();
  cleanups.push(() => server.stop());
  const client = new Redis(server.url, { lazyConnect: true, retryStrategy: () => 200 });
  client.on('error', () => undefined);
  cleanups.push(() => client.disconnect());
  return { server, client };
}

describe.each(adapters)('answers over %s', (framework) => {
  async function start() {
    const app = await HttpApp.start(framework, { controllers: [ListController], limits: { onStoreError: 'deny' } });
    cleanups.push(() => app.close());
    return app;
  }

  it('tell a refusal from a store that fails', async () => {
    const app = await start();
    expect(await app.statuses(2, '/')).toEqual([200, 200]);
    const refused = await app.get('/');
    const text = await refused.text();
    expect(refused.status).toBe(429);
    expect(JSON.parse(text)).toMatchObject({ statusCode: 429, limits: ['two'] });
    expect(text + JSON.stringify([...refused.headers])).not.toMatch(/undefined|null|NaN/);

    app.store.check = () => Promise.reject(new RateLimitStoreError('down'));
    const failed = await app.get('/');
    expect(failed.status).toBe(503);
    expect(await failed.json()).toMatchObject({ statusCode: 503 });
    expect(failed.headers.get('retry-after')).toBe('1');
    expect([...failed.headers.keys()].filter((name) => name.includes('ratelimit'))).toEqual([]);
  });

  it('have one plain Retry-After, however many limits have names', async () => {
    const app = await start();
    await app.statuses(2, '/');
    const refused = await app.get('/');
    const told = [...refused.headers.keys()].filter((name) => name.startsWith('retry-after'));
    expect(told).toEqual(['retry-after']);
    expect(refused.headers.get('retry-after')).toBe('60');
  });
});

describe('addresses that a client claims', () => {
  it('do not count where the framework trusts one proxy only', async () => {
    const app = await HttpApp.start('express', {
      controllers: [ListController],
      configure: (nest: INestApplication) => (nest as NestExpressApplication).set('trust proxy', 1),
    });
    cleanups.push(() => app.close());
    const statuses: number[] = [];
    for (const claimed of ['198.51.100.1', '198.51.100.2', '198.51.100.3']) {
      statuses.push((await app.get('/', { 'x-forwarded-for': `${claimed}, 203.0.113.7` })).status);
    }
    expect(statuses).toEqual([200, 200, 429]);
    expect((await app.get('/', { 'x-forwarded-for': '198.51.100.1, 203.0.113.8' })).status).toBe(200);
  });
});

describe('code that asks a limiter', () => {
  it('gets a refusal as a value and a store that fails as an error', async () => {
    const app = await HttpApp.start('express', { limits: { onStoreError: 'deny' } });
    cleanups.push(() => app.close());
    const limiter = app.nest.get(LimiterService).for(two);
    await limiter.consume('user:1', 2);
    await expect(limiter.consume('user:1')).resolves.toMatchObject({ allowed: false, retryAfterMs: 60_000 });
    const down = new RateLimitStoreError('down');
    app.store.check = () => Promise.reject(down);
    await expect(limiter.consume('user:1')).rejects.toBe(down);
    await expect(limiter.peek('user:1')).rejects.toBe(down);
    const check = app.nest.get(LimiterService).check([{ limit: two, key: 'user:1' }]);
    await expect(check).rejects.toBe(down);
  });
});

/** Messages are refused with the error of their transport, which holds the exception. */
const whatWasRefused = (error: Error) => (error instanceof HttpException ? error : error.cause);

describe('calls without a response', () => {
  const everyone: LimitDefinition = { ...two, name: 'everyone', key: 'global' };

  class Handlers {
    @RateLimit(everyone)
    counted() {}

    @RateLimit({ ...two, key: () => undefined, onMissingKey: 'refuse' })
    refused() {}
  }

  /** A call as Nest hands it to guards; each gets a context of its own. */
  function contextOf(type: string, args: unknown[], handler: keyof Handlers): ExecutionContext {
    const context = {
      getType: () => type,
      getArgs: () => args,
      getClass: () => Handlers,
      getHandler: () => Handlers.prototype[handler],
    };
    return context as unknown as ExecutionContext;
  }

  const transports: [string, string, () => unknown[]][] = [
    ['a message of RPC', 'rpc', () => [{ some: 'data' }, {}]],
    ['a message of a WebSocket', 'ws', () => [{ id: 'client' }, { some: 'data' }]],
    ['a subscription of GraphQL', 'graphql', () => [undefined, {}, { connectionParams: {} }, { path: {} }]],
    ['a subscription of GraphQL without any context', 'graphql', () => [undefined, {}, undefined, { path: {} }]],
  ];

  async function start() {
    const app = await HttpApp.start('express', { providers: [Handlers] });
    cleanups.push(() => app.close());
    const check = jest.spyOn(app.store, 'check');
    return { guard: app.nest.get(RateLimitGuard), check };
  }

  it.each(transports)('refuse %s with the exception and nothing else', async (_, type, args) => {
    const { guard } = await start();
    const call = async () => guard.canActivate(contextOf(type, args(), 'counted'));
    await expect(call()).resolves.toBe(true);
    await expect(call()).resolves.toBe(true);
    const error: unknown = await call().catch(whatWasRefused);
    expect(error).toBeInstanceOf(RateLimitExceededException);
    expect(error).toMatchObject({ result: { allowed: false, tightest: { limit: 'everyone', retryAfterMs: 60_000 } } });
  });

  it.each(transports)('never count %s under the identity undefined', async (_, type, args) => {
    const { guard, check } = await start();
    const call = async () => guard.canActivate(contextOf(type, args(), 'refused'));
    for (let calls = 0; calls < 3; calls++) {
      expect(await call().catch(whatWasRefused)).toBeInstanceOf(BadRequestException);
    }
    expect(check).not.toHaveBeenCalled();
  });
});

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

const open = (prefix: string, clock?: ManualClock) =>
  new RedisStore(redis, { prefix, timeoutMs: 5000, ...(clock === undefined ? {} : { clock }) });

describe('RedisStore', () => {
  describe.each(algorithmNames)('%s', (algo) => {
    const limit = compile(five[algo], 'shared');

    it.each([
      ['a minute behind', -60_000],
      ['a minute ahead', 60_000],
      ['two days behind', -2 * DAY_MS],
      ['two days ahead', 2 * DAY_MS],
    ])('has a process whose clock is %s wait as long as any other', async (_, ms) => {
      const prefix = freshPrefix();
      const first = open(prefix);
      await ask(first, limit, { cost: 5 });
      const { retryAfterMs } = await ask(first, limit);
      const realNow = Date.now;
      jest.spyOn(Date, 'now').mockImplementation(() => realNow() + ms);
      const other = await ask(open(prefix), limit);
      expect(other).toMatchObject({ allowed: false, remaining: 0, source: 'redis' });
      expect(other.retryAfterMs).toBeLessThanOrEqual(retryAfterMs);
      expect(other.retryAfterMs).toBeGreaterThan(retryAfterMs - 30_000);
    });

    it('gives a key without a time to live a new one, so no block lasts for ever', async () => {
      const clock = new ManualClock();
      const prefix = freshPrefix();
      const store = open(prefix, clock);
      const counter = { limit, identity: 'ip:203.0.113.7' };
      await ask(store, limit, { cost: 5 });
      const key = keyOf(prefix, counter);
      const { retryAfterMs } = await ask(store, limit);
      await redis.persist(key);
      expect(await redis.pttl(key)).toBe(-1);
      clock.advanceMs(retryAfterMs);
      const { allowed, resetAfterMs } = await ask(store, limit);
      expect(allowed).toBe(true);
      expect(await redis.pttl(key)).toBeGreaterThan(0);
      for (const each of await redis.keys(`${prefix}:*`)) expect(await redis.persist(each)).toBe(1);
      clock.advanceMs(resetAfterMs);
      await expect(ask(store, limit, { cost: 5 })).resolves.toMatchObject({ allowed: true });
      for (const each of await redis.keys(`${prefix}:*`)) expect(await redis.pttl(each)).toBeGreaterThan(0);
    });
  });
});

describe.each(Object.entries(storeKinds))('rates on %s', (_, make) => {
  const most = Number.MAX_SAFE_INTEGER;
  it.each<[string, number, AlgorithmOptions]>([
    ['fixed-window', most, { algo: 'fixed-window', rate: most, interval: '1s' }],
    ['calendar-window', most, { algo: 'calendar-window', rate: most, period: 'second' }],
    ['sliding-window', most, { algo: 'sliding-window', rate: most, interval: '1s' }],
    ['sliding-log', 2 ** 23 - 1, { algo: 'sliding-log', rate: 2 ** 23 - 1, interval: '1s' }],
    ['token-bucket', 1e15, { algo: 'token-bucket', rate: 1e15, interval: '1s' }],
    ['gcra', 1e15, { algo: 'gcra', rate: 1e15, interval: '1s' }],
    ['leaky-bucket', 1e15, { algo: 'leaky-bucket', rate: 1e15, interval: '1s', queue: 1e15 - 1 }],
  ])('%s counts %d units a second, to the last one', async (_, quota, options) => {
    const store = make(new ManualClock(), redis);
    cleanups.push(() => store.close());
    const limit = compile(options);
    await expect(ask(store, limit, { cost: quota - 1 })).resolves.toMatchObject({ allowed: true, remaining: 1 });
    await expect(ask(store, limit, { cost: 2 })).resolves.toMatchObject({ allowed: false, remaining: 1 });
    await expect(ask(store, limit)).resolves.toMatchObject({ allowed: true, remaining: 0 });
    await expect(ask(store, limit)).resolves.toMatchObject({ allowed: false, remaining: 0 });
  });
});

describe('a rate that could not be counted exactly', () => {
  it('is refused at start-up', () => {
    const rates: AlgorithmOptions[] = [
      { algo: 'fixed-window', rate: 2 ** 53, interval: '1s' },
      { algo: 'sliding-log', rate: 2 ** 24, interval: '1s' },
      { algo: 'gcra', rate: 7, interval: '1y', burst: 1e9 },
      { algo: 'token-bucket', rate: 7, interval: '1y', burst: 1e9 },
      { algo: 'leaky-bucket', rate: 7, interval: '1y', queue: 1e9 },
    ];
    for (const options of rates) expect(() => compile(options)).toThrow(RateLimitConfigError);
  });
});

describe('while Redis is down', () => {
  it('an app answers on its own connection at once, and repeats nothing when Redis is back', async () => {
    const { server, client } = await startWithClient();
    await client.connect();
    const testing = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ redis: client, timeout: PATIENCE })],
      controllers: [ListController],
    }).compile();
    testing.useLogger(false);
    const app = testing.createNestApplication();
    await app.listen(0, '127.0.0.1');
    cleanups.push(() => app.close());
    const url = await app.getUrl();
    const get = async () => (await fetch(url, { headers: { connection: 'close' } })).status;
    expect(await get()).toBe(200);
    expect(await client.dbsize()).toBe(2);

    const gone = once(client, 'close');
    await server.kill();
    await gone;
    // None of them waits until its time is over. The fallback did not see the first request.
    await whileNoTimeIsOver(async () => {
      expect([await get(), await get(), await get(), await get()]).toEqual([200, 200, 429, 429]);
    });

    // `events.once` would reject at the error of an attempt to connect before the server listens.
    const back = new Promise((resolve) => client.once('ready', resolve));
    const sent = jest.spyOn(client, 'sendCommand');
    await server.start();
    await back;
    // What was queued would have been sent before this, if only to hear that the new server does not know the script. The only
    // scripts look at what was changed meanwhile.
    const keys = sent.mock.calls
      .map(([command]) => command)
      .filter(({ name }) => name === 'evalsha' || name === 'eval');
    expect(keys.map(({ args }) => String(args[2])).filter((key) => !key.endsWith(':rates'))).toEqual([]);
    expect(await client.dbsize()).toBe(0);
  });

  it('a connection that is not up yet is asked for nothing, though it would queue it', async () => {
    const { client } = await startWithClient();
    expect(client.options.enableOfflineQueue).toBe(true);
    const store = new RedisStore(client, { prefix: freshPrefix() });
    const limit = compile(five.gcra);
    const counter = { limit, identity: 'user:1' };
    await expect(ask(store, limit)).rejects.toThrow(RateLimitStoreError);
    await expect(store.refund([{ ...counter, units: 1 }])).rejects.toThrow(RateLimitStoreError);
    await expect(store.reset([counter])).rejects.toThrow(RateLimitStoreError);
    expect(client.status).toBe('wait');
  });
});

describe('a server that takes no script', () => {
  const BUILT = fileURLToPath(new URL('../../build/storage/stores/redis/redis.store.js', import.meta.url));

  /** Node ends a process on a rejection that nobody handles; a test runner does not, so this runs in a process of its own. */
  const PROGRAM = `
    import { CompiledLimit } from './build/engine/limits/compiled-limit.js';
    import { createClient } from './build/storage/redis/client.js';
    import { RedisStore } from './build/storage/stores/redis/redis.store.js';
    const store = new RedisStore(await createClient(process.argv[1]), { timeoutMs: 5000, ownsClient: true });
    const limit = new CompiledLimit({ algo: 'gcra', rate: 5, interval: '1h' }, { location: 'test' });
    const check = () => store.check([{ entries: [{ limit, identity: 'global', cost: 1 }] }]);
    const outcomes = [...(await Promise.allSettled([store.open()]))];
    for (let i = 0; i < 3; i++) {
      const checks = [check()];
      await new Promise(setImmediate);
      checks.push(check());
      outcomes.push(...(await Promise.allSettled(checks)));
      await new Promise(setImmediate);
    }
    await store.close();
    console.log(outcomes.map(({ reason }) => /NOPERM/.test(reason?.message)).join());
  `;

  beforeAll(async () => {
    if (!existsSync(BUILT)) await npm(['run', 'build'], PACKAGE_FOLDER, 500_000);
  });

  it('fails each check and leaves the process alive', async () => {
    const { server, client } = await startWithClient();
    await client.call('ACL', 'SETUSER', 'default', '-script', '-eval');
    const args = ['--input-type=module', '--eval', PROGRAM, server.url];
    const run = promisify(execFile)(process.execPath, args, { cwd: PACKAGE_FOLDER, timeout: 500_000 });
    await expect(run).resolves.toMatchObject({
      stdout: expect.stringMatching(/^true,true,true,true,true,true,true$/m) as unknown,
      stderr: '',
    });
  });
});
