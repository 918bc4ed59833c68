import type { CheckOrigin } from './check-origin.js';
import type { LeaseEnd, WindowCount } from '../../engine/algorithms/algorithm.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { CheckEntry, Counter } from '../../engine/limits/counter.js';
import type { FeatureReading, READ } from './feature-reading.js';
import type { Lesson, LearntRate } from './lesson.js';
import type { Decision } from '../../engine/limits/decision.js';

/** Units to take as early as possible: from the future, if the algorithm can say when they will be available. */
export interface ReserveEntry extends CheckEntry {
  /** The longest wait in milliseconds; if it would be longer, nothing is taken. */
  readonly maxWaitMs: number;
  /** A claim, so that the units are taken once, however often they are asked for. */
  readonly claim?: Claim;
  /** Whether it uses the counter of starts beside: it is part of a decision that has already been reported. */
  readonly ofStarts?: boolean;
}

/** A claim to reserved units: asking for them again returns when they can be used, and charges nothing. */
export interface Claim {
  /** Who claims: the same for everything it asks of the counter. */
  readonly id: string;
  /** How long the claim is remembered once its units can be used, in milliseconds. */
  readonly keepMs: number;
  /** Only look, and take nothing: returns when claimed units can be used, or what `peek` returns. */
  readonly looks?: boolean;
}

/** The end of a claim. */
export interface ClaimEnd {
  /** Who claimed. */
  readonly id: string;
  /** Whether its units were used, so that nothing comes back. */
  readonly isSpent: boolean;
}

/** One request against all of its limits. No two entries share a counter. */
export interface Check {
  /** What it asks of each counter, at least one. */
  readonly entries: readonly CheckEntry[];
  /** Only look: decide, but charge and write nothing. */
  readonly peek?: boolean;
  /** Fail if the store fails, whatever `onStoreError` of the limits says. */
  readonly strict?: boolean;
  /** What it charges may be given back later: decisions then have `chargedAt`. */
  readonly refundable?: boolean;
  /** Holds units of limits with a `hold` until they are settled; decisions have a ticket. Refusals begin no block. */
  readonly hold?: boolean;
  /** `refundable`, for a call that waits for its units: a refusal is no try, so it begins and prolongs no block, and is not counted. */
  readonly waits?: boolean;
  /**
   * Takes as many units as fit, the same number from each entry, and at most the cost, which is the same for all. Decisions then have
   * `taken`. If not one fits, it is refused like a check of one unit. A store that ignores it takes all or none.
   */
  readonly upTo?: boolean;
  /** The address of the client, for lists of addresses. */
  readonly address?: string | undefined;
  /** When it was asked, if it has waited since: milliseconds of the process's clock. Its deadline counts from then. */
  readonly since?: number;
  /**
   * @internal Takes units that may be there later: its entries are a reservation and that of the limit's candidate. Layers are asked so;
   * they ask the store by `reserve`.
   */
  readonly reserving?: true;
  /** @internal The request that it is made for. Calls from code have none. */
  readonly origin?: CheckOrigin | undefined;
}

/** A decision as stores make it: with what is needed to give back the units. */
export interface StoreDecision extends Decision {
  /** The number of a reservation or departure slot (a time by the store's clock), of a `concurrency` lease, or of a hold. */
  ticket?: number;
  /** When it was charged, in microseconds by the store's clock, if that was asked for. */
  chargedAt?: number;
  /** The units had been claimed before. */
  wasClaimed?: boolean;
  /** The decision of the limit's candidate, if it has one. */
  candidate?: StoreDecision;
  /** @internal What the script notes for a layer, which takes it away. */
  note?: number;
}

/** Units of a counter. */
export interface Charge extends Counter {
  /** How many: a whole number >= 1. */
  readonly units: number;
  /** The source of the decision that it belongs to, if any. */
  readonly source?: Decision['source'] | undefined;
  /** Fail if the store fails, whatever `onStoreError` of the limit says. */
  readonly strict?: boolean | undefined;
  /** What the limit's candidate decided then, and was charged. */
  readonly candidate?: Pick<StoreDecision, 'allowed' | 'ticket' | 'chargedAt'> | undefined;
}

/** Units to give back or to settle; 0 units only bring the counter under the limit's parameters. */
export interface Refund extends Charge {
  /** The ticket of the decision. */
  readonly ticket?: number | undefined;
  /** The `chargedAt` of the decision: units that no longer count are not given back again. */
  readonly chargedAt?: number | undefined;
  /**
   * The claim by which they were taken. It ends. Its units, whatever their number, come back unless they are spent, or could
   * already be used when they were last asked for.
   */
  readonly claim?: ClaimEnd;
  /**
   * The units really used, which replace those that are held, once; more may be charged.
   * @default nothing
   */
  readonly actual?: number | undefined;
  /** How the work that held them ended; absent if it was cancelled. */
  readonly end?: LeaseEnd | undefined;
  /** Whether it is for the counter of starts beside. */
  readonly ofStarts?: boolean;
}

