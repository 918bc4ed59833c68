import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import {
  LimiterService,
  RateLimitHealthIndicator,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { nodeRedis } from '../../support/redis/node-redis.js';
import { type RedisSentinel, type RedisServer, startSentinel } from '../../support/redis/redis-servers.js';
import { freshPrefix, SENDS_ONCE } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';

const limit = { name: 'counted', algo: 'fixed-window', rate: 1_000_000, interval: '1d' } as const;
const MISSES = 'redis: the connection does not listen to its Sentinels';

let sentinel: RedisSentinel;
let warnings: string[];
const cleanups: (() => unknown)[] = [];

beforeEach(() => {
  warnings = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((message: unknown) => void warnings.push(String(message)));
  jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  jest.restoreAllMocks();
});

async function start(
  redis: NonNullable<RateLimitModuleOptions['redis']>,
  prefix = freshPrefix(),
): Promise<TestingModule> {
  const module = RateLimitModule.forRoot({ redis, prefix, timeout: '1s' });
  const app = await Test.createTestingModule({ imports: [module] }).compile();
  await app.init();
  return app;
}

const healthOf = async (app: TestingModule) =>
  (await app.get(RateLimitHealthIndicator).isHealthy('limits', { whileFailing: 'down' })).limits;

async function asked<T>({ url }: RedisServer, ask: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url);
  try {
    return await ask(client);
  } finally {
    client.disconnect();
  }
}

/** The three Sentinels. */
const own = () => sentinel.servers.slice(2);

/** Whether all Sentinels name the replica as the master. */
async function hasSwitched(): Promise<boolean> {
  const { name, replica } = sentinel;
  const named = await Promise.all(
    own().map((server) => asked(server, (client) => client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name))),
  );
  return (named as string[][]).every(([, port]) => Number(port) === replica.port);
}

/** How many connections listen to the Sentinels that run. */
async function subscribed(): Promise<number> {
  const running = own().filter((server) => server.running);
  const lists = await Promise.all(running.map((server) => asked(server, (client) => client.client('LIST'))));
  return lists.flatMap((list) => String(list).trim().split('\n')).filter((line) => / sub=1 /.test(line)).length;
}

describe.each([
  ['ioredis', Redis],
  ['ioredis 5', Redis5 as unknown as typeof Redis],
])('a failover that is published while a connection of %s looks for its master', (_, Client) => {
  beforeEach(async () => {
    sentinel = await startSentinel();
    cleanups.push(() => sentinel.stop());
  });

  it('does not end the connection', async () => {
    const { sentinels, name } = sentinel;
    const client = new Client({ sentinels, name, failoverDetector: true, ...SENDS_ONCE });
    cleanups.push(() => client.disconnect());
    const app = await start(client);
    cleanups.push(() => app.close());
    const limiter = app.get(LimiterService).for(limit);
    const listening = () =>
      (client as unknown as { connector: { failoverDetector?: { sentinels: { client: Redis }[] } } }).connector
        .failoverDetector?.sentinels ?? [];
    await until(() => listening().length > 0 && listening().every((each) => each.client.status === 'ready'));
    const before = listening();
    const searched = new Promise<string>((resolve) => {
      client.once('connecting', () => {
        for (const each of before) each.client.emit('message', '+switch-master', '');
        client.once('ready', () => resolve('found'));
        client.once('end', () => resolve('gave up'));
      });
    });
    client.stream.destroy();
    expect(await searched).toBe('found');
    await until(async () => (await limiter.consume('user:1')).source === 'redis');
    // It listens to failovers again.
    expect(listening()).not.toBe(before);
  });
});

/** Options of node-redis with which it leaves Sentinels that freeze, and only those: without pings all of them are silent. */
const GIVES_UP = { sentinelClientOptions: { pingInterval: 500, socket: { socketTimeout: 2000 } } };

