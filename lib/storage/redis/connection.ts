// oxlint-disable-next-line typescript/no-explicit-any -- each event has its own arguments.
export type EventListener = (...args: any[]) => void;

/** A command with its arguments. */
export type Command = (string | number)[];

/** Commands that are sent together. */
export interface Pipeline {
  /** Resolves to the reply of each command, or the error in its place. */
  exec(): Promise<[error: Error | null, reply: unknown][] | null>;
}

/** The part of a socket that the library uses. */
export interface Stream {
  readonly bytesRead: number;
  readonly connecting?: boolean;
  /** True while a TLS handshake lasts, and while a TLS socket connects. */
  readonly secureConnecting?: boolean;
  destroy(error: Error): void;
  cork?(): void;
  uncork?(): void;
}

/** The commands for one server or a Cluster. */
interface Commands {
  /** The state of the connection. Commands are sent only if it is `'ready'`. */
  readonly status: string;
  evalsha(sha: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  eval(source: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  del(...keys: string[]): Promise<unknown>;
  publish(channel: string, message: string): Promise<unknown>;
  lrange(key: string, first: number, last: number): Promise<string[]>;
  zrangebyscore(key: string, least: number | string, most: number | string): Promise<string[]>;
  zrangebyscore(
    key: string,
    least: number | string,
    most: number | string,
    limit: 'LIMIT',
    offset: number,
    count: number,
  ): Promise<string[]>;
  zscore(key: string, member: string): Promise<string | null>;
  zcount(key: string, least: number | string, most: number | string): Promise<number>;
  pipeline(commands: Command[]): Pipeline;
  connect(): Promise<unknown>;
  /** Closes it after pending commands. */
  quit(): Promise<unknown>;
  /** Closes it immediately. */
  disconnect(): void;
  on(event: string, listener: EventListener): unknown;
  off(event: string, listener: EventListener): unknown;
  once(event: string, listener: EventListener): unknown;
}

/** A connection to one server: one of ioredis, or an adapter around a node-redis client. */
export interface Server extends Commands {
  readonly isCluster: boolean;
  readonly options: {
    readonly host?: string | undefined;
    readonly port?: number | undefined;
    readonly keyPrefix?: string | undefined;
  };
  readonly stream?: Stream;
  script(subcommand: 'LOAD', source: string): Promise<unknown>;
  asking(): Promise<unknown>;
  wait(replicas: number, timeoutMs: number): Promise<number>;
  subscribe(channel: string): Promise<unknown>;
  /** A separate connection with the same options, for `connect`. The caller ends it. */
  duplicate(options?: object): Server;
}

/** The connections to the nodes of a Cluster. */
export interface ServerCluster extends Commands {
  readonly isCluster: boolean;
  readonly options: { readonly keyPrefix?: string | undefined; readonly retryDelayOnFailover?: number | undefined };
  /** The addresses of each slot's nodes, the master first. */
  readonly slots: readonly (readonly string[] | undefined)[];
  nodes(role: 'all' | 'master'): Server[];
}

/** A connection to Redis, as the library uses it. */
export type Connection = Server | ServerCluster;
