import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { CounterState } from '../../nest/explain/explanation.js';
import type { Decision } from '../../engine/limits/decision.js';
import type { ListName } from '../../app/config/list-entry.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { OverrideSource } from '../../app/overrides/override.js';

export type DeviationKind = 'overrides' | 'blocks' | 'lists' | 'leases';

/** The actor of a change and the reason; absent if unknown. */
interface Caused {
  by?: string | undefined;
  reason?: string | undefined;
}

interface DeviationOf<Kind extends DeviationKind> extends Caused {
  kind: Kind;
  /** Identifies the key for actions. */
  id: string;
  /** The key: a hash for one identity unless `identities: 'plain'`; `null` for all identities. */
  key: string | null;
  /** `null` for all limits. */
  limit: string | null;
  /** `null` if it has no end. */
  expiresAt: number | null;
}

/** A change of a rate or mode that is in effect. */
export interface OverrideDeviation extends DeviationOf<'overrides'> {
  of: 'rate' | 'mode';
  /** The values that replace the configured ones, as text. */
  value: string;
}

export interface BlockDeviation extends DeviationOf<'blocks'> {
  /** The cause of the block: a rejection by a limit with `blockFor`, a change in a console, or a call from code. */
  origin: 'limit' | 'console' | 'code';
}

export interface ListDeviation extends DeviationOf<'lists'> {
  item: ListItem;
}

/** Units that a key holds in a `concurrency` limit. `expiresAt` is when they lapse unless they are renewed or released. */
export interface LeaseDeviation extends DeviationOf<'leases'> {
  held: number;
  quota: number;
}

export type Deviation = OverrideDeviation | BlockDeviation | ListDeviation | LeaseDeviation;

/** Response of `POST api/deviations { kind, find?, limit?, cursor? }`. */
export interface Deviations {
  /** At most 50 entries. */
  entries: Deviation[];
  /** The `cursor` of the next page; absent on the last page. */
  next?: string | undefined;
  /**
   * For blocks and leases: since when instances record them; `null` if none has. Earlier ones, and those of processes without a console,
   * are not listed.
   */
  since?: number | null | undefined;
  /** For blocks and leases: true if there were more than are kept. */
  isCut?: boolean | undefined;
  /** For blocks and leases: the number of recorded keys on this page whose state could not be read. */
  unread?: number | undefined;
  problem?: string | undefined;
}

export interface OverrideInfo extends Caused {
  /** The key; `undefined` for all identities. */
  key?: string | undefined;
  version: number;
  /** `null` if it doesn't expire. */
  expiresAt: number | null;
  /** For a rate: the options that replace the configured ones. */
  patch?: Record<string, unknown> | undefined;
  /** For a mode. */
  mode?: LimitMode | undefined;
}

/** Units of a past window. */
export interface HistoryWindow {
  startsAt: number;
  endsAt: number;
  used: number;
}

/** Figures of a counter that `explain` reports and the page shows unchanged, such as credits and usage. */
export type CounterFigures = Omit<
  CounterState,
  'remaining' | 'resetAfterMs' | 'blockedForMs' | 'quota' | 'inFlight' | 'source'
>;

/** The state of a limit for an identity. Values that could not be read are `null`. */
export interface LimitState extends CounterFigures {
  limit: string;
  algo: AlgorithmOptions['algo'];
  quota: number;
  used: number | null;
  remaining: number | null;
  /** The wait until one unit fits; `null` if unknown or never. */
  retryAfterMs: number | null;
  resetAfterMs: number | null;
  /** `null` if it isn't blocked. */
  blockedUntil: number | null;
  /** The key of the tenants that share its units, if there are any. All figures then include all tenants. */
  sharedBy?: string | undefined;
  mode: LimitMode;
  modeSource: OverrideSource;
  /** The rate that applies to the identity, as text. */
  rate: string;
  rateSource: OverrideSource;
  /** The change of its rate that is in effect. */
  override?: OverrideInfo | undefined;
  /** The change of its mode that is in effect. */
  modeOverride?: OverrideInfo | undefined;
  /** The list entry that decides instead of the limit. */
  listed?: ListItem | undefined;
  history?: HistoryWindow[] | undefined;
  source: Decision['source'] | null;
  unread?: string | undefined;
  /** The text of `formatExplanation`. */
  explanation: string;
}

/** Response of `POST api/lookup { identity }`. */
export interface Lookup {
  /** The hash of the identity in top keys and in the log. */
  id: string;
  limits: LimitState[];
}

/** Response of `POST api/keys/...`: the limit's state for the identity after the change. */
export interface KeyChanged {
  state: LimitState;
  /** The limit's state before the change; absent if unknown. */
  before?: LimitState | undefined;
  /** The number of a change of a rate, for `api/undo`. */
  version?: number | undefined;
  /** A problem that occurred although the change was made, such as a log entry that could not be written. */
  warning?: string | undefined;
}

export interface ListItem extends Caused {
  /** Identifies the entry for `api/lists/remove`. */
  id: string;
  list: ListName;
  kind: 'identity' | 'pattern' | 'ip';
  /** The identity, pattern or address of the entry; a hash for one identity or address unless `identities: 'plain'`. */
  entry: string;
  /** `null` for all limits. */
  limit: string | null;
  source: 'configured' | 'policy' | 'changed';
  /** True if it can be removed in the console. Entries of the configuration or a policy can't. */
  removable: boolean;
  expiresAt: number | null;
}

/** Response of `GET api/lists?cursor=`. */
export interface ListItems {
  entries: ListItem[];
  next?: string | undefined;
  /** The reason why lists could not be read. The entries are then the last known ones of this instance. */
  problem?: string | undefined;
}
