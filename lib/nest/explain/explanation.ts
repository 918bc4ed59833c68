import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { Phase } from '../../app/config/common-limit-options.js';
import type { Decision } from '../../engine/limits/decision.js';
import type { HeldNow } from '../../engine/limits/estimates.js';
import type { RecentUsage, RegionHolding } from '../../engine/limits/key-reports.js';
import type { ListedEntry } from '../../app/overrides/lists/list.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { ModeOverride, OverrideSource, RateOverride } from '../../app/overrides/override.js';

/** The subject of an explanation. */
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
   * The options of the module, a class (which may be a superclass of the route's class), a method, or code; `'defined'` for a limit that
   * was queried by name.
   */
  level: 'module' | 'controller' | 'handler' | 'code' | 'defined';
  /** The place, in the form that messages use: `limits[0]`, `@RateLimit on UsersController.list`. */
  location: string;
  /** The place of the definition, for a limit used by name: `define.login`, `forFeature.login`. */
  definition?: string;
  /** `true` if a function of `@RateLimit` returned it. */
  byFunction?: true;
}

/** The rate of a limit. */
export interface ExplainedRate {
  /** The algorithm and its current options. */
  options: AlgorithmOptions;
  /** The source of these options. */
  source: OverrideSource;
  /** The configured options, if an override replaces them. */
  configured?: AlgorithmOptions;
  /** The current override. */
  override?: RateOverride;
  /** The place in the policy, such as `'limits.yaml:12:3 limits.api'`, if the source is `'policy'`. */
  policy?: string;
}

/** The mode of a limit. */
export interface ExplainedMode {
  /** The current mode. */
  mode: LimitMode;
  /** The source of the mode. */
  source: OverrideSource;
  /** The current override. */
  override?: ModeOverride;
  /** The place in the policy, if the source is `'policy'`. */
  policy?: string;
}

/** The key by which a limit counts. */
export interface ExplainedKey {
  /** The limit's `key`: `ip`, `user`, `header:x-api-key`, `a function`, or the name of a class. */
  by: string;
  /** The key of the request; absent if it is not known, or the request has none. */
  identity?: string;
  /** The Redis key of the counter. */
  counter?: string;
  /** The outcome for a request without a key. */
  note?: string;
}

/** Tenants that share the units of a limit. */
export interface ExplainedShare {
  /** The identification of tenants: `user`, `header:x-tenant`, `a function`, or the name of a class. */
  by: string;
  /**
   * The tenant, in the form stored on Redis, to which `state` and `decision` apply. Absent if none is known. In that case they apply to the
   * total, and a tenant may have less left.
   */
  tenant?: string;
  /** Its weight. */
  weight?: number;
}

/** The current state of a counter. */
export interface CounterState {
  /** The remaining whole units (of the tenant, if units are shared); 0 while it is blocked. */
  remaining: number;
  /** The milliseconds until no consumed units count any more. */
  resetAfterMs: number;
  /** The remaining milliseconds of a block, 0 without one; absent if the store does not report it. */
  blockedForMs?: number;
  /** For a limit whose `blockFor` is a list: the number of blocks that the key has caused and that have not been forgotten. */
  offences?: number;
  /**
   * For an `adaptive` limit: the units that it currently allows. For one with `rollover` or `credits`: the units of the current window,
   * including those that were carried over and the credits.
   */
  quota?: number;
  /** For a limit with `credits`: the remaining credits. */
  credits?: number;
  /** For an `adaptive` limit: the units in flight. */
  inFlight?: number;
  /** For a limit of scope `'world'`: the units granted to each region, according to its home region. */
  regions?: readonly RegionHolding[];
  /** For a limit with `usage`: the units that it recently charged the key, per day; absent if the store doesn't record usage. */
  usage?: RecentUsage;
  /** For a `concurrency` limit: the leases that hold its units; absent if the store does not report them. */
  leases?: HeldNow;
  /** For a limit with `hold`: the reservations that are not settled and have not lapsed; absent if the store does not report them. */
  holds?: HeldNow;
  /** The place from which it was read. */
  source: Decision['source'];
}

/** A limit's decision about the hypothetical request. */
export interface ExplainedDecision {
  /** True if the request fits. A limit in `'shadow'` mode would still let the request pass if this is false. */
  allowed: boolean;
  /**
   * 0 if the request fits, otherwise the shortest wait in milliseconds after which it would; `null` if it never can. If the rejection
   * `blocks` a counter that owes more than a quota, the wait can be longer.
   */
  retryAfterMs: number | null;
  /** `true` if the rejection would start a block of the limit's `blockFor`; if that is a list, the next one. */
  blocks?: true;
  /** The milliseconds for which the request would be held (`leaky-bucket`), otherwise 0. */
  delayMs: number;
}

