import type { ExecutionContext } from '@nestjs/common';
import { callOf } from '../http/transport.js';
import type { Rule, RuleEntry } from '../plan/rule.js';
import type { Lease } from '../lease.js';
import type { CheckResult, Refund, Store, StoreDecision } from '../stores/store.js';
import type { Ending } from './ending.js';

/** What one limit charged for a request. */
export interface RequestCharge extends Refund {
  readonly rule: Rule;
  readonly store: Store;
  /** What is charged now. */
  units: number;
  /** Whether its actual cost has been told, or it was given back. */
  settled: boolean;
  /** Whether it was given back. */
  returned: boolean;
}

/** What was checked so far. */
export interface Checked {
  /** All rules of the checks so far, also those that do not apply to the request. */
  readonly met: Rule[];
  /** What was asked of the store; a limit may have another rate by the time it is told of. */
  readonly checked: RuleEntry[];
  readonly decisions: StoreDecision[];
  readonly charges: RequestCharge[];
  /** What is held for the request. */
  readonly leases: Lease[];
  /** How the request ends, if that matters. */
  ending?: Ending;
  /** The sum of all decisions so far. */
  result?: CheckResult;
}

/** What was checked for one call of one handler so far. */
export interface RequestState extends Checked {
  readonly type: object;
  readonly handler: object;
  /** The guard's check. A second guard on the same request takes part in it. */
  guard?: Promise<void>;
  /** The check after the guards. */
  authenticated?: Promise<void>;
  /** All rules of the request, once the route's functions have been asked. */
  rules?: readonly Rule[];
  /** What a middleware checked before. */
  early?: Checked | undefined;
}

/** By request, so that it is gone with it; a request seldom has more than one handler. */
const states = new WeakMap<object, RequestState[]>();

/** The state of a call, if it has been opened. */
export function findState(context: ExecutionContext): RequestState | undefined {
  const type = context.getClass();
  const handler = context.getHandler();
  return states.get(callOf(context))?.find((state) => state.handler === handler && state.type === type);
}

/** The state of a call. */
export function openState(context: ExecutionContext): RequestState {
  const found = findState(context);
  if (found !== undefined) return found;
  const state: RequestState = { type: context.getClass(), handler: context.getHandler(), ...nothingChecked() };
  const call = callOf(context);
  const others = states.get(call);
  if (others === undefined) states.set(call, [state]);
  else others.push(state);
  return state;
}

/** Before any check. */
export function nothingChecked(): Checked {
  return { met: [], checked: [], decisions: [], charges: [], leases: [] };
}
