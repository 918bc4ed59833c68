import type { AlgorithmOptions } from '../algorithms/index.js';
import type { Phase } from '../config/common-limit-options.js';
import type { Decision } from '../limits/decision.js';
import type { ListedEntry } from '../overrides/lists/list.js';
import type { LimitMode, ModeOverride, OverrideSource, RateOverride } from '../overrides/override.js';

/** What was asked. */
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

/** The place from which a limit holds. */
export interface LimitOrigin {
  /**
   * The options of the module, a class (also one that the class of the route extends), a method, or code; `'defined'` for a limit
   * that was asked for by its name.
   */
  level: 'module' | 'controller' | 'handler' | 'code' | 'defined';
  /** The same as messages name it: `limits[0]`, `@RateLimit on UsersController.list`. */
  location: string;
  /** Where a limit is written that is used by its name: `define.login`, `forFeature.login`. */
  definition?: string;
  /** Whether a function of `@RateLimit` gave it. */
  byFunction?: true;
}

/** The rate of a limit. */
export interface ExplainedRate {
  /** The algorithm and its options that are in force. */
  options: AlgorithmOptions;
  /** From where they are. */
  source: OverrideSource;
  /** The configured ones, where an override stands in for them. */
  configured?: AlgorithmOptions;
  /** The override that is in force. */
  override?: RateOverride;
  /** With source `'policy'`: where the policy says it, such as `'limits.yaml:12:3 limits.api'`. */
  policy?: string;
}

/** The mode of a limit. */
export interface ExplainedMode {
  /** The mode that is in force. */
  mode: LimitMode;
  /** From where it is. */
  source: OverrideSource;
  /** The override that is in force. */
  override?: ModeOverride;
  /** With source `'policy'`: where the policy says it. */
  policy?: string;
}

/** Whom a limit counts. */
export interface ExplainedKey {
  /** The limit's `key`: `ip`, `user`, `header:x-api-key`, `a function`, or the name of a class. */
  by: string;
  /** The identity; missing where it is not known, or the request has none. */
  identity?: string;
  /** The key of the counter, as Redis has it. */
  counter?: string;
  /** What was made of a request without a key. */
  note?: string;
}

/** Tenants that share the units of a limit. */
export interface ExplainedShare {
  /** What tells tenants apart: `user`, `header:x-tenant`, `a function`, or the name of a class. */
  by: string;
  /**
   * The tenant whose `state` and `decision` are told, as Redis has it; missing where none is known: then they are those of the
   * total, of which a tenant may be left less.
   */
  tenant?: string;
  /** Its weight. */
  weight?: number;
}

/** A counter as it is now. */
export interface CounterState {
  /** Whole units that are left, of a limit whose units are shared to the tenant; 0 while it is blocked. */
  remaining: number;
  /** Milliseconds until nothing of what was consumed counts any more. */
  resetAfterMs: number;
  /** Milliseconds for which it is blocked, 0 if it is not; missing if the store cannot tell. */
  blockedForMs?: number;
  /** Of a limit whose `blockFor` has steps: how many blocks the key earned that are not forgotten. */
  offences?: number;
  /** Of an `adaptive` limit: the units that it lets in now. */
  quota?: number;
  /** Of an `adaptive` limit: the units in flight. */
  inFlight?: number;
  /** Where it was read. */
  source: Decision['source'];
}

/** What a limit would say to the request. */
export interface ExplainedDecision {
  /** Whether the request fits. A `'shadow'` refuses nothing, whatever it says here. */
  allowed: boolean;
  /**
   * 0 if it fits, else the shortest wait in milliseconds after which it would; `null` if it never can. Where the refusal `blocks`
   * a counter that owes more than a quota, the wait can be longer.
   */
  retryAfterMs: number | null;
  /** Whether the refusal would begin a block of the limit's `blockFor`: the step that is next, if it has steps. */
  blocks?: true;
  /** Milliseconds for which the request would be held (`leaky-bucket`), else 0. */
  delayMs: number;
}

