import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import calculateSlot from 'cluster-key-slot';
import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster5 } from 'ioredis-5';
import {
  LimiterService,
  RateLimitHealthIndicator,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { type RedisCluster, type RedisServer, startCluster } from '../../support/redis/redis-servers.js';
import { freshPrefix, SENDS_ONCE } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';

const first = { name: 'first', algo: 'fixed-window', rate: 100, interval: '1d' } as const;
const second = { name: 'second', algo: 'fixed-window', rate: 100, interval: '1d' } as const;

const MOVING = 'user:1';
const SLOT = calculateSlot(MOVING);

interface Master {
  readonly server: RedisServer;
  readonly client: Redis;
  readonly id: string;
}

let cluster: RedisCluster;
let masters: Master[];
let app: TestingModule;
let limiters: LimiterService;
let prefix: string;
let errors: string[];
let lines: string[];

beforeAll(async () => {
  // None is replaced while it is silent.
  cluster = await startCluster(['--cluster-node-timeout', '60000']);
  const servers = await cluster.masters();
  masters = await Promise.all(
    servers.map(async (server) => {
      const client = new Redis(server.url);
      return { server, client, id: await client.cluster('MYID') };
    }),
  );
});
afterAll(async () => {
  for (const { client } of masters) client.disconnect();
  await cluster.stop();
});
beforeEach(() => {
  errors = [];
  lines = [];
  jest.spyOn(Logger.prototype, 'error').mockImplementation((message: unknown) => void errors.push(String(message)));
  jest.spyOn(Logger.prototype, 'log').mockImplementation((message: unknown) => void lines.push(String(message)));
});
afterEach(async () => {
  await app.close();
  jest.restoreAllMocks();
});

async function start(options: RateLimitModuleOptions = {}): Promise<void> {
  prefix = freshPrefix();
  const redis = { nodes: cluster.nodes };
  app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ redis, prefix, ...options })] }).compile();
  await app.init();
  limiters = app.get(LimiterService);
}

/** One check of two limits, which are two keys. */
const check = (key: string) =>
  limiters.check([
    { limit: first, key },
    { limit: second, key },
  ]);
const sourceOf = async (key: string) => (await check(key)).tightest.source;

async function owner(): Promise<[source: Master, target: Master]> {
  const ranges = await masters[0]!.client.cluster('SLOTS');
  const [, , [, , id] = []] = ranges.find(([from, to]) => from <= SLOT && SLOT <= to) ?? [];
  const at = masters.findIndex((master) => master.id === id);
  return [masters[at]!, masters[(at + 1) % masters.length]!];
}

/** Tells both masters that the slot moves; `then` moves what it moves, and afterwards all has moved. */
async function whileMoving(then: (source: Master, target: Master) => Promise<void>): Promise<void> {
  const [source, target] = await owner();
  await target.client.cluster('SETSLOT', SLOT, 'IMPORTING', source.id);
  await source.client.cluster('SETSLOT', SLOT, 'MIGRATING', target.id);
  try {
    await then(source, target);
  } finally {
    const keys = await source.client.cluster('GETKEYSINSLOT', SLOT, 100);
    if (keys.length > 0) await move(source, target, keys);
    for (const { client } of [target, source]) await client.cluster('SETSLOT', SLOT, 'NODE', target.id);
  }
}

function move(source: Master, { server }: Master, keys: readonly string[]): Promise<unknown> {
  return source.client.call('MIGRATE', server.host, server.port, '', '0', '5000', 'KEYS', ...keys);
}

/** Identities of other slots of a master. */
async function neighbours({ server }: Master): Promise<string[]> {
  const ranges = await masters[0]!.client.cluster('SLOTS');
  const own = ranges.filter(([, , node]) => node?.[1] === server.port);
  const isOwn = (slot: number) => own.some(([from, to]) => from <= slot && slot <= to);
  const names = Array.from({ length: 200 }, (_, index) => `user:${index}`);
  return names.filter((name) => calculateSlot(name) !== SLOT && isOwn(calculateSlot(name))).slice(0, 10);
}

/** What the identity has used, on Redis. */
async function used(): Promise<number> {
  let remaining = 0;
  await until(async () => {
    const peek = await limiters.for(first).peek(MOVING);
    remaining = peek.remaining;
    return peek.source === 'redis';
  });
  return 100 - remaining;
}

