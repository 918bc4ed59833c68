import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import { Cluster, type Redis } from 'ioredis';
import { Cluster as Cluster5 } from 'ioredis-5';
import { RateLimitStoreError, type RedisClient, RedisStore } from '../../../lib/index.js';
import type { StoreDecision } from '../../../lib/testing/store/index.js';
import { createClient, isCluster } from '../../../lib/storage/redis/client.js';
import { Script } from '../../../lib/storage/redis/script.js';
import { until } from '../../support/time/until.js';
import { startCluster, type RedisCluster } from '../../support/redis/redis-servers.js';
import { ask, compile, freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const QUOTA = 100;
/** Nothing comes back while a test runs. */
const limit = compile({ algo: 'fixed-window', rate: QUOTA, interval: '1d' }, 'counted');

/** Identities that lie in as many slots. */
const identities = [
  ...new Map(Array.from({ length: 80 }, (_, i) => [calculateSlot(`user:${i}`), `user:${i}`])).values(),
];

const addressOf = (node: Redis): string => `${node.options.host}:${node.options.port}`;

async function countOf(node: Redis, command: string): Promise<number> {
  const stats = await node.info('commandstats');
  return Number(new RegExp(`cmdstat_${command.replace('|', '\\|')}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

/** Tells two nodes that a slot goes from one to the other: an operator moves its keys then. */
async function begin(source: Redis, target: Redis, slot: number): Promise<void> {
  const [from, to] = [await source.cluster('MYID'), await target.cluster('MYID')];
  await target.cluster('SETSLOT', slot, 'IMPORTING', from);
  await source.cluster('SETSLOT', slot, 'MIGRATING', to);
}

async function end(source: Redis, target: Redis, slot: number): Promise<void> {
  const keys = await source.cluster('GETKEYSINSLOT', slot, 100);
  const { host, port } = target.options;
  if (keys.length > 0) await source.call('MIGRATE', host!, port!, '', '0', '5000', 'KEYS', ...keys);
  const owner = await target.cluster('MYID');
  for (const node of [target, source]) await node.cluster('SETSLOT', slot, 'NODE', owner);
}

async function migrate(source: Redis, target: Redis, slot: number): Promise<void> {
  await begin(source, target, slot);
  await end(source, target, slot);
}

describe('the nodes of a Cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  let store: RedisStore;
  let prefix: string;

  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  const connect = async (options?: object, Client = Cluster): Promise<void> => {
    const made =
      options === undefined ? await createClient({ nodes: cluster.nodes }) : new Client(cluster.nodes, options);
    if (!isCluster(made)) throw new Error('made no client of a Cluster');
    client = made;
    client.on('error', () => undefined);
    prefix = freshPrefix();
    store = new RedisStore(client, { prefix, timeoutMs: PATIENCE_MS, ownsClient: true });
    await store.open();
    // Connections are made by the first command of each.
    await Promise.all(client.nodes('master').map((node) => node.ping()));
  };
  beforeEach(() => connect());
  afterEach(async () => {
    jest.restoreAllMocks();
    await store.close();
  });

  const askAll = (names: readonly string[] = identities): Promise<StoreDecision[]> =>
    Promise.all(names.map((identity) => ask(store, limit, { identity })));
  const used = async (names: readonly string[] = identities): Promise<number[]> => {
    const peeks = await Promise.all(names.map((identity) => ask(store, limit, { identity, peek: true })));
    return peeks.map(({ remaining }) => QUOTA - remaining);
  };
  const nodeOf = (identity: string): Redis => {
    const name = store.nodeOf!({ limit, identity });
    return client.nodes('master').find((node) => addressOf(node) === name)!;
  };
  /** How often each master is written to, by its address. */
  const countWrites = (): Map<string, number> => {
    const writes = new Map<string, number>();
    for (const node of client.nodes('master')) {
      const count = () => void writes.set(addressOf(node), (writes.get(addressOf(node)) ?? 0) + 1);
      const stream = node.stream as unknown as Record<'_write' | '_writev', (...args: unknown[]) => void>;
      for (const method of ['_write', '_writev'] as const) {
        const write = stream[method].bind(stream);
        jest.spyOn(stream, method).mockImplementation((...args) => {
          count();
          write(...args);
        });
      }
    }
    return writes;
  };
  /** What goes by the Cluster's client. */
  const byClient = () => jest.spyOn(client, 'evalsha');

  it('get what is asked in one turn in one write each', async () => {
    const masters = client.nodes('master');
    const [before, writes, viaClient] = [
      await Promise.all(masters.map((node) => countOf(node, 'evalsha'))),
      countWrites(),
      byClient(),
    ];
    const decisions = await askAll();
    expect(decisions.every(({ allowed, source }) => allowed && source === 'redis')).toBe(true);
    expect([...writes.values()]).toEqual([1, 1, 1]);
    const after = await Promise.all(masters.map((node) => countOf(node, 'evalsha')));
    const calls = after.map((count, index) => count - before[index]!);
    expect(calls.reduce((sum, count) => sum + count, 0)).toBe(identities.length);
    expect(viaClient).not.toHaveBeenCalled();
  });

  it('get one write of a lone check', async () => {
    const writes = countWrites();
    await ask(store, limit, { identity: identities[0]! });
    expect([...writes]).toEqual([[addressOf(nodeOf(identities[0]!)), 1]]);
  });

  it('get one write each of a connection of ioredis 5', async () => {
    await store.close();
    await connect({}, Cluster5 as unknown as typeof Cluster);
    const writes = countWrites();
    expect((await askAll()).every(({ remaining, source }) => remaining === QUOTA - 1 && source === 'redis')).toBe(true);
    expect([...writes.values()]).toEqual([1, 1, 1]);
    expect(await used()).toEqual(identities.map(() => 1));
  });

  it('get what is sent after a call that throws', async () => {
    const script = new Script(client, 'return 1');
    await script.load();
    const node = addressOf(client.nodes('master')[0]!);
    const key = Array.from({ length: 1000 }, (_, i) => `key:${i}`).find(
      (name) => client.slots[calculateSlot(name)]?.[0] === node,
    )!;
    let ran: Promise<unknown> | undefined;
    const broken = () =>
      script.inOneWrite(() => {
        ran = script.run([key], [], 5000, node);
        throw new Error('broken');
      });
    expect(broken).toThrow('broken');
    expect(await ran).toBe(1);
  });

  it('have their slots moved, while others are asked in the same turn', async () => {
    const [moving, ...rest] = identities as [string, ...string[]];
    await askAll();
    const before = rest.map((identity) => nodeOf(identity));
    const [source, target] = [nodeOf(moving), client.nodes('master').find((node) => node !== nodeOf(moving))!];
    const slot = calculateSlot(moving);
    await migrate(source, target, slot);
    // The client has not heard of it.
    expect(client.slots[slot]![0]).toBe(addressOf(source));
    const viaClient = byClient();
    const decisions = await askAll();
    expect(decisions.map(({ remaining }) => remaining)).toEqual(identities.map(() => QUOTA - 2));
    expect(viaClient).toHaveBeenCalledTimes(1);
    // Until it has heard of all slots again, the client takes the whole range for moved.
    await until(async () => {
      await new Promise((resolve) => client.refreshSlotsCache(resolve));
      return nodeOf(moving) === target && rest.every((identity, index) => nodeOf(identity) === before[index]);
    });
    viaClient.mockClear();
    await askAll();
    expect(viaClient).not.toHaveBeenCalled();
    expect(await used()).toEqual(identities.map(() => 3));
  });

  it('have a slot on its way from one to another', async () => {
    const [onItsWay, ...rest] = identities as [string, ...string[]];
    const slot = calculateSlot(onItsWay);
    const [source, target] = [nodeOf(onItsWay), client.nodes('master').find((node) => node !== nodeOf(onItsWay))!];
    await askAll();
    await begin(source, target, slot);
    // The old node decides what it has still, and says ASK of what it has not.
    expect((await ask(store, limit, { identity: onItsWay })).remaining).toBe(QUOTA - 2);
    const viaClient = byClient();
    const isNew = compile({ algo: 'fixed-window', rate: QUOTA, interval: '1d' }, 'new');
    for (const expected of [1, 2]) {
      const [decision] = await Promise.all([ask(store, isNew, { identity: onItsWay }), askAll(rest)]);
      expect(decision.remaining).toBe(QUOTA - expected);
      expect(viaClient).toHaveBeenCalledTimes(expected);
    }
    await end(source, target, slot);
    expect(await used()).toEqual([2, ...rest.map(() => 3)]);
    expect((await ask(store, isNew, { identity: onItsWay, peek: true })).remaining).toBe(QUOTA - 2);
  });

  it('are given the script each by itself, even while another one is silent', async () => {
    await askAll();
    const masters = client.nodes('master');
    const [forgetful, silent] = masters as [Redis, Redis];
    const loadsOf = () => Promise.all(masters.map((node) => countOf(node, 'script|load')));
    await forgetful.script('FLUSH');
    const before = await loadsOf();
    const decisions = await askAll();
    expect(decisions.map(({ remaining }) => remaining)).toEqual(identities.map(() => QUOTA - 2));
    const after = await loadsOf();
    expect(after.map((count, index) => count - before[index]!)).toEqual([1, 0, 0]);

    const mine = identities.filter((identity) => nodeOf(identity) === forgetful);
    const server = cluster.servers.find(({ port }) => port === silent.options.port)!;
    await forgetful.script('FLUSH');
    server.pause();
    try {
      const answers = await askAll(mine);
      expect(answers.map(({ remaining }) => remaining)).toEqual(mine.map(() => QUOTA - 3));
    } finally {
      server.resume();
    }
    expect(await used(mine)).toEqual(mine.map(() => 3));
  });

  it('count under the keys of a connection that has a prefix', async () => {
    await store.close();
    await connect({ keyPrefix: 'app:' });
    const viaClient = byClient();
    await askAll();
    expect(viaClient).toHaveBeenCalledTimes(identities.length);
    const keys = await Promise.all(client.nodes('master').map((node) => node.keys(`*${prefix}*`)));
    expect(keys.flat()).toHaveLength(identities.length);
    expect(keys.flat().every((key) => key.startsWith(`app:${prefix}:`))).toBe(true);
    await store.close();
    await connect({ redisOptions: { keyPrefix: 'app:' } });
    expect((await askAll()).every(({ remaining }) => remaining === QUOTA - 1)).toBe(true);
    const found = await Promise.all(client.nodes('master').map((node) => node.keys(`app:${prefix}:*`)));
    expect(found.flat()).toHaveLength(identities.length);
  });

  it.each([
    [0, 'fails the calls'],
    [100, 'asks its successor'],
  ])('with a connection that retries after %d ms, one that ends %s', async (retryDelayOnFailover) => {
    await store.close();
    await connect({ retryDelayOnFailover, redisOptions: { autoResendUnfulfilledCommands: false } });
    await askAll();
    const [victim] = client.nodes('master') as [Redis];
    const lost = identities.filter((identity) => nodeOf(identity) === victim);
    const server = cluster.servers.find(({ port }) => port === victim.options.port)!;
    server.pause();
    const asked = Promise.allSettled(identities.map((identity) => ask(store, limit, { identity })));
    await sleep(20);
    victim.stream.destroy();
    server.resume();
    const results = await asked;
    for (const [index, result] of results.entries()) {
      const isLost = lost.includes(identities[index]!);
      expect(result.status).toBe(isLost && retryDelayOnFailover === 0 ? 'rejected' : 'fulfilled');
      if (result.status === 'rejected') {
        expect(result.reason).toBeInstanceOf(RateLimitStoreError);
        expect((result.reason as RateLimitStoreError).node).toBe(addressOf(victim));
      }
    }
    const rest = identities.filter((identity) => !lost.includes(identity));
    expect(await used(rest)).toEqual(rest.map(() => 2));
    // A call that was on its way when its connection ended may have been made.
    for (const count of await used(lost)) {
      expect(count).toBeGreaterThanOrEqual(retryDelayOnFailover === 0 ? 1 : 2);
      expect(count).toBeLessThanOrEqual(retryDelayOnFailover === 0 ? 2 : 3);
    }
  });
});

/** A Cluster of one node that says what it was told to, after a while. */
function clusterOf(message: string, afterMs: number) {
  const node = {
    status: 'ready',
    options: { host: 'h', port: 1 },
    stream: { cork: jest.fn(), uncork: jest.fn() },
    evalsha: jest.fn(async () => {
      await sleep(afterMs);
      throw new Error(message);
    }),
  };
  const evalsha = jest.fn(async () => 'by the client');
  const client = { isCluster: true, options: { retryDelayOnFailover: 0 }, nodes: () => [node], evalsha };
  return { script: new Script(client as unknown as RedisClient, ''), evalsha };
}

describe('a script that a node did not run', () => {
  it.each(['MOVED 1 h:2', 'ASK 1 h:2', 'TRYAGAIN later', 'CLUSTERDOWN none'])(
    'is run by the client: %s',
    async (text) => {
      const { script, evalsha } = clusterOf(text, 0);
      await expect(script.run([], [], 5000, 'h:1')).resolves.toBe('by the client');
      expect(evalsha).toHaveBeenCalledTimes(1);
    },
  );

  it.each(['ERR of the script', 'READONLY', 'OOM', 'Connection is closed.'])('fails: %s', async (text) => {
    const { script, evalsha } = clusterOf(text, 0);
    await expect(script.run([], [], 5000, 'h:1')).rejects.toThrow(text);
    expect(evalsha).not.toHaveBeenCalled();
  });

  it('is not run once its time is over', async () => {
    const { script, evalsha } = clusterOf('MOVED 1 h:2', 20);
    await expect(script.run([], [], 5, 'h:1')).rejects.toThrow('MOVED');
    expect(evalsha).not.toHaveBeenCalled();
  });
});
