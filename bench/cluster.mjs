/** A Redis Cluster of so many masters, without replicas: what one more node brings is what is asked. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startRedisProcess } from '../test/support/redis/redis-process.mjs';

const SLOTS = 16_384;
/** A node that has met no other one does not know its address. */
const ARGS = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'];
const POLL_MS = 50;
const READY_TIMEOUT_MS = 20_000;

async function isWhole(node, count) {
  const info = await node.cluster('INFO');
  return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${count}`);
}

/** @returns the addresses of its nodes, a connection to each, and what ends it */
export async function startClusterOf(count) {
  const servers = await Promise.all(Array.from({ length: count }, () => startRedisProcess({ args: ARGS })));
  const nodes = servers.map(({ host, port }) => ({ host, port }));
  const connections = nodes.map(({ host, port }) => new Redis(port, host));
  const stop = async () => {
    for (const connection of connections) connection.disconnect();
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    for (const [index, connection] of connections.entries()) {
      const first = Math.floor((SLOTS * index) / count);
      await connection.call('CLUSTER', 'ADDSLOTSRANGE', first, Math.floor((SLOTS * (index + 1)) / count) - 1);
      if (index > 0) await connection.cluster('MEET', nodes[0].host, nodes[0].port);
    }
    const deadline = Date.now() + READY_TIMEOUT_MS;
    for (const connection of connections) {
      while (!(await isWhole(connection, count))) {
        if (Date.now() > deadline) throw new Error(`a Cluster of ${count} was not ready in time`);
        await sleep(POLL_MS);
      }
    }
    return { nodes, connections, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
