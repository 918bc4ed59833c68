import { decide } from '../stores/decide.js';
import type { Check, CheckAnswer, Store, StoreDecision } from '../stores/store.js';
import type { Awaitable } from '../util/awaitable.js';

/** Asks a store for one check: gives the decisions at once where the store can, else a promise of them. Throws as a promise would reject. */
export function askStore(store: Store, check: Check): Awaitable<StoreDecision[]> {
  const answer = new StoreAnswer();
  decide(store, check, answer);
  return answer.take();
}

/** Takes an answer, whether it comes before it is asked for or after. */
class StoreAnswer implements CheckAnswer {
  private decisions: StoreDecision[] | undefined;
  private error: unknown;
  private hasFailed = false;
  private resolve: ((decisions: StoreDecision[]) => void) | undefined;
  private reject: ((error: unknown) => void) | undefined;

  decided(decisions: StoreDecision[]): void {
    if (this.resolve === undefined) this.decisions = decisions;
    else this.resolve(decisions);
  }

  failed(error: unknown): void {
    this.hasFailed = true;
    this.error = error;
    this.reject?.(error);
  }

  take(): Awaitable<StoreDecision[]> {
    if (this.decisions !== undefined) return this.decisions;
    if (this.hasFailed) throw this.error;
    return new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}