describe('a slot that is being moved', () => {
  it('fails alone, and is named once: its node decides all others', async () => {
    await start({ timeout: '1s' });
    await check(MOVING);
    await whileMoving(async (source, target) => {
      const others = await neighbours(source);
      for (const other of others) expect(await sourceOf(other)).toBe('redis');
      const [one] = await source.client.cluster('GETKEYSINSLOT', SLOT, 1);
      await move(source, target, [one!]);
      // Some of its keys have moved and some have not.
      for (let i = 0; i < 6; i++) expect(await sourceOf(MOVING)).toBe('fallback');
      for (const other of others) expect(await sourceOf(other)).toBe('redis');
      expect(errors).toHaveLength(1);
      expect(errors[0]).toContain(`slot ${SLOT} on node ${source.server.host}:${source.server.port}`);
      expect(errors[0]).toContain('TRYAGAIN');
      const health = await app.get(RateLimitHealthIndicator).isHealthy('limits', { whileFailing: 'down' });
      expect(health.limits.status).toBe('up');
    });
    await until(async () => (await sourceOf(MOVING)) === 'redis');
    await until(async () => {
      await check(MOVING);
      return lines.includes(`slot ${SLOT} of the store answers again`);
    });
    expect(errors).toHaveLength(1);
  });

  it('is asked of the node that it goes to, in time', async () => {
    await start({ timeout: '5s' });
    await check(MOVING);
    await whileMoving(async (source, target) => {
      await move(source, target, await source.client.cluster('GETKEYSINSLOT', SLOT, 100));
      for (let i = 0; i < 3; i++) expect(await sourceOf(MOVING)).toBe('redis');
      await masters[0]!.client.ping();
      await target.client.script('FLUSH');
      expect(await sourceOf(MOVING)).toBe('redis');
    });
    await until(async () => (await check(MOVING)).tightest.remaining < 100 - 5);
    expect(errors).toEqual([]);
  });

  it('is asked again until its keys have moved', async () => {
    await start({ timeout: '30s' });
    await check(MOVING);
    let asked: Promise<string> | undefined;
    await whileMoving(async (source, target) => {
      const [one] = await source.client.cluster('GETKEYSINSLOT', SLOT, 1);
      await move(source, target, [one!]);
      const before = await refusals(source);
      asked = sourceOf(MOVING);
      await until(async () => (await refusals(source)) >= before + 3);
    });
    expect(await asked).toBe('redis');
    expect(100 - (await check(MOVING)).tightest.remaining).toBe(3);
    expect(errors).toEqual([]);
  });

  it('takes new identities of one key, and of several once it has moved', async () => {
    await start({ timeout: '1s' });
    const names = Array.from({ length: 200_000 }, (_, index) => `new:${index}`);
    const [single, several] = names.filter((name) => calculateSlot(name) === SLOT);
    await check(MOVING);
    await whileMoving(async () => {
      expect((await limiters.for(first).consume(single!)).source).toBe('redis');
      expect(await sourceOf(several!)).toBe('fallback');
    });
    await until(async () => (await sourceOf(several!)) === 'redis');
    expect((await limiters.for(first).peek(single!)).remaining).toBe(99);
  });

  it('is reset, though some of its keys have moved and some have never been', async () => {
    await start({ timeout: '5s' });
    await check(MOVING);
    await whileMoving(async (source, target) => {
      const [one] = await source.client.cluster('GETKEYSINSLOT', SLOT, 1);
      await move(source, target, [one!]);
      for (const limit of [first, second]) await limiters.for(limit).reset(MOVING);
      for (const limit of [first, second]) expect((await limiters.for(limit).peek(MOVING)).remaining).toBe(100);
    });
    expect(errors).toEqual([]);
  });

  it('is asked no more once the time is over', async () => {
    await start({ timeout: '100ms' });
    await check(MOVING);
    const before = await used();
    await whileMoving(async (source, target) => {
      const [one] = await source.client.cluster('GETKEYSINSLOT', SLOT, 1);
      await move(source, target, [one!]);
      expect(await sourceOf(MOVING)).toBe('fallback');
    });
    expect(await used()).toBe(before);
  });

  it('names the node that it goes to while that one is silent, and opens no circuit', async () => {
    await start({ timeout: '1s' });
    await whileMoving(async (source, target) => {
      const others = await neighbours(source);
      await sourceOf(others[0]!);
      target.server.pause();
      try {
        for (let i = 0; i < 6; i++) expect((await limiters.for(first).consume(MOVING)).source).toBe('fallback');
        for (const other of others) expect(await sourceOf(other)).toBe('redis');
      } finally {
        target.server.resume();
      }
      expect(errors.some((line) => line.includes(`ASK ${SLOT} ${target.server.host}:${target.server.port}`))).toBe(
        true,
      );
      expect(errors.every((line) => line.startsWith(`slot ${SLOT} `))).toBe(true);
    });
  });

  it.each([
    ['one key', () => limiters.for(first).consume(MOVING)],
    ['two keys', async () => (await check(MOVING)).tightest],
  ])('tells a Redis user without ASKING so: %s', async (_, consume) => {
    for (const { client } of masters) {
      await client.call('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', '-asking');
    }
    const redisOptions = { username: 'app', password: 'secret' };
    await start({
      redis: { nodes: cluster.nodes, options: { redisOptions } },
      timeout: '1s',
    });
    await whileMoving(async () => {
      expect((await consume()).source).toBe('fallback');
    });
    expect(errors.length).toBeGreaterThan(0);
    for (const line of errors) expect(line).toMatch(/NOPERM.*'asking'/);
  });

  for (const [version, Client] of Object.entries({ 6: Cluster, 5: Cluster5 as unknown as typeof Cluster })) {
    it(`fails alone on a connection of the app by ioredis ${version}`, async () => {
      const client = new Client(cluster.nodes, {
        redisOptions: SENDS_ONCE,
      });
      client.on('error', () => undefined);
      await start({ redis: client, timeout: '1s' });
      await check(MOVING);
      await whileMoving(async (source, target) => {
        const others = await neighbours(source);
        const [one] = await source.client.cluster('GETKEYSINSLOT', SLOT, 1);
        await move(source, target, [one!]);
        for (let i = 0; i < 6; i++) expect(await sourceOf(MOVING)).toBe('fallback');
        for (const other of others) expect(await sourceOf(other)).toBe('redis');
      });
      expect(errors).toHaveLength(1);
      client.disconnect();
    });
  }
});

/** How often a master said that keys of a slot have moved in part. */
async function refusals({ client }: Master): Promise<number> {
  const stats = await client.info('errorstats');
  return Number(/errorstat_TRYAGAIN:count=(\d+)/.exec(stats)?.[1] ?? 0);
}
