/** @ts-ignore ioredis is optional; without it, these types are `any`. */
import type { Cluster, ClusterNode, Redis, RedisOptions } from 'ioredis';
import { configError, RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { reasonOf, withoutSecretsIn } from '../../engine/errors/reasons.js';
import { redisMessages } from '../../engine/errors/messages/redis.js';
import { forgetError, rememberError, whyNotReady } from './errors.js';
import type { Connection, Server, ServerCluster } from './connection.js';
import { handleFloatingCommands } from './floating-commands.js';
import { type ClusterConnection, isClusterConnection, isIoredis, isNodeRedis, refusalOf } from './given-connection.js';
import { NodeRedisAdapter } from './node-redis/adapter.js';
import { type FullCluster, NodeRedisNodes } from './node-redis/node-redis-cluster.js';
import type { NodeRedisConnection } from './node-redis/types.js';
import { HEARS_OF_FAILOVERS, ignoreSentinelErrors, missesFailovers, outliveFailovers } from './sentinels.js';
import { limitSilence } from './silence.js';
import { type FullSentinel, NodeRedisMaster } from './node-redis/node-redis-sentinel.js';
import { type FullClient, GivenNodeRedisServer } from './node-redis/node-redis-server.js';

/** An ioredis connection that the app has created: this package uses it and never closes it. */
export type RedisClient = Redis | Cluster;

/**
 * How to reach Redis: a URL, ioredis options (also for Sentinel), an existing connection of ioredis or node-redis, or the nodes of a
 * Cluster.
 */
export type RedisConnection = string | RedisOptions | RedisClient | NodeRedisConnection | ClusterConnection;

/** How long to try to connect before the app starts without Redis. */
export const CONNECT_TIMEOUT_MS = 2000;

/**
 * The longest silence after a command before the connection is replaced. A frozen server never ends a connection, and a firewall that has
 * forgotten it doesn't either.
 */
const SILENCE_MS = 2000;

/** The default connection timeout of ioredis. */
const DEFAULT_CONNECT_TIMEOUT_MS = 10_000;

/** The maximum time to close a connection: a silent server would keep an ending process alive. */
export const DISCONNECT_TIMEOUT_MS = 100;

/**
 * Makes commands fail immediately while a server is down. They don't wait for a connection and are never sent again: a check that was
 * already counted would count twice. The library opens the connection itself (`lazyConnect`).
 */
const FAIL_FAST = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  lazyConnect: true,
} as const;

const FAIL_FAST_CLUSTER = {
  enableOfflineQueue: false,
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  scaleReads: 'master',
  lazyConnect: true,
} as const;

/** Returns true if a master was demoted to a replica at the same address: a new connection finds the new master. */
const isDemoted = ({ message }: Error): boolean => message.startsWith('READONLY');

const backOff = (times: number): number => Math.min(times * 50, 1000);

export function isClient(redis: unknown): redis is RedisClient | NodeRedisConnection | Connection {
  return isIoredis(redis) || isNodeRedis(redis);
}

/** The connection of a client. Throws `RateLimitConfigError` if the library can't use it. */
export function connectionOf(client: RedisClient | NodeRedisConnection | Connection): Connection {
  if (isIoredis(client)) return client;
  if (isNodeRedis(client)) return adapt(client);
  throw configError('SLUICE_INVALID_REDIS', redisMessages.noClient(refusalOf(client), client));
}

export function isCluster(client: RedisClient): client is Cluster;
export function isCluster(client: Connection): client is ServerCluster;
export function isCluster(client: { readonly isCluster: boolean }): boolean {
  return client.isCluster;
}

/** The connections to all servers that accept writes. */
export function mastersOf(client: Connection): readonly Server[] {
  return isCluster(client) ? client.nodes('master') : [client];
}

/** Returns true for a client that the app has not opened: ioredis opens a connection on its own, node-redis doesn't. */
export function isUnopened(client: Connection): boolean {
  return client instanceof NodeRedisAdapter && client.status === 'end';
}

/** Returns true if a connection resends commands after it breaks. For a Cluster, its options decide; node-redis never does. */
export function resends(client: Connection): boolean {
  if (client instanceof NodeRedisAdapter) return false;
  const ioredis = client as unknown as RedisClient;
  const options = isCluster(ioredis) ? ioredis.options.redisOptions : ioredis.options;
  return options?.autoResendUnfulfilledCommands !== false;
}

