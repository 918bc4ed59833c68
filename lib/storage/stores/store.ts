import type { LeaseEnd, WindowCount } from '../../engine/algorithms/algorithm.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { CheckEntry, Counter } from '../../engine/limits/counter.js';
import type { FeatureReading, READ } from './feature-reading.js';
import type { LearntRate, Lesson } from './lesson.js';
import type { Decision } from '../../engine/limits/decision.js';

/** Units to take as early as possible: from the future, if the algorithm knows when they will be available. */
export interface ReserveEntry extends CheckEntry {
  /** The longest wait in milliseconds; if it would be longer, nothing is taken. */
  readonly maxWaitMs: number;
  /** A claim, so that the units are taken only once, no matter how often the reservation is repeated. */
  readonly claim?: Claim;
  /** True to use the separate counter of starts. It is part of a decision that has already been reported. */
  readonly ofStarts?: boolean;
}

/** A claim to reserved units. Repeating the reservation returns when the units can be used, and charges nothing. */
export interface Claim {
  /** Identifies who claims. It is the same for all of their requests to this counter. */
  readonly id: string;
  /** How long the claim is remembered once its units can be used, in milliseconds. */
  readonly keepMs: number;
  /** True to only read: returns when claimed units can be used, or the result of `peek` without a claim. */
  readonly looks?: boolean;
}

/** The end of a claim. */
export interface ClaimEnd {
  /** Identifies who made the claim. */
  readonly id: string;
  /** True if its units were used, so that nothing is refunded. */
  readonly isSpent: boolean;
}

/** One request with all of its limits. No two entries share a counter. */
export interface Check {
  /** The cost per counter; at least one entry. */
  readonly entries: readonly CheckEntry[];
  /** True to only read: the check is decided, but charges and writes nothing. */
  readonly peek?: boolean;
  /** True to fail if the store fails, regardless of the limits' `onStoreError`. */
  readonly strict?: boolean;
  /** True if the charge may be refunded later. Decisions then have `chargedAt`. */
  readonly refundable?: boolean;
  /** True to hold units of limits with `hold` until they are settled. Decisions then have a ticket, and rejections begin no block. */
  readonly hold?: boolean;
  /**
   * Like `refundable`, for a call that waits for its units. A rejection isn't an attempt: it neither begins nor extends a block, and isn't
   * counted.
   */
  readonly waits?: boolean;
  /**
   * True to take as many units as fit: the same number from each entry, at most the cost, which is the same for all entries. Decisions then
   * have `taken`. If not even one unit fits, it is rejected like a check of one unit. A store that ignores it takes all or none.
   */
  readonly upTo?: boolean;
  /** The address of the client, for lists of addresses. */
  readonly address?: string | undefined;
  /** When the check was requested, if it has waited since: milliseconds of the process's clock. Its deadline counts from then. */
  readonly since?: number;
  /**
   * @internal True to take units that may be available later: the entries are a reservation and that of the limit's candidate. Layers get
   * reservations in this form; they call `reserve` of the store.
   */
  readonly reserving?: true;
  /** @internal The request that is checked. Calls from code have none. */
  readonly origin?: CheckOrigin | undefined;
}

/** A decision as stores return it, including the data for refunding the units. */
export interface StoreDecision extends Decision {
  /** The number of a reservation or departure slot (a time on the store's clock), of a `concurrency` lease, or of a hold. */
  ticket?: number;
  /** When it was charged, in microseconds on the store's clock, if the check requested it. */
  chargedAt?: number;
  /** True if the units were claimed before. */
  wasClaimed?: boolean;
  /** The decision of the limit's candidate, if it has one. */
  candidate?: StoreDecision;
  /** @internal A note from the script to a layer, which removes it. */
  note?: number;
}

/** Charged units of a counter. */
export interface Charge extends Counter {
  /** The number of units: a whole number >= 1. */
  readonly units: number;
  /** The source of the decision that charged them, if there was one. */
  readonly source?: Decision['source'] | undefined;
  /** True to fail if the store fails, regardless of the limit's `onStoreError`. */
  readonly strict?: boolean | undefined;
  /** The decision and the charge of the limit's candidate. */
  readonly candidate?: Pick<StoreDecision, 'allowed' | 'ticket' | 'chargedAt'> | undefined;
}

/** Units to refund or to settle. With 0 units, the counter is only updated to the limit's current parameters. */
export interface Refund extends Charge {
  /** The ticket of the decision that charged them. */
  readonly ticket?: number | undefined;
  /** The `chargedAt` of the decision. Units that no longer count are not refunded again. */
  readonly chargedAt?: number | undefined;
  /**
   * The claim that took the units. It ends. All of its units are refunded unless they are spent or could already be used when they were
   * last requested.
   */
  readonly claim?: ClaimEnd;
  /**
   * The units that were actually used, which may be more than those held. They replace the held units, once.
   * @default nothing
   */
  readonly actual?: number | undefined;
  /** The outcome of the work that held them; absent if it was cancelled. */
  readonly end?: LeaseEnd | undefined;
  /** True to use the separate counter of starts. */
  readonly ofStarts?: boolean;
}

/** Units held in a `concurrency` limit. */
export interface HeldLease extends Charge {
  /** The ticket of the decision that took them. */
  readonly ticket: number;
}

/** Counts answers before their callers get them. */
export interface AnswerTap {
  /** A check was answered after `latencyMs` milliseconds; a negative value means unknown. */
  decided(entries: readonly CheckEntry[], decisions: readonly StoreDecision[], latencyMs: number): void;
  /** A check was not answered. */
  failed(): void;
}

