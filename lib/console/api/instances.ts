/** The instances whose counts an answer contains. */
export interface Coverage {
  /** The ids of the running instances. */
  instances: string[];
  /** The number of ended or lost instances whose counts were read one by one; older ones are kept as one sum. */
  ended: number;
  /** The ids of the instances whose counts could not be read, or only in part. */
  unread: string[];
}

/** An instance of the app. */
export interface InstanceInfo {
  id: string;
  /** The version of the package. */
  version: string;
  host: string;
  pid: number;
  /** When it started, in milliseconds since the epoch. */
  startedAt: number;
  /** How much its clock is ahead of the Redis server's, in milliseconds; 0 without Redis. */
  clockOffsetMs: number;
  /** When it last reported, in milliseconds since the epoch. */
  lastSeenAt: number;
  /** `'open'` while it does not ask its store after repeated failures; `'none'` if its store cannot fail. */
  circuit: 'closed' | 'open' | 'none';
  /** Since when the circuit is open, in milliseconds since the epoch; absent if it is not. */
  circuitOpenSince?: number;
  /** By name, what its adaptive limits let in and have in flight; only those that were used; absent if there are none. */
  adaptive?: Record<string, AdaptiveNow>;
  /** Whether it is the instance that responds. */
  self: boolean;
}

/** An adaptive limit in one instance. */
export interface AdaptiveNow {
  /** The units that it lets in at once. */
  limit: number;
  inFlight: number;
  /** Since when at least as much is in flight as it lets in, in milliseconds since the epoch; absent if there is less. */
  fullSince?: number;
}
