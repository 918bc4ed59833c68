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

/** A key of a limit, with its count. */
export interface TopKey {
  /** A hash of the identity. */
  id: string;
  /** The identity, with `identities: 'plain'`. */
  identity?: string;
  /**
   * The upper bound of the count; the lower bound is `count - error`. If a limit refused more than 10,000 different keys a second,
   * an estimate.
   */
  count: number;
  error: number;
}

/** Response of `GET api/top?limit=`, the largest first. */
export interface TopKeys {
  limit: string;
  /** The keys that were refused most. */
  refused: TopKey[];
  /** The keys that were granted most units. */
  used: TopKey[];
  /** When counting of refused keys began, in milliseconds since the epoch; `null` if it begins now. */
  since: number | null;
  /** When counting of used units began: it is counted while somebody views the limit; `null` if it begins now. */
  usedSince: number | null;
  /** Now, in milliseconds since the epoch, by the Redis server's clock. */
  at: number;
  coverage: Coverage;
  /** Why the other instances could not be read: then these are the keys of this one alone. */
  problem?: string;
}

/** What is wrong. */
export type IncidentKind = 'refused' | 'near' | 'fallback' | 'latency' | 'circuit' | 'adaptive' | 'lost';

/** What each incident has. */
interface IncidentBase {
  /** Identifies it while it lasts: its kind, and its limit or instance. */
  id: string;
  kind: IncidentKind;
  /** `'critical'` if requests fail or most are refused; `'warning'` if that is near. */
  severity: 'critical' | 'warning';
  /** When the current run of bad steps began, in milliseconds since the epoch by the Redis server's clock. */
  since: number;
  /** Whether it began before `since`: the run reaches back to the oldest step that was read. */
  sinceEarlier: boolean;
}

/** An incident of one limit. */
interface LimitIncident extends IncidentBase {
  /** The name of the limit. */
  limit: string;
}

/** The keys behind an incident of a limit. */
interface WithKeys {
  /** The keys that were refused most, at most five, the largest count first; instances with fewer than ten refusals are left out. */
  keys: TopKey[];
  /** When counting these keys began, in milliseconds since the epoch; `null` if none were counted. */
  keysSince: number | null;
}

/** A limit refuses many requests. Numbers are those of the last minute. */
export interface RefusedIncident extends LimitIncident, WithKeys {
  kind: 'refused';
  allowed: number;
  refused: number;
  /** The refused share of the decisions, from 0 to 1. */
  share: number;
  /** Refused decisions a second. */
  perSecond: number;
}

/** Counters of a limit come near their quota, but it refuses few. Numbers are those of the last minute. */
export interface NearIncident extends LimitIncident, WithKeys {
  kind: 'near';
  allowed: number;
  refused: number;
  /** How often a counter came near its quota. */
  near: number;
}

/** An adaptive limit has as much in flight as it admits. */
export interface AdaptiveIncident extends LimitIncident, WithKeys {
  kind: 'adaptive';
  /** The units that it admits at once, over the instances in which it is full. */
  admits: number;
  inFlight: number;
  /** The ids of the instances in which it is full. */
  instances: string[];
}

/** Checks are answered without the store, or fail. Numbers are those of the last minute. */
export interface FallbackIncident extends IncidentBase {
  kind: 'fallback';
  checks: number;
  /** The checks that the store did not answer. */
  failed: number;
  /** `failed` as a share of `checks`, from 0 to 1. */
  share: number;
}

/** Checks take much longer than in the hour before. */
export interface LatencyIncident extends IncidentBase {
  kind: 'latency';
  /** The 99th percentile of the last minute, in milliseconds. */
  p99: number;
  /** The 99th percentile of the hour before, in milliseconds. */
  p99Before: number;
}

/** Instances have stopped to ask their store, after repeated failures. */
export interface CircuitIncident extends IncidentBase {
  kind: 'circuit';
  /** The ids of these instances. */
  instances: string[];
}

/** An instance no longer reports, and did not end by itself. */
export interface LostIncident extends IncidentBase {
  kind: 'lost';
  instance: InstanceInfo;
}

/** What hurts now. */
export type Incident =
  | RefusedIncident
  | NearIncident
  | AdaptiveIncident
  | FallbackIncident
  | LatencyIncident
  | CircuitIncident
  | LostIncident;

/** Response of `GET api/incidents`. */
export interface Incidents {
  /** Now, in milliseconds since the epoch, by the Redis server's clock. */
  at: number;
  /** The time that counts of incidents cover, in milliseconds: they end at `at`. */
  windowMs: number;
  /** The worst first, at most 50. */
  incidents: Incident[];
  coverage: Coverage;
  /** What could not be read: then these are the incidents of this instance alone. */
  problem?: string;
}
