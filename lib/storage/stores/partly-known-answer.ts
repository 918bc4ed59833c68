import type { CheckAnswer, StoreDecision } from './store.js';

/** Completes the answer to a check of which some entries were decided without the store: it was asked for the others. */
export class PartlyKnownAnswer implements CheckAnswer {
  constructor(
    private readonly known: readonly (StoreDecision | undefined)[],
    private readonly answer: CheckAnswer,
  ) {}

  decided(decisions: readonly StoreDecision[]): void {
    let next = 0;
    this.answer.decided(this.known.map((decision) => decision ?? decisions[next++]!));
  }

  failed(error: unknown): void {
    this.answer.failed(error);
  }
}
