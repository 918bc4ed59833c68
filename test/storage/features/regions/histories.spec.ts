import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { Home, type Wish } from '../../../../lib/storage/features/regions/home.js';
import { HomeRecord } from '../../../../lib/storage/features/regions/home-record.js';
import { atHome } from '../../../../lib/storage/features/regions/limit-regions.js';
import { type AlgorithmOptions, RedisStore } from '../../../../lib/index.js';
import { connect, createClient } from '../../../../lib/storage/redis/client.js';
import { CompiledLimit } from '../../../../lib/testing/store/index.js';
import { type RedisServer, startRedis } from '../../../support/redis/redis-servers.js';
import { featuresOfOptions, featureTerms, freshPrefix } from '../../../support/limits/stores.js';
import { until } from '../../../support/time/until.js';
import { PATIENCE_MS } from '../../../support/redis/patience.mjs';

const OPTIONS: AlgorithmOptions = { algo: 'sliding-log', rate: 5, interval: '10m' };
/** Exchanges of all instances are of one region. */
let nextId = 1;

/** A wish of a region that holds nothing, in the order of `lua/features/regions.lua`. */
function wishOf(want: number): Wish {
  const [origin, need, charge, window, granted, held, returns] = [1, 1, 0, 0, 0, 0, 0];
  return [nextId++, origin, want, want, need, charge, window, granted, held, returns];
}

async function clientOf(server: RedisServer): Promise<Redis> {
  const client = (await createClient(server.url)) as Redis;
  client.on('error', () => undefined);
  await connect(client);
  return client;
}

async function historyOf(redis: Redis): Promise<string> {
  return /master_replid:(\w+)/.exec(await redis.info('replication'))![1]!;
}

describe('the history of a server', () => {
  const servers: RedisServer[] = [];
  const clients: Redis[] = [];
  afterAll(async () => {
    for (const client of clients) client.disconnect();
    await Promise.all(servers.map((server) => server.stop()));
  });

  async function started(args: readonly string[] = []): Promise<[RedisServer, Redis]> {
    const server = await startRedis({ args });
    servers.push(server);
    const client = await clientOf(server);
    clients.push(client);
    return [server, client];
  }

  it('is another one after a restart, also with all data', async () => {
    const [server, redis] = await started();
    await redis.set('key', 'kept');
    await redis.save();
    const before = await historyOf(redis);
    await server.kill();
    await server.start();
    const again = await clientOf(server);
    clients.push(again);
    expect(await again.get('key')).toBe('kept');
    expect(await historyOf(again)).not.toBe(before);
  });

  it('is another one after a promotion', async () => {
    const [master, redis] = await started(['--repl-diskless-sync-delay', '0']);
    const [, replica] = await started(['--replicaof', master.host, `${master.port}`]);
    await redis.set('key', 'copied');
    await until(async () => (await replica.get('key')) === 'copied');
    expect(await historyOf(replica)).toBe(await historyOf(redis));
    await replica.replicaof('NO', 'ONE');
    expect(await historyOf(replica)).not.toBe(await historyOf(redis));
  });
});

describe('an instance of a region whose home is on its own server', () => {
  let server: RedisServer;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis({ args: ['--enable-debug-command', 'yes'] });
    redis = await clientOf(server);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });
  beforeEach(() => redis.flushall());

  function instance(prefix: string) {
    const features = featureTerms({ ...OPTIONS, scope: 'world' }, 'test');
    const limit = atHome(new CompiledLimit(OPTIONS, { location: 'test', name: 'api', featuresOfOptions, features }));
    const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS });
    const record = new HomeRecord(redis, `${prefix}:home`, 60_000);
    const home = new Home(store, `${prefix}:regions`, 'eu', record, 250, () => undefined);
    const counter = { limit, identity: 'user:1' };
    return {
      async take(want: number): Promise<number | undefined> {
        return (await home.grant(counter, wishOf(want)))?.units;
      },
    };
  }

  it('gets units with its first call', async () => {
    expect(await instance(freshPrefix()).take(5)).toBe(5);
  });

  it('remembers the home for a server that lost everything: what was granted may be in use', async () => {
    const eu = instance(freshPrefix());
    expect(await eu.take(5)).toBe(5);
    await redis.flushall();
    await redis.call('DEBUG', 'CHANGE-REPL-ID');
    expect([await eu.take(5), await eu.take(5)]).toEqual([0, 0]);
  });

  it('trusts no number of calls of a server that failed together with the home', async () => {
    const prefix = freshPrefix();
    const eu = instance(prefix);
    expect(await eu.take(1)).toBe(1);
    // What a replica has that is behind by the last call.
    const keys = await redis.keys('*');
    const copies = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
    expect(await eu.take(3)).toBe(3);
    await redis.flushall();
    for (const [index, key] of keys.entries()) await redis.restore(key, 0, copies[index]!);
    await redis.call('DEBUG', 'CHANGE-REPL-ID');
    // An instance that begins now knows no more than the server.
    const other = instance(prefix);
    expect([await other.take(1), await other.take(1)]).toEqual([0, 0]);
  });
});
