import type { AlgorithmOptions } from '../../algorithms/index.js';
import type { LimitMode } from '../../overrides/override.js';

/** The ranges of an overview. */
export type Range = '5m' | '1h' | '1d';

/** A limit as the page lists it. */
export interface LimitInfo {
  name: string;
  algo: AlgorithmOptions['algo'];
  /** Its rate as text, such as `gcra:20/1s`. */
  rate: string;
  /** The most units that it allows at once. */
  quota: number;
  /** Whom it counts: `ip`, `user`, `header:x-api-key`, `a function`, or the name of a class. */
  key: string;
  mode: LimitMode;
  /** Whether its rate and mode can be changed. */
  changeable: boolean;
  /** Whether keys of it can be looked up, blocked and reset. */
  addressable: boolean;
  /** Whether past windows can be read. */
  history: boolean;
  /** Whether units can be reserved. */
  reservations: boolean;
  /** Whether units are held by leases, and so neither refunded nor penalized. */
  leases: boolean;
  /** The rate of its candidate as text; `null` if it has none. */
  candidate: string | null;
}

/** Answer of `GET api/session`. */
export interface Session {
  /** The version of the package. */
  version: string;
  /** The prefix of the keys on Redis. */
  prefix: string;
  storage: 'redis' | 'memory';
  identities: 'hashed' | 'plain';
  topKeys: 'watched' | 'always';
  /** Whether changes are possible at all; whether this user may make them, `GET api/write` says. */
  writable: boolean;
  /** The instance that answers. */
  instance: string;
  limits: LimitInfo[];
}

/** What happened at the times of a series; each list is as long as `times`. Numbers are of decisions. */
export interface LimitSeries {
  allowed: number[];
  refused: number[];
  shadowRefused: number[];
  /** How often a counter came near its quota. */
  near: number[];
  /** How often the candidate would have refused. */
  candidateRefused: number[];
  /** How often the candidate was asked: not before it was there, nor where a remembered refusal answered. */
  candidateAsked: number[];
}

/** What the store did at the times of a series. */
export interface StoreSeries {
  /** Half of the checks took at most so many milliseconds; `null` where there was none. */
  p50: (number | null)[];
  /** 99 of 100 checks took at most so many milliseconds; `null` where there was none. */
  p99: (number | null)[];
  /** Checks, each of one or several limits. */
  checks: number[];
  /** Checks that were answered while the store failed, or by an error. */
  fallback: number[];
  /** Checks that a remembered refusal answered. */
  cache: number[];
  /** Checks that units answered which had been taken before. */
  prefetch: number[];
}

/** Numbers over time, summed over all instances. */
export interface Series {
  /** The beginnings of the steps, in milliseconds since the epoch by the Redis server's clock, ascending without gaps. */
  times: number[];
  limits: Record<string, LimitSeries>;
  store: StoreSeries;
}

/** The sums of a range. */
export interface LimitTotals {
  allowed: number;
  refused: number;
  shadowRefused: number;
  near: number;
  candidateRefused: number;
  candidateAsked: number;
}

/** An instance of the app that was seen in the last minutes. */
export interface InstanceInfo {
  id: string;
  /** The version of the package. */
  version: string;
  host: string;
  pid: number;
  /** When it started, in milliseconds since the epoch. */
  startedAt: number;
  /** What its clock is ahead of the Redis server's, in milliseconds; 0 without Redis. */
  clockOffsetMs: number;
  /** When it was heard of last, in milliseconds since the epoch. */
  lastSeenAt: number;
  /** `'open'` while it does not ask its store, since that failed repeatedly; `'none'` if its store cannot fail. */
  circuit: 'closed' | 'open' | 'none';
  /** By their names, what its adaptive limits let in and have in flight, where somebody asked for them; left out where there are none. */
  adaptive?: Record<string, AdaptiveNow>;
  /** Whether it answers this request. */
  self: boolean;
}

/** An adaptive limit in one instance. */
export interface AdaptiveNow {
  /** The units that it lets in at once. */
  limit: number;
  inFlight: number;
}

/** Redis as this instance sees it. `null` stands for what it does not tell. */
export interface RedisInfo {
  up: boolean;
  mode: 'standalone' | 'cluster';
  /** The program and its version, such as `redis 7.2.4`. */
  version: string | null;
  /** Bytes that the server uses, all nodes of a Cluster together. */
  usedMemory: number | null;
  maxMemory: number | null;
  /** An estimate of the bytes of all keys of limits, by the keys that were counted lately. */
  ourKeysBytes: number | null;
  /** How long the last call of the console took. */
  latencyMs: number | null;
}

/** Answer of `GET api/overview?range=`. */
export interface Overview {
  /** Now, in milliseconds since the epoch, by the Redis server's clock. */
  at: number;
  range: Range;
  /** The length of a step of the series. */
  stepMs: number;
  series: Series;
  /** By the limits' names. */
  totals: Record<string, LimitTotals>;
  instances: InstanceInfo[];
  /** `null` if the app does not count on Redis. */
  redis: RedisInfo | null;
  /** What is wrong now, such as Redis that does not answer: then only this instance is shown. */
  problem?: string;
}

/**
 * Data of the event `tick` of `GET api/live`: the newest complete seconds. A time that was told before replaces what was told
 * of it, since an instance can be late.
 */
export interface Tick extends Omit<Overview, 'range' | 'totals'> {
  /** The most used keys of the limit that was asked for. */
  top?: TopKeys;
}

/** A key of a limit with what was counted of it. */
export interface TopKey {
  /** A hash of the identity. */
  id: string;
  /** The identity, with `identities: 'plain'`. */
  identity?: string;
  /** At most so often; it was at least `count - error` times. */
  count: number;
  error: number;
}

/** Answer of `GET api/top?limit=`, most first. */
export interface TopKeys {
  limit: string;
  /** Who was refused most. */
  refused: TopKey[];
  /** Who asked most units that were allowed. */
  used: TopKey[];
  /** Since when it is counted, in milliseconds since the epoch; `null` if counting begins now. */
  since: number | null;
  /** Why the other instances could not be read: then it is of this one alone. */
  problem?: string;
}
