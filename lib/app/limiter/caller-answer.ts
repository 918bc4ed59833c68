import { upToMessages } from '../../engine/errors/messages/calls.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { hide, isHidden, toCheckResult } from '../../engine/limits/decision.js';
import { checkResultOf, heldOf, takenOf, toCallerDecision } from '../../storage/stores/store-decision.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import { type AnswerTap, type CheckAnswer, type StoreDecision, UNTIMED } from '../../storage/stores/store.js';
import type { WaitQueues } from '../waiting/wait-queues.js';
import { unsupportedCall } from './called-limit.js';
import { Lease, type LeasedCheckResult, type LeasedDecision, withLease } from './lease.js';

/** Turns the decisions of a check into the result for the caller. */
type Making<T> = (
  answers: readonly StoreDecision[],
  entries: readonly CheckEntry[],
  store: Layer,
  queues: WaitQueues,
  peek?: boolean,
) => T;

/**
 * The result for the caller, once its check is decided. If the store answers synchronously, as the one in memory does, the promise takes a
 * single step.
 */
export class CallerAnswer<T> implements CheckAnswer {
  private value: T | undefined;
  private error: unknown;
  private isDecided = false;
  private hasFailed = false;
  private resolve: ((value: T) => void) | undefined;
  private reject: ((error: unknown) => void) | undefined;
  private tap: AnswerTap | undefined;
  private counted: readonly CheckEntry[] | undefined;

  constructor(
    private readonly make: Making<T>,
    private readonly entries: readonly CheckEntry[],
    private readonly store: Layer,
    private readonly queues: WaitQueues,
    private readonly peek = false,
  ) {}

  countBy(tap: AnswerTap, entries: readonly CheckEntry[]): void {
    this.tap = tap;
    this.counted = entries;
  }

  decided(decisions: StoreDecision[]): void {
    if (this.tap !== undefined) this.tap.decided(this.counted!, decisions, UNTIMED);
    const value = this.make(decisions, this.entries, this.store, this.queues, this.peek);
    if (this.resolve !== undefined) return this.resolve(value);
    this.value = value;
    this.isDecided = true;
  }

  failed(error: unknown): void {
    this.tap?.failed();
    if (this.reject !== undefined) return this.reject(error);
    this.error = error;
    this.hasFailed = true;
  }

  /** The value, if the store has already answered. Throws the error that the promise would reject with. */
  atOnce(): T {
    if (this.hasFailed) throw this.error;
    return this.value as T;
  }

  /** The promise. Call this only once. */
  promise(): Promise<T> {
    if (this.isDecided) return Promise.resolve(this.value as T);
    if (this.hasFailed) return Promise.reject(this.error);
    return new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}

/** The decision of one limit. */
export const ownDecision: Making<LeasedDecision> = (answers, entries, store, queues, peek = false) => {
  const entry = entries[0]!;
  const answer = answers[0]!;
  const decision = toCallerDecision(answer, entry.limit);
  return peek ? decision : withLease(decision, answer, entry, store, queues);
};

/** The decision for a limit and all of its ancestors: the tightest one, with the decisions of all levels and a lease of the units held. */
export const levelDecision: Making<LeasedDecision> = (answers, entries, store, queues, peek = false) => {
  const all = answers.map((answer, index) => toCallerDecision(answer, entries[index]!.limit));
  const { allowed, decisions, tightest, delayMs } = toCheckResult(all, entries);
  const decision: LeasedDecision = { ...tightest, allowed, delayMs, levels: decisions };
  if (isHidden(tightest)) hide(decision);
  if (peek || !allowed || !entries.some(({ limit }) => limit.algorithm.leases !== undefined)) return decision;
  const held = entries.flatMap((entry, index) => heldOf(entry, answers[index]!) ?? []);
  return { ...decision, lease: new Lease(held, store, queues) };
};

/** The result of a check of several limits. */
export const leasedResult: Making<LeasedCheckResult> = (answers, entries, store, queues) => {
  const result: LeasedCheckResult = checkResultOf(answers, entries);
  if (!result.allowed) return result;
  for (let i = 0; i < answers.length; i++) {
    result.decisions[i] = withLease(result.decisions[i]!, answers[i]!, entries[i]!, store, queues);
  }
  return result;
};

/**
 * Turns the decisions of a check with `upTo` into the result for the caller, including the number of units taken, which is the same for all
 * limits.
 */
export function taking<T>(make: Making<T>): Making<T> {
  return (answers, entries, ...others) => {
    const taken = takenOf(entries, answers);
    return make(
      answers.map((answer) => ({ ...answer, taken })),
      entries,
      ...others,
    );
  };
}

/** The result of a check of several limits with `upTo`. */
export const takenResult: Making<LeasedCheckResult> = taking((answers, ...others) => {
  const { taken = 0 } = answers[0]!;
  return { ...leasedResult(answers, ...others), taken };
});

/** Throws `RateLimitArgumentError` for limits whose units are held until they are released. */
export function refuseHeldUnits(entries: readonly CheckEntry[]): void {
  for (const { limit } of entries) {
    const { algorithm, name } = limit;
    if (algorithm.leases !== undefined) throw unsupportedCall(upToMessages.held(name, algorithm.name));
  }
}
