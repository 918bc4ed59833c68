import type { CheckEntry } from '../limits/counter.js';
import { tell } from '../stores/decide.js';
import type { MemoryStore } from '../stores/memory/memory.store.js';
import type { Check, CheckAnswer, StoreDecision } from '../stores/store.js';

/** Counts decisions while requests wait for them. */
export interface DecisionTap {
  /** Whether the check that begins now is to be timed: a part of them tells how long they take. */
  times(): boolean;
  /** A check was answered, after so many milliseconds; less than 0 if it was not timed. */
  decided(entries: readonly CheckEntry[], decisions: readonly StoreDecision[], latencyMs: number): void;
  /** A check was not answered. */
  failed(): void;
}

/** What to ask with in place of `answer`, so that the answer is counted first. */
export function tapped(tap: DecisionTap, check: Check, answer: CheckAnswer): CheckAnswer {
  return tap.times() ? new TimedAnswer(tap, check, answer) : new TappedAnswer(tap, check, answer);
}

/** Hands an answer on, and has it counted first. It holds no time: a number with a fraction is an object of its own. */
class TappedAnswer implements CheckAnswer {
  constructor(
    protected readonly tap: DecisionTap,
    protected readonly check: Check,
    protected readonly answer: CheckAnswer,
  ) {}

  decided(decisions: StoreDecision[]): void {
    this.tap.decided(this.check.entries, decisions, UNTIMED);
    this.answer.decided(decisions);
  }

  failed(error: unknown): void {
    this.tap.failed();
    this.answer.failed(error);
  }
}

/** The same of a check that is timed. */
class TimedAnswer extends TappedAnswer {
  private readonly start = performance.now();

  override decided(decisions: StoreDecision[]): void {
    this.tap.decided(this.check.entries, decisions, performance.now() - this.start);
    this.answer.decided(decisions);
  }
}

/** Decides a check in process, and has it counted: in the fewest steps, since all else here takes hardly longer. */
export function decideTapped(store: MemoryStore, check: Check, answer: CheckAnswer, tap: DecisionTap): void {
  const start = tap.times() ? performance.now() : UNTIMED;
  let decisions: StoreDecision[];
  try {
    decisions = store.decideAtOnce(check);
  } catch (error) {
    tap.failed();
    answer.failed(error);
    return;
  }
  tap.decided(check.entries, decisions, start < 0 ? UNTIMED : performance.now() - start);
  tell(answer, decisions);
}

const UNTIMED = -1;
