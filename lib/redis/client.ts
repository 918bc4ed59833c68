/** @ts-ignore ioredis need not be installed; where it is not, these types are `any`. */
import type { Cluster, ClusterNode, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { reasonOf } from '../util/reason-of.js';
import { forgetError, rememberError } from './connection-errors.js';
import { handleFloatingCommands } from './floating-commands.js';
import { HEARS_OF_FAILOVERS, ignoreSentinelErrors } from './sentinels.js';
import { limitSilence } from './silence.js';

/** A connection made by the app: this package uses it, and never closes it. */
export type RedisClient = Redis | Cluster;

/** The nodes of a Cluster through which the others are discovered. */
export interface ClusterConnection {
  /** Some of its nodes, such as `{ host, port }`. */
  nodes: ClusterNode[];
  /** The ioredis options of the Cluster. */
  options?: ClusterOptions;
}

/** How to reach Redis: a URL, ioredis options (also for Sentinel), an existing connection, or the nodes of a Cluster. */
export type RedisConnection = string | RedisOptions | RedisClient | ClusterConnection;

/** How long to try to connect before the app starts without Redis. */
export const CONNECT_TIMEOUT_MS = 2000;

/**
 * The longest silence after a command before the connection is replaced. A frozen server never ends a connection, nor does a
 * firewall that has forgotten it.
 */
const SILENCE_MS = 2000;

/** The longest time to close a connection: a silent server would keep an ending process alive. */
export const DISCONNECT_TIMEOUT_MS = 100;

/**
 * Makes commands fail at once while a server is down. None waits for a connection, and none is sent again: a check that had
 * already been counted would count twice.
 */
const FAIL_FAST = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
} as const;

const FAIL_FAST_CLUSTER = {
  enableOfflineQueue: false,
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  scaleReads: 'master',
} as const;

/** Whether a master was demoted to a replica at the same address: a new connection finds the new master. */
const isDemoted = ({ message }: Error): boolean => message.startsWith('READONLY');

const backOff = (times: number): number => Math.min(times * 50, 1000);

export function isClient(redis: unknown): redis is RedisClient {
  return typeof redis === 'object' && redis !== null && 'evalsha' in redis && 'status' in redis;
}

export function isClusterConnection(redis: unknown): redis is ClusterConnection {
  return typeof redis === 'object' && redis !== null && !isClient(redis) && 'nodes' in redis;
}

export function isCluster(client: RedisClient): client is Cluster {
  return client.isCluster;
}

/** Whether a connection resends commands after it breaks; for a Cluster, its options decide. */
export function resends(client: RedisClient): boolean {
  const options = isCluster(client) ? client.options.redisOptions : client.options;
  return options?.autoResendUnfulfilledCommands !== false;
}

/**
 * Creates a connection for `connect`. Only here is ioredis loaded. `timeoutMs` is the longest check. Throws
 * `RateLimitConfigError` if ioredis refuses the options.
 */
export async function createClient(redis: Exclude<RedisConnection, RedisClient>, timeoutMs = 0): Promise<RedisClient> {
  const ioredis = await loadIoredis();
  try {
    return make(ioredis, redis, timeoutMs);
  } catch (error) {
    // No cause: it may contain the URL, and thus a password.
    throw new RateLimitConfigError(messages.unusableRedis(reasonOf(error)));
  }
}

function make(
  { Cluster, Redis }: Ioredis,
  redis: Exclude<RedisConnection, RedisClient>,
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
      lazyConnect: true,
      redisOptions: nodeOptions,
    });
  }
  const options = { ...limits, reconnectOnError: isDemoted, retryStrategy: backOff };
  const always = { ...FAIL_FAST, lazyConnect: true };
  const client =
    typeof redis === 'string'
      ? new Redis(redis, { ...options, ...always })
      : new Redis({ ...options, ...(redis.sentinels ? HEARS_OF_FAILOVERS : {}), ...redis, ...always });
  limitSilence(client, longestSilenceMs);
  return client;
}

/** A separate connection to the same server or Cluster, for `connect`. The caller closes it. `timeoutMs` is the longest check. */
export function duplicate(client: RedisClient, timeoutMs: number): RedisClient {
  const copy = isCluster(client)
    ? client.duplicate([], { ...FAIL_FAST_CLUSTER, lazyConnect: true })
    : client.duplicate({ ...FAIL_FAST, lazyConnect: true });
  ignoreConnectionErrors(copy);
  if (!isCluster(copy)) limitSilence(copy, Math.max(SILENCE_MS, 2 * timeoutMs));
  return copy;
}

/**
 * Keeps errors of a connection from ending the process; checks report them. ioredis listens for the first error of a socket, but
 * a TLS socket can have a second one: the server's alert after an aborted handshake.
 *
 * @returns a function that stops this, for a connection that stays in use
 */
export function ignoreConnectionErrors(client: RedisClient): () => void {
  const forget = () => forgetError(client);
  const ignore = (error: Error) => {
    rememberError(client, error);
    const { stream } = client as { stream?: Pick<NodeJS.EventEmitter, 'on'> };
    stream?.on('error', () => undefined);
  };
  const release = () => {
    client.off('error', ignore);
    client.off('ready', forget);
  };
  client.on('error', ignore);
  client.on('ready', forget);
  if (!isCluster(client)) {
    const releases = [release, handleFloatingCommands(client), ignoreSentinelErrors(client)];
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
 * Resolves when the client is ready; rejects with its first error, such as a refused connection, or when the time is up. The
 * client keeps connecting either way.
 */
export function connect(client: RedisClient): Promise<void> {
  return new Promise((resolve, reject) => {
    if (client.status === 'ready') return resolve();
    const settle = (failure?: Error) => {
      clearTimeout(timer);
      client.off('ready', ready);
      client.off('error', failed);
      client.off('end', unready);
      if (failure === undefined) resolve();
      else reject(failure.message ? failure : new Error(messages.storeNotReady(client.status)));
    };
    const ready = () => settle();
    const failed = (error: Error) => settle(error);
    const unready = () => settle(new Error(messages.storeNotReady(client.status)));
    const timer = setTimeout(unready, CONNECT_TIMEOUT_MS);
    client.on('ready', ready);
    client.on('error', failed);
    client.on('end', unready);
    if (client.status === 'end') unready();
    else if (client.status === 'wait') client.connect().catch(failed);
  });
}

/** The part of ioredis that is used, in types that fit versions 5 and 6. */
interface Ioredis {
  Redis: new (...connection: [url: string, options: object] | [options: object]) => Redis;
  Cluster: new (nodes: ClusterNode[], options: object) => Cluster;
}

async function loadIoredis(): Promise<Ioredis> {
  try {
    return await import('ioredis');
  } catch (cause) {
    throw new RateLimitConfigError(messages.noIoredis(), { cause });
  }
}
