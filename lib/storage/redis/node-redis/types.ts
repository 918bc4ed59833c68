/** A client of one server: `createClient` of node-redis 5 or 6, the packages `redis` and `@redis/client`. */
export interface NodeRedisClient {
  /** Whether the app has opened it, and not closed it. */
  readonly isOpen: boolean;
  /** Whether it is connected. */
  readonly isReady: boolean;
  /** What it was made of. */
  readonly options?: object | undefined;
  /** Sends a command. */
  sendCommand(args: readonly string[], options?: object): Promise<unknown>;
  /** Makes another one like it. */
  duplicate(overrides?: object): unknown;
  /** Closes it at once. */
  destroy(): unknown;
}

/** A client of a Cluster: `createCluster` of node-redis 5 or 6. */
export interface NodeRedisCluster {
  /** Whether the app has opened it, and not closed it. */
  readonly isOpen: boolean;
  /** The masters. */
  readonly masters: readonly object[];
  /** The nodes of each slot. */
  readonly slots: readonly object[];
  /** Sends a command to the node that has the slot of a key. */
  sendCommand(
    firstKey: string | undefined,
    isReadonly: boolean | undefined,
    args: string[],
    options?: object,
  ): Promise<unknown>;
  /** Makes another one like it. */
  duplicate(overrides?: object): unknown;
  /** Closes it at once. */
  destroy(): unknown;
}

/** A client that finds its master through Sentinels: `createSentinel` of node-redis 5 or 6. */
export interface NodeRedisSentinel {
  /** Whether the app has opened it, and not closed it. */
  readonly isOpen: boolean;
  /** Whether it is connected. */
  readonly isReady: boolean;
  /** Sends a command to the master, or to a replica. */
  sendCommand(isReadonly: boolean | undefined, args: string[], options?: object): Promise<unknown>;
  /** Closes it at once. */
  destroy(): unknown;
}

/**
 * A client that the app made with node-redis, and opened: this package uses it, and never closes it. Options that the app has set
 * for commands, such as a type mapping, do not apply to ours.
 */
export type NodeRedisConnection = NodeRedisClient | NodeRedisCluster | NodeRedisSentinel;
