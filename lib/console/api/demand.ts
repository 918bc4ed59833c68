import type { Coverage } from './instances.js';

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
