import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5';
import { type RedisCluster, startCluster, startRedis } from '../../support/redis/redis-servers.js';
import { ask, compile } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { appStore } from '../../support/redis/app-store.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const limit = compile({ algo: 'fixed-window', rate: 100, interval: '1d' }, 'counted');
const unhandled = jest.fn();

beforeEach(() => {
  unhandled.mockReset();
  process.on('unhandledRejection', unhandled);
});
afterEach(async () => {
  // What was rejected without anybody to hear of it is told in the next turn.
  await new Promise((resolve) => setTimeout(resolve, 5));
  process.off('unhandledRejection', unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});

const clusters = { 'ioredis 6': Cluster, 'ioredis 5': Cluster5 as unknown as typeof Cluster };
const singles = { 'ioredis 6': Redis, 'ioredis 5': Redis5 as unknown as typeof Redis };

describe('a slot that is on its way ends no process', () => {
  let cluster: RedisCluster;
  let stack: Awaited<ReturnType<typeof appStore>>;
  let admins: Redis[];

  beforeEach(async () => {
    cluster = await startCluster();
    admins = (await cluster.masters()).map(({ url }) => new Redis(url));
    for (const admin of admins) admin.on('error', () => undefined);
  });
  afterEach(async () => {
    await stack.close();
    for (const admin of admins) admin.disconnect();
    await cluster.stop();
  });

  /** Has an identity's slot leave for another master, and tells which. */
  async function begin(identity: string): Promise<{ source: Redis; target: Redis }> {
    const slot = calculateSlot(identity);
    const ids = await Promise.all(admins.map((admin) => admin.cluster('MYID')));
    const ranges = await admins[0]!.cluster('SLOTS');
    const [, , [, , owner] = []] = ranges.find(([first, last]) => first <= slot && slot <= last) ?? [];
    const [from, to] = [ids.indexOf(owner!), (ids.indexOf(owner!) + 1) % ids.length];
    await admins[to]!.cluster('SETSLOT', slot, 'IMPORTING', ids[from]!);
    await admins[from]!.cluster('SETSLOT', slot, 'MIGRATING', ids[to]!);
    return { source: admins[from]!, target: admins[to]! };
  }

  const open = async (redis: Parameters<typeof appStore>[0]) => {
    stack = await appStore(redis);
    await stack.open();
  };

  for (const [version, Client] of Object.entries(clusters)) {
    it(`for want of a right to ASKING, on a connection of the app by ${version}`, async () => {
      for (const admin of admins) await admin.call('ACL', 'SETUSER', 'default', '-asking');
      const client = new Client(cluster.nodes, { redisOptions: { autoResendUnfulfilledCommands: false } });
      client.on('error', () => undefined);
      await open(client);
      await ask(stack, limit, { identity: 'user:other' });
      await begin('user:1');
      expect((await ask(stack, limit, { identity: 'user:1' })).source).toBe('fallback');
      client.disconnect();
    });
  }

  it('for want of a right to ASKING, on a connection that is made here', async () => {
    for (const admin of admins) await admin.call('ACL', 'SETUSER', 'default', '-asking');
    await open({ nodes: cluster.nodes });
    await begin('user:1');
    expect((await ask(stack, limit, { identity: 'user:1' })).source).toBe('fallback');
  });

  it('where its new master has just died', async () => {
    await open({ nodes: cluster.nodes });
    const { target } = await begin('user:1');
    const dead = cluster.servers.find(({ port }) => port === target.options.port)!;
    dead.pause();
    const asked = ask(stack, limit, { identity: 'user:1' });
    await dead.kill();
    expect((await asked).source).toBe('fallback');
  });
});

describe('what ioredis sends again on a connection of the app', () => {
  let server: Awaited<ReturnType<typeof startRedis>>;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  for (const [version, Client] of Object.entries(singles)) {
    it(`ends no process if it is refused, by ${version}`, async () => {
      const admin = new Redis(server.url);
      await admin.call('ACL', 'SETUSER', 'app', 'reset', 'on', 'nopass', '~*', '&*', '+@all');
      const client = new Client({
        port: server.port,
        host: server.host,
        username: 'app',
        password: 'any',
        retryStrategy: () => 1,
        autoResendUnfulfilledCommands: false,
        maxRetriesPerRequest: 0,
      });
      const errors: string[] = [];
      client.on('error', ({ message }: Error) => errors.push(message));
      const stack = await appStore(client, { timeoutMs: PATIENCE_MS });
      await stack.open();
      await client.select(3);
      await admin.call('ACL', 'SETUSER', 'app', '-select');
      // The app's own call is the app's.
      await expect(client.select(4)).rejects.toThrow('NOPERM');
      await admin.call('CLIENT', 'KILL', 'USER', 'app');
      await until(() => errors.some((message) => message.includes('NOPERM')));
      await stack.close();
      client.disconnect();
      admin.disconnect();
    });
  }
});
