/** A client of one server: `createClient` of node-redis 5 or 6, the packages `redis` and `@redis/client`. */
export interface NodeRedisClient {
  /** True while the app has it open. */
  readonly isOpen: boolean;
  /** True while it is connected. */
  readonly isReady: boolean;
  /** The options that it was created with. */
  readonly options?: object | undefined;
  /** Sends a command. */
  sendCommand(args: readonly string[], options?: object): Promise<unknown>;
  /** Creates another client with the same options. */
  duplicate(overrides?: object): unknown;
  /** Closes it immediately. */
  destroy(): unknown;
}

/** A client of a Cluster: `createCluster` of node-redis 5 or 6. */
export interface NodeRedisCluster {
  /** True while the app has it open. */
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
  /** Creates another client with the same options. */
  duplicate(overrides?: object): unknown;
  /** Closes it immediately. */
  destroy(): unknown;
}

/** A client that finds its master through Sentinels: `createSentinel` of node-redis 5 or 6. */
export interface NodeRedisSentinel {
  /** True while the app has it open. */
  readonly isOpen: boolean;
  /** True while it is connected. */
  readonly isReady: boolean;
  /** Sends a command to the master, or to a replica. */
  sendCommand(isReadonly: boolean | undefined, args: string[], options?: object): Promise<unknown>;
  /** Closes it immediately. */
  destroy(): unknown;
}

/**
 * A node-redis client that the app has created and opened: this package uses it and never closes it. Options that the app has set for
 * commands, such as a type mapping, don't apply to the package's commands.
 */
export type NodeRedisConnection = NodeRedisClient | NodeRedisCluster | NodeRedisSentinel;