/** A second version of a limit, which is counted beside it and never refuses. */
export interface ExplainedCandidate {
  /** Its algorithm and its options. */
  options: AlgorithmOptions;
  /** The most units that it would allow at once. */
  quota: number;
  /** Its counter; missing where that is not known, or a list decides. */
  state?: CounterState;
  /** What it would say; missing where that is not known. */
  decision?: ExplainedDecision;
}

/**
 * What becomes of a limit: it is `'asked'`; a list decides in its place (`'listed'`); it is `'off'`; the `'skip'` of its own leaves the request out; there is `'no key'` to
 * count by; it `'depends on the request'`; or a function of its own `'fails'`, and the request with it.
 */
export type LimitStatus = 'asked' | 'listed' | 'off' | 'skip' | 'no key' | 'depends on the request' | 'fails';

/** A limit that holds. */
export interface ExplainedLimit {
  /** Its name. */
  name: string;
  /** From where it holds. */
  origin: LimitOrigin;
  /** Limits of the same name farther out, which it replaces. */
  replaces: LimitOrigin[];
  /** The moment at which it is checked; missing for code. */
  phase?: Phase;
  /** What becomes of it. */
  status: LimitStatus;
  /** Why, unless a list decides, or it is asked and its state is known. */
  reason?: string;
  /** Its rate. */
  rate: ExplainedRate;
  /** Its mode. */
  mode: ExplainedMode;
  /** The most units that can be allowed at once. */
  quota: number;
  /** Whom it counts. */
  key: ExplainedKey;
  /** Who shares its units, if tenants do. */
  share?: ExplainedShare;
  /** The units of the request; missing where they depend on it. */
  cost?: number;
  /** The entry of a list that decides in its place: it exempts, and nothing is charged, or refuses. */
  list?: ListedEntry;
  /** Milliseconds for which it blocks whom it refuses, if it does; of the first offence, the second, and so on, if it has steps. */
  blockForMs?: number | number[];
  /** What happens while the store fails, as now, if `state` is missing since it does. */
  onStoreError?: string;
  /** Its counter; missing where that is not known. */
  state?: CounterState;
  /** What it would say; missing where that is not known. */
  decision?: ExplainedDecision;
  /** Its candidate, if it has one. */
  candidate?: ExplainedCandidate;
}

/** A limit that does not hold for a route, though it is declared for it. */
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
  /** Where it stands. */
  origin: LimitOrigin;
  /** Whether it was asked: without a request it cannot be. */
  asked: boolean;
  /** The names of the limits that it gave. */
  gave?: string[];
  /** Why nothing is known of what it gives. */
  reason?: string;
}

/** What a request would get. */
export interface ExplainedOutcome {
  /**
   * The request would be `'allowed'`, `'refused'` by limits, or `'denied'` by a list; it is `'unknown'`, since the store fails or it depends on the request; or a
   * function of the app `'fails'`, and the request with it.
   */
  verdict: 'allowed' | 'refused' | 'denied' | 'unknown' | 'fails';
  /**
   * The names of the limits that would refuse it. Of phases that follow each other only the first one that refuses is told. None
   * if it is denied for its address before any limit is asked.
   */
  refusedBy: string[];
  /** The entry that denies it. */
  list?: ListedEntry;
  /** 0 if it is allowed, else the shortest wait in milliseconds after which it would be, as far as these limits know; `null` if it never can be. */
  retryAfterMs: number | null;
  /** Milliseconds for which it would be held. */
  delayMs: number;
  /** Why, unless limits allow or refuse it. */
  reason?: string;
}

/** What limits do to a request, and why: plain data, which JSON can hold. */
export interface Explanation {
  /** What was asked. */
  subject: ExplainedSubject;
  /** When, in milliseconds since the epoch, by the clock of this process. */
  at: number;
  /** What the request would get. */
  outcome: ExplainedOutcome;
  /** The limits that hold, in the order in which they are checked. */
  limits: ExplainedLimit[];
  /** The limits that do not hold, and why. */
  leftOut: LeftOutLimit[];
  /** The functions that give limits. */
  functions: ExplainedFunction[];
  /** Why the store, and the overrides on it, could not be read: then the overrides are those that were known last. */
  unread?: string;
}