/** Units that a `concurrency` limit holds. */
export interface HeldLease extends Charge {
  /** The ticket of the decision. */
  readonly ticket: number;
}

/** Counts answers before they reach those who wait for them. */
export interface AnswerTap {
  /** A check was answered in `latencyMs` milliseconds, or in an unknown time if that is less than 0. */
  decided(entries: readonly CheckEntry[], decisions: readonly StoreDecision[], latencyMs: number): void;
  /** A check was not answered. */
  failed(): void;
}

/** Prepaid units to add to a counter, or to take back. */
export interface Credit extends Counter {
  /** How many. A negative number takes back that many, or what is left. */
  readonly units: number;
  /** What it is for, such as a payment: of all credits with the same id, only the first counts. */
  readonly id?: string | undefined;
}

/** How long the id of a credit is remembered, in microseconds: longer than a month of retries. */
export const CREDIT_KNOWN_FOR = 35 * 86_400e6;

/** Receives the answer to a check: one of its methods is called once. If `decided` throws, `failed` is called, too. */
export interface CheckAnswer {
  /** The check was decided: one decision for each entry, in their order. */
  decided(decisions: StoreDecision[]): void;
  /** The check was not decided: the store failed, or does not support the request. */
  failed(error: unknown): void;
  /** Counts the answer first, untimed. An answer that cannot do that is wrapped in one that can. */
  countBy?(tap: AnswerTap, entries: readonly CheckEntry[]): void;
}

/** The latency of an answer that was not timed. */
export const UNTIMED = -1;

/** Where counters live. */
export interface Store {
  /** Decides each check atomically: allowed by all of its limits, or charged to none. Rejects with `RateLimitStoreError`. */
  check(checks: readonly Check[]): Promise<StoreDecision[][]>;
  /**
   * Takes units, from the future if necessary: `delayMs` is the wait until they are available. If they are refused,
   * `retryAfterMs` is how long the wait would be. Also takes units of a limit's candidate, and reports them in `candidate`.
   */
  reserve(reservation: ReserveEntry): Promise<StoreDecision>;
  /** Gives units back, at most those that were taken. */
  refund(refunds: readonly Refund[]): Promise<void>;
  /** Charges units whether they fit or not, but at most one quota beyond the quota. */
  penalize(charge: Charge): Promise<void>;
  /**
   * Refuses a counter for `durationMs` milliseconds from now, which is no offence; 0 ends a block, and clears offences. Resolves to
   * whether there was a block or an offence before; to nothing if the store does not know.
   */
  block(counter: Counter, durationMs: number): Promise<boolean | void>;
  /** Renews a lease; returns whether it was still held. */
  renew(lease: HeldLease): Promise<boolean>;
  /**
   * Clears counters, their blocks and their offences. Resolves to whether there was anything to clear, which may have lapsed a moment
   * ago; to nothing if the store does not know.
   */
  reset(counters: readonly Counter[]): Promise<boolean | void>;
  /** The windows of a `calendar-window`, or slices of a `sliding-window`, that can still be read; the newest first. */
  history(counter: Counter): Promise<WindowCount[]>;
  /**
   * Reads what a feature keeps of a limit.
   * @internal
   * @default it is asked by methods that the feature names
   */
  [READ]?<T>(limit: CompiledLimit, reading: FeatureReading<T>): T;
  /**
   * Learns what an upstream reported about the limit that a counter follows. It only ever tightens the counter: it has no more
   * left than the upstream, minus the units that all instances have in flight, and its block never gets shorter. Returns the rate
   * if the lesson asks for it.
   * @default nothing is learnt
   */
  learn?(counter: Counter, lesson: Lesson): Promise<LearntRate | undefined>;
  /**
   * Adds prepaid units to a counter of a limit with `credits`, and returns how many are left.
   * @default the store keeps none
   */
  credit?(credit: Credit): Promise<number>;
  /**
   * Milliseconds for which a counter is still blocked, 0 if it is not; writes nothing.
   * @default unknown
   */
  blockedFor?(counter: Counter): Promise<number>;
  /**
   * The server of a counter, if there are several: one that fails is left alone, while the others are still asked.
   * @default all counters are on one server
   */
  nodeOf?(counter: Counter): string;
  /**
   * The part of a server that can move to another one, such as a slot of a Cluster: while it moves, it can fail alone.
   * @default a server moves and fails as a whole
   */
  slotOf?(counter: Counter): number;
  /**
   * Whether a server still has counters; one that does not is never asked again, so its state can be forgotten.
   * @default it has
   */
  hasNode?(node: string): boolean;
  /**
   * Decides a check of one limit at once; nothing, and nothing is changed, if that takes more than few steps.
   * @internal
   * @default it is asked by `check`
   */
  decideOne?(limit: CompiledLimit, identity: string, cost: number): StoreDecision | undefined;
  /** Resolves when the store is ready, or has reported that it is not. */
  open?(): Promise<void>;
  /** Ends connections and timers that the store has made itself. */
  close(): Promise<void>;
}