/** A second version of a limit with its own counter, which never rejects. */
export interface ExplainedCandidate {
  /** Its algorithm and its options. */
  options: AlgorithmOptions;
  /** The maximum number of units that it would allow at once. */
  quota: number;
  /** Its counter; absent if that is not known, or a list decides. */
  state?: CounterState;
  /** Its decision; absent if that is not known. */
  decision?: ExplainedDecision;
}

/**
 * The role of a limit. It is checked (`'asked'`), a list decides instead (`'listed'`), it is `'off'`, its `'skip'` exempts the request,
 * there is `'no key'`, it `'depends on the request'`, or one of its functions `'fails'`, so that the request also fails.
 */
export type LimitStatus = 'asked' | 'listed' | 'off' | 'skip' | 'no key' | 'depends on the request' | 'fails';

/** A limit that applies. */
export interface ExplainedLimit {
  /** Its name. */
  name: string;
  /** The place of its declaration. */
  origin: LimitOrigin;
  /** Inherited limits of the same name, which it replaces. */
  replaces: LimitOrigin[];
  /** The phase in which it is checked; absent for code. */
  phase?: Phase;
  /** Its role for this request. */
  status: LimitStatus;
  /** The reason for the status; absent if a list decides, or if the limit is checked and its state is known. */
  reason?: string;
  /** Its rate. */
  rate: ExplainedRate;
  /** Its mode. */
  mode: ExplainedMode;
  /** The maximum number of units that can be allowed at once. */
  quota: number;
  /** The key by which it counts. */
  key: ExplainedKey;
  /** The tenants that share its units, if any. */
  share?: ExplainedShare;
  /** The units of the request; absent if they depend on the request. */
  cost?: number;
  /** The list entry that decides instead: it either denies, or exempts without a charge. */
  list?: ListedEntry;
  /** The milliseconds for which it blocks a key after a rejection, if it does; if `blockFor` is a list, one number per offence. */
  blockForMs?: number | number[];
  /** `true` if attempts during a block extend it. */
  strike?: boolean;
  /** The fallback while the store fails; present if `state` is absent for that reason. */
  onStoreError?: string;
  /** Its counter; absent if that is not known. */
  state?: CounterState;
  /** Its decision; absent if that is not known. */
  decision?: ExplainedDecision;
  /** Its candidate, if it has one. */
  candidate?: ExplainedCandidate;
}

/** A limit that is declared for a route but does not apply. */
export interface LeftOutLimit {
  /** Its name. */
  name: string;
  /** The place of its declaration. */
  origin: LimitOrigin;
  /** `'replaced'` by a limit of the same name closer to the handler, or `'skipped'` by `@SkipRateLimit`. */
  because: 'replaced' | 'skipped';
  /** The place of that limit or decorator. */
  by: string;
  /** The place where it is checked nevertheless. */
  note?: string;
}

/** A function of `@RateLimit`. */
export interface ExplainedFunction {
  /** The place of its declaration. */
  origin: LimitOrigin;
  /** True if it was called, which requires a request. */
  asked: boolean;
  /** The names of the limits that it returned. */
  gave?: string[];
  /** The reason why its result is not known. */
  reason?: string;
}

/** The result of the hypothetical request. */
export interface ExplainedOutcome {
  /**
   * The request would be `'allowed'`, `'refused'` by limits, or `'denied'` by a list. It is `'unknown'` if the store fails or it depends on
   * the request; with `'fails'`, a function of the app fails, so that the request also fails.
   */
  verdict: 'allowed' | 'refused' | 'denied' | 'unknown' | 'fails';
  /**
   * The names of the limits that would reject it, in the first phase that does. Empty if a list denies its address before any limit is
   * checked.
   */
  refusedBy: string[];
  /** The list entry that denies it. */
  list?: ListedEntry;
  /** 0 if it is allowed, otherwise the shortest wait in milliseconds after which these limits would allow it; `null` for never. */
  retryAfterMs: number | null;
  /** The milliseconds for which it would be held. */
  delayMs: number;
  /** The reason; absent if limits allow or reject it. */
  reason?: string;
}

/** The effect of limits on a request and the reasons for it: plain data that JSON can represent. */
export interface Explanation {
  /** The subject of the explanation. */
  subject: ExplainedSubject;
  /** The time of the explanation, in milliseconds since the epoch by the clock of this process. */
  at: number;
  /** The result of the hypothetical request. */
  outcome: ExplainedOutcome;
  /** The limits that apply, in the order in which they are checked. */
  limits: ExplainedLimit[];
  /** The limits that do not apply, and why. */
  leftOut: LeftOutLimit[];
  /** The functions that return limits. */
  functions: ExplainedFunction[];
  /** The reason why the store and its overrides could not be read. The last known overrides are used in that case. */
  unread?: string;
}
