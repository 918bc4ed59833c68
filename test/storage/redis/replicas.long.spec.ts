import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import {
  type LimitDefinition,
  type Limiter,
  LimiterService,
  RateLimitConfigError,
  RateLimitModule,
  type RateLimitModuleOptions,
  RateLimitStoreError,
} from '../../../lib/index.js';
import { until } from '../../support/processes/chaos.js';
import { type RedisCluster, type RedisServer, startCluster, startRedis } from '../../support/redis/redis-servers.js';

const day = { algo: 'budget', period: 'day', limit: 10 } as const;
const define = {
  plain: day,
  paid: { ...day, credits: true, replicas: 1, onStoreError: 'deny' },
  two: { ...day, replicas: 2, onStoreError: 'local' },
} as const satisfies Record<string, LimitDefinition>;

const begin = async (redis: RateLimitModuleOptions['redis'], timeout = 10_000) => {
  const module = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ redis: redis!, define, timeout })],
  }).compile();
  await module.init();
  const limiters = module.get(LimiterService);
  return { module, limiters, paid: limiters.for('paid'), plain: limiters.for('plain'), two: limiters.for('two') };
};

/** How often servers were asked which replicas have what was written. */
async function waits({ url }: RedisServer): Promise<number> {
  const client = new Redis(url);
  try {
    return Number(/cmdstat_wait:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0);
  } finally {
    client.disconnect();
  }
}

async function connections({ url }: RedisServer): Promise<number> {
  const client = new Redis(url);
  try {
    return Number(/connected_clients:(\d+)/.exec(await client.info('clients'))![1]) - 1;
  } finally {
    client.disconnect();
  }
}

async function isLinked({ url }: RedisServer): Promise<boolean> {
  const client = new Redis(url);
  try {
    return (await client.info('replication')).includes('master_link_status:up');
  } finally {
    client.disconnect();
  }
}

const consumer = (paid: Limiter) => (key: string) => paid.consume(key).catch(({ message }: Error) => message);

