import type { Coverage } from './instances.js';

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