describe('a master that freezes with the first of its Sentinels, as on one host', () => {
  const connections: Record<string, (options: Pick<RedisSentinel, 'sentinels' | 'name'>) => Promise<object>> = {
    'a connection of its own': (options) => Promise.resolve(options),
    ...Object.fromEntries(
      Object.entries(nodeRedis).map(([version, { createSentinel }]) => [
        version,
        async ({ sentinels: sentinelRootNodes, name }: Pick<RedisSentinel, 'sentinels' | 'name'>) => {
          const client = createSentinel({ name, sentinelRootNodes, ...GIVES_UP }).on('error', () => undefined);
          cleanups.push(() => client.destroy());
          return client.connect();
        },
      ]),
    ),
  };

  beforeEach(async () => {
    // Version 5 of node-redis writes what its Sentinels answered.
    jest.spyOn(console, 'log').mockImplementation(() => undefined);
    sentinel = await startSentinel();
    cleanups.push(() => sentinel.stop());
  });

  it.each(Object.entries(connections))('is replaced, for %s', async (_, redisOf) => {
    const { sentinels, name, master } = sentinel;
    const app = await start(await redisOf({ sentinels, name }));
    cleanups.push(() => app.close());
    const limiter = app.get(LimiterService).for(limit);
    const source = async () => (await limiter.consume('user:1')).source;
    await until(async () => (await source()) === 'redis');
    const frozen = [master, own()[0]!];
    for (const server of frozen) server.pause();
    cleanups.push(() => frozen.forEach((server) => server.resume()));
    await until(async () => (await source()) === 'fallback');
    await until(async () => (await source()) === 'redis');
  });
});

describe.each([
  ['ioredis', Redis],
  ['ioredis 5', Redis5 as unknown as typeof Redis],
])('an outage of all servers and Sentinels of a connection of %s', (_, Client) => {
  beforeEach(async () => {
    sentinel = await startSentinel();
    cleanups.push(() => sentinel.stop());
  });

  it('adds no listeners to its sockets, however long it lasts', async () => {
    const { sentinels, name } = sentinel;
    const client = new Client({
      sentinels,
      name,
      failoverDetector: true,
      ...SENDS_ONCE,
      retryStrategy: () => 5,
      sentinelRetryStrategy: () => 5,
    });
    cleanups.push(() => client.disconnect());
    const app = await start(client);
    cleanups.push(() => app.close());
    const limiter = app.get(LimiterService).for(limit);
    const { connector } = client as unknown as {
      connector: { failoverDetector?: { sentinels: { client: Redis }[] } | null };
    };
    const listening = () => connector.failoverDetector?.sentinels ?? [];
    await until(() => listening().length > 0 && listening().every((each) => each.client.status === 'ready'));
    const sockets = [client, ...listening().map((each) => each.client)].map(({ stream }) => stream);
    const counts = () => sockets.map((socket) => socket.listenerCount('error') + socket.listenerCount('close'));
    let errors = 0;
    let closes = 0;
    client.on('error', () => (errors += 1));
    client.on('close', () => (closes += 1));
    // The Sentinels name a master that refuses all connections, and then end, too.
    await Promise.all([sentinel.master, sentinel.replica].map((server) => server.kill()));
    await until(() => closes >= 20);
    const before = counts();
    await Promise.all(own().map((server) => server.kill()));
    await until(() => errors >= 60);
    expect(Math.max(...before, ...counts())).toBeLessThan(10);
    expect(client.stream.listenerCount('error')).toBeLessThan(5);
    await Promise.all(sentinel.servers.map((server) => server.start()));
    await until(async () => (await limiter.consume('user:1')).source === 'redis');
  });
});

