import type { CheckEntry } from '../../engine/limits/counter.js';
import { type AnswerTap, type CheckAnswer, type StoreDecision, UNTIMED } from './store.js';

/** Turns an answer into a promise. If the store answers synchronously, as the one in memory does, this takes a single step. */
export abstract class PromisedAnswer<T> implements CheckAnswer {
  private value: T | undefined;
  private error: unknown;
  private isDecided = false;
  private hasFailed = false;
  private resolve: ((value: T) => void) | undefined;
  private reject: ((error: unknown) => void) | undefined;

  private tap: AnswerTap | undefined;
  private counted: readonly CheckEntry[] | undefined;

  countBy(tap: AnswerTap, entries: readonly CheckEntry[]): void {
    this.tap = tap;
    this.counted = entries;
  }

  decided(decisions: StoreDecision[]): void {
    if (this.tap !== undefined) this.tap.decided(this.counted!, decisions, UNTIMED);
    const value = this.made(decisions);
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

  /** Creates the promised value from the decisions. */
  protected abstract made(decisions: StoreDecision[]): T;
}
