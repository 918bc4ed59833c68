import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  type Lease,
  LimiterService,
  RateLimitModule,
  RateLimitStoreError,
  type StoreErrorPolicy,
} from '../../../lib/index.js';
import { startRedis, type RedisServer } from '../../support/redis/redis-servers.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

const KEY = 'user:1';
const STRICT = { strict: true };
const define = {
  local: { algo: 'sliding-window', rate: 10, interval: '1h', onStoreError: 'local' },
  allow: { algo: 'sliding-window', rate: 10, interval: '1h', onStoreError: 'allow' },
  deny: { algo: 'sliding-window', rate: 10, interval: '1h', onStoreError: 'deny' },
  jobs: { algo: 'concurrency', limit: 2, ttl: '1h', onStoreError: 'deny' },
} as const;

const silent = { log: () => undefined, warn: () => undefined, error: () => undefined };

type Outcome = 'resolves' | 'rejects';

/** As the table of `docs/guides/when-redis-fails.md` says. */
const table: [string, (service: LimiterService, name: StoreErrorPolicy) => Promise<unknown>, ...Outcome[]][] = [
  ['consume', (service, name) => service.for(name).consume(KEY), 'resolves', 'resolves', 'rejects'],
  ['peek', (service, name) => service.for(name).peek(KEY), 'resolves', 'resolves', 'rejects'],
  ['acquire', (service, name) => service.for(name).acquire(KEY), 'resolves', 'resolves', 'rejects'],
  ['check', (service, name) => service.check([{ limit: name, key: KEY }]), 'resolves', 'resolves', 'rejects'],
  ['refund', (service, name) => service.for(name).refund(KEY, 1), 'resolves', 'resolves', 'rejects'],
  ['penalize', (service, name) => service.for(name).penalize(KEY, 1), 'resolves', 'resolves', 'rejects'],
  ['strict refund', (service, name) => service.for(name).refund(KEY, 1, STRICT), 'rejects', 'rejects', 'rejects'],
  ['strict penalty', (service, name) => service.for(name).penalize(KEY, 1, STRICT), 'rejects', 'rejects', 'rejects'],
  ['block', (service, name) => service.for(name).block(KEY, '1h'), 'rejects', 'rejects', 'rejects'],
  ['unblock', (service, name) => service.for(name).unblock(KEY), 'rejects', 'rejects', 'rejects'],
  ['reset', (service, name) => service.for(name).reset(KEY), 'rejects', 'rejects', 'rejects'],
  ['history', (service, name) => service.for(name).history(KEY), 'rejects', 'rejects', 'rejects'],
  ['allow', (service) => service.allow({ identity: KEY }), 'rejects', 'rejects', 'rejects'],
  ['deny', (service) => service.deny({ identity: KEY }), 'rejects', 'rejects', 'rejects'],
  ['unlist', (service) => service.unlist({ identity: KEY }), 'rejects', 'rejects', 'rejects'],
  ['setRate', (service, name) => service.setRate(name, { rate: 5 }), 'rejects', 'rejects', 'rejects'],
  ['setMode', (service, name) => service.setMode(name, 'off', { key: KEY }), 'rejects', 'rejects', 'rejects'],
  ['changes', (service) => service.changes(), 'rejects', 'rejects', 'rejects'],
  ['rollback', (service) => service.rollback(0), 'rejects', 'rejects', 'rejects'],
];

describe('while Redis is down', () => {
  let server: RedisServer;
  let app: TestingModule;
  let service: LimiterService;
  let lease: Lease;

  beforeAll(async () => {
    server = await startRedis();
    const module = RateLimitModule.forRoot({ redis: server.url, prefix: freshPrefix(), timeout: PATIENCE, define });
    app = await Test.createTestingModule({ imports: [module] })
      .setLogger(silent)
      .compile();
    await app.init();
    service = app.get(LimiterService);
    lease = (await service.for('jobs').consume(KEY)).lease!;
    await server.kill();
  });
  afterAll(async () => {
    await app?.close();
    await server?.stop();
  });

  for (const [index, name] of (['local', 'allow', 'deny'] as const).entries()) {
    it.each(table)(`%s under '${name}' does what the table says`, async (_, call, ...outcomes) => {
      const calling = call(service, name);
      if (outcomes[index] === 'rejects') await expect(calling).rejects.toThrow(RateLimitStoreError);
      else await calling;
    });
  }

  it('a lease is not renewed, and its release does not reject', async () => {
    await expect(lease.renew()).rejects.toThrow(RateLimitStoreError);
    await lease.release();
  });
});
