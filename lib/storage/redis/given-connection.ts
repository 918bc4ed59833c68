/** @ts-ignore ioredis is optional; without it, these types are `any`. */
import type { Cluster, ClusterNode, ClusterOptions, Redis } from 'ioredis';
import type { NodeRedisConnection } from './node-redis/types.js';

/** The nodes of a Cluster, from which the others are discovered. */
export interface ClusterConnection {
  /** Some of the nodes, such as `{ host, port }`. */
  nodes: ClusterNode[];
  /** The ioredis options of the Cluster. */
  options?: ClusterOptions;
}

/** The reason why something can't be used as a connection. */
export interface Refusal {
  /** A description of it. */
  readonly is: string;
  /** The suggested alternative. */
  readonly hint: string;
}

const UNSUPPORTED = 'it is not supported; ioredis and node-redis are, and so is iovalkey';

/** Returns true if something has members of these names: properties, methods or getters. */
function has(redis: object, ...members: readonly string[]): boolean {
  return members.every((member) => member in redis);
}

/** Returns true for a connection of ioredis or of a compatible package. */
export function isIoredis(redis: unknown): redis is Redis | Cluster {
  return typeof redis === 'object' && redis !== null && has(redis, 'evalsha', 'status');
}

/** Returns true for a client of node-redis 5 or newer: for one server, for a Cluster, or with Sentinels. */
export function isNodeRedis(redis: unknown): redis is NodeRedisConnection {
  if (typeof redis !== 'object' || redis === null || !has(redis, 'sendCommand', 'isOpen', 'destroy')) return false;
  // Version 5 can't duplicate a client with Sentinels.
  if (has(redis, 'getMasterNode')) return has(redis, '_execute');
  return has(redis, 'duplicate') && (has(redis, 'nodeClient', 'masters') || has(redis, 'isReady', 'subscribe'));
}

export function isClusterConnection(redis: unknown): redis is ClusterConnection {
  return typeof redis === 'object' && redis !== null && !isIoredis(redis) && 'nodes' in redis;
}

/** The reason why a connection can't be used; `undefined` if it may be used. */
export function refusalOf(redis: unknown): Refusal | undefined {
  if (typeof redis === 'function') {
    return {
      is: `the ${/^class\b/.test(String(redis)) ? 'class' : 'function'} '${redis.name}'`,
      hint: 'call it first',
    };
  }
  if (typeof redis !== 'object' || redis === null) return undefined;
  if (redis instanceof Promise || ('then' in redis && typeof redis.then === 'function')) {
    return { is: 'a promise', hint: "await it, for instance in the 'useFactory' of forRootAsync" };
  }
  if (redis instanceof URL) return { is: 'an object of the class URL', hint: "give its 'href'" };
  if (has(redis, 'customCommand')) return { is: 'a client of valkey-glide', hint: UNSUPPORTED };
  if (isIoredis(redis)) {
    return has(redis, '_addedScriptHashes')
      ? { is: 'a connection of ioredis 4 or older', hint: 'update ioredis to 5 or 6' }
      : undefined;
  }
  return isNodeRedis(redis) ? undefined : unusableNodeRedis(redis);
}

function unusableNodeRedis(redis: object): Refusal | undefined {
  if (has(redis, 'clientsInUse', 'execute')) {
    const hint = 'its connections take turns, and the library uses one for all it sends; give a client of createClient';
    return { is: 'a pool of node-redis', hint };
  }
  if (/legacy/i.test(redis.constructor?.name)) {
    return { is: 'a client of node-redis in legacy mode', hint: 'give the client that it was made of' };
  }
  if (has(redis, 'sendCommand', 'isOpen') || has(redis, 'send_command')) {
    return { is: 'a client of node-redis 4 or older', hint: 'update redis to 5 or 6' };
  }
  return undefined;
}
