import type { Coverage } from './instances.js';

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
