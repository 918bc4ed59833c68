import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { CounterState } from '../../nest/explain/explanation.js';
import type { Decision } from '../../engine/limits/decision.js';
import type { ListName } from '../../app/config/list-entry.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { OverrideSource } from '../../app/overrides/override.js';

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

/** An override of a rate or mode. */
export interface OverrideInfo {
  /** The key; `undefined` for all identities. */
  key?: string;
  version: number;
  /** In milliseconds since the epoch; `null` if it does not expire. */
  expiresAt: number | null;
  by?: string;
  reason?: string;
  /** For a rate: the options that replace the configured ones. */
  patch?: Record<string, unknown>;
  /** For a mode: the mode. */
  mode?: LimitMode;
}

/** Units of a past window. */
export interface HistoryWindow {
  /** In milliseconds since the epoch. */
  startsAt: number;
  endsAt: number;
  used: number;
}

/** Figures of a counter that `explain` reports and the page shows as they are, such as credits and usage. */
export type CounterFigures = Omit<
  CounterState,
  'remaining' | 'resetAfterMs' | 'blockedForMs' | 'quota' | 'inFlight' | 'source'
>;

/** The state of a limit for an identity. What could not be read is `null`. */
export interface LimitState extends CounterFigures {
  limit: string;
  algo: AlgorithmOptions['algo'];
  quota: number;
  used: number | null;
  remaining: number | null;
  /** The wait until one unit would fit; `null` if unknown or never. */
  retryAfterMs: number | null;
  resetAfterMs: number | null;
  /** In milliseconds since the epoch by the Redis server's clock; `null` if it is not blocked. */
  blockedUntil: number | null;
  /** What identifies the tenants that share its units, if any: all figures are those of all tenants together. */
  sharedBy?: string;
  mode: LimitMode;
  modeSource: OverrideSource;
  /** The rate that applies to the identity, as text. */
  rate: string;
  rateSource: OverrideSource;
  /** The change of its rate in force. */
  override?: OverrideInfo;
  /** The change of its mode in force. */
  modeOverride?: OverrideInfo;
  /** The list entry that decides in its place. */
  listed?: ListItem;
  history?: HistoryWindow[];
  source: Decision['source'] | null;
  /** Why the state could not be read. */
  unread?: string;
  /** The text of `formatExplanation`. */
  explanation: string;
}

/** Response of `POST api/lookup { identity }`. */
export interface Lookup {
  /** The hash that stands for the identity in top keys and in the log. */
  id: string;
  limits: LimitState[];
}

/** Response of `POST api/keys/...`: the limit's state for the identity after the change. */
export interface KeyChanged {
  state: LimitState;
  /** The limit's state before the change; absent if it is not known. */
  before?: LimitState;
  /** The number of a change of a rate, which `api/undo` takes. */
  version?: number;
  /** What went wrong although the change was made, such as a log entry that could not be written. */
  warning?: string;
}

/** An entry of a list. */
export interface ListItem {
  /** Identifies the entry; `api/lists/remove` takes it. */
  id: string;
  list: ListName;
  kind: 'identity' | 'pattern' | 'ip';
  /** Who it names; a hash for one identity or address unless `identities: 'plain'`. */
  entry: string;
  /** `null` for all limits. */
  limit: string | null;
  source: 'configured' | 'policy' | 'changed';
  /** Whether it can be removed here: entries of the configuration or a policy cannot. */
  removable: boolean;
  expiresAt: number | null;
  by?: string;
  reason?: string;
}

/** Response of `GET api/lists?cursor=`. */
export interface ListItems {
  entries: ListItem[];
  next?: string;
  /** Why lists could not be read: then these are the last known ones of this instance. */
  problem?: string;
}
