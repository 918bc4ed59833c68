/** The instances whose counts are included in a response. */
export interface Coverage {
  /** The ids of the running instances. */
  instances: string[];
  /** The number of ended or lost instances whose counts were read individually; older ones are kept as one sum. */
  ended: number;
  /** The ids of instances whose counts could not be read, or only partly. */
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
  /** How far its clock is ahead of the Redis server's, in milliseconds; 0 without Redis. */
  clockOffsetMs: number;
  /** When it last reported, in milliseconds since the epoch. */
  lastSeenAt: number;
  /** `'open'` while it skips its store after repeated failures; `'none'` if its store can't fail. */
  circuit: 'closed' | 'open' | 'none';
  /** Since when the circuit is open, in milliseconds since the epoch; absent while closed. */
  circuitOpenSince?: number | undefined;
  /** The state of its adaptive limits by name, for those in use; absent if there are none. */
  adaptive?: Record<string, AdaptiveNow> | undefined;
  /** True for the instance that responds. */
  self: boolean;
}

/** An adaptive limit in one instance. */
export interface AdaptiveNow {
  /** The number of units that it admits at a time. */
  limit: number;
  inFlight: number;
  /** Since when it is full, in milliseconds since the epoch; absent while it has room. */
  fullSince?: number | undefined;
}

/** A key of a limit, with its count. */
export interface TopKey {
  /** A hash of the identity. */
  id: string;
  /** The identity, with `identities: 'plain'`. */
  identity?: string | undefined;
  /**
   * The upper bound of the count; the lower bound is `count - error`. An estimate if a limit rejected more than 10,000 different keys per
   * second.
   */
  count: number;
  error: number;
}

/** Response of `GET api/top?limit=`, the largest count first. */
export interface TopKeys {
  limit: string;
  /** The keys that were rejected most often. */
  refused: TopKey[];
  /** The keys that were granted the most units. */
  used: TopKey[];
  /** When counting of rejected keys began, in milliseconds since the epoch; `null` if it begins now. */
  since: number | null;
  /** When counting of used units began; `null` if it begins now. They are counted while somebody views the limit. */
  usedSince: number | null;
  /** The current time in milliseconds since the epoch, on the Redis server's clock. */
  at: number;
  coverage: Coverage;
  /** The reason why the other instances could not be read. The keys are then those of this instance alone. */
  problem?: string | undefined;
}

/** The kind of an incident. */
export type IncidentKind = 'refused' | 'near' | 'fallback' | 'latency' | 'circuit' | 'adaptive' | 'lost';

/** The properties of every incident. */
interface IncidentBase {
  /** Identifies the incident while it lasts: its kind, and its limit or instance. */
  id: string;
  kind: IncidentKind;
  /** `'critical'` if requests fail or most are rejected; `'warning'` if that is near. */
  severity: 'critical' | 'warning';
  /** When the current run of bad steps began, in milliseconds since the epoch on the Redis server's clock. */
  since: number;
  /** True if it began before `since`, because the run reaches back to the oldest step that was read. */
  sinceEarlier: boolean;
}

/** An incident of one limit. */
interface LimitIncident extends IncidentBase {
  /** The name of the limit. */
  limit: string;
}

/** The keys behind an incident of a limit. */
interface WithKeys {
  /**
   * The keys that were rejected most often, at most five, the largest count first. Instances with fewer than ten rejections are left out.
   */
  keys: TopKey[];
  /** When counting these keys began, in milliseconds since the epoch; `null` if none were counted. */
  keysSince: number | null;
}

/** A limit rejects many requests. The numbers are those of the last minute. */
export interface RefusedIncident extends LimitIncident, WithKeys {
  kind: 'refused';
  allowed: number;
  refused: number;
  /** The rejected share of the decisions, from 0 to 1. */
  share: number;
  /** Rejected decisions per second. */
  perSecond: number;
}

/** Counters of a limit come near their quota, but the limit rejects few requests. The numbers are those of the last minute. */
export interface NearIncident extends LimitIncident, WithKeys {
  kind: 'near';
  allowed: number;
  refused: number;
  /** The number of times that a counter came near its quota. */
  near: number;
}

/** An adaptive limit is full: it has as many units in flight as it admits. */
export interface AdaptiveIncident extends LimitIncident, WithKeys {
  kind: 'adaptive';
  /** The number of units that it admits at a time, over the instances in which it is full. */
  admits: number;
  inFlight: number;
  /** The ids of the instances in which it is full. */
  instances: string[];
}

/** Checks are answered without the store, or fail. The numbers are those of the last minute. */
export interface FallbackIncident extends IncidentBase {
  kind: 'fallback';
  checks: number;
  /** The number of checks that the store did not answer. */
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

/** Instances skip their store after repeated failures. */
export interface CircuitIncident extends IncidentBase {
  kind: 'circuit';
  /** The ids of these instances. */
  instances: string[];
}

/** An instance has stopped reporting without a regular end. */
export interface LostIncident extends IncidentBase {
  kind: 'lost';
  instance: InstanceInfo;
}

/** An active incident. */
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
  /** The current time in milliseconds since the epoch, on the Redis server's clock. */
  at: number;
  /** The period of the counts of incidents, in milliseconds, which ends at `at`. */
  windowMs: number;
  /** The most severe first, at most 50. */
  incidents: Incident[];
  coverage: Coverage;
  /** The reason why other instances could not be read. The incidents are then those of this instance alone. */
  problem?: string | undefined;
}
