import { createHash } from 'node:crypto';
import type { Priority } from '../../engine/limits/arguments.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import type { Decision } from '../../engine/limits/decision.js';
import type { RequestRoute, StoreDecision } from '../stores/store.js';

/** The outcome of a decision: `'shadow-refused'` if a shadow limit would have rejected. */
export type DecisionOutcome = 'allowed' | 'refused' | 'shadow-refused';

/** The decision of one limit about one request or call. The request passes unless one of its limits has the outcome `'refused'`. */
export interface DecisionEvent {
  /** The limit's name; `'*'` if a list for all limits denied the address of a request. */
  readonly limit: string;
  /** The key that it counts: the first 16 characters of the base64url SHA-256 of the identity. The identity itself is never reported. */
  readonly identity: string;
  /** The outcome. */
  readonly outcome: DecisionOutcome;
  /** The place of the decision: the store, a cache, a list, or the fallback. */
  readonly source: Decision['source'];
  /** The maximum number of units that can be allowed at once. */
  readonly quota: number;
  /** Whole units that are still available. */
  readonly remaining: number;
  /** 0 if allowed; otherwise the shortest wait in milliseconds after which the same request would fit; `Infinity` if it never will. */
  readonly retryAfterMs: number;
  /** The requested units. */
  readonly cost: number;
  /** The duration of the check in milliseconds. All limits of a check are decided together. */
  readonly latencyMs: number;
  /** True if these units brought the counter to its `nearLimit` share or beyond. */
  readonly nearLimit: boolean;
  /** For a limit whose `blockFor` is a list: the number of blocks that the key has earned, including the one that begins now. */
  readonly offences?: number;
  /** `true` for the decision of a limit's candidate, which is `'allowed'` or `'shadow-refused'`; absent otherwise. */
  readonly candidate?: boolean;
  /** For an `adaptive` limit: how important the request is. */
  readonly priority?: Priority;
  /** For an `adaptive` limit: the units in flight. */
  readonly inFlight?: number;
  /** The route of the request; absent in middleware, which doesn't know it yet, and for calls from code. */
  readonly route?: RequestRoute;
}

/** A decision event without the hash of the identity, which is expensive. */
export type UnnamedEvent = Omit<DecisionEvent, 'identity'>;

/** The number of characters of a hash that are reported: 96 bits are enough to tell all identities apart. */
const HASH_LENGTH = 16;

/** Creates the event of one decision. `charged`: all limits of the check allowed it, so that the units were taken. */
export function eventOf(
  entry: CheckEntry,
  decision: StoreDecision,
  charged: boolean,
  latencyMs: number,
  route: RequestRoute | undefined,
): UnnamedEvent {
  const { limit, cost } = entry;
  const { source, quota, remaining, retryAfterMs, allowed, offences } = decision;
  const outcome = allowed ? 'allowed' : limit.shadow ? 'shadow-refused' : 'refused';
  const nearLimit = charged && allowed && becameNear(entry, decision);
  const plain = {
    limit: limit.name,
    outcome,
    source,
    quota,
    remaining,
    retryAfterMs,
    cost,
    latencyMs,
    nearLimit,
  } as const;
  const known = route === undefined ? plain : { ...plain, route };
  const event = offences === undefined ? known : { ...known, offences };
  if (decision.inFlight !== undefined) {
    return { ...event, priority: entry.priority ?? 'default', inFlight: decision.inFlight };
  }
  return limit.isCandidate ? { ...event, candidate: true } : event;
}

/** A pseudonym of an identity. */
export function hashOf(identity: string): string {
  return createHash('sha256').update(identity).digest('base64url').slice(0, HASH_LENGTH);
}

/** Returns true if units brought a counter to its `nearLimit` share or beyond. Units taken from the future don't count as use. */
export function becameNear(entry: CheckEntry, decision: StoreDecision): boolean {
  if (decision.delayMs > 0 && entry.limit.algorithm.reservation !== undefined) return false;
  const { before, nearFrom } = useOf(entry, decision);
  return before + entry.cost >= nearFrom && before < nearFrom;
}

/** How much of a counter is in use. */
export interface CounterUse {
  /** The units that were in use before this request. */
  readonly before: number;
  /** The number of units from which the counter is near its limit. */
  readonly nearFrom: number;
}

/** The use of a counter by a request that was allowed. */
export function useOf({ limit, cost }: CheckEntry, { quota, remaining }: StoreDecision): CounterUse {
  // If the quota varies, nearness is based on the current limit.
  const varies = limit.adapts || limit.varies;
  const nearFrom = varies ? Math.ceil((limit.nearFrom / limit.quota) * quota) : limit.nearFrom;
  return { before: (varies ? quota : limit.quota) - remaining - cost, nearFrom };
}
