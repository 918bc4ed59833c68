import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import type { Cluster, Redis } from 'ioredis';
import { MemoryStore, RedisStore } from '../../../../lib/index.js';
import type { Check } from '../../../../lib/testing/store/index.js';
import { type RedisCluster, startCluster } from '../../../support/redis/redis-servers.js';
import { ask, connectCluster, comparable, compile, freshPrefix, ManualClock } from '../../../support/limits/stores.js';
import { sharedLimit } from './simulation.js';
import { PATIENCE_MS } from '../../../support/redis/patience.mjs';

const identity = 'global';
const SLOT = calculateSlot(identity);
const limit = sharedLimit({ algo: 'token-bucket', rate: 60, interval: '1m' });
const of = (id: string, weight = 1) => limit.meet({ tenant: { id, weight } });

const addressOf = (node: Redis): string => `${node.options.host}:${node.options.port}`;

describe('shares on a Cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  let clock: ManualClock;
  let store: RedisStore;
  let memory: MemoryStore;
  let prefix: string;

  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());
  beforeEach(async () => {
    client = await connectCluster(cluster);
    clock = new ManualClock();
    prefix = freshPrefix();
    store = new RedisStore(client, { clock, prefix, timeoutMs: PATIENCE_MS, ownsClient: true });
    memory = new MemoryStore({ clock: clock.now, slackMs: Infinity });
    await store.open();
  });
  afterEach(() => Promise.all([store.close(), memory.close()]));

  const both = async (checks: Check[]) => {
    const here = await memory.check(checks);
    expect(comparable(await store.check(checks))).toEqual(comparable(here));
    return here.map(([decision]) => decision!.allowed);
  };
  const turn = () =>
    both(
      Array.from({ length: 12 }, (_, index) => ({
        entries: [{ limit: of(`t${index % 5}`, 1 + (index % 5)), identity, cost: 1 + (index % 3) }],
      })),
    );
  const masterOf = (slot: number): Redis => {
    const [address] = (client as unknown as { slots: string[][] }).slots[slot]!;
    return client.nodes('master').find((node) => addressOf(node) === address)!;
  };

  it('have all keys of a counter in its slot', async () => {
    await turn();
    await ask(store, of('{user:1}'), { identity });
    const nodes = client.nodes('master');
    const keys = (await Promise.all(nodes.map((node) => node.keys(`${prefix}*`)))).flat();
    expect(keys).toHaveLength(8);
    expect(new Set(keys.map((key) => calculateSlot(key)))).toEqual(new Set([SLOT]));
  });

  it('are decided as in process, also while the slot moves to another node and back', async () => {
    const source = masterOf(SLOT);
    const target = client.nodes('master').find((node) => node !== source)!;
    const [from, to] = [await source.cluster('MYID'), await target.cluster('MYID')];
    for (const [giving, taking, owner] of [
      [source, target, to],
      [target, source, from],
    ] as const) {
      await turn();
      clock.advanceMs(7000);
      await taking.cluster('SETSLOT', SLOT, 'IMPORTING', giving === source ? from : to);
      await giving.cluster('SETSLOT', SLOT, 'MIGRATING', owner);
      await turn();
      const keys = await giving.cluster('GETKEYSINSLOT', SLOT, 100);
      const { host, port } = taking.options;
      await giving.call('MIGRATE', host!, port!, '', '0', '5000', 'KEYS', ...keys);
      clock.advanceMs(7000);
      // Asked where it is no longer, and told where it is.
      await turn();
      for (const node of [taking, giving]) await node.cluster('SETSLOT', SLOT, 'NODE', owner);
      await turn();
    }
  });

  it('come back to their tenant where a limit of another slot refuses', async () => {
    const full = compile({ algo: 'fixed-window', rate: 1, interval: '1h' }, 'full');
    const other = 'user:1';
    expect(calculateSlot(other)).not.toBe(SLOT);
    await both([{ entries: [{ limit: full, identity: other, cost: 1 }] }]);
    // Both tenants ask for more than there is, so 30 are the part of each.
    await both([
      { entries: [{ limit: of('a'), identity, cost: 60 }] },
      { entries: [{ limit: of('b'), identity, cost: 60 }] },
    ]);
    clock.advanceMs(60_000);
    const refused = await store.check([
      {
        entries: [
          { limit: of('a'), identity, cost: 20 },
          { limit: full, identity: other, cost: 1 },
        ],
      },
    ]);
    expect(refused[0]!.map(({ allowed }) => allowed)).toContain(false);
    expect(await both([{ entries: [{ limit: of('a'), identity, cost: 30 }] }])).toEqual([true]);
    expect(await both([{ entries: [{ limit: of('a'), identity, cost: 1 }] }])).toEqual([false]);
    expect(await both([{ entries: [{ limit: of('b'), identity, cost: 30 }] }])).toEqual([true]);
  });

  it('begin anew after a node has lost everything', async () => {
    await turn();
    await masterOf(SLOT).flushall();
    await memory.reset([{ limit, identity }]);
    await turn();
  });
});
