import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { type LimitDefinition, LimiterService, RateLimitModule } from '../../../lib/index.js';
import { algorithmNames } from '../../support/limits/arbitraries.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE } from '../../support/redis/patience.mjs';
import { type RedisSentinel, startSentinel } from '../../support/redis/redis-servers.js';
import { until } from '../../support/time/until.js';

/** Two units each, of which none comes back while a test runs. */
const define = {
  'fixed-window': { algo: 'fixed-window', rate: 2, interval: '1d' },
  'calendar-window': { algo: 'calendar-window', rate: 2, period: 'year' },
  'sliding-window': { algo: 'sliding-window', rate: 2, interval: '1d' },
  'sliding-log': { algo: 'sliding-log', rate: 2, interval: '1d' },
  'token-bucket': { algo: 'token-bucket', rate: 1, interval: '1d', burst: 2 },
  'leaky-bucket': { algo: 'leaky-bucket', rate: 1, interval: '1d', queue: 1 },
  gcra: { algo: 'gcra', rate: 1, interval: '1d', burst: 2 },
} satisfies Record<(typeof algorithmNames)[number], LimitDefinition>;

let sentinel: RedisSentinel;
let app: TestingModule;
let service: LimiterService;
const clients: Redis[] = [];

beforeAll(async () => {
  sentinel = await startSentinel();
  const { sentinels, name } = sentinel;
  const module = RateLimitModule.forRoot({
    redis: { sentinels, name },
    prefix: freshPrefix(),
    define,
    timeout: PATIENCE,
  });
  app = await Test.createTestingModule({ imports: [module] }).compile();
  app.useLogger(false);
  await app.init();
  service = app.get(LimiterService);
});
afterAll(async () => {
  for (const client of clients) client.disconnect();
  await app?.close();
  await sentinel?.stop();
});

function clientOf({ host, port }: { host: string; port: number }): Redis {
  const client = new Redis(port, host);
  client.on('error', () => undefined);
  clients.push(client);
  return client;
}

it.each(algorithmNames)('%s is decided by the master that Sentinels name', async (algo) => {
  for (const allowed of [true, true, false]) {
    expect(await service.for(algo).consume('ann')).toMatchObject({ allowed, source: 'redis' });
  }
  expect(await clientOf(sentinel.master).dbsize()).toBeGreaterThan(0);
});

// The last test: the first master is gone after it.
it('limits go on to apply after Sentinels have made another server the master', async () => {
  const { sentinels, name, master, replica } = sentinel;
  const limiter = service.for('fixed-window');
  expect(await limiter.consume('bob')).toMatchObject({ remaining: 1, source: 'redis' });
  await clientOf(master).wait(1, 0);

  const admin = clientOf(sentinels[0]!);
  const promoted = clientOf(replica);
  await until(async () => {
    if ((await promoted.info('replication')).includes('role:master')) return true;
    // Refused while one is under way, or while the Sentinel has not heard of a replica that is up to date.
    await admin.call('SENTINEL', 'FAILOVER', name).catch(() => undefined);
    return false;
  });
  await master.kill();

  await until(async () => (await limiter.peek('bob')).source === 'redis');
  expect(await limiter.consume('bob')).toMatchObject({ allowed: true, remaining: 0, source: 'redis' });
  expect(await limiter.consume('bob')).toMatchObject({ allowed: false, source: 'redis' });
});
