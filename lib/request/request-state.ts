import type { CallHandler, ExecutionContext } from '@nestjs/common';
import type { Observable } from 'rxjs';
import type { Rule, RuleEntry } from '../rules/rule.js';
import type { Lease } from '../limiter/lease.js';
import type { CheckResult } from '../limits/decision.js';
import type { Refund, Store, StoreDecision } from '../stores/store.js';
import type { RequestCompletion } from './request-completion.js';

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

/** Goes on with a call after the guards. */
export interface GuardContinuation {
  /** The check after the guards. Returns nothing if there is nothing to wait for. */
  afterGuards(context: ExecutionContext): Promise<void> | undefined;
  /** The same, and then the handler. */
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> | Promise<Observable<unknown>>;
}

/** What was checked so far. */
export interface Checked {
  /** All rules of the checks so far, also those that do not apply to the request. */
  readonly applicable: Rule[];
  /** What was asked of the store; a limit may have another rate by the time it is told of. */
  readonly checked: RuleEntry[];
  readonly decisions: StoreDecision[];
  /** See `chargesOf`. */
  readonly charges: RequestCharge[];
  /** Charges that are made only if somebody asks for them. */
  readonly deferredCharges: (() => RequestCharge[])[];
  /** What is held for the request. */
  readonly leases: Lease[];
  /** How the request ends, if that matters. */
  completion?: RequestCompletion;
  /** The sum of all decisions so far. */
  result?: CheckResult;
}

/** What was checked for one call of one handler so far. */
export interface RequestState extends Checked {
  readonly type: object;
  readonly handler: object;
  /** What goes on with the call after the guards. */
  readonly continuation: GuardContinuation;
  /** The guard's check. A second guard on the same request takes part in it. */
  guard?: Promise<void>;
  /** The check after the guards. */
  authenticated?: Promise<void>;
  /** All rules of the request, once the route's functions have been asked. */
  rules?: readonly Rule[];
  /** What a middleware checked before. */
  middleware?: Checked | undefined;
}

/** By request, so that it is gone with it; a request seldom has more than one handler. */
const states = new WeakMap<object, RequestState[]>();
/** The last call that came with the context of a message, where the list of arguments stands for a call. */
const latest = new WeakMap<object, RequestState>();

/** The state of a call, if it has been opened. `call` is the object that stands for it. */
export function findState(context: ExecutionContext, call: object): RequestState | undefined {
  const type = context.getClass();
  const handler = context.getHandler();
  return states.get(call)?.find((state) => state.handler === handler && state.type === type);
}

/**
 * The state of a call of which only the arguments are at hand, if one of them stands for it. Parameters are given another list of
 * them, so where that stands for the call, it is the last one that came with its context.
 */
export function searchState(context: ExecutionContext): RequestState | undefined {
  const args: readonly unknown[] = context.getArgs();
  for (const each of [...args, args]) {
    const state = typeof each === 'object' && each !== null ? findState(context, each) : undefined;
    if (state !== undefined) return state;
  }
  const last = typeof args[1] === 'object' && args[1] !== null ? latest.get(args[1]) : undefined;
  return last?.handler === context.getHandler() && last.type === context.getClass() ? last : undefined;
}

/** The state of a call. */
export function openState(context: ExecutionContext, call: object, continuation: GuardContinuation): RequestState {
  const found = findState(context, call);
  if (found !== undefined) return found;
  const state: RequestState = {
    type: context.getClass(),
    handler: context.getHandler(),
    continuation,
    ...nothingChecked(),
  };
  const others = states.get(call);
  if (others === undefined) states.set(call, [state]);
  else others.push(state);
  const shared: unknown = Array.isArray(call) ? call[1] : undefined;
  if (typeof shared === 'object' && shared !== null) latest.set(shared, state);
  return state;
}

/** Before any check. */
export function nothingChecked(): Checked {
  return { applicable: [], checked: [], decisions: [], charges: [], deferredCharges: [], leases: [] };
}

/** What was charged so far. */
export function chargesOf({ charges, deferredCharges }: Checked): RequestCharge[] {
  for (const make of deferredCharges.splice(0)) charges.push(...make());
  return charges;
}
