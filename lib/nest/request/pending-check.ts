import { withExpectedWait } from '../../app/limiter/hold-times.js';
import type { RuleEntry } from '../../app/rules/resolve/resolve.js';
import { decide } from '../../storage/stores/decide.js';
import type { CheckOrigin } from '../../storage/stores/check-origin.js';
import {
  type AnswerTap,
  type CheckAnswer,
  type Store,
  type StoreDecision,
  UNTIMED,
} from '../../storage/stores/store.js';
import type { StoreCheck } from './charges.js';

/** One check of a request, which is its own answer: so a check takes a single object here. */
export class PendingCheck implements StoreCheck, CheckAnswer {
  decisions: readonly StoreDecision[] = [];
  /** Resolves once there is an answer; `undefined` if it was there at once. */
  readonly answered: Promise<void> | undefined;
  private isAnswered = false;
  private failure: { readonly error: unknown } | undefined;
  private resolve: (() => void) | undefined;
  private tap: AnswerTap | undefined;

  /** Asks the store. */
  constructor(
    readonly entries: readonly RuleEntry[],
    readonly store: Store,
    readonly refundable: boolean,
    address: string | undefined,
    origin?: CheckOrigin,
  ) {
    decide(store, { entries, refundable, address, origin }, this);
    this.answered = this.isAnswered ? undefined : new Promise((resolve) => (this.resolve = resolve));
  }

  countBy(tap: AnswerTap): void {
    this.tap = tap;
  }

  decided(decisions: readonly StoreDecision[]): void {
    if (this.tap !== undefined) this.tap.decided(this.entries, decisions, UNTIMED);
    this.decisions = decisions;
    this.isAnswered = true;
    this.resolve?.();
  }

  failed(error: unknown): void {
    this.tap?.failed();
    this.failure = { error };
    this.isAnswered = true;
    this.resolve?.();
  }

  /** Throws the store's error if it failed. Sets how long refusals by `concurrency` limits will last. */
  conclude(): void {
    if (this.failure !== undefined) throw this.failure.error;
    if (this.decisions.every(isAllowed)) return;
    const now = performance.now();
    this.decisions = this.decisions.map((decision, index) => withExpectedWait(decision, this.entries[index]!, now));
  }
}

function isAllowed({ allowed }: StoreDecision): boolean {
  return allowed;
}
