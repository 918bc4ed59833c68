import type { Connection } from '../connection.js';
import { NodeRedisNodes, type FullCluster } from './node-redis-cluster.js';
import { NodeRedisMaster, type FullSentinel } from './node-redis-sentinel.js';
import { type FullClient, GivenNodeRedisServer } from './node-redis-server.js';
import type { NodeRedisConnection } from './types.js';

/** One adapter for each client, as several stores can share one. */
const adapters = new WeakMap<NodeRedisConnection, Connection>();

/** A client of node-redis as a connection. */
export function adapt(client: NodeRedisConnection): Connection {
  let adapter = adapters.get(client);
  if (adapter === undefined) adapters.set(client, (adapter = make(client)));
  return adapter;
}

function make(client: NodeRedisConnection): Connection {
  if (isCluster(client)) return new NodeRedisNodes(client);
  return isSentinel(client) ? new NodeRedisMaster(client) : new GivenNodeRedisServer(client as FullClient);
}

export function isCluster(client: object): client is FullCluster {
  return 'nodeClient' in client;
}

export function isSentinel(client: object): client is FullSentinel {
  return 'getMasterNode' in client;
}
