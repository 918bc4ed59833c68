import type { ListItem } from './lookup.js';

/** What deviates from the configuration. */
export type DeviationKind = 'overrides' | 'blocks' | 'lists' | 'leases';

interface DeviationOf<Kind extends DeviationKind> {
  kind: Kind;
  /** Identifies whom, as actions take it. */
  id: string;
  /** Whom: a hash for one identity unless `identities: 'plain'`; `null` for all identities. */
  key: string | null;
  /** The limit; `null` for all. */
  limit: string | null;
  /** When it ends, in milliseconds since the epoch; `null` if it does not end by itself. */
  expiresAt: number | null;
  /** Who made it; absent if that is not known. */
  by?: string;
  reason?: string;
}

/** A change of a rate or mode in force. */
export interface OverrideDeviation extends DeviationOf<'overrides'> {
  of: 'rate' | 'mode';
  /** The values in place of the configured ones, as text. */
  value: string;
}

/** A block that holds. */
export interface BlockDeviation extends DeviationOf<'blocks'> {
  /** What blocks: a refusal of the limit, which has `blockFor`; a change in a console; or a call of code. */
  origin: 'limit' | 'console' | 'code';
}

/** An entry of a list. */
export interface ListDeviation extends DeviationOf<'lists'> {
  item: ListItem;
}

/** Units that a key holds of a `concurrency` limit. `expiresAt` is when they lapse if nobody renews or releases them. */
export interface LeaseDeviation extends DeviationOf<'leases'> {
  held: number;
  quota: number;
}

export type Deviation = OverrideDeviation | BlockDeviation | ListDeviation | LeaseDeviation;

/** Response of `POST api/deviations { kind, find?, limit?, cursor? }`. */
export interface Deviations {
  /** At most 50. */
  entries: Deviation[];
  /** The `cursor` of the next page; absent on the last one. */
  next?: string;
  /**
   * For blocks and leases: since when instances note them, in milliseconds since the epoch; `null` if none did. What began before,
   * and what began where no console runs, is not listed.
   */
  since?: number | null;
  /** For blocks and leases: whether there were more than are kept. */
  isCut?: boolean;
  /** For blocks and leases: the noted keys of this page whose state could not be read. */
  unread?: number;
  /** What could not be read. */
  problem?: string;
}
