import type { LeaseEnd, WindowCount } from '../algorithms/algorithm.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { CheckEntry, Counter } from '../limits/counter.js';
import type { Lesson, LearntRate } from './lesson.js';
import type { Decision } from '../limits/decision.js';
import type { KeyDays, NamedUnits, TimeRange } from '../limits/usage-range.js';

/** Units to be taken as soon as may be: from the future, if the algorithm can say when they will be there. */
export interface ReserveEntry extends CheckEntry {
  /** The longest wait in milliseconds; if it would take longer, nothing is taken. */
  readonly maxWaitMs: number;
  /** For units that are taken once, however often they are asked for. */
  readonly claim?: Claim;
  /** Of the counter of starts beside: it is a part of a decision that has been told of. */
  readonly ofStarts?: boolean;
}

/** Somebody's right to units that are reserved: who asks for them again is told when they can be used, and charged nothing. */
export interface Claim {
  /** Who asks: alike for all that it asks of the counter. */
  readonly id: string;
  /** How long they are known once they can be used, in milliseconds. */
  readonly keepMs: number;
  /** Only look, and take nothing: tells when claimed units can be used, or as `peek` does. */
  readonly looks?: boolean;
}

/** The end of a claim. */
export interface ClaimEnd {
  /** Who claimed. */
  readonly id: string;
  /** Whether its units were used, and nothing comes back. */
  readonly isSpent: boolean;
}

/** One request against all of its limits. No two entries share a counter. */
export interface Check {
  /** What it asks of each counter, at least one. */
  readonly entries: readonly CheckEntry[];
  /** Only look: decide, but charge and write nothing. */
  readonly peek?: boolean;
  /** Fail with the store, whatever `onStoreError` of the limits says. */
  readonly strict?: boolean;
  /** What it charges may be given back later: the decisions say when it was charged (`chargedAt`). */
  readonly refundable?: boolean;
  /** Units of limits with a `hold` are held until they are settled; decisions say by which ticket. What is refused begins no block. */
  readonly hold?: boolean;
  /** The address of the client who asks, for lists of addresses. */
  readonly address?: string | undefined;
  /** When it was asked, if it has waited since: milliseconds of the process's clock. Its deadline counts from then. */
  readonly since?: number;
  /**
   * @internal Takes units that may be there later: its entries are a reservation and that of the limit's candidate. Layers are asked so;
   * they ask the store by `reserve`.
   */
  readonly reserving?: true;
}

/** A decision as stores make it: with what is needed to give back what it took. */
export interface StoreDecision extends Decision {
  /** The number of a reservation or of a departure slot, a time on the store's clock; or of a lease of `concurrency`, or of a hold. */
  ticket?: number;
  /** When it was charged, in microseconds on the store's clock, if that was asked for. */
  chargedAt?: number;
  /** The units were claimed before. */
  wasClaimed?: boolean;
  /** What the limit's candidate said, if it has one. */
  candidate?: StoreDecision;
}

/** Units of a counter. */
export interface Charge extends Counter {
  /** How many: a whole number >= 1. */
  readonly units: number;
  /** The source of the decision that it belongs to, if it belongs to one. */
  readonly source?: Decision['source'] | undefined;
  /** Fail with the store, whatever `onStoreError` of the limit says. */
  readonly strict?: boolean | undefined;
  /** What the limit's candidate said in that decision, and was charged. */
  readonly candidate?: Pick<StoreDecision, 'allowed' | 'ticket' | 'chargedAt'> | undefined;
}

/** Units to give back, or to settle; 0 units only bring the counter under the limit's parameters. */
export interface Refund extends Charge {
  /** The ticket of the decision. */
  readonly ticket?: number | undefined;
  /** The `chargedAt` of the decision: units that count no longer by now are not given back once more. */
  readonly chargedAt?: number | undefined;
  /**
   * The claim by which they were taken. It ends; its units, whatever they are, come back unless they are spent, or could be used when
   * they were last asked for.
   */
  readonly claim?: ClaimEnd;
  /**
   * What was really used of units that are held, which they are replaced by, once: more than that may be charged.
   * @default nothing
   */
  readonly actual?: number | undefined;
  /** How what was held for it ended; nothing if it was taken back. */
  readonly end?: LeaseEnd | undefined;
  /** Of the counter of starts beside. */
  readonly ofStarts?: boolean;
}

/** Units that a `concurrency` limit holds. */
export interface HeldLease extends Charge {
  /** The ticket of the decision. */
  readonly ticket: number;
}

