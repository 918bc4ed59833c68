import type { AlgorithmOptions } from '../algorithms/index.js';
import type { Decision } from '../limits/decision.js';
import type { ListName } from '../config/list-entry.js';
import type { LimitMode, OverrideSource } from '../overrides/override.js';

// What the console's server and its page say to each other: JSON, in which no number is infinite and no member is undefined.

/** The header that requests of the page carry, which forms cannot send. */
export const CONSOLE_HEADER = 'x-rate-limit-console';

/** The ranges of an overview. */
export type Range = '5m' | '1h' | '1d';

/** Why a request was not done: problem details (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** The fields that are wrong. */
  errors?: FieldError[];
}

/** What is wrong with a field of a request. */
export interface FieldError {
  /** The field, such as `duration` or `patch.rate`. */
  field: string;
  message: string;
}

/** A limit as the page lists it. */
export interface LimitInfo {
  name: string;
  algo: AlgorithmOptions['algo'];
  /** Its rate as text, such as `gcra:20/1s`. */
  rate: string;
  /** The most units that it allows at once. */
  quota: number;
  /** Whom it counts: `ip`, `user`, `header:x-api-key`, `a function`, or the name of a class. */
  key: string;
  mode: LimitMode;
  /** Whether its rate and mode can be changed. */
  changeable: boolean;
  /** Whether keys of it can be looked up, blocked and reset. */
  addressable: boolean;
  /** Whether past windows can be read. */
  history: boolean;
  /** Whether units can be reserved. */
  reservations: boolean;
  /** Whether units are held by leases, and so neither refunded nor penalized. */
  leases: boolean;
  /** The rate of its candidate as text; `null` if it has none. */
  candidate: string | null;
}

/** Answer of `GET api/session`. */
export interface Session {
  /** The version of the package. */
  version: string;
  /** The prefix of the keys on Redis. */
  prefix: string;
  storage: 'redis' | 'memory';
  identities: 'hashed' | 'plain';
  topKeys: 'watched' | 'always';
  /** Whether changes are possible at all; whether this user may make them, `GET api/write` says. */
  writable: boolean;
  /** The instance that answers. */
  instance: string;
  limits: LimitInfo[];
}

/** What happened at the times of a series; each list is as long as `times`. Numbers are of decisions. */
export interface LimitSeries {
  allowed: number[];
  refused: number[];
  shadowRefused: number[];
  /** How often a counter came near its quota. */
  near: number[];
  /** How often the candidate would have refused. */
  candidateRefused: number[];
  /** How often the candidate was asked: not before it was there, nor where a remembered refusal answered. */
  candidateAsked: number[];
}

/** What the store did at the times of a series. */
export interface StoreSeries {
  /** Half of the checks took at most so many milliseconds; `null` where there was none. */
  p50: (number | null)[];
  /** 99 of 100 checks took at most so many milliseconds; `null` where there was none. */
  p99: (number | null)[];
  /** Checks, each of one or several limits. */
  checks: number[];
  /** Checks that were answered while the store failed, or by an error. */
  fallback: number[];
  /** Checks that a remembered refusal answered. */
  cache: number[];
  /** Checks that units answered which had been taken before. */
  prefetch: number[];
}

/** Numbers over time, summed over all instances. */
export interface Series {
  /** The beginnings of the steps, in milliseconds since the epoch by the Redis server's clock, ascending without gaps. */
  times: number[];
  limits: Record<string, LimitSeries>;
  store: StoreSeries;
}

/** The sums of a range. */
export interface LimitTotals {
  allowed: number;
  refused: number;
  shadowRefused: number;
  near: number;
  candidateRefused: number;
  candidateAsked: number;
}

/** An instance of the app that was seen in the last minutes. */
export interface InstanceInfo {
  id: string;
  /** The version of the package. */
  version: string;
  host: string;
  pid: number;
  /** When it started, in milliseconds since the epoch. */
  startedAt: number;
  /** What its clock is ahead of the Redis server's, in milliseconds; 0 without Redis. */
  clockOffsetMs: number;
  /** When it was heard of last, in milliseconds since the epoch. */
  lastSeenAt: number;
  /** `'open'` while it does not ask its store, since that failed repeatedly; `'none'` if its store cannot fail. */
  circuit: 'closed' | 'open' | 'none';
  /** Whether it answers this request. */
  self: boolean;
}

/** Redis as this instance sees it. `null` stands for what it does not tell. */
export interface RedisInfo {
  up: boolean;
  mode: 'standalone' | 'cluster';
  /** The program and its version, such as `redis 7.2.4`. */
  version: string | null;
  /** Bytes that the server uses, all nodes of a Cluster together. */
  usedMemory: number | null;
  maxMemory: number | null;
  /** An estimate of the bytes of all keys of limits, by the keys that were counted lately. */
  ourKeysBytes: number | null;
  /** How long the last call of the console took. */
  latencyMs: number | null;
}

/** Answer of `GET api/overview?range=`. */
export interface Overview {
  /** Now, in milliseconds since the epoch, by the Redis server's clock. */
  at: number;
  range: Range;
  /** The length of a step of the series. */
  stepMs: number;
  series: Series;
  /** By the limits' names. */
  totals: Record<string, LimitTotals>;
  instances: InstanceInfo[];
  /** `null` if the app does not count on Redis. */
  redis: RedisInfo | null;
  /** What is wrong now, such as Redis that does not answer: then only this instance is shown. */
  problem?: string;
}

