import { createHash } from 'node:crypto';
import type { Priority } from '../../engine/limits/priority.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import type { Decision } from '../../engine/limits/decision.js';
import type { RequestRoute } from '../stores/check-origin.js';
import type { StoreDecision } from '../stores/store.js';

/** The outcome of a decision: `'shadow-refused'` if the limit would have refused, but only reports. */
export type DecisionOutcome = 'allowed' | 'refused' | 'shadow-refused';

/** The decision of one limit on one request or call. The request passes unless one of its limits has outcome `'refused'`. */
export interface DecisionEvent {
  /** The limit's name; `'*'` if a list for all limits refused the address of a request. */
  readonly limit: string;
  /** Who it counts: the first 16 characters of the base64url SHA-256 of the identity. The identity itself is never reported. */
  readonly identity: string;
  /** The outcome. */
  readonly outcome: DecisionOutcome;
  /** What decided. */
  readonly source: Decision['source'];
  /** The most units that can be allowed at once. */
  readonly quota: number;
  /** Whole units that a request could still take now. */
  readonly remaining: number;
  /** 0 if allowed, else the shortest wait in milliseconds after which the same request would fit; `Infinity` if it never can. */
  readonly retryAfterMs: number;
  /** The units asked for. */
  readonly cost: number;
  /** Milliseconds that the check of all limits decided together took. */
  readonly latencyMs: number;
  /** Whether these units took the counter to its `nearLimit` share or beyond. */
  readonly nearLimit: boolean;
  /** For a limit whose `blockFor` is a list: the number of blocks that the key has earned, including the one that begins now. */
  readonly offences?: number;
  /** `true` for the decision of a limit's candidate, which is `'allowed'` or `'shadow-refused'`; absent otherwise. */
  readonly candidate?: boolean;
  /** For an `adaptive` limit: how important the request is. */
  readonly priority?: Priority;
  /** For an `adaptive` limit: the units in flight. */
  readonly inFlight?: number;
  /** The route of the request. A middleware does not know it yet, and calls from code have none: absent then. */
  readonly route?: RequestRoute;
}

/** A decision event without the identity, which costs a hash. */
export type UnnamedEvent = Omit<DecisionEvent, 'identity'>;

/** The characters of a hash that are reported: 96 bits distinguish all identities. */
const HASH_LENGTH = 16;

/** Makes the event of one decision. `charged`: all limits of the check allowed it, so that the units were taken. */
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

/** Whether units took a counter to its `nearLimit` share or beyond. Units taken from the future do not count as use. */
export function becameNear(entry: CheckEntry, decision: StoreDecision): boolean {
  if (decision.delayMs > 0 && entry.limit.algorithm.reservation !== undefined) return false;
  const { before, nearFrom } = useOf(entry, decision);
  return before + entry.cost >= nearFrom && before < nearFrom;
}

/** How much of a counter is in use. */
export interface CounterUse {
  /** The units in use before the request took its own. */
  readonly before: number;
  /** From how many units on it is near its limit. */
  readonly nearFrom: number;
}

/** The use of a counter whose request was allowed. */
export function useOf({ limit, cost }: CheckEntry, { quota, remaining }: StoreDecision): CounterUse {
  // If the quota varies, being near is measured against what the limit allows now.
  const varies = limit.adapts || limit.varies;
  const nearFrom = varies ? Math.ceil((limit.nearFrom / limit.quota) * quota) : limit.nearFrom;
  return { before: (varies ? quota : limit.quota) - remaining - cost, nearFrom };
}
