import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { scenarioMs, until } from '../support/processes/chaos.js';
import { type RedisServer, startRedis } from '../support/redis/redis-servers.js';
import { TcpProxy } from '../support/redis/tcp-proxy.js';
import { WorldLimits } from '../support/redis/world-limits.js';
import { type Demand, World } from '../support/redis/worlds.js';

/** Short, since a home that may have lost charges grants nothing for an interval. */
const all = new WorldLimits(300, 2000);
/** More is asked than the limits allow. */
const RATES = [60, 60, 60];
/** How much older what a server has lost is at least. */
const LOST_MS = 700;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function ask(server: RedisServer, command: (redis: Redis) => Promise<unknown>): Promise<void> {
  const redis = new Redis(server.url);
  redis.on('error', () => undefined);
  try {
    await command(redis);
  } finally {
    redis.disconnect();
  }
}

/** Kills a server, which comes back without anything: it keeps no file. */
async function losesAll(server: RedisServer): Promise<void> {
  await server.kill();
  await server.start();
}

/** Kills a server, which comes back as it was a while before. */
async function losesSome(server: RedisServer): Promise<void> {
  await ask(server, (redis) => redis.save());
  await sleep(LOST_MS);
  await server.kill();
  await server.start();
}

/** Promotes a replica that lacks what the home was written last. All regions find it in the place of the home. */
async function failsOver(world: World): Promise<void> {
  const link = await TcpProxy.start(world.home);
  const { port } = new URL(link.url);
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', port] });
  cleanups.push(() => replica.stop());
  await until('it is linked', async () => {
    let isLinked = false;
    await ask(replica, async (redis) => {
      isLinked = (await redis.info('replication')).includes('master_link_status:up');
    });
    return isLinked;
  });
  await sleep(LOST_MS);
  link.cut();
  await sleep(LOST_MS);
  await ask(replica, (redis) => redis.replicaof('NO', 'ONE'));
  for (const { proxy } of world.regions) proxy.aim(replica);
  await link.close();
}

const events: Record<string, (world: World) => Promise<void>> = {
  'a home that is killed and loses all': (world) => losesAll(world.home),
  'a home that is killed and comes back from an old snapshot': (world) => losesSome(world.home),
  'a region whose server is killed and loses all': (world) => losesAll(world.regions[1]!.server),
  'a region whose server is killed and comes back from an old snapshot': (world) => losesSome(world.regions[1]!.server),
  'a home and a region that come back from old snapshots': async (world) => {
    await Promise.all([losesSome(world.home), losesSome(world.regions[2]!.server)]);
  },
  'a replica of the home that is promoted without the last charges': failsOver,
};

/** Whether all regions were allowed something lately, by each limit. */
function areAllowed(demands: readonly Demand[]): boolean {
  const lately = performance.timeOrigin + performance.now() - 1000;
  return demands.every((demand) => [0, 1, 2].every((region) => demand.allowed(lately, Infinity, region) > 0));
}

describe('three regions never use more than a limit with', () => {
  it.each(Object.keys(events))('%s', async (name) => {
    const world = await World.start(all);
    cleanups.push(() => world.stop());
    const demands = all.names.map((each) => world.demand(RATES, each));
    for (let end = Date.now() + scenarioMs(0), times = 0; times === 0 || Date.now() < end; times++) {
      await until('all are allowed', () => areAllowed(demands));
      await sleep(all.intervalMs / 2);
      await events[name]!(world);
    }
    await until('all are allowed again', () => areAllowed(demands));
    await sleep(all.intervalMs);
    const over = [];
    for (const [index, each] of all.names.entries())
      over.push([each, all.over(each, (await demands[index]!.end()).uses)]);
    expect(over).toEqual(all.names.map((each) => [each, 0]));
  });
});
