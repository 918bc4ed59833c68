import type { WindowCount } from '../../algorithms/algorithm.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import type { Counter } from '../../limits/counter.js';
import type { NamedUnits, TimeRange } from '../../limits/usage-range.js';
import { decide, DirectStore } from '../decide.js';
import type { LearntRate, Lesson } from '../lesson.js';
import type {
  Charge,
  Check,
  CheckAnswer,
  Credit,
  HeldLease,
  Refund,
  ReserveEntry,
  Store,
  StoreDecision,
} from '../store.js';

/** A store around another one, which it asks: a layer overrides what it changes. */
export abstract class StoreLayer extends DirectStore implements Store {
  readonly nodeOf?: (counter: Counter) => string;
  readonly hasNode?: (node: string) => boolean;
  readonly blockedFor?: (counter: Counter) => Promise<number>;
  readonly credit?: (credit: Credit) => Promise<number>;
  readonly learn?: (counter: Counter, lesson: Lesson) => Promise<LearntRate | undefined>;

  readonly usage?: (counter: Counter, range: TimeRange) => Promise<NamedUnits[]>;
  readonly usageOf?: NonNullable<Store['usageOf']>;

  constructor(protected inner: Store) {
    super();
    if (inner.nodeOf !== undefined) this.nodeOf = (counter) => inner.nodeOf!(counter);
    if (inner.hasNode !== undefined) this.hasNode = (node) => inner.hasNode!(node);
    if (inner.blockedFor !== undefined) this.blockedFor = (counter) => this.innerOf(counter).blockedFor!(counter);
    if (inner.usage !== undefined) this.usage = (counter, range) => this.read(counter, range);
    if (inner.usageOf !== undefined) {
      this.usageOf = (limit, ...asked) => this.usageStoreOf(limit).usageOf!(limit, ...asked);
    }
    if (inner.credit !== undefined) this.credit = (credit) => this.credited(credit);
    if (inner.learn !== undefined) this.learn = (counter, lesson) => this.learnt(counter, lesson);
  }

  /** Whether a server is left alone for the moment, since it failed repeatedly; nothing where none can be. */
  get isBroken(): boolean | undefined {
    return this.inner instanceof StoreLayer ? this.inner.isBroken : undefined;
  }

  /** The same store, but that nobody is told of what it is asked. */
  get unobserved(): Store {
    return this;
  }

  /** Asks the servers that are left alone whether they are back. Never rejects. */
  async probe(): Promise<void> {
    if (this.inner instanceof StoreLayer) await this.inner.probe();
  }

  /** The inner store that has a counter. */
  protected innerOf(_counter: Counter): Pick<Store, 'blockedFor'> {
    return this.inner;
  }

  /** Has the inner store add credits. */
  protected credited(credit: Credit): Promise<number> {
    return this.inner.credit!(credit);
  }

  /** Reads what a counter was charged. */
  protected read(counter: Counter, range: TimeRange): Promise<NamedUnits[]> {
    return this.usageStoreOf(counter.limit).usage!(counter, range);
  }

  /** The inner store that records what a limit charges. */
  protected usageStoreOf(_limit: CompiledLimit): Pick<Store, 'usage' | 'usageOf'> {
    return this.inner;
  }

  /** Has the inner store learn. */
  protected learnt(counter: Counter, lesson: Lesson): Promise<LearntRate | undefined> {
    return this.inner.learn!(counter, lesson);
  }

  /** Puts a layer below this one, from now on. */
  insert(layer: (inner: Store) => StoreLayer): void {
    this.inner = layer(this.inner);
  }

  decide(check: Check, answer: CheckAnswer): void {
    decide(this.inner, check, answer);
  }

  reserve(entry: ReserveEntry): Promise<StoreDecision> {
    return this.inner.reserve(entry);
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    return this.inner.refund(refunds);
  }

  penalize(charge: Charge): Promise<void> {
    return this.inner.penalize(charge);
  }

  block(counter: Counter, durationMs: number): Promise<void> {
    return this.inner.block(counter, durationMs);
  }

  renew(lease: HeldLease): Promise<boolean> {
    return this.inner.renew(lease);
  }

  reset(counters: readonly Counter[]): Promise<void> {
    return this.inner.reset(counters);
  }

  history(counter: Counter): Promise<WindowCount[]> {
    return this.inner.history(counter);
  }

  async open(): Promise<void> {
    await this.inner.open?.();
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
