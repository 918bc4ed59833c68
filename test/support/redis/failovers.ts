import { expect } from '@jest/globals';
import { Redis } from 'ioredis';
import { algorithmNames } from '../limits/arbitraries.js';
import { isLong, until } from '../processes/chaos.js';
import { type LoadedCounter, type LoadResult, optionsOf } from '../processes/load.js';
import type { RedisServer } from './redis-servers.js';

/** How long Redis may decide nothing after a master is gone: that is noticed in 1 s or 2 s, and another one elected. */
const FAILOVER_MS = 12_000;
/** How much longer the load goes on once there is a new master. The processes go on by themselves until it has answered them. */
export const AFTERWARDS_MS = isLong ? 10_000 : 0;

export const countersOf = (quotas: readonly number[]): LoadedCounter[] =>
  algorithmNames.map((algo, index) => {
    const quota = quotas[index % quotas.length]!;
    const onStoreError = index % 2 === 0 ? 'deny' : 'local';
    return { options: optionsOf(algo, quota), quota, identity: `user:${index}`, onStoreError };
  });

/** All processes were answered by Redis again, and soon. */
export function expectFailover(results: readonly LoadResult[]): void {
  for (const { longestGapMs, reports } of results) {
    expect(longestGapMs).toBeLessThan(FAILOVER_MS);
    // A node of a Cluster does not come back, but another one takes its place.
    expect(['recovered', 'replaced']).toContain(reports.at(-1) ?? 'recovered');
  }
}

export interface End {
  readonly end: (master: RedisServer) => unknown;
  readonly undo: (master: RedisServer) => unknown;
}

/** How a master ends, and comes back later as a replica. */
export const ends: Record<string, End> = {
  'is killed': { end: (master) => master.kill(), undo: (master) => master.start() },
  // Its connection is given up after two seconds, and its replacement found.
  'is stopped': { end: (master) => master.pause(), undo: (master) => master.resume() },
};

/** The keys of all masters. */
export async function keysOf(servers: readonly RedisServer[], prefix: string): Promise<string[]> {
  const clients = servers.map(({ url }) => new Redis(url));
  try {
    return (await Promise.all(clients.map((client) => client.keys(`${prefix}:{*`)))).flat();
  } finally {
    for (const client of clients) client.disconnect();
  }
}

export const counted = (servers: readonly RedisServer[], prefix: string, count: number) =>
  until('all limits are counted', async () => (await keysOf(servers, prefix)).length >= count);
