import type { AlgorithmOptions } from '../../algorithms/index.js';
import type { Decision } from '../../limits/decision.js';
import type { ListName } from '../../config/list-entry.js';
import type { LimitMode, OverrideSource } from '../../overrides/override.js';

/** An override of a rate or mode. */
export interface OverrideInfo {
  /** Of whom: `undefined` for all identities. */
  key?: string;
  version: number;
  /** In milliseconds since the epoch; `null` without an end. */
  expiresAt: number | null;
  by?: string;
  reason?: string;
  /** The options that replace the configured ones, of a rate. */
  patch?: Record<string, unknown>;
  /** The mode, of a mode. */
  mode?: LimitMode;
}

/** Units of a past window. */
export interface HistoryWindow {
  /** In milliseconds since the epoch. */
  startsAt: number;
  endsAt: number;
  used: number;
}

/** The state of a limit for an identity. What could not be read is `null`. */
export interface LimitState {
  limit: string;
  algo: AlgorithmOptions['algo'];
  quota: number;
  used: number | null;
  remaining: number | null;
  /** Until one unit would fit; `null` if it is not known, or never would. */
  retryAfterMs: number | null;
  resetAfterMs: number | null;
  /** In milliseconds since the epoch by the Redis server's clock; `null` if it is not blocked. */
  blockedUntil: number | null;
  /** What tells tenants apart that share its units: all that is told is of all of them together. */
  sharedBy?: string;
  /** Blocks that the identity earned, of a limit whose blocks have steps. */
  offences?: number;
  mode: LimitMode;
  modeSource: OverrideSource;
  /** The rate that holds for the identity, as text. */
  rate: string;
  rateSource: OverrideSource;
  /** The change of its rate that holds. */
  override?: OverrideInfo;
  /** The change of its mode that holds. */
  modeOverride?: OverrideInfo;
  /** The list that decides in its place. */
  listed?: ListItem;
  history?: HistoryWindow[];
  source: Decision['source'] | null;
  /** Why the state could not be read. */
  unread?: string;
  /** The text of `formatExplanation`. */
  explanation: string;
}

/** Answer of `POST api/lookup { identity }`. */
export interface Lookup {
  /** The hash by which top keys and the log name the identity. */
  id: string;
  limits: LimitState[];
}

/** Answer of `POST api/keys/...`: what the limit is for the identity now. */
export interface KeyChanged {
  state: LimitState;
  /** What went wrong beside the change, which is done: such as that the log could not be written. */
  warning?: string;
}

/** An entry of a list. */
export interface ListItem {
  /** Names the entry; `api/lists/remove` takes it. */
  id: string;
  list: ListName;
  kind: 'identity' | 'pattern' | 'ip';
  /** Whom it names; a hash for one identity or address unless `identities: 'plain'`. */
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

/** Answer of `GET api/lists?cursor=`. */
export interface ListItems {
  entries: ListItem[];
  next?: string;
  /** Why lists could not be read: then these are those that this instance knew last. */
  problem?: string;
}
