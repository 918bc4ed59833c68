import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { Phase } from '../../app/config/common-limit-options.js';
import type { Decision } from '../../engine/limits/decision.js';
import type { HeldNow } from '../../engine/limits/estimates.js';
import type { RecentUsage } from '../../engine/limits/recent-usage.js';
import type { RegionHolding } from '../../engine/limits/region-holding.js';
import type { ListedEntry } from '../../app/overrides/lists/list.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { ModeOverride, OverrideSource, RateOverride } from '../../app/overrides/override.js';

/** What is explained. */
export interface ExplainedSubject {
  /** A limit, a route, or the request of a context. */
  kind: 'limit' | 'route' | 'request';
  /** The limit's name. */
  limit?: string;
  /** The name of the class. */
  controller?: string;
  /** The name of the method. */
  handler?: string;
  /** The kind of the request, such as `'http'`. */
  transport?: string;
}

/** The place where a limit is declared. */
export interface LimitOrigin {
  /**
   * The options of the module, a class (also one that the class of the route extends), a method, or code; `'defined'` for a limit
   * that was queried by name.
   */
  level: 'module' | 'controller' | 'handler' | 'code' | 'defined';
  /** The place as messages show it: `limits[0]`, `@RateLimit on UsersController.list`. */
  location: string;
  /** For a limit used by name, where it is defined: `define.login`, `forFeature.login`. */
  definition?: string;
  /** Whether a function of `@RateLimit` returned it. */
  byFunction?: true;
}

/** The rate of a limit. */
export interface ExplainedRate {
  /** The algorithm and its options in force. */
  options: AlgorithmOptions;
  /** Where they come from. */
  source: OverrideSource;
  /** The configured ones, if an override replaces them. */
  configured?: AlgorithmOptions;
  /** The override in force. */
  override?: RateOverride;
  /** With source `'policy'`: its place in the policy, such as `'limits.yaml:12:3 limits.api'`. */
  policy?: string;
}

/** The mode of a limit. */
export interface ExplainedMode {
  /** The mode in force. */
  mode: LimitMode;
  /** Where it comes from. */
  source: OverrideSource;
  /** The override in force. */
  override?: ModeOverride;
  /** With source `'policy'`: its place in the policy. */
  policy?: string;
}

/** Who a limit counts. */
export interface ExplainedKey {
  /** The limit's `key`: `ip`, `user`, `header:x-api-key`, `a function`, or the name of a class. */
  by: string;
  /** The identity; absent if it is not known, or the request has none. */
  identity?: string;
  /** The Redis key of the counter. */
  counter?: string;
  /** What happens to a request without a key. */
  note?: string;
}

/** Tenants that share the units of a limit. */
export interface ExplainedShare {
  /** What identifies tenants: `user`, `header:x-tenant`, `a function`, or the name of a class. */
  by: string;
  /**
   * The tenant, as Redis has it, to which `state` and `decision` apply. Absent if none is known: then they are those of the
   * total, and a tenant may have less left.
   */
  tenant?: string;
  /** Its weight. */
  weight?: number;
}

/** The current state of a counter. */
export interface CounterState {
  /** Whole units left (for the tenant, if units are shared); 0 while it is blocked. */
  remaining: number;
  /** Milliseconds until nothing that was consumed counts any more. */
  resetAfterMs: number;
  /** Milliseconds for which it is still blocked, 0 if it is not; absent if the store does not know. */
  blockedForMs?: number;
  /** For a limit whose `blockFor` is a list: the number of blocks that the key has earned and that are not forgotten. */
  offences?: number;
  /**
   * For an `adaptive` limit: the units that it allows now. For one with `rollover` or `credits`: those of the current window, with
   * what moved into it and the credits.
   */
  quota?: number;
  /** For a limit with `credits`: the credits left. */
  credits?: number;
  /** For an `adaptive` limit: the units in flight. */
  inFlight?: number;
  /** For a limit of scope `'world'`: what each region holds of it, as its home knows. */
  regions?: readonly RegionHolding[];
  /** For a limit with `usage`: what it charged the key lately, by days; absent if the store records nothing. */
  usage?: RecentUsage;
  /** For a `concurrency` limit: the leases that hold its units; absent if the store does not know. */
  leases?: HeldNow;
  /** For a limit with `hold`: the reservations that are not settled and have not lapsed; absent if the store does not know. */
  holds?: HeldNow;
  /** Where it was read. */
  source: Decision['source'];
}

/** What a limit would decide about the request. */
export interface ExplainedDecision {
  /** Whether the request fits. A limit in `'shadow'` mode never refuses, whatever this says. */
  allowed: boolean;
  /**
   * 0 if it fits, else the shortest wait in milliseconds after which it would; `null` if it never can. If the refusal `blocks` a
   * counter that owes more than a quota, the wait can be longer.
   */
  retryAfterMs: number | null;
  /** Whether the refusal would begin a block of the limit's `blockFor`; the next one, if that is a list. */
  blocks?: true;
  /** Milliseconds for which the request would be held (`leaky-bucket`), else 0. */
  delayMs: number;
}

