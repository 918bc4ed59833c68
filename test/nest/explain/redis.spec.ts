import { afterAll, afterEach, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { Redis } from 'ioredis';
import { formatExplanation, type LimitDefinition, RateLimit } from '../../../lib/index.js';
import { RatesApp } from '../../app/overrides/overrides-app.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-servers.js';
import { TcpProxy } from '../../support/redis/tcp-proxy.js';
import { until } from '../../support/time/until.js';

const KEY = 'tenant:acme';

const limits = {
  window: { algo: 'fixed-window', rate: 3, interval: '1h', blockFor: '1h' },
  sliding: { algo: 'sliding-window', rate: 3, interval: '1h' },
  log: { algo: 'sliding-log', rate: 3, interval: '1h' },
  bucket: { algo: 'token-bucket', rate: 3, interval: '1h' },
  cells: { algo: 'gcra', rate: 3, interval: '1h' },
  month: { algo: 'calendar-window', rate: 3, period: 'month' },
  queue: { algo: 'leaky-bucket', rate: 3, interval: '1h', queue: 3 },
  jobs: { algo: 'concurrency', limit: 3, ttl: '1h' },
  ahead: { algo: 'fixed-window', rate: 100, interval: '1h', prefetch: { units: 10, ttl: '1m' } },
} as const satisfies Record<string, LimitDefinition>;
const names = Object.keys(limits) as (keyof typeof limits)[];
/** Its function takes longer than any call of the store may, on the clock of the process. */
const slow = { algo: 'gcra', rate: 3, interval: '1h', key: () => anHourLater('slow') } as const;
const define = { ...limits, slow, own: { algo: 'gcra', rate: 3, interval: '1h', scope: 'instance' } } as const;

@Controller('reports')
class ReportsController {
  @Get()
  @RateLimit(...(names as [string]))
  list() {
    return [];
  }
}

@Controller('slow')
class SlowController {
  @Get()
  @RateLimit('slow')
  get() {
    return 'done';
  }
}

function anHourLater<T>(value: T): T {
  const now = performance.now.bind(performance);
  jest.spyOn(performance, 'now').mockImplementation(() => now() + 3_600_000);
  return value;
}

let server: RedisServer;
let proxy: TcpProxy;
let redis: Redis;
let app: RatesApp;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port, server.host);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});
beforeEach(async () => {
  proxy = await TcpProxy.start(server);
  app = await RatesApp.start({ define, redis: proxy.url }, { controllers: [ReportsController, SlowController] });
});
afterEach(async () => {
  jest.restoreAllMocks();
  proxy.pass();
  await app.close();
  await proxy.close();
});

it('a function of the app takes its own time', async () => {
  const handler = Object.getOwnPropertyDescriptor(SlowController.prototype, 'get')!.value as () => string;
  const context = new ExecutionContextHost([{}, {}], SlowController, handler);
  expect(await app.service.explain(context)).toMatchObject({
    outcome: { verdict: 'allowed' },
    limits: [{}, {}, { name: 'slow', key: { identity: 'slow' }, state: { remaining: 3 } }],
  });
});

/** Nothing listens where the app looks for Redis. */
async function goneProxy(): Promise<void> {
  await proxy.close();
  proxy = await TcpProxy.start(server);
}

async function contents(): Promise<Record<string, string>> {
  const keys = (await redis.keys('*')).toSorted();
  const dumps = await Promise.all(keys.map(async (key) => [key, (await redis.dumpBuffer(key)).toString('hex')]));
  return Object.fromEntries(dumps) as Record<string, string>;
}

it('an explanation only reads', async () => {
  const { service } = app;
  for (const name of names) for (let count = 0; count < 4; count++) await service.for(name).consume(KEY);
  await service.setRate('log', { rate: 2 }, { key: 'tenant:*', inherit: 'proportional' });
  await service.setMode('cells', 'shadow');
  const before = await contents();
  expect(Object.keys(before).length).toBeGreaterThan(names.length);
  const monitor = await redis.monitor();
  const seen: string[][] = [];
  monitor.on('monitor', (_time: string, args: string[]) => seen.push(args));
  const explained = await service.explain({ controller: ReportsController, handler: 'list', key: KEY });
  const code = await Promise.all(names.map((limit) => service.explain({ limit, key: KEY })));
  await redis.echo('the end');
  await until(() => seen.some(([, text]) => text === 'the end'));
  monitor.disconnect();
  expect(explained.limits.map(({ name }) => name).toSorted()).toEqual(['gcra:7/1s', 'hourly', ...names].toSorted());
  expect(code.map(({ limits: [limit] }) => limit!.state!.source)).toEqual(names.map(() => 'redis'));
  const commands = [...new Set(seen.map(([command]) => command!.toLowerCase()))];
  const info = (await redis.call('COMMAND', 'INFO', ...commands)) as [name: string, arity: number, flags: string[]][];
  expect(info.filter(([, , flags]) => flags.includes('write'))).toEqual([]);
  expect(commands).toEqual(expect.arrayContaining(['evalsha', 'mget']));
  expect(await contents()).toEqual(before);
});

it.each<[string, () => Promise<void> | void]>([
  ['is silent', () => proxy.hold('all')],
  ['has gone', () => goneProxy()],
])('while Redis %s, an explanation shows the limits, and says why nothing is known of them', async (_, fail) => {
  await app.service.setRate('log', { rate: 2 }, { key: 'tenant:*' });
  const hasty = await RatesApp.start({ define, redis: proxy.url, timeout: '100ms' });
  const { service } = hasty;
  await until(async () => (await service.explain({ limit: 'log', key: KEY })).limits[0]!.quota === 2);
  await fail();
  const explanation = await service.explain({ limit: 'log', key: KEY });
  expect(explanation).toMatchObject({
    outcome: { verdict: 'unknown', reason: expect.stringContaining("'log': ") },
    limits: [{ quota: 2, rate: { source: 'pattern' }, status: 'asked', onStoreError: 'local' }],
    unread: expect.any(String),
  });
  expect(explanation.limits[0]).not.toHaveProperty('state');
  expect(explanation.limits[0]!.reason).toBe(explanation.unread);
  expect(formatExplanation(explanation)).toContain(`the store could not be read: ${explanation.unread}`);
  const own = await service.explain({ limit: 'own', key: KEY });
  expect(own).toMatchObject({
    outcome: { verdict: 'allowed' },
    limits: [{ state: { remaining: 3, source: 'memory' } }],
  });
  proxy.pass();
  await hasty.close();
});
