import type { Coverage } from './incidents.js';

/** The effect that a rate would have had. */
export interface RateOutcome {
  /** Units in an interval. */
  rate: number;
  /** The rejected share of all requested units, from 0 to 1. */
  refused: number;
  /** The number of clients with at least one rejection. */
  clients: number;
}

/**
 * Response of `GET api/demand?limit=`: the units that clients of a limit requested in its intervals of the last hour, and how many each
 * rate would have rejected if it were counted in fixed windows.
 */
export interface Demand {
  limit: string;
  /** The current time in milliseconds since the epoch, on the Redis server's clock. */
  at: number;
  /** The length of an interval; `null` if the limit has no rate per interval, or one of more than an hour. */
  intervalMs: number | null;
  /** The number of intervals of the last hour that were counted. */
  windows: number;
  /** The start of the first of them, in milliseconds since the epoch; `null` if there is none. */
  since: number | null;
  /** The number of clients with requests; an estimate if only a sample of them was counted. */
  clients: number;
  /** The share of the clients that was counted, from 0 to 1. */
  sample: number;
  /** The current rate. */
  current: number | null;
  /**
   * The number of clients by the units that they requested in their busiest interval: more than the previous `upTo`, and at most this one.
   */
  distribution: { upTo: number; clients: number }[];
  /** Rates to choose from, ascending; empty if nothing was counted. */
  rates: RateOutcome[];
  coverage: Coverage;
  /** The reason why the other instances could not be read. The numbers are then those of this instance alone. */
  problem?: string;
}

/** A counter in a hierarchy of limits. */
export interface TreeNode {
  /** The hash of the identities that lead to it, the root's first, and the id of its parent. */
  id: string;
  parent?: string;
  limit: string;
  /** Its own identity, in plain text or as a hash. */
  key: string;
  /** The units that it may use at once, including borrowed ones. */
  quota: number;
  /** The used units; `null` if they could not be read. */
  used: number | null;
  /** The used units beyond its own: borrowed from its parent. */
  borrowed: number;
  /** The reason why it could not be read. */
  unread?: string;
}

/** Response of `GET api/tree?limit=`: the recently used or rejected counters of a hierarchy. */
export interface Tree {
  /** In milliseconds since the epoch, by the Redis server's clock. */
  at: number;
  limit: string;
  /** Parents before their children. */
  nodes: TreeNode[];
  /** True if there are more nodes than are listed. */
  more: boolean;
  /** Since when keys are counted; `null` if none were counted. */
  since: number | null;
  coverage: Coverage;
  problem?: string;
}

/** A tenant of a limit whose units are shared. */
export interface TenantInfo {
  id: string;
  /** Its name; absent if consoles show hashes. */
  name?: string;
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
  problem?: string;
}
