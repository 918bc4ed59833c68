import type { CheckEntry } from '../limits/counter.js';
import type { Check, CheckAnswer, StoreDecision } from '../stores/store.js';

/** Counts decisions while requests wait for them. */
export interface DecisionTap {
  /** Whether the check that begins now is to be timed: a part of them tells how long they take. */
  times(): boolean;
  /** A check was answered, after so many milliseconds; `undefined` if it was not timed. */
  decided(entries: readonly CheckEntry[], decisions: readonly StoreDecision[], latencyMs: number | undefined): void;
  /** A check was not answered. */
  failed(): void;
}

/** Hands an answer on, and has it counted first. */
export class TappedAnswer implements CheckAnswer {
  private readonly start: number | undefined;

  constructor(
    private readonly tap: DecisionTap,
    private readonly check: Check,
    private readonly answer: CheckAnswer,
  ) {
    this.start = tap.times() ? performance.now() : undefined;
  }

  decided(decisions: StoreDecision[]): void {
    const { start } = this;
    this.tap.decided(this.check.entries, decisions, start === undefined ? undefined : performance.now() - start);
    this.answer.decided(decisions);
  }

  failed(error: unknown): void {
    this.tap.failed();
    this.answer.failed(error);
  }
}
