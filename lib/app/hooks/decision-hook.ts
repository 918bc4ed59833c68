import type { ExecutionContext, Type } from '@nestjs/common';
import type { Decision } from '../../engine/limits/decision.js';
import type { RequestRoute } from '../../storage/stores/store.js';
import type { DecisionOutcome } from '../../storage/telemetry/decision-event.js';
import type { RequestLike } from '../transports/request-reader.js';

/**
 * The role of a limit's decision: it takes effect (`enforced`), is only reported (`mode: 'shadow'`), or comes from the limit's second
 * version (`candidate`).
 */
export type DecisionKind = 'enforced' | 'shadow' | 'candidate';

/** The decision of one limit on one request or call, as hooks receive it. */
export interface ObservedDecision {
  /** The limit's name; `'*'` if a list for all limits denied the address of a request. */
  readonly limit: string;
  /** Tells enforced decisions from those that are only reported. */
  readonly kind: DecisionKind;
  /** The outcome; `'shadow-refused'` if a limit that only reports would have rejected. */
  readonly outcome: DecisionOutcome;
  /** The decision. */
  readonly decision: Decision;
  /** The requested units. */
  readonly cost: number;
  /**
   * The client that is counted, such as `user:42`. For a nested limit, the keys of its ancestors come first: `org:1/user:42`. Secrets are
   * hashed.
   */
  readonly identity: string;
  /** The key of its counter, in the form that the methods of `Limiter` expect. It differs from `identity` for a nested limit. */
  readonly key: string;
  /** The duration of the check in milliseconds. Limits that are checked together share it. */
  readonly latencyMs: number;
  /** The route of the request; `undefined` in a middleware, which doesn't know it yet, and for calls from code. */
  readonly route: RequestRoute | undefined;
  /** The class of the handler, once the route is known. */
  readonly class: Type | undefined;
  /** The handler, once the route is known. */
  readonly handler: Function | undefined;
  /** The context of the request; `undefined` for calls from code. */
  readonly context: ExecutionContext | undefined;
  /**
   * The request, in the form that the reader of its transport returns: the framework's own request over HTTP. `undefined` for calls from
   * code.
   */
  readonly request: RequestLike | undefined;
}

/** An injectable class that receives decisions. If it injects other classes, it must be a provider of a module. */
export interface DecisionObserver {
  /** Receives a decision. A promise that it returns is not awaited. */
  observe(decided: ObservedDecision): unknown;
}

/** A function that receives decisions, or an injectable class that implements `DecisionObserver`. */
export type DecisionHook = ((decided: ObservedDecision) => unknown) | Type<DecisionObserver>;

/**
 * Hooks of the module or of a limit, called with decisions. Requests do not wait for promises that hooks return. A hook that throws or
 * rejects has no effect on the request, and the log reports its first failure.
 */
export interface DecisionHooksOptions {
  /**
   * Receives every decision: of enforced limits, of limits in shadow mode, and of candidates. A function, or an injectable class that
   * implements `DecisionObserver`.
   * @default none
   */
  onDecision?: DecisionHook | undefined;
  /**
   * Receives each decision that rejects, or would reject if it weren't from a limit in shadow mode or a candidate. A function, or an
   * injectable class that implements `DecisionObserver`.
   * @default none
   */
  onRefused?: DecisionHook | undefined;
  /**
   * Receives the decision with which the used share of a counter's quota reaches `nearLimit`, by default 0.8. A function, or an injectable
   * class that implements `DecisionObserver`. The same counter is reported again only after the units used until then no longer count, or
   * usage has dropped below half of that share.
   * @default none
   */
  onNear?: DecisionHook | undefined;
}

/** The expected value of a hook option. */
export const HOOK_EXPECTED = 'a function, or an injectable class that implements DecisionObserver';