/** A second version of a limit, counted beside it, which never refuses. */
export interface ExplainedCandidate {
  /** Its algorithm and its options. */
  options: AlgorithmOptions;
  /** The most units that it would allow at once. */
  quota: number;
  /** Its counter; absent if that is not known, or a list decides. */
  state?: CounterState;
  /** What it would decide; absent if that is not known. */
  decision?: ExplainedDecision;
}

/**
 * What happens with a limit: it is `'asked'`; a list decides in its place (`'listed'`); it is `'off'`; its own `'skip'` exempts
 * the request; there is `'no key'` to count by; it `'depends on the request'`; or one of its functions `'fails'`, and the request
 * with it.
 */
export type LimitStatus = 'asked' | 'listed' | 'off' | 'skip' | 'no key' | 'depends on the request' | 'fails';

/** A limit that applies. */
export interface ExplainedLimit {
  /** Its name. */
  name: string;
  /** Where it is declared. */
  origin: LimitOrigin;
  /** Limits of the same name declared farther out, which it replaces. */
  replaces: LimitOrigin[];
  /** When it is checked; absent for code. */
  phase?: Phase;
  /** What happens with it. */
  status: LimitStatus;
  /** Why; absent if a list decides, or if it is asked and its state is known. */
  reason?: string;
  /** Its rate. */
  rate: ExplainedRate;
  /** Its mode. */
  mode: ExplainedMode;
  /** The most units that can be allowed at once. */
  quota: number;
  /** Who it counts. */
  key: ExplainedKey;
  /** The tenants that share its units, if any. */
  share?: ExplainedShare;
  /** The units of the request; absent if they depend on the request. */
  cost?: number;
  /** The list entry that decides in its place: it either refuses, or exempts without a charge. */
  list?: ListedEntry;
  /** Milliseconds for which it blocks a key that it refuses, if it does; with a list of `blockFor`, those of each offence. */
  blockForMs?: number | number[];
  /** `true` if tries during a block prolong it. */
  strike?: boolean;
  /** What happens while the store fails; present if `state` is absent for that reason. */
  onStoreError?: string;
  /** Its counter; absent if that is not known. */
  state?: CounterState;
  /** What it would decide; absent if that is not known. */
  decision?: ExplainedDecision;
  /** Its candidate, if it has one. */
  candidate?: ExplainedCandidate;
}

/** A limit that is declared for a route but does not apply. */
export interface LeftOutLimit {
  /** Its name. */
  name: string;
  /** Where it is declared. */
  origin: LimitOrigin;
  /** A nearer limit of its name `'replaced'` it, or `@SkipRateLimit` `'skipped'` it. */
  because: 'replaced' | 'skipped';
  /** The place that did so. */
  by: string;
  /** Where it is checked nevertheless. */
  note?: string;
}

/** A function of `@RateLimit`. */
export interface ExplainedFunction {
  /** Where it is declared. */
  origin: LimitOrigin;
  /** Whether it was called: without a request it cannot be. */
  asked: boolean;
  /** The names of the limits that it returned. */
  gave?: string[];
  /** Why nothing is known about its result. */
  reason?: string;
}

/** What the request would get. */
export interface ExplainedOutcome {
  /**
   * The request would be `'allowed'`, `'refused'` by limits, or `'denied'` by a list; it is `'unknown'` if the store fails or it
   * depends on the request; or a function of the app `'fails'`, and the request with it.
   */
  verdict: 'allowed' | 'refused' | 'denied' | 'unknown' | 'fails';
  /**
   * The names of the limits that would refuse it, in the first phase that refuses. Empty if a list denies its address before any
   * limit is asked.
   */
  refusedBy: string[];
  /** The list entry that denies it. */
  list?: ListedEntry;
  /** 0 if it is allowed, else the shortest wait in milliseconds after which these limits would allow it; `null` for never. */
  retryAfterMs: number | null;
  /** Milliseconds for which it would be held. */
  delayMs: number;
  /** Why; absent if limits allow or refuse it. */
  reason?: string;
}

/** What limits do to a request, and why: plain data that JSON can represent. */
export interface Explanation {
  /** What is explained. */
  subject: ExplainedSubject;
  /** When, in milliseconds since the epoch by the clock of this process. */
  at: number;
  /** What the request would get. */
  outcome: ExplainedOutcome;
  /** The limits that apply, in the order in which they are checked. */
  limits: ExplainedLimit[];
  /** The limits that do not apply, and why. */
  leftOut: LeftOutLimit[];
  /** The functions that return limits. */
  functions: ExplainedFunction[];
  /** Why the store and its overrides could not be read; the overrides are then the last known ones. */
  unread?: string;
}
