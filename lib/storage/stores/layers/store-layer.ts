import type { WindowCount } from '../../../engine/algorithms/algorithm.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { type Decider, deciderOf, decidesAtOnce, DirectStore, operate } from '../decide.js';
import { type FeatureReading, read, READ } from '../feature-reading.js';
import type { LearntRate, Lesson } from '../lesson.js';
import type { Operation, OperationAnswer, OperationName } from '../operation.js';
import type { Charge, Check, CheckAnswer, Credit, HeldLease, Refund, Store } from '../store.js';

/** Methods that not every store has. A layer has them if the store below does. */
const OPTIONAL = ['nodeOf', 'hasNode', 'blockedFor', 'credit', 'learn'] as const;

/** A store around another one. Every call goes through `decide` or `operate`; a layer overrides these for its own purpose. */
export abstract class StoreLayer extends DirectStore implements Store {
  /** Decides the checks that are passed on to the inner store. */
  protected below: Decider;

  constructor(protected inner: Store) {
    super();
    this.below = deciderOf(inner);
    for (const name of OPTIONAL) if (inner[name] === undefined) Object.assign(this, { [name]: undefined });
  }

  /** True while a server that failed repeatedly is skipped; `undefined` if no circuit breaker is in use. */
  get isBroken(): boolean | undefined {
    return this.inner instanceof StoreLayer ? this.inner.isBroken : undefined;
  }

  /** The same store without reporting. */
  get unobserved(): Store {
    return this;
  }

  /** Checks if skipped servers are back. Never rejects. */
  async probe(): Promise<void> {
    if (this.inner instanceof StoreLayer) await this.inner.probe();
  }

  /** Inserts a layer below this one. */
  insert(layer: (inner: Store) => StoreLayer): void {
    this.put(layer);
  }

  protected put(layer: (inner: Store) => StoreLayer): void {
    this.inner = layer(this.inner);
    this.below = deciderOf(this.inner);
  }

  decide(check: Check, answer: CheckAnswer): void {
    this.below.decide(check, answer);
  }

  override decidesAtOnce(limit: CompiledLimit): boolean {
    return decidesAtOnce(this.storeOf(limit), limit);
  }

  override operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    return operate(this.inner, operation);
  }

  /** The inner store that has the counters of a limit. */
  protected storeOf(_limit: CompiledLimit): Store {
    return this.inner;
  }

  async open(): Promise<void> {
    await this.inner.open?.();
  }

  close(): Promise<void> {
    return this.inner.close();
  }

  refund(counters: readonly Refund[]): Promise<void> {
    return this.operate({ name: 'refund', counters });
  }

  penalize(charge: Charge): Promise<void> {
    return this.operate({ name: 'penalize', counters: [charge] });
  }

  block(counter: Counter, durationMs: number): Promise<boolean | void> {
    return this.operate({ name: 'block', counters: [counter], durationMs });
  }

  renew(lease: HeldLease): Promise<boolean> {
    return this.operate({ name: 'renew', counters: [lease] });
  }

  reset(counters: readonly Counter[]): Promise<boolean | void> {
    return this.operate({ name: 'reset', counters });
  }

  history(counter: Counter): Promise<WindowCount[]> {
    return this.operate({ name: 'history', counters: [counter] });
  }

  [READ]<T>(limit: CompiledLimit, reading: FeatureReading<T>): T {
    const { counter } = reading;
    if (counter === undefined) return read(this.storeOf(limit), limit, reading);
    return this.operate({ name: 'read', counters: [counter], reading }) as T;
  }

  learn?(counter: Counter, lesson: Lesson): Promise<LearntRate | undefined> {
    return this.operate({ name: 'learn', counters: [counter], lesson });
  }

  credit?(credit: Credit): Promise<number> {
    return this.operate({ name: 'credit', counters: [credit] });
  }

  blockedFor?(counter: Counter): Promise<number> {
    return this.operate({ name: 'blockedFor', counters: [counter] });
  }

  nodeOf?(counter: Counter): string {
    return this.inner.nodeOf!(counter);
  }

  hasNode?(node: string): boolean {
    return this.inner.hasNode!(node);
  }
}

/** A layer above the observing one, so that entries that it adds to a check are observed. Inserted layers go below. */
export abstract class OuterLayer extends StoreLayer {
  override get unobserved(): Store {
    return this.inner instanceof StoreLayer ? this.inner.unobserved : this.inner;
  }

  override insert(layer: (inner: Store) => StoreLayer): void {
    if (this.inner instanceof OuterLayer) this.inner.insert(layer);
    else this.put(layer);
  }
}
