import { EventEmitter, once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { LimiterService, RateLimitModule } from '../../../lib/index.js';
import { KeptLeases } from '../../../lib/app/waiting/kept-leases.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-servers.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

const slots = { name: 'slots', algo: 'concurrency', limit: 1, ttl: '30s' } as const;

let server: RedisServer;
let admin: Redis;
let prefix: string;
let app: TestingModule;
const logged: unknown[] = [];

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.url);
});
afterAll(async () => {
  admin.disconnect();
  await server.stop();
});
beforeEach(() => {
  logged.length = 0;
  for (const level of ['warn', 'error'] as const) {
    jest.spyOn(Logger.prototype, level).mockImplementation((message: unknown) => void logged.push(message));
  }
});
afterEach(() => void jest.restoreAllMocks());

async function start(): Promise<LimiterService> {
  prefix = freshPrefix();
  const module = RateLimitModule.forRoot({ redis: server.url, prefix, timeout: PATIENCE });
  app = await Test.createTestingModule({ imports: [module] }).compile();
  await app.init();
  return app.get(LimiterService);
}

/** Who holds a slot, on Redis. */
const held = async () => (await admin.keys(`${prefix}:*`)).filter((key) => key.includes('slots'));

describe('an app that closes', () => {
  it('waits for work that holds a slot, and leaves none taken', async () => {
    const limiter = (await start()).for(slots);
    const work = new EventEmitter();
    const hasBegun = once(work, 'began');
    const result = limiter.hold('worker', async () => {
      const ending = once(work, 'end');
      work.emit('began');
      await ending;
      return 'done';
    });
    await hasBegun;
    let isClosed = false;
    const closing = app.close().then(() => (isClosed = true));
    expect(await held()).toHaveLength(1);
    expect(isClosed).toBe(false);
    work.emit('end');
    expect(await result).toBe('done');
    await closing;
    expect(await held()).toEqual([]);
    expect(logged).toEqual([]);
  });

  it('says nothing of what fails afterwards, since it has ended the connection itself', async () => {
    const limiter = (await start()).for(slots);
    const { lease } = await limiter.consume('worker');
    await app.close();
    await lease!.release();
    await limiter.consume('other');
    expect(logged).toEqual([]);
  });

  it('says nothing of channels that it did not come to listen to', async () => {
    for (let i = 0; i < 20; i++) {
      await start();
      await app.close();
    }
    expect(logged).toEqual([]);
  });

  it('has no connection left', async () => {
    await start();
    await app.close();
    const list = (await admin.client('LIST')) as string;
    expect(list.trim().split('\n')).toHaveLength(1);
  });
});

function leaseOf(leases: KeptLeases) {
  const release = jest.fn(() => {
    leases.delete(lease);
    return Promise.resolve();
  });
  const lease = { release };
  leases.add(lease);
  return { lease, release };
}

describe('leases whose work goes on', () => {
  it('are released when the time is over', async () => {
    const leases = new KeptLeases();
    const [one, two] = [leaseOf(leases), leaseOf(leases)];
    await leases.end(1);
    expect(one.release).toHaveBeenCalledTimes(1);
    expect(two.release).toHaveBeenCalledTimes(1);
    await leases.end(60_000);
  });

  it('are waited for until the last one has ended', async () => {
    const leases = new KeptLeases();
    const [one, two] = [leaseOf(leases), leaseOf(leases)];
    let ended = false;
    const ending = leases.end(600_000).then(() => (ended = true));
    await one.lease.release();
    await Promise.resolve();
    expect(ended).toBe(false);
    await two.lease.release();
    await ending;
  });
});