/** Counts answers before those who wait for them are told. */
export interface AnswerTap {
  /** A check was answered, after so many milliseconds; less than 0 if it was not timed. */
  decided(entries: readonly CheckEntry[], decisions: readonly StoreDecision[], latencyMs: number): void;
  /** A check was not answered. */
  failed(): void;
}

/** Prepaid units that are added to a counter, or taken back. */
export interface Credit extends Counter {
  /** How many; less than none takes back what is left of so many. */
  readonly units: number;
  /** What it is of, such as a payment: of all credits of one, only the first counts. */
  readonly id?: string | undefined;
}

/** For how long the identifier of a credit is known, in microseconds: longer than a month of retries. */
export const CREDIT_KNOWN_FOR = 35 * 86_400e6;

/** Takes the answer to a check: one of its methods is called, once. If `decided` throws, `failed` is called, too. */
export interface CheckAnswer {
  /** The check was decided: one decision an entry, in their order. */
  decided(decisions: StoreDecision[]): void;
  /** It was not: the store failed, or was asked for what it cannot do. */
  failed(error: unknown): void;
  /** Has what it is told counted first, untimed. Those that cannot do that are told by another answer in front of them. */
  countBy?(tap: AnswerTap, entries: readonly CheckEntry[]): void;
}

/** What is said of the time of an answer that was not timed. */
export const UNTIMED = -1;

/** Where counters live. */
export interface Store {
  /** Decides each check atomically: allowed by all of its limits, or charged to none. Rejects with `RateLimitStoreError`. */
  check(checks: readonly Check[]): Promise<StoreDecision[][]>;
  /**
   * Takes units, if need be from the future: `delayMs` says when they are there. If they are refused, `retryAfterMs` is how long
   * they would have to be waited for. A limit's candidate takes them along, and says so in `candidate`.
   */
  reserve(reservation: ReserveEntry): Promise<StoreDecision>;
  /** Gives units back, never more than were taken. */
  refund(refunds: readonly Refund[]): Promise<void>;
  /** Charges units whether they fit or not, but never more than one quota beyond the quota. */
  penalize(charge: Charge): Promise<void>;
  /** Refuses a counter for so many milliseconds from now, which is no offence; 0 refuses it no longer, and forgets offences. */
  block(counter: Counter, durationMs: number): Promise<void>;
  /** Holds anew what is held; says whether it still was. */
  renew(lease: HeldLease): Promise<boolean>;
  /** Forgets counters, that they are blocked, and their offences. */
  reset(counters: readonly Counter[]): Promise<void>;
  /** The windows of a `calendar-window` that can still be read, or the slices of a `sliding-window`; the newest first. */
  history(counter: Counter): Promise<WindowCount[]>;
  /**
   * The units that a counter of a limit with `usage` was charged, by the days that overlap a range and are kept: those that have any,
   * the oldest first.
   * @default nothing is recorded
   */
  usage?(counter: Counter, range: TimeRange): Promise<NamedUnits[]>;
  /**
   * The same of all keys of such a limit that have any, in pages of about `batch` keys. No key comes twice. `limitFor` tells the limit
   * of a key that has another rate.
   * @default nothing is recorded
   */
  usageOf?(
    limit: CompiledLimit,
    range: TimeRange,
    batch: number,
    limitFor?: (identity: string) => CompiledLimit,
  ): AsyncIterable<KeyDays[]>;
  /**
   * Learns what an upstream said of the limit that a counter follows. It only ever tightens: the counter has no more left than the
   * upstream, without the units that all instances have in flight, and is blocked no shorter than before. Says the rate if the lesson
   * asks for it.
   * @default nothing is learnt
   */
  learn?(counter: Counter, lesson: Lesson): Promise<LearntRate | undefined>;
  /**
   * Adds prepaid units to a counter of a limit with `credits`, and says how many are left.
   * @default it keeps none
   */
  credit?(credit: Credit): Promise<number>;
  /**
   * Milliseconds for which a counter is still blocked, 0 if it is not; writes nothing.
   * @default it is not known
   */
  blockedFor?(counter: Counter): Promise<number>;
  /**
   * The server that has a counter, where there are several: one that fails is left alone, and the others are asked.
   * @default all counters are on one
   */
  nodeOf?(counter: Counter): string;
  /**
   * The part of a server that can move to another one by itself, as a slot of a Cluster: while it does, it can fail alone.
   * @default a server moves and fails as a whole
   */
  slotOf?(counter: Counter): number;
  /**
   * Whether a server still has counters: one that does not is never asked again, so that nothing is known of it any more.
   * @default it has
   */
  hasNode?(node: string): boolean;
  /** Resolves when the store is ready to be asked, or has reported that it is not. */
  open?(): Promise<void>;
  /** Ends connections and timers that the store made itself. */
  close(): Promise<void>;
}
