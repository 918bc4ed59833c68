import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { Incident, InstanceInfo, OfInstances, TopKeys } from './incidents.js';

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
  unit?: string | undefined;
  /** The name of its parent limit. */
  within?: string | undefined;
  /** Its own units, not counting those that it may borrow; absent if it borrows nothing. */
  own?: number | undefined;
  /** The units that limits below it may not borrow. */
  kept?: number | undefined;
  /** The key of the tenants that share its units, and the units that each may always use. */
  share?: { by: string; floor: number } | undefined;
  /** The period of a plan or budget. */
  plan?: PlanInfo | undefined;
}

/** A limit with calendar windows. */
export interface PlanInfo {
  period: string;
  timezone: string;
  /** Where windows begin; `'each'` if it depends on the customer, absent for the calendar's own. */
  anchor?: number | 'each' | undefined;
  /** The share of the remaining units that moves into the next window. */
  rollover?: number | undefined;
  /** True if customers have prepaid units. */
  credits?: true | undefined;
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
  /** For a console outside the app: when the app's limits were published. */
  observedSince?: number | undefined;
  /** For such a console: the reason if it can't read rates, modes and lists. Limits then have their configured ones. */
  changesUnread?: string | undefined;
  limits: LimitInfo[];
}

/** The decisions of a limit, summed over a range. */
export interface LimitTotals {
  allowed: number;
  refused: number;
  shadowRefused: number;
  /** The number of times that a counter came near its quota. */
  near: number;
  /** The number of times that the candidate would have rejected. */
  candidateRefused: number;
  /** The number of decisions of the candidate. It isn't checked when the instance repeats a rejection that it remembers. */
  candidateAsked: number;
}

/** The decisions of a limit at the times of a series. Each array is as long as `times`. */
export interface LimitSeries extends Record<keyof LimitTotals, number[]> {
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
  /** The start times of the steps, ascending without gaps. */
  times: number[];
  limits: Record<string, LimitSeries>;
  store: StoreSeries;
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
export interface Overview extends OfInstances {
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
  /**
   * The declared limits whose decisions some instance only counted in the sum `(others)`, because there are too many limits. For these, a
   * missing number isn't 0, and the others are too low. Absent in responses of earlier releases.
   */
  unknown?: string[];
  /** `null` if the app doesn't count on Redis. */
  redis: RedisInfo | null;
}

/** The figures of an overview, of any range. */
export type Figures = Omit<Overview, 'range'>;

/**
 * Data of the event `tick` of `GET api/live`: the newest complete seconds. A second that was already sent replaces its earlier data,
 * because an instance may be late.
 */
export interface Tick extends Omit<Figures, 'totals' | 'unknown'> {
  /** The active incidents, the most severe first, as in `GET api/incidents`. */
  incidents: Incident[];
  /** The top keys of the requested limit. */
  top?: TopKeys | undefined;
}

/** The effect that a rate would have had. */
export interface RateOutcome {
  /** Units in an interval. */
  rate: number;
  /** The rejected share of all requested units. */
  refused: number;
  /** The number of clients with at least one rejection. */
  clients: number;
}

/**
 * Response of `GET api/demand?limit=`: the units that clients of a limit requested in its intervals of the last hour, and how many each
 * rate would have rejected if it were counted in fixed windows.
 */
export interface Demand extends OfInstances {
  limit: string;
  /** The length of an interval; `null` if the limit has no rate per interval, or one of more than an hour. */
  intervalMs: number | null;
  /** The number of intervals of the last hour that were counted. */
  windows: number;
  /** The start of the first of them; `null` if there is none. */
  since: number | null;
  /** The number of clients with requests; an estimate if only a sample of them was counted. */
  clients: number;
  /** The share of the clients that was counted. */
  sample: number;
  current: number | null;
  /**
   * The number of clients by the units that they requested in their busiest interval: more than the previous `upTo`, and at most this one.
   */
  distribution: { upTo: number; clients: number }[];
  /** Rates to choose from, ascending; empty if nothing was counted. */
  rates: RateOutcome[];
}

/** A counter in a hierarchy of limits. */
export interface TreeNode {
  /** The hash of the identities that lead to it, the root's first, and the id of its parent. */
  id: string;
  parent?: string | undefined;
  limit: string;
  /** Its own identity, in plain text or as a hash. */
  key: string;
  /** The units that it may use at once, including borrowed ones. */
  quota: number;
  /** The used units; `null` if they could not be read. */
  used: number | null;
  /** The used units beyond its own: borrowed from its parent. */
  borrowed: number;
  unread?: string | undefined;
}

/** Response of `GET api/tree?limit=`: the recently used or rejected counters of a hierarchy. */
export interface Tree extends OfInstances {
  limit: string;
  /** Parents before their children. */
  nodes: TreeNode[];
  /** True if there are more nodes than are listed. */
  more: boolean;
  /** Since when keys are counted; `null` if none were counted. */
  since: number | null;
}

/** A tenant of a limit whose units are shared. */
export interface TenantInfo {
  id: string;
  /** Its name; absent if consoles show hashes. */
  name?: string | undefined;
  weight: number;
  /** The units that it may use in a span, regardless of others. */
  part: number;
  used: number;
}

/** Response of `GET api/tenants?limit=`. */
export interface Tenants {
  at: number;
  limit: string;
  /** One entry per counter, the most used first. */
  counters: {
    id: string;
    key: string;
    spanMs: number;
    units: number;
    floor: number;
    weights: number;
    tenants: TenantInfo[];
  }[];
  /** The reason why tenants are unknown, such as an app that counts in process. */
  problem?: string | undefined;
}
