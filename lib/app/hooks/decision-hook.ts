import type { ExecutionContext, Type } from '@nestjs/common';
import type { Decision } from '../../engine/limits/decision.js';
import type { RequestRoute } from '../../storage/stores/check-origin.js';
import type { DecisionOutcome } from '../../storage/telemetry/decision-event.js';
import type { RequestLike } from '../transports/request-reader.js';

/** How a limit decides: it refuses, only reports (`mode: 'shadow'`), or is the second version of one (`candidate`). */
export type DecisionKind = 'enforced' | 'shadow' | 'candidate';

/** The decision of one limit on one request or call, as hooks get it. */
export interface ObservedDecision {
  /** The limit's name; `'*'` if a list for all limits refused the address of a request. */
  readonly limit: string;
  /** Whether the limit enforces its decisions. */
  readonly kind: DecisionKind;
  /** The outcome; `'shadow-refused'` if the limit would have refused, but only reports. */
  readonly outcome: DecisionOutcome;
  /** The decision. */
  readonly decision: Decision;
  /** The units asked for. */
  readonly cost: number;
  /** Who it counts, such as `user:42`. For a limit within others, those come first: `org:1/user:42`. Secrets are hashed. */
  readonly identity: string;
  /** The key of its counter, as the methods of `Limiter` take it. It differs from `identity` for a limit within others. */
  readonly key: string;
  /** Milliseconds that the check of all limits decided together took. */
  readonly latencyMs: number;
  /** The route of the request. A middleware does not know it yet, and calls from code have none. */
  readonly route: RequestRoute | undefined;
  /** The class of the handler, once the route is known. */
  readonly class: Type | undefined;
  /** The handler, once the route is known. */
  readonly handler: Function | undefined;
  /** The context of the request; `undefined` for calls from code. */
  readonly context: ExecutionContext | undefined;
  /** The request as the reader of its transport returns it: over HTTP the framework's own. `undefined` for calls from code. */
  readonly request: RequestLike | undefined;
}

/** An injectable class that gets decisions. A class that injects others must be a provider of a module. */
export interface DecisionObserver {
  /** Gets a decision. A promise that it returns is not awaited. */
  observe(decided: ObservedDecision): unknown;
}

/** A function that gets decisions, or an injectable class that implements `DecisionObserver`. */
export type DecisionHook = ((decided: ObservedDecision) => unknown) | Type<DecisionObserver>;

/**
 * What is called with decisions, of the module or of a limit. Requests do not wait for promises that hooks return. A hook that
 * throws or rejects changes nothing for the request, and the log reports the first failure.
 */
export interface DecisionHooksOptions {
  /**
   * Gets every decision, of limits that enforce, limits in shadow mode, and candidates: a function, or an injectable class that
   * implements `DecisionObserver`.
   * @default none
   */
  onDecision?: DecisionHook | undefined;
  /**
   * Gets each decision that refuses, or in shadow mode and for a candidate would refuse: a function, or an injectable class that
   * implements `DecisionObserver`.
   * @default none
   */
  onRefused?: DecisionHook | undefined;
  /**
   * Gets the decision that takes a counter to the share of its quota in `nearLimit`, by default 0.8, from below: a function, or an
   * injectable class that implements `DecisionObserver`. It gets no other one of that counter until what was used then no longer
   * counts, or less than half of that share is used.
   * @default none
   */
  onNear?: DecisionHook | undefined;
}

/** What an option of a hook takes. */
export const HOOK_EXPECTED = 'a function, or an injectable class that implements DecisionObserver';
