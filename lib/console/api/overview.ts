import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { Coverage, Incident, InstanceInfo, TopKeys } from './incidents.js';

/** The ranges of an overview. */
export type Range = '5m' | '1h' | '1d' | '7d' | '30d';

/** A limit as the page lists it. */
export interface LimitInfo {
  name: string;
  algo: AlgorithmOptions['algo'];
  /** Its rate as text, such as `gcra:20/1s`. */
  rate: string;
  /** The most units that it allows at once. */
  quota: number;
  /** The units that it allows one key in a second, in the long run; `null` if it has no rate by an interval. */
  perSecond: number | null;
  /** Who it counts: `ip`, `user`, `header:x-api-key`, `a function`, or the name of a class. */
  key: string;
  mode: LimitMode;
  /** Whether its rate and mode can be changed. */
  changeable: boolean;
  /** Whether its keys can be looked up, blocked and reset. */
  addressable: boolean;
  /** Whether past windows can be read. */
  history: boolean;
  /** Whether units can be reserved. */
  reservations: boolean;
  /** Whether units are held by leases, so that they cannot be refunded or penalized. */
  leases: boolean;
  /** The rate of its candidate as text; `null` if it has none. */
  candidate: string | null;
  /** What its units are called; a currency means millionths of it. */
  unit?: string;
  /** The name of the limit that it is within. */
  within?: string;
  /** Its own units, without those that it may borrow; absent if it borrows nothing. */
  own?: number;
  /** The units that limits within it may not borrow. */
  kept?: number;
  /** What identifies the tenants that share its units, and the units that each may always use. */
  share?: { by: string; floor: number };
  /** The period of a plan or budget. */
  plan?: PlanInfo;
}

/** A limit of calendar windows. */
export interface PlanInfo {
  period: string;
  timezone: string;
  /** Where windows begin, in milliseconds since the epoch; `'each'` if it depends on the customer, absent for those of the calendar. */
  anchor?: number | 'each';
  /** The share of what is left that moves into the next window. */
  rollover?: number;
  /** Whether customers have prepaid units. */
  credits?: true;
}

/** Response of `GET api/session`. */
export interface Session {
  /** The version of the package. */
  version: string;
  /** The prefix of the Redis keys. */
  prefix: string;
  storage: 'redis' | 'memory';
  identities: 'hashed' | 'plain';
  topKeys: 'watched' | 'always';
  /** Whether acting on keys is possible at all; `GET api/act` returns whether this user may. */
  actable: boolean;
  /** Whether changes are possible at all; `GET api/write` returns whether this user may make them. */
  writable: boolean;
  /** The instance that responds. */
  instance: string;
  /** For a console that runs beside the app: when the app's limits were published, in milliseconds since the epoch. */
  observedSince?: number;
  /** For such a console: why it does not know rates, modes and lists, if so; those of limits are then the configured ones. */
  changesUnread?: string;
  limits: LimitInfo[];
}

/** What happened at the times of a series; each array is as long as `times`. Numbers count decisions. */
export interface LimitSeries {
  allowed: number[];
  refused: number[];
  shadowRefused: number[];
  /** How often a counter came near its quota. */
  near: number[];
  /** How often the candidate would have refused. */
  candidateRefused: number[];
  /** How often the candidate was asked: not before it existed, and not when a remembered refusal answered. */
  candidateAsked: number[];
  /**
   * Of an adaptive limit: how often an instance looked at it, once a second while it is used; and the sums of what it admitted then,
   * and had in flight.
   */
  looks?: number[];
  admits?: number[];
  inFlight?: number[];
}

/** What the store did at the times of a series. */
export interface StoreSeries {
  /** The median duration of checks in milliseconds; `null` if there were none. */
  p50: (number | null)[];
  /** The 99th percentile of the duration of checks in milliseconds; `null` if there were none. */
  p99: (number | null)[];
  /** Checks, each of one or several limits. */
  checks: number[];
  /** Checks that were answered while the store failed, or that failed. */
  fallback: number[];
  /** Checks that a remembered refusal answered. */
  cache: number[];
  /** Checks answered by prefetched units. */
  prefetch: number[];
}

/** Numbers over time, summed over all instances. */
export interface Series {
  /** The beginnings of the steps, in milliseconds since the epoch by the Redis server's clock, ascending without gaps. */
  times: number[];
  limits: Record<string, LimitSeries>;
  store: StoreSeries;
}

/** The sums over a range. */
export interface LimitTotals {
  allowed: number;
  refused: number;
  shadowRefused: number;
  near: number;
  candidateRefused: number;
  candidateAsked: number;
}

/** Redis as this instance sees it. `null` stands for what Redis does not report. */
export interface RedisInfo {
  up: boolean;
  mode: 'standalone' | 'cluster';
  /** The program and its version, such as `redis 7.2.4`. */
  version: string | null;
  /** Bytes that the server uses, all nodes of a Cluster together. */
  usedMemory: number | null;
  maxMemory: number | null;
  /** An estimate of the bytes of all keys of limits, from a sample. */
  ourKeysBytes: number | null;
  /** How long the last call of the console took. */
  latencyMs: number | null;
}

/** Response of `GET api/overview?range=`. */
export interface Overview {
  /** Now, in milliseconds since the epoch, by the Redis server's clock. */
  at: number;
  range: Range;
  /** The length of a step of the series. */
  stepMs: number;
  series: Series;
  /** By the names of limits. */
  totals: Record<string, LimitTotals>;
  /** The running instances: those that reported in the last few seconds. */
  instances: InstanceInfo[];
  /**
   * The instances that stopped to report in the last minutes without having ended by themselves; absent if an instance of an
   * earlier release answers.
   */
  lost?: InstanceInfo[];
  coverage: Coverage;
  /**
   * The declared limits of which some instance counted decisions only in the sum `(others)`: there are too many limits. Of these,
   * a number that is missing is not 0, and others are too low. Absent if an instance of an earlier release answers.
   */
  unknown?: string[];
  /** `null` if the app does not count on Redis. */
  redis: RedisInfo | null;
  /** What is wrong now, such as that Redis does not answer: then only this instance is shown. */
  problem?: string;
}

/**
 * Data of the event `tick` of `GET api/live`: the newest complete seconds. A second that was sent before replaces its earlier
 * data, since an instance can be late.
 */
export interface Tick extends Omit<Overview, 'range' | 'totals' | 'unknown'> {
  /** What hurts now, the worst first: the same as `GET api/incidents` returns. */
  incidents: Incident[];
  /** The most used keys of the requested limit. */
  top?: TopKeys;
}