describe('a limit that replicas confirm', () => {
  let master: RedisServer;
  let replica: RedisServer;
  beforeAll(async () => {
    master = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] });
    replica = await startRedis({ args: ['--replicaof', master.host, `${master.port}`] });
    await until('the replica follows', () => isLinked(replica));
  });
  afterAll(async () => {
    await replica?.stop();
    await master?.stop();
  });

  it('tells what a replica has, and asks for nothing that only looks or is refused', async () => {
    const { module, paid, plain } = await begin(master.url);
    const reader = new Redis(replica.url);
    try {
      await plain.consume('a');
      expect(await waits(master)).toBe(0);
      const before = await connections(master);
      for (let unit = 1; unit <= 10; unit++) {
        expect(await paid.consume('a')).toMatchObject({ allowed: true, source: 'redis' });
        const [key] = await reader.keys('*{a}::paid:*');
        expect((await reader.getBuffer(key!))!.readDoubleLE(16)).toBe(unit);
      }
      expect(await connections(master)).toBe(before + 1);
      const asked = await waits(master);
      expect(asked).toBe(10);
      expect(await paid.consume('a')).toMatchObject({ allowed: false, source: 'redis' });
      expect(await waits(master)).toBe(asked);
      await paid.peek('a');
      expect(await waits(master)).toBe(asked);
      await paid.history('a').catch(() => undefined);
      expect(await waits(master)).toBe(asked);
      await Promise.all([paid.refund('a', 3), paid.credit('a', 5)]);
      expect((await paid.peek('a')).remaining).toBe(8);
      expect(await waits(master)).toBeGreaterThan(asked);
    } finally {
      reader.disconnect();
      await module.close();
    }
  });

  it('says what too few confirm, while all others go on', async () => {
    const logged = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const { module, limiters, paid, plain, two } = await begin(master.url, 60_000);
    // The replica confirms nothing, however long that is waited for: half of the time of a check would be left for all else.
    const waited = jest.spyOn(Redis.prototype, 'wait').mockImplementation(function (this: Redis, replicas) {
      return this.call('WAIT', replicas, 20) as Promise<number>;
    });
    try {
      replica.pause();
      for (let time = 0; time < 7; time++) {
        await expect(paid.consume('b')).rejects.toThrow(
          'Redis has changed the counter, but only 0 of 1 replicas confirmed that within 30000 ms: a failover may lose it',
        );
        expect(await plain.consume(`b${time}`)).toMatchObject({ allowed: true, source: 'redis' });
      }
      await expect(paid.credit('b', 100, { id: 'payment' })).rejects.toThrow(RateLimitStoreError);
      await expect(
        limiters.check([
          { limit: 'paid', key: 'b' },
          { limit: 'plain', key: 'b' },
        ]),
      ).rejects.toThrow('0 of 1');
      // It was charged, so a refusal is one, whoever confirms what.
      for (let unit = 0; unit < 2; unit++) await expect(paid.consume('c', 5)).rejects.toThrow('0 of 1');
      expect(await paid.consume('c')).toMatchObject({ allowed: false, source: 'redis' });
      expect(await two.consume('b')).toMatchObject({ allowed: true, source: 'fallback' });
      // Once, and no node is said to fail.
      expect(logged.mock.calls).toEqual([[expect.stringContaining('replicas lag: Redis has changed the counter')]]);
      expect(new Set(waited.mock.calls.map(String))).toEqual(new Set(['1,30000', '2,30000']));
      waited.mockRestore();
      replica.resume();
      await until('the replica follows', () => isLinked(replica));
      // Of another instance, too.
      const other = await begin(master.url);
      const asked = await waits(master);
      const credits = await other.paid.credit('b', 100, { id: 'payment' });
      expect(await waits(master)).toBe(asked + 1);
      await other.module.close();
      expect(await paid.credit('b', 100, { id: 'payment' })).toBe(credits);
    } finally {
      waited.mockRestore();
      replica.resume();
      await module.close();
    }
  });

  describe('if many changes wait for a replica at once', () => {
    beforeEach(() => {
      jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
      // It confirms nothing, and the server does not say so in time.
      jest.spyOn(Redis.prototype, 'wait').mockImplementation(() => new Promise<never>(() => undefined));
    });
    afterEach(() => void jest.restoreAllMocks());

    it('opens no circuit', async () => {
      const { module, paid, plain } = await begin(master.url, 1000);
      try {
        const consume = consumer(paid);
        const first = consume('g0');
        await sleep(200);
        const others = Array.from({ length: 10 }, (_, index) => consume(`g${index + 1}`));
        const failures = await Promise.all([first, ...others]);
        expect(failures).toEqual(failures.map(() => expect.stringContaining('did not report within')));
        expect(await plain.consume('g')).toMatchObject({ allowed: true, source: 'redis' });
      } finally {
        await module.close();
      }
    });

    it('opens no circuit, and does not charge those whose turn does not come in time', async () => {
      const { module, paid, plain } = await begin(master.url, 1000);
      try {
        const consume = consumer(paid);
        // It opens the connection.
        await consume('h');
        await sleep(300);
        // The server takes half of the time of the first one, and the replica takes the rest.
        master.pause();
        const first = consume('h0');
        await sleep(50);
        const behind = Array.from({ length: 10 }, (_, index) => consume(`h${index + 1}`));
        await sleep(450);
        master.resume();
        expect(await first).toContain('did not report within');
        const failures = await Promise.all(behind);
        expect(failures).toEqual(behind.map(() => expect.stringContaining('the counter is unchanged')));
        expect(await plain.consume('h')).toMatchObject({ allowed: true, source: 'redis' });
        const other = await begin(master.url);
        expect((await other.paid.peek('h1')).remaining).toBe(10);
        await other.module.close();
      } finally {
        master.resume();
        await module.close();
      }
    });
  });

  it('is not charged once its caller was told that it failed, however late there is a connection', async () => {
    const { module, paid, plain } = await begin(master.url, 500);
    try {
      await plain.consume('e');
      master.pause();
      await expect(paid.consume('e')).rejects.toThrow(RateLimitStoreError);
      master.resume();
      await until('the master answers', async () => (await plain.peek('e')).source === 'redis');
      // On the connection that was waited for, behind whatever was asked on it before.
      await until('there is a connection', async () => (await paid.consume('f').catch(() => undefined)) !== undefined);
      const other = await begin(master.url);
      expect((await other.paid.peek('e')).remaining).toBe(10);
      await other.module.close();
    } finally {
      master.resume();
      await module.close();
    }
  });

  it('is not confirmed by more replicas than there are', async () => {
    const { module, two } = await begin(master.url, 1000);
    try {
      expect(await two.consume('d')).toMatchObject({ source: 'fallback' });
    } finally {
      await module.close();
    }
  });
});

describe('a limit that replicas confirm, on a Cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  it('is confirmed on the node that has the slot', async () => {
    const { module, paid } = await begin({ nodes: cluster.nodes });
    try {
      const decisions = await Promise.all(Array.from({ length: 60 }, (_, number) => paid.consume(`user:${number}`)));
      expect(decisions.every(({ allowed, source }) => allowed && source === 'redis')).toBe(true);
      for (const each of await cluster.masters()) expect(await waits(each)).toBeGreaterThan(0);
    } finally {
      await module.close();
    }
  });
});

describe('replicas', () => {
  const wrong: [object, string][] = [
    [{ replicas: 0 }, 'define.a.replicas: expected a whole number >= 1 and <= 100, received 0'],
    [{ replicas: '1' }, "define.a.replicas: expected a whole number >= 1 and <= 100, received '1'"],
    [{ replicas: 1, prefetch: { units: 5, ttl: '1s' } }, "options 'replicas' and 'prefetch' exclude each other"],
    [{ replicas: 1, scope: 'instance' }, "options 'replicas' and scope: 'instance' exclude each other"],
  ];
  it.each(wrong)('are refused where they make no sense: %j', async (options, message) => {
    const a = { algo: 'gcra', rate: 1, interval: '1s', ...options } as LimitDefinition;
    const starting = Test.createTestingModule({ imports: [RateLimitModule.forRoot({ define: { a } })] }).compile();
    const failure = await starting
      .then(
        (module) => module.init().then(() => undefined),
        (error: unknown) => error,
      )
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RateLimitConfigError);
    expect((failure as Error).message).toContain(message);
  });

  it('mean nothing in process', async () => {
    const { module, paid } = await begin(undefined);
    expect(await paid.consume('a')).toMatchObject({ allowed: true, source: 'memory' });
    await module.close();
  });
});
