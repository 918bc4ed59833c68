import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { Coverage, Incident, InstanceInfo, TopKeys } from './incidents.js';

/** The ranges of an overview. */
export type Range = '5m' | '1h' | '1d' | '7d' | '30d';

/** A limit in the page's list. */
export interface LimitInfo {
  name: string;
  algo: AlgorithmOptions['algo'];
  /** Its rate as text, such as `gcra:20/1s`. */
  rate: string;
  /** The maximum number of units that it allows at once. */
  quota: number;
  /** The units that it allows one key per second in the long run; `null` if it has no rate per interval. */
  perSecond: number | null;
  /** Its key: `ip`, `user`, `header:x-api-key`, `a function`, or the name of a class. */
  key: string;
  mode: LimitMode;
  /** True if its rate and mode can be changed. */
  changeable: boolean;
  /** True if its keys can be looked up, blocked and reset. */
  addressable: boolean;
  /** True if past windows can be read. */
  history: boolean;
  /** True if units can be reserved. */
  reservations: boolean;
  /** True if units are held by leases, so that they can't be refunded or penalized. */
  leases: boolean;
  /** The rate of its candidate as text; `null` if it has none. */
  candidate: string | null;
  /** The name of its units. For a currency, a unit is a millionth of it. */
  unit?: string;
  /** The name of its parent limit. */
  within?: string;
  /** Its own units, not counting those that it may borrow; absent if it borrows nothing. */
  own?: number;
  /** The units that limits below it may not borrow. */
  kept?: number;
  /** The key of the tenants that share its units, and the units that each may always use. */
  share?: { by: string; floor: number };
  /** The period of a plan or budget. */
  plan?: PlanInfo;
}

/** A limit with calendar windows. */
export interface PlanInfo {
  period: string;
  timezone: string;
  /** Where windows begin, in milliseconds since the epoch; `'each'` if it depends on the customer, absent for the calendar's own. */
  anchor?: number | 'each';
  /** The share of the remaining units that moves into the next window. */
  rollover?: number;
  /** True if customers have prepaid units. */
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
  /** True if acting on keys is enabled; `GET api/act` returns if this user may do so. */
  actable: boolean;
  /** True if changes are enabled; `GET api/write` returns if this user may make them. */
  writable: boolean;
  /** The instance that responds. */
  instance: string;
  /** For a console outside the app: when the app's limits were published, in milliseconds since the epoch. */
  observedSince?: number;
  /** For such a console: the reason if it can't read rates, modes and lists. Limits then have their configured ones. */
  changesUnread?: string;
  limits: LimitInfo[];
}

/** The decisions of a limit at the times of a series. Each array is as long as `times`. */
export interface LimitSeries {
  allowed: number[];
  refused: number[];
  shadowRefused: number[];
  /** The number of times that a counter came near its quota. */
  near: number[];
  /** The number of times that the candidate would have rejected. */
  candidateRefused: number[];
  /** The number of decisions of the candidate. It isn't checked when the instance repeats a rejection that it remembers. */
  candidateAsked: number[];
  /**
   * For an adaptive limit: the number of times that an instance read its state (once per second while in use); and the sums of the units
   * that it admitted and had in flight at these times.
   */
  looks?: number[];
  admits?: number[];
  inFlight?: number[];
}

/** The activity of the store at the times of a series. */
export interface StoreSeries {
  /** The median duration of checks in milliseconds; `null` if there were none. */
  p50: (number | null)[];
  /** The 99th percentile of the duration of checks in milliseconds; `null` if there were none. */
  p99: (number | null)[];
  /** Checks, each of one or more limits. */
  checks: number[];
  /** Checks that were answered while the store failed, or that failed. */
  fallback: number[];
  /** Checks that a remembered rejection answered. */
  cache: number[];
  /** Checks that prefetched units answered. */
  prefetch: number[];
}

/** Numbers over time, summed over all instances. */
export interface Series {
  /** The start times of the steps, in milliseconds since the epoch on the Redis server's clock, ascending without gaps. */
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

/** Redis as this instance sees it. Values that Redis doesn't report are `null`. */
export interface RedisInfo {
  up: boolean;
  mode: 'standalone' | 'cluster';
  /** The program and its version, such as `redis 7.2.4`. */
  version: string | null;
  /** Bytes that the server uses; the sum of all nodes of a Cluster. */
  usedMemory: number | null;
  maxMemory: number | null;
  /** The estimated bytes of all keys of limits, based on a sample. */
  ourKeysBytes: number | null;
  /** The duration of the console's last call. */
  latencyMs: number | null;
}

/** Response of `GET api/overview?range=`. */
export interface Overview {
  /** The current time in milliseconds since the epoch, on the Redis server's clock. */
  at: number;
  range: Range;
  /** The length of a step of the series. */
  stepMs: number;
  series: Series;
  /** By name of the limit. */
  totals: Record<string, LimitTotals>;
  /** The running instances, which have reported in the last few seconds. */
  instances: InstanceInfo[];
  /**
   * The instances that have stopped reporting in the last minutes without a regular end; absent in responses of earlier releases.
   */
  lost?: InstanceInfo[];
  coverage: Coverage;
  /**
   * The declared limits whose decisions some instance only counted in the sum `(others)`, because there are too many limits. For these, a
   * missing number isn't 0, and the others are too low. Absent in responses of earlier releases.
   */
  unknown?: string[];
  /** `null` if the app doesn't count on Redis. */
  redis: RedisInfo | null;
  /** A current problem, such as that Redis doesn't answer. Only this instance is shown then. */
  problem?: string;
}

/**
 * Data of the event `tick` of `GET api/live`: the newest complete seconds. A second that was already sent replaces its earlier data,
 * because an instance may be late.
 */
export interface Tick extends Omit<Overview, 'range' | 'totals' | 'unknown'> {
  /** The active incidents, the most severe first, as in `GET api/incidents`. */
  incidents: Incident[];
  /** The top keys of the requested limit. */
  top?: TopKeys;
}
