import { createHash } from 'node:crypto';
import type { Priority } from '../limits/priority.js';
import type { CheckEntry } from '../limits/counter.js';
import type { Decision } from '../limits/decision.js';
import type { StoreDecision } from '../stores/store.js';

/** What a limit said: `'shadow-refused'` if it would have refused, but is only to report. */
export type DecisionOutcome = 'allowed' | 'refused' | 'shadow-refused';

/** What one limit said to one request or call. The request passes if none of its limits says `'refused'`. */
export interface DecisionEvent {
  /** The limit's name; `'*'` if the lists of all limits refused a request for its address. */
  readonly limit: string;
  /** Whom it counts: the first 16 characters of the base64url SHA-256 of the identity, which itself is never told. */
  readonly identity: string;
  /** What the limit said. */
  readonly outcome: DecisionOutcome;
  /** Who decided. */
  readonly source: Decision['source'];
  /** The most units that can be allowed at once. */
  readonly quota: number;
  /** Whole units that a request could still take now. */
  readonly remaining: number;
  /** 0 if allowed, else the shortest wait in milliseconds after which the same would fit; `Infinity` if it never can. */
  readonly retryAfterMs: number;
  /** The units that were asked for. */
  readonly cost: number;
  /** Milliseconds that the check took, with all limits that were decided together. */
  readonly latencyMs: number;
  /** Whether these units took the limit from below its `nearLimit` share to it or beyond. */
  readonly nearLimit: boolean;
  /** Of a limit whose `blockFor` has steps: how many blocks the key earned, with the one that this refusal begins. */
  readonly offences?: number;
  /** `true` if the limit's candidate said so, whose outcome is `'allowed'` or `'shadow-refused'`; absent otherwise. */
  readonly candidate?: boolean;
  /** Of an `adaptive` limit: how important the request is. */
  readonly priority?: Priority;
  /** Of an `adaptive` limit: the units in flight. */
  readonly inFlight?: number;
}

/** A decision with all that may be told but whom it counts, which costs a hash. */
export type UnnamedEvent = Omit<DecisionEvent, 'identity'>;

/** How much of a hash is told: 96 bits tell all identities apart. */
const HASH_LENGTH = 16;

/** Tells of one decision. `charged`: the check was allowed by all of its limits, so that what this one allowed was taken. */
export function eventOf(entry: CheckEntry, decision: StoreDecision, charged: boolean, latencyMs: number): UnnamedEvent {
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
  const event = offences === undefined ? plain : { ...plain, offences };
  if (decision.inFlight !== undefined) {
    return { ...event, priority: entry.priority ?? 'default', inFlight: decision.inFlight };
  }
  return limit.isCandidate ? { ...event, candidate: true } : event;
}

/** Names an identity without telling it. */
export function hashOf(identity: string): string {
  return createHash('sha256').update(identity).digest('base64url').slice(0, HASH_LENGTH);
}

/** Whether units took a limit to its `nearLimit` share or beyond. What was taken from the future says nothing of how much was used before. */
export function becameNear({ limit, cost }: CheckEntry, { quota, remaining, delayMs }: StoreDecision): boolean {
  if (delayMs > 0 && limit.algorithm.reservation !== undefined) return false;
  // What adapts, or has more in some windows, is near where that share of what it lets in now is taken.
  const varies = limit.adapts || limit.varies;
  const nearFrom = varies ? Math.ceil((limit.nearFrom / limit.quota) * quota) : limit.nearFrom;
  const used = (varies ? quota : limit.quota) - remaining;
  return used >= nearFrom && used - cost < nearFrom;
}
