import type { Coverage } from './incidents.js';

/** What a rate would have refused. */
export interface RateOutcome {
  /** Units in an interval. */
  rate: number;
  /** The share of all units that were asked for, from 0 to 1. */
  refused: number;
  /** The clients that would have been refused something. */
  clients: number;
}

/**
 * Response of `GET api/demand?limit=`: what clients of a limit asked for in its intervals of the last hour, and what each rate would
 * have refused, as a fixed window counts.
 */
export interface Demand {
  limit: string;
  /** Now, in milliseconds since the epoch, by the Redis server's clock. */
  at: number;
  /** The length of an interval; `null` if the limit has no rate by an interval of an hour at most. */
  intervalMs: number | null;
  /** The number of intervals that were counted, out of those of the last hour. */
  windows: number;
  /** The start of the first of them, in milliseconds since the epoch; `null` if there is none. */
  since: number | null;
  /** The clients that asked for something; an estimate if only a sample of them was counted. */
  clients: number;
  /** The share of the clients that was counted, from 0 to 1. */
  sample: number;
  /** The current rate. */
  current: number | null;
  /** How many clients asked for how much in their busiest interval: more than the one before, and at most `upTo`. */
  distribution: { upTo: number; clients: number }[];
  /** Rates to choose from, ascending; empty if nothing was counted. */
  rates: RateOutcome[];
  coverage: Coverage;
  /** Why the other instances could not be read: then this is what this one alone has counted. */
  problem?: string;
}

/** A counter in a hierarchy of limits. */
export interface TreeNode {
  /** The hash of the identities that lead to it, the root's first, and of that of the counter that it is within. */
  id: string;
  parent?: string;
  limit: string;
  /** Its own identity, in plain text or as a hash. */
  key: string;
  /** The units that it may use at once, with those that it may borrow. */
  quota: number;
  /** The units that it used; `null` if they could not be read. */
  used: number | null;
  /** Those of them beyond its own: it has borrowed them from the counter that it is within. */
  borrowed: number;
  /** Why it could not be read. */
  unread?: string;
}

/** Response of `GET api/tree?limit=`: the counters of a hierarchy that clients used or were refused by lately. */
export interface Tree {
  /** In milliseconds since the epoch, by the Redis server's clock. */
  at: number;
  limit: string;
  /** Parents before their children. */
  nodes: TreeNode[];
  /** Whether there are more than are listed. */
  more: boolean;
  /** Since when keys are counted; `null` if none were. */
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
  /** The units that it may use in a span, whatever others do. */
  part: number;
  used: number;
}

/** Response of `GET api/tenants?limit=`. */
export interface Tenants {
  at: number;
  limit: string;
  /** For each counter, the one that was used most first. */
  counters: {
    id: string;
    key: string;
    spanMs: number;
    units: number;
    floor: number;
    weights: number;
    tenants: TenantInfo[];
  }[];
  /** Why tenants are not known, such as that the app counts in process. */
  problem?: string;
}
