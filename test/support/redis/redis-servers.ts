import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { clientOf, findRedisServer, WHAT_TO_INSTALL } from './redis-binary.mjs';
import { startRedisProcess, type RedisProcess, type RedisProcessOptions } from './redis-process.mjs';

const CLUSTER_NODES = 6;
const SENTINELS = 3;
const READY_TIMEOUT_MS = 240_000;
const POLL_MS = 50;
const MASTER_NAME = 'mymaster';

// By default a master waits 5 s for more replicas before it sends the first one its data.
const FAST_REPLICATION = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'];

export type RedisServer = RedisProcess;

export interface Address {
  host: string;
  port: number;
}

export interface RedisCluster {
  /** What a Cluster client is given. */
  nodes: Address[];
  servers: RedisServer[];
  /** Those of the servers that are masters now. */
  masters(): Promise<RedisServer[]>;
  stop(): Promise<void>;
}

export interface RedisSentinel {
  sentinels: Address[];
  /** What the Sentinels call the master. */
  name: typeof MASTER_NAME;
  master: RedisServer;
  replica: RedisServer;
  /** All five processes. */
  servers: RedisServer[];
  stop(): Promise<void>;
}

/** A Redis of the test's own, to stop, pause or configure. For all else there is the shared one at `TEST_REDIS_URL`. */
export function startRedis(options: RedisProcessOptions = {}): Promise<RedisServer> {
  return startRedisProcess(options);
}

/** A Cluster of three masters with a replica each. A node counts as failed after 2 s. */
export async function startCluster(args: readonly string[] = []): Promise<RedisCluster> {
  const clusterArgs = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000', ...FAST_REPLICATION, ...args];
  const servers: RedisServer[] = [];
  const stop = () => stopAll(servers);
  try {
    servers.push(...(await startAll(CLUSTER_NODES, () => startRedisProcess({ args: clusterArgs }))));
    await createCluster(servers);
    await ready('Cluster', servers, () => everyServer(servers, knowsWholeCluster));
  } catch (error) {
    await stop();
    throw error;
  }
  const masters = () => filterServers(servers, isMaster);
  return { nodes: servers.map(({ host, port }) => ({ host, port })), servers, masters, stop };
}

/** A master with a replica and three Sentinels. The master counts as down after 1 s. */
export async function startSentinel(): Promise<RedisSentinel> {
  const servers: RedisServer[] = [];
  const stop = () => stopAll(servers);
  try {
    const master = await startRedisProcess({ args: FAST_REPLICATION });
    servers.push(master);
    const replicaOf = ['--replicaof', master.host, `${master.port}`];
    const replica = await startRedisProcess({ args: [...replicaOf, ...FAST_REPLICATION] });
    servers.push(replica);
    await ready('replica', servers, () => everyServer([replica], isLinked));
    const config = () => sentinelConfig(master);
    const sentinels = await startAll(SENTINELS, () => startRedisProcess({ config, sentinel: true }));
    servers.push(...sentinels);
    await ready('Sentinels', servers, () => everyServer(sentinels, knowsOthers));
    const addresses = sentinels.map(({ host, port }) => ({ host, port }));
    return { sentinels: addresses, name: MASTER_NAME, master, replica, servers, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function sentinelConfig(master: Address): string {
  return [
    `sentinel monitor ${MASTER_NAME} ${master.host} ${master.port} 2`,
    `sentinel down-after-milliseconds ${MASTER_NAME} 1000`,
    `sentinel failover-timeout ${MASTER_NAME} 3000`,
    '',
  ].join('\n');
}

async function createCluster(servers: readonly RedisServer[]): Promise<void> {
  const program = findRedisServer();
  if (!program) throw new Error(WHAT_TO_INSTALL);
  const addresses = servers.map(({ host, port }) => `${host}:${port}`);
  const args = ['--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes'];
  await promisify(execFile)(clientOf(program), args, { timeout: READY_TIMEOUT_MS, killSignal: 'SIGKILL' });
}

async function knowsWholeCluster(client: Redis): Promise<boolean> {
  const info = await client.cluster('INFO');
  const whole = /cluster_state:ok/.test(info) && /cluster_slots_ok:16384/.test(info);
  if (!whole || !info.includes(`cluster_known_nodes:${CLUSTER_NODES}`)) return false;
  const ranges = await client.cluster('SLOTS');
  if (!ranges.every(([, , ...nodes]) => nodes.length === 2)) return false;
  return (await isMaster(client)) ? hasReplicas(client, 1) : isLinked(client);
}

async function hasReplicas(client: Redis, count: number): Promise<boolean> {
  return (await client.info('replication')).includes(`connected_slaves:${count}`);
}

async function isMaster(client: Redis): Promise<boolean> {
  return (await client.info('replication')).includes('role:master');
}

async function isLinked(client: Redis): Promise<boolean> {
  return (await client.info('replication')).includes('master_link_status:up');
}

async function knowsOthers(client: Redis): Promise<boolean> {
  const info = await client.info('sentinel');
  return info.includes(`status=ok`) && info.includes(`slaves=1,sentinels=${SENTINELS}`);
}

/** Starts all at once. If one fails, none is left behind. */
async function startAll(count: number, start: () => Promise<RedisServer>): Promise<RedisServer[]> {
  const results = await Promise.allSettled(Array.from({ length: count }, start));
  const started = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed) {
    await stopAll(started);
    throw failed.reason;
  }
  return started;
}

async function stopAll(servers: readonly RedisServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.stop()));
}

/** Asks one after the other, and none behind one that has not passed. */
async function everyServer(servers: readonly RedisServer[], test: (client: Redis) => Promise<boolean>) {
  for (const server of servers) if (!(await asked(server, test))) return false;
  return true;
}

async function filterServers(servers: readonly RedisServer[], test: (client: Redis) => Promise<boolean>) {
  const passed = await Promise.all(servers.map((server) => asked(server, test)));
  return servers.filter((_, index) => passed[index]);
}

/** The answer of one server; one that does not answer has not passed. */
async function asked(server: RedisServer, test: (client: Redis) => Promise<boolean>): Promise<boolean> {
  if (!server.running) return false;
  const client = new Redis(server.port, server.host, {
    enableReadyCheck: false,
    retryStrategy: () => null,
    commandTimeout: 2_000,
  });
  client.on('error', () => {});
  try {
    return await test(client);
  } catch {
    return false;
  } finally {
    client.disconnect();
  }
}

async function ready(what: string, servers: readonly RedisServer[], test: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (Date.now() < deadline) {
    if (await test()) return;
    await sleep(POLL_MS);
  }
  const logs = servers.map((server) => `--- port ${server.port}\n${server.log}`).join('\n');
  throw new Error(`The ${what} was not ready within ${READY_TIMEOUT_MS} ms. The servers' last lines:\n${logs}`);
}