/** Makes the client of a Cluster discover the slots of the nodes again after one has failed. */
export function rediscoverNodes(cluster: ServerCluster, failed: string): void {
  if (cluster instanceof NodeRedisNodes) cluster.rediscover(failed);
  else (cluster as unknown as Cluster).refreshSlotsCache();
}

/**
 * Creates a connection for `connect`. ioredis is loaded only here. `timeoutMs` is the maximum time of a check. Throws
 * `RateLimitConfigError` if ioredis rejects the options.
 */
export async function createClient(
  redis: Exclude<RedisConnection, RedisClient | NodeRedisConnection>,
  timeoutMs = 0,
): Promise<RedisClient> {
  const ioredis = await loadIoredis();
  try {
    return make(ioredis, redis, timeoutMs);
  } catch (error) {
    // Without a cause, since that may contain the URL and with it a password.
    throw configError('SLUICE_INVALID_REDIS', messages.unusableRedis(withoutSecretsIn(reasonOf(error))));
  }
}

function make(
  { Cluster, Redis }: Ioredis,
  redis: Exclude<RedisConnection, RedisClient | NodeRedisConnection>,
  timeoutMs: number,
): RedisClient {
  const limits = { connectTimeout: CONNECT_TIMEOUT_MS, disconnectTimeout: DISCONNECT_TIMEOUT_MS };
  const longestSilenceMs = Math.max(SILENCE_MS, 2 * timeoutMs);
  if (isClusterConnection(redis)) {
    const { redisOptions, ...options } = redis.options ?? {};
    const nodeOptions = {
      ...limits,
      socketTimeout: longestSilenceMs,
      ...redisOptions,
      autoResendUnfulfilledCommands: false,
    };
    return new Cluster(redis.nodes, {
      clusterRetryStrategy: backOff,
      ...options,
      ...FAIL_FAST_CLUSTER,
      redisOptions: nodeOptions,
    });
  }
  const options = { ...limits, reconnectOnError: isDemoted, retryStrategy: backOff };
  const client =
    typeof redis === 'string'
      ? new Redis(redis, { ...options, ...FAIL_FAST })
      : new Redis({ ...options, ...(redis.sentinels ? HEARS_OF_FAILOVERS : {}), ...redis, ...FAIL_FAST });
  limitSilence(client, longestSilenceMs);
  return client;
}

/** A separate connection to the same server or Cluster, for `connect`. The caller closes it. `timeoutMs` is the maximum time of a check. */
export function duplicate(connection: Connection, timeoutMs: number): Connection {
  const copy = connection instanceof NodeRedisAdapter ? connection.copy() : copyOf(connection, timeoutMs);
  ignoreConnectionErrors(copy);
  return copy;
}

/**
 * A connection of the library's own with the options of an app's ioredis client that resends commands, so that no check is charged
 * twice; `undefined` if the client doesn't, or can't be duplicated. The app's client isn't touched. The caller closes the copy.
 */
export function ownCopy(given: Connection, timeoutMs: number): Connection | undefined {
  if (!resends(given) || typeof (given as { duplicate?: unknown }).duplicate !== 'function') return undefined;
  return copyOf(given, timeoutMs);
}

function copyOf(connection: Connection, timeoutMs: number): Connection {
  const client = connection as unknown as RedisClient;
  const longestSilenceMs = Math.max(SILENCE_MS, 2 * timeoutMs);
  if (isCluster(client)) {
    const { redisOptions = {} } = client.options;
    const options = {
      clusterRetryStrategy: backOff,
      ...FAIL_FAST_CLUSTER,
      redisOptions: {
        socketTimeout: longestSilenceMs,
        ...redisOptions,
        ...ownTimes(redisOptions),
        autoResendUnfulfilledCommands: false,
      },
    };
    const copy = client.duplicate([], options as Parameters<Cluster['duplicate']>[1]);
    withCredentialsOf(redisOptions, copy.options.redisOptions ?? {});
    return copy;
  }
  const { options } = client;
  const copy = client.duplicate({
    ...(missesFailovers(client) ? HEARS_OF_FAILOVERS : {}),
    ...ownTimes(options),
    reconnectOnError: isDemoted,
    retryStrategy: backOff,
    ...FAIL_FAST,
  });
  withCredentialsOf(options, copy.options);
  limitSilence(copy, longestSilenceMs);
  return copy;
}

