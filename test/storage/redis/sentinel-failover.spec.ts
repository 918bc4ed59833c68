import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { LimiterService, RateLimitModule } from '../../../lib/index.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE } from '../../support/redis/patience.mjs';
import { type RedisSentinel, startSentinel } from '../../support/redis/redis-servers.js';
import { until } from '../../support/time/until.js';

let sentinel: RedisSentinel;
let app: TestingModule;
const clients: Redis[] = [];

beforeAll(async () => {
  sentinel = await startSentinel();
  const { sentinels, name } = sentinel;
  const define = { logins: { algo: 'fixed-window', rate: 2, interval: '1d' } } as const;
  const module = RateLimitModule.forRoot({
    redis: { sentinels, name },
    prefix: freshPrefix(),
    define,
    timeout: PATIENCE,
  });
  app = await Test.createTestingModule({ imports: [module] }).compile();
  app.useLogger(false);
  await app.init();
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

it('limits go on to apply after Sentinels have made another server the master', async () => {
  const { sentinels, name, master, replica } = sentinel;
  const limiter = app.get(LimiterService).for('logins');
  expect(await limiter.consume('ann')).toMatchObject({ remaining: 1, source: 'redis' });
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

  await until(async () => (await limiter.peek('ann')).source === 'redis');
  expect(await limiter.consume('ann')).toMatchObject({ allowed: true, remaining: 0, source: 'redis' });
  expect(await limiter.consume('ann')).toMatchObject({ allowed: false, source: 'redis' });
});