/** Prepaid units to add to a counter or to take back. */
export interface Credit extends Counter {
  /** The number of units. A negative number takes units back, at most those that are left. */
  readonly units: number;
  /** Identifies the credit, such as a payment. Of all credits with the same id, only the first one counts. */
  readonly id?: string | undefined;
}

/** How long the id of a credit is remembered, in microseconds: long enough for a month of retries. */
export const CREDIT_KNOWN_FOR = 35 * 86_400e6;

/** Receives the answer to a check: one of its methods is called once. If `decided` throws, `failed` is also called. */
export interface CheckAnswer {
  /** The check was decided: one decision for each entry, in their order. */
  decided(decisions: StoreDecision[]): void;
  /** The check was not decided: the store failed, or does not support the request. */
  failed(error: unknown): void;
  /** Counts the answer first, without a latency. Answers without this method are wrapped in one that has it. */
  countBy?(tap: AnswerTap, entries: readonly CheckEntry[]): void;
}

/** The latency of an answer that was not measured. */
export const UNTIMED = -1;

/** The place where counters are kept. */
export interface Store {
  /** Decides each check atomically: either all of its limits allow it, or none is charged. Rejects with `RateLimitStoreError`. */
  check(checks: readonly Check[]): Promise<StoreDecision[][]>;
  /**
   * Takes units, from the future if necessary: `delayMs` is the wait until they are available. If the reservation is rejected,
   * `retryAfterMs` is the wait that it would take. Also takes units of the limit's candidate, and reports its decision as `candidate`.
   */
  reserve(reservation: ReserveEntry): Promise<StoreDecision>;
  /** Refunds units, at most those that were taken. */
  refund(refunds: readonly Refund[]): Promise<void>;
  /** Charges units even if they don't fit, up to one quota beyond the quota. */
  penalize(charge: Charge): Promise<void>;
  /**
   * Blocks a counter for `durationMs` milliseconds from now, without counting an offence; 0 ends a block and clears offences. Resolves to
   * true if there was a block or an offence before, and to nothing if the store doesn't know.
   */
  block(counter: Counter, durationMs: number): Promise<boolean | void>;
  /** Renews a lease. Returns true if it was still held. */
  renew(lease: HeldLease): Promise<boolean>;
  /**
   * Clears counters, their blocks and their offences. Resolves to true if there was anything to clear, even if it lapsed a moment ago, and
   * to nothing if the store doesn't know.
   */
  reset(counters: readonly Counter[]): Promise<boolean | void>;
  /** The windows of a `calendar-window`, or slices of a `sliding-window`, that can still be read, the newest first. */
  history(counter: Counter): Promise<WindowCount[]>;
  /**
   * Reads the data that a feature keeps about a limit.
   * @internal
   * @default the feature calls methods of its own
   */
  [READ]?<T>(limit: CompiledLimit, reading: FeatureReading<T>): T;
  /**
   * Learns the state of the upstream's limit that a counter follows. This only makes the counter stricter: it never has more units left
   * than the upstream, minus the units in flight of all instances, and its block never gets shorter. Returns the rate if the lesson
   * contains one.
   * @default nothing is learned
   */
  learn?(counter: Counter, lesson: Lesson): Promise<LearntRate | undefined>;
  /**
   * Adds prepaid units to a counter of a limit with `credits`, and returns how many are left.
   * @default the store doesn't support credits
   */
  credit?(credit: Credit): Promise<number>;
  /**
   * Milliseconds for which a counter is still blocked, 0 if it isn't. Writes nothing.
   * @default unknown
   */
  blockedFor?(counter: Counter): Promise<number>;
  /**
   * The server of a counter, if there are several. A server that fails is skipped while the others are still used.
   * @default all counters are on one server
   */
  nodeOf?(counter: Counter): string;
  /**
   * The part of a server that can move to another one, such as a slot of a Cluster. While it moves, it can fail on its own. Only used
   * with `nodeOf`.
   * @default a server moves and fails as a whole
   */
  slotOf?(counter: Counter): number;
  /**
   * Returns true if a server still has counters. A server without counters is never used again, so its state can be forgotten.
   * @default every server has counters
   */
  hasNode?(node: string): boolean;
  /**
   * Decides a check of one limit synchronously. Returns nothing, without changing anything, if that takes more than a few steps.
   * @internal
   * @default `check` is called
   */
  decideOne?(limit: CompiledLimit, identity: string, cost: number): StoreDecision | undefined;
  /** Resolves when the store is ready, or has reported that it isn't. */
  open?(): Promise<void>;
  /** Ends the connections and timers that the store has created. */
  close(): Promise<void>;
}

/** The route of a request or call, as callers know it. */
export interface RequestRoute {
  /**
   * Over HTTP the method, such as `GET`; for GraphQL `query`, `mutation` or `subscription`; for other calls their transport, such
   * as `ws` or `rpc`.
   */
  readonly method: string;
  /** The pattern of the route's path, such as `/reports/:id`; for other calls the field, message or pattern. */
  readonly path: string;
}

/** The request that a check is made for. */
export interface CheckOrigin {
  /** Its context in Nest. */
  readonly context: object;
  /** The request, as its transport reads it. */
  readonly request: object | undefined;
  /** Its route, once that is known. */
  readonly route: RequestRoute | undefined;
}
