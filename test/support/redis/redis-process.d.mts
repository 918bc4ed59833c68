export interface RedisProcessOptions {
  /** @default a free one */
  port?: number;
  /** More arguments of `redis-server`, for example `['--maxmemory', '2mb']`. */
  args?: readonly string[];
  /** The text of the configuration file. */
  config?: () => string;
  /** Start it as a Sentinel. */
  sentinel?: boolean;
}

export interface RedisProcess {
  readonly host: string;
  readonly port: number;
  readonly url: string;
  readonly pid: number;
  readonly running: boolean;
  /** The last lines that the server logged. */
  readonly log: string;
  /** Brings a killed server back on its port, with its folder. */
  start(): Promise<void>;
  /** Freezes the server: it keeps its connections and answers nothing. */
  pause(): void;
  resume(): void;
  /** Ends the server at once, as a crash would. */
  kill(): Promise<void>;
  /** Ends the server and removes what it left on the disk. */
  stop(): Promise<void>;
}

export declare function startRedisProcess(options?: RedisProcessOptions): Promise<RedisProcess>;