/**
 * Data of the event `tick` of `GET api/live`: the newest complete seconds. A time that was told before replaces what was told
 * of it, since an instance can be late.
 */
export interface Tick extends Omit<Overview, 'range' | 'totals'> {
  /** The most used keys of the limit that was asked for. */
  top?: TopKeys;
}

/** A key of a limit with what was counted of it. */
export interface TopKey {
  /** A hash of the identity. */
  id: string;
  /** The identity, with `identities: 'plain'`. */
  identity?: string;
  /** At most so often; it was at least `count - error` times. */
  count: number;
  error: number;
}

/** Answer of `GET api/top?limit=`, most first. */
export interface TopKeys {
  limit: string;
  /** Who was refused most. */
  refused: TopKey[];
  /** Who asked most units that were allowed. */
  used: TopKey[];
  /** Since when it is counted, in milliseconds since the epoch; `null` if counting begins now. */
  since: number | null;
}

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
}

/** A limit's rate and mode. */
export interface RateInfo {
  limit: string;
  algo: AlgorithmOptions['algo'];
  /** The options of the algorithm that can be changed, such as `rate`, `interval`, `burst`. */
  patchable: string[];
  configured: { rate: string; options: AlgorithmOptions; mode: LimitMode };
  current: { rate: string; options: AlgorithmOptions; source: OverrideSource; override?: OverrideInfo };
  mode: { mode: LimitMode; source: OverrideSource; override?: OverrideInfo };
  candidate: CandidateInfo | null;
}

/** A second version of a limit that is counted beside it. */
export interface CandidateInfo {
  rate: string;
  options: AlgorithmOptions;
  /** What the candidate would have refused in the last hour, beside what the limit did. */
  lastHour: { decisions: number; refused: number; candidateAsked: number; candidateRefused: number };
}

/** Answer of `GET api/rates`. */
export interface Rates {
  rates: RateInfo[];
  /** The newest change, 0 before the first one; `api/rollback` takes a version before it. `null` if it could not be read. */
  version: number | null;
}

/** Answer of changes that are not of a key. */
export interface Changed {
  /** Whether something was changed: `false` if there was nothing to clear or undo. */
  changed: boolean;
  warning?: string;
}

/** A line of the log of changes. */
export interface ChangeInfo {
  /** When, in milliseconds since the epoch by the Redis server's clock. */
  at: number;
  /** What was done. */
  action: 'rate' | 'mode' | 'list' | 'rollback' | 'block' | 'unblock' | 'reset' | 'refund' | 'penalize';
  /** `null` for all limits. */
  limit: string | null;
  /** Of whom: an identity (a hash unless `identities: 'plain'`), a pattern, or a network; `null` for all. */
  key: string | null;
  by?: string;
  reason?: string;
  /** The number of a change of rates, modes or lists, to which one can roll back; `null` for one of a key's counter. */
  version: number | null;
  rollbackTo?: number;
  /** What it was before and is after, as text; `duration` or `units` of a change of a counter stand in `after`. */
  before?: string;
  after?: string;
}

/** Answer of `GET api/changes?limit=`, the newest first. */
export interface Changes {
  changes: ChangeInfo[];
  /** Why a part of the log could not be read. */
  problem?: string;
}

/** Body of `POST api/lookup`. */
export interface LookupBody {
  identity: string;
}

/** What all bodies of changes have. */
export interface ReasonedBody {
  /** 1 to 200 characters. */
  reason: string;
}

/** Body of `POST api/keys/unblock` and `api/keys/reset`, and of `api/keys/clear-override`. */
export interface KeyBody extends ReasonedBody {
  limit: string;
  identity: string;
}

/** Body of `POST api/keys/block`. */
export interface BlockBody extends KeyBody {
  /** A duration such as `15m`, or milliseconds. */
  duration: string | number;
}

/** Body of `POST api/keys/refund` and `api/keys/penalize`. */
export interface UnitsBody extends KeyBody {
  /** A whole number >= 1. */
  units: number;
}

/** Body of `POST api/keys/override`. */
export interface OverrideBody extends KeyBody {
  patch: Record<string, unknown>;
  expiresIn?: string | number;
}

/** Body of `POST api/lists` and, without `expiresIn`, of `api/lists/remove`: one of `identity` (a trailing `*` makes it a pattern) and `ip`. */
export interface ListBody extends ReasonedBody {
  list: ListName;
  identity?: string;
  ip?: string;
  limit?: string;
  expiresIn?: string | number;
}

/** Body of `POST api/lists/remove`: the `id` of an entry, or whom it names. */
export interface UnlistBody extends ReasonedBody {
  id?: string;
  identity?: string;
  ip?: string;
  limit?: string;
}

/** Body of `POST api/rates/clear`, `api/modes/clear`, `api/candidates/enforce` and `api/candidates/clear`. */
export interface LimitBody extends ReasonedBody {
  limit: string;
}

/** Body of `POST api/rates/set` and, without `expiresIn`, of `api/candidates/set`. */
export interface RateBody extends LimitBody {
  patch: Record<string, unknown>;
  expiresIn?: string | number;
}

/** Body of `POST api/modes/set`. */
export interface ModeBody extends LimitBody {
  mode: LimitMode;
  expiresIn?: string | number;
}

/** Body of `POST api/rollback`. */
export interface RollbackBody extends ReasonedBody {
  /** The version to go back to: what came after it is undone. */
  version: number;
}
