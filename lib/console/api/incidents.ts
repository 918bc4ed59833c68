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
  /** On its own clock. */
  startedAt: number;
  /** How far its clock is ahead of the Redis server's, in milliseconds; 0 without Redis. */
  clockOffsetMs: number;
  lastSeenAt: number;
  /** `'open'` while it skips its store after repeated failures; `'none'` if its store can't fail. */
  circuit: 'closed' | 'open' | 'none';
  /** Absent while the circuit is closed. */
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
  /** Absent while it has room. */
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

/** The members of responses that include the counts of several instances. */
export interface OfInstances {
  /** The current time. */
  at: number;
  coverage: Coverage;
  /** Why the other instances could not be read. The response is then that of this instance alone. */
  problem?: string | undefined;
}

/** Response of `GET api/top?limit=`, the largest count first. */
export interface TopKeys extends OfInstances {
  limit: string;
  /** The keys that were rejected most often. */
  refused: TopKey[];
  /** The keys that were granted the most units. */
  used: TopKey[];
  /** When counting of rejected keys began; `null` if it begins now. */
  since: number | null;
  /** When counting of used units began; `null` if it begins now. They are counted while somebody views the limit. */
  usedSince: number | null;
}

/** The kind of an incident. */
export type IncidentKind = 'refused' | 'near' | 'fallback' | 'latency' | 'circuit' | 'adaptive' | 'lost';

interface IncidentBase {
  /** Identifies the incident while it lasts: its kind, and its limit or instance. */
  id: string;
  kind: IncidentKind;
  /** `'critical'` if requests fail or most are rejected; `'warning'` if that is near. */
  severity: 'critical' | 'warning';
  /** When the current run of bad steps began. */
  since: number;
  /** True if it began before `since`, because the run reaches back to the oldest step that was read. */
  sinceEarlier: boolean;
}

/** An incident of one limit, and the keys behind it. */
interface LimitIncident extends IncidentBase {
  limit: string;
  /**
   * The keys that were rejected most often, at most five, the largest count first. Instances with fewer than ten rejections are left out.
   */
  keys: TopKey[];
  /** When counting these keys began; `null` if none were counted. */
  keysSince: number | null;
}

/** A limit rejects many requests. The numbers are those of the last minute. */
export interface RefusedIncident extends LimitIncident {
  kind: 'refused';
  allowed: number;
  refused: number;
  /** The rejected share of the decisions. */
  share: number;
  /** Rejected decisions per second. */
  perSecond: number;
}

/** Counters of a limit come near their quota, but the limit rejects few requests. The numbers are those of the last minute. */
export interface NearIncident extends LimitIncident {
  kind: 'near';
  allowed: number;
  refused: number;
  /** The number of times that a counter came near its quota. */
  near: number;
}

/** An adaptive limit is full: it has as many units in flight as it admits. */
export interface AdaptiveIncident extends LimitIncident {
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
  instances: string[];
}

/** An instance has stopped reporting without a regular end. */
export interface LostIncident extends IncidentBase {
  kind: 'lost';
  instance: InstanceInfo;
}

export type Incident =
  | RefusedIncident
  | NearIncident
  | AdaptiveIncident
  | FallbackIncident
  | LatencyIncident
  | CircuitIncident
  | LostIncident;

/** Response of `GET api/incidents`. */
export interface Incidents extends OfInstances {
  /** The period of the counts of incidents, in milliseconds, which ends at `at`. */
  windowMs: number;
  /** The most severe first, at most 50. */
  incidents: Incident[];
}