/** The library has deadlines for its commands. The app decides how long connecting may take. */
function ownTimes({ connectTimeout = DEFAULT_CONNECT_TIMEOUT_MS }: RedisOptions): object {
  return {
    connectTimeout: connectTimeout === DEFAULT_CONNECT_TIMEOUT_MS ? CONNECT_TIMEOUT_MS : connectTimeout,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    commandTimeout: undefined,
  };
}

/** If a server uses short-lived passwords, apps change the password of their client. A copy adopts it when it reconnects. */
function withCredentialsOf(given: RedisOptions, own: object): void {
  for (const name of ['username', 'password'] as const) {
    Object.defineProperty(own, name, { enumerable: true, configurable: true, get: () => given[name] });
  }
}

/**
 * Keeps errors of a connection from ending the process, and failovers from ending the connection; checks report errors. ioredis listens for
 * the first error of a socket, but a TLS socket can have a second one: the server's alert after an aborted handshake.
 *
 * @returns a function that stops this, for a connection that stays in use
 */
export function ignoreConnectionErrors(connection: Connection): () => void {
  if (connection instanceof NodeRedisAdapter) return connection.ignoreErrors();
  const client = connection as unknown as RedisClient;
  const forget = () => forgetError(client);
  let quiet: object | undefined;
  const ignore = (error: Error) => {
    rememberError(client, error);
    const { stream } = client as { stream?: Pick<NodeJS.EventEmitter, 'on'> };
    // While Sentinels name no master, errors come without a new socket.
    if (stream === quiet) return;
    quiet = stream;
    stream?.on('error', () => undefined);
  };
  const release = () => {
    client.off('error', ignore);
    client.off('ready', forget);
  };
  client.on('error', ignore);
  client.on('ready', forget);
  if (!isCluster(client)) {
    const releases = [release, handleFloatingCommands(client), ignoreSentinelErrors(client), outliveFailovers(client)];
    return () => {
      for (const end of releases) end();
    };
  }
  const nodes = new Map<Redis, () => void>();
  const add = (node: Redis) => void nodes.set(node, ignoreConnectionErrors(node));
  const remove = (node: Redis) => void nodes.delete(node);
  for (const node of client.nodes('all')) add(node);
  client.on('+node', add);
  client.on('-node', remove);
  return () => {
    release();
    client.off('+node', add);
    client.off('-node', remove);
    for (const releaseNode of nodes.values()) releaseNode();
  };
}

/**
 * Resolves when the client is ready. Rejects with its first error, such as a refused connection, or when the time is up. In both cases the
 * client keeps connecting.
 */
export function connect(client: Connection): Promise<void> {
  return new Promise((resolve, reject) => {
    if (client.status === 'ready') return resolve();
    const settle = (failure?: Error) => {
      clearTimeout(timer);
      client.off('ready', ready);
      client.off('error', failed);
      client.off('end', unready);
      if (failure === undefined) resolve();
      else reject(failure.message ? failure : new Error(whyNotReady(client)));
    };
    const ready = () => settle();
    const failed = (error: Error) => settle(error);
    const unready = () => settle(new Error(whyNotReady(client)));
    const timer = setTimeout(unready, CONNECT_TIMEOUT_MS);
    client.on('ready', ready);
    client.on('error', failed);
    client.on('end', unready);
    if (client.status === 'end') unready();
    else if (client.status === 'wait') client.connect().catch(failed);
  });
}

/** The part of ioredis that the library uses, in types that fit versions 5 and 6. */
interface Ioredis {
  Redis: new (...connection: [url: string, options: object] | [options: object]) => Redis;
  Cluster: new (nodes: ClusterNode[], options: object) => Cluster;
}

async function loadIoredis(): Promise<Ioredis> {
  try {
    return await import('ioredis');
  } catch (cause) {
    throw new RateLimitConfigError(messages.noIoredis(), { cause, code: 'SLUICE_MISSING_PACKAGE' });
  }
}

/** One adapter for each client, as several stores can share one. */
const adapters = new WeakMap<NodeRedisConnection, Connection>();

/** A client of node-redis as a connection. */
function adapt(client: NodeRedisConnection): Connection {
  let adapter = adapters.get(client);
  if (adapter === undefined) adapters.set(client, (adapter = adapterOf(client)));
  return adapter;
}

function adapterOf(client: NodeRedisConnection): Connection {
  if ('nodeClient' in client) return new NodeRedisNodes(client as FullCluster);
  return 'getMasterNode' in client
    ? new NodeRedisMaster(client as unknown as FullSentinel)
    : new GivenNodeRedisServer(client as FullClient);
}