describe('a master that freezes until another one is named', () => {
  beforeEach(async () => {
    sentinel = await startSentinel();
    cleanups.push(() => sentinel.stop());
  });

  it('gets no instance back: what was confirmed is all there', async () => {
    const { sentinels, name, master, replica } = sentinel;
    const prefix = freshPrefix();
    const app = await start({ sentinels, name }, prefix);
    cleanups.push(() => app.close());
    const limiter = app.get(LimiterService).for(limit);
    let confirmed = 0;
    const consume = async () => {
      if ((await limiter.consume('user:1')).source === 'redis') confirmed += 1;
    };
    for (let i = 0; i < 20; i++) await consume();
    await asked(master, (client) => client.wait(1, 10_000));
    master.pause();
    try {
      // Nobody asks meanwhile: a connection that is silent would be replaced.
      await until(hasSwitched);
    } finally {
      master.resume();
    }
    const before = confirmed;
    await until(async () => {
      await consume();
      return confirmed > before;
    });
    for (let i = 0; i < 50; i++) await consume();
    // The new master has them.
    expect(await asked(replica, async (client) => (await client.role())[0])).toBe('master');
    const other = await start({ sentinels, name }, prefix);
    cleanups.push(() => other.close());
    const { remaining, source } = await other.get(LimiterService).for(limit).peek('user:1');
    expect(source).toBe('redis');
    expect(limit.rate - remaining).toBeGreaterThanOrEqual(confirmed);
    expect(await healthOf(app)).toEqual({ status: 'up', source: 'redis' });
    expect(warnings.filter((line) => line.startsWith(MISSES))).toEqual([]);
  });

  for (const [version, Client] of Object.entries({ 6: Redis, 5: Redis5 as unknown as typeof Redis })) {
    it(`keeps a connection of the app by ioredis ${version} that does not listen, and health says so`, async () => {
      const { sentinels, name, master } = sentinel;
      const client = new Client({ sentinels, name, ...SENDS_ONCE });
      client.on('error', () => undefined);
      cleanups.push(() => client.disconnect());
      const app = await start(client);
      cleanups.push(() => app.close());
      expect(warnings.filter((line) => line.startsWith(MISSES))).toHaveLength(1);
      expect(await healthOf(app)).toEqual({ status: 'up', source: 'redis' });
      master.pause();
      try {
        await until(hasSwitched);
      } finally {
        master.resume();
      }
      expect(await healthOf(app)).toEqual({
        status: 'down',
        source: 'redis',
        message: 'Redis answers, but the Sentinels name another server as the master, so anything counted now is lost',
      });
      // Once it is demoted.
      await until(async () => (await healthOf(app)).status === 'up');
    });
  }
});

describe('an app that listens to its Sentinels', () => {
  beforeAll(async () => {
    sentinel = await startSentinel();
  });
  afterAll(() => sentinel.stop());

  it('ends all of its connections', async () => {
    const before = await subscribed();
    const app = await start({ sentinels: sentinel.sentinels, name: sentinel.name });
    await until(async () => (await subscribed()) > before);
    await app.get(LimiterService).for(limit).consume('user:1');
    await app.close();
    await until(async () => (await subscribed()) === before);
  });

  it('does not, and is warned of that, if it says so', async () => {
    const app = await start({ sentinels: sentinel.sentinels, name: sentinel.name, failoverDetector: false });
    await app.close();
    expect(warnings.filter((line) => line.startsWith(MISSES))).toHaveLength(1);
  });

  it('says nothing on the console of a Sentinel that is down', async () => {
    const printed = jest.spyOn(console, 'error').mockImplementation(() => undefined);
    const [down] = own();
    await down!.kill();
    const { sentinels, name } = sentinel;
    const before = await subscribed();
    const app = await start({ sentinels: sentinels.toReversed(), name, sentinelReconnectStrategy: () => 10 });
    await until(async () => (await subscribed()) > before);
    const limiter = app.get(LimiterService).for(limit);
    for (let i = 0; i < 50; i++) expect((await limiter.consume('user:1')).source).toBe('redis');
    expect(await healthOf(app)).toEqual({ status: 'up', source: 'redis' });
    await app.close();
    expect(printed).not.toHaveBeenCalled();
    expect(warnings).toEqual([]);
  });
});
