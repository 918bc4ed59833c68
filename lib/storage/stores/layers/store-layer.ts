import type { WindowCount } from '../../../engine/algorithms/algorithm.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { CheckEntry, Counter } from '../../../engine/limits/counter.js';
import { messages } from '../../../engine/errors/messages/general.js';
import { answerWith, DirectStore, promised } from '../decide.js';
import { type FeatureReading, read, READ } from '../feature-reading.js';
import type { LearntRate, Lesson } from '../lesson.js';
import { type Operation, type OperationAnswer, type OperationName, rowOf } from '../operation.js';
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

/** Methods that not every store has. A layer has them if the store below does. */
const OPTIONAL = ['nodeOf', 'slotOf', 'hasNode', 'blockedFor', 'credit', 'learn'] as const;

/** A store as the library calls it: `decide` decides checks, and `operate` does everything else to counters. */
export abstract class Layer extends DirectStore implements Store {
  constructor(below: Store) {
    super();
    for (const name of OPTIONAL) if (below[name] === undefined) Object.assign(this, { [name]: undefined });
  }

  /** The store or layer below. */
  protected abstract get below(): Store;

  /** Runs an operation on counters. */
  abstract operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>>;
  abstract [READ]<T>(limit: CompiledLimit, reading: FeatureReading<T>): T;

  /** True while a server that failed repeatedly is skipped; `undefined` if no circuit breaker is in use. */
  get isBroken(): boolean | undefined {
    return undefined;
  }

  /** The same store without reporting. */
  get unobserved(): Layer {
    return this;
  }

  /** Checks if skipped servers are back. Never rejects. */
  async probe(): Promise<void> {}

  /** Like `decide`, for callers that wait for a promise. */
  decided(check: Check): Promise<StoreDecision[]> {
    return promised((answer) => this.decide(check, answer));
  }

  /** Reads a counter if its limit counts in this process, so that the answer is known at once; otherwise returns nothing. */
  lookAt(entry: CheckEntry): StoreDecision | undefined {
    let found: StoreDecision | undefined;
    const answer = { decided: ([decision]: StoreDecision[]) => void (found = decision), failed: () => undefined };
    this.decide({ entries: [entry], peek: true }, answer);
    return found;
  }

  /** `CandidateStore` adds the limit's candidate. */
  override async reserve(reservation: ReserveEntry): Promise<StoreDecision> {
    const [decision] = await this.decided({ entries: [reservation], reserving: true });
    return decision!;
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
    return this.below.nodeOf!(counter);
  }

  slotOf?(counter: Counter): number {
    return this.below.slotOf!(counter);
  }

  hasNode?(node: string): boolean {
    return this.below.hasNode!(node);
  }

  async open(): Promise<void> {
    await this.below.open?.();
  }

  close(): Promise<void> {
    return this.below.close();
  }
}

/**
 * The lowest layer: a store of the library or of the app, called by the methods of `Store`. It looks at the store's methods on each call,
 * because a subclass in the app may override some of them, and tests watch them.
 */
export class LowestLayer extends Layer {
  constructor(readonly store: Store) {
    super(store);
  }

  protected get below(): Store {
    return this.store;
  }

  decide(check: Check, answer: CheckAnswer): void {
    const { store } = this;
    if (store.check !== DirectStore.prototype.check) answerWith(askByMethods(store, check), answer);
    else if (check.reserving === true && store.reserve !== DirectStore.prototype.reserve) {
      answerWith(reserve(store, check), answer);
    } else (store as Store & DirectStore).decide(check, answer);
  }

  override decideOne(limit: CompiledLimit, identity: string, cost: number): StoreDecision | undefined {
    return this.store.decideOne?.(limit, identity, cost);
  }

  override decidesAtOnce(limit: CompiledLimit): boolean {
    const { store } = this;
    return store instanceof DirectStore && store.check === DirectStore.prototype.check && store.decidesAtOnce(limit);
  }

  operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    return rowOf<N>(operation).ask(this.store, operation);
  }

  [READ]<T>(limit: CompiledLimit, reading: FeatureReading<T>): T {
    return read(this.store, limit, reading);
  }
}

/** A store as a layer: itself, if it is one. */
export function layerOf(store: Store): Layer {
  return store instanceof Layer ? store : new LowestLayer(store);
}

/** An app's store may throw synchronously, or return no decisions. */
async function askByMethods(store: Store, check: Check): Promise<StoreDecision[]> {
  if (check.reserving === true) return reserve(store, check);
  const answers: unknown = await store.check([check]);
  const decisions: unknown = Array.isArray(answers) ? answers[0] : undefined;
  const isWhole = Array.isArray(decisions) && decisions.length === check.entries.length;
  if (isWhole && decisions.every(isDecision)) return decisions;
  throw new TypeError(messages.noDecisions(decisions, check.entries.length));
}

/** `reserve` of a store includes the limit's candidate in its decision, except for units that were claimed before. */
async function reserve(store: Store, { entries }: Check): Promise<StoreDecision[]> {
  const decision: unknown = await store.reserve(entries[0] as ReserveEntry);
  if (!isDecision(decision)) throw new TypeError(messages.noDecision(decision));
  return entries.length === 1 || decision.candidate === undefined ? [decision] : [decision, decision.candidate];
}

function isDecision(answer: unknown): answer is StoreDecision {
  return typeof answer === 'object' && answer !== null && 'allowed' in answer;
}

/** A layer around another one, which overrides `decide` or `operate` for its own purpose. */
export abstract class StoreLayer extends Layer {
  protected inner: Layer;

  constructor(inner: Store) {
    super(inner);
    this.inner = layerOf(inner);
  }

  protected get below(): Store {
    return this.inner;
  }

  override get isBroken(): boolean | undefined {
    return this.inner.isBroken;
  }

  override async probe(): Promise<void> {
    await this.inner.probe();
  }

  /** Inserts a layer below this one. */
  insert(layer: (inner: Store) => StoreLayer): void {
    this.put(layer);
  }

  protected put(layer: (inner: Store) => StoreLayer): void {
    this.inner = layer(this.inner);
  }

  decide(check: Check, answer: CheckAnswer): void {
    this.inner.decide(check, answer);
  }

  override decidesAtOnce(limit: CompiledLimit): boolean {
    return this.layerFor(limit).decidesAtOnce(limit);
  }

  operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    return this.inner.operate(operation);
  }

  /** The layer below that has the counters of a limit. */
  protected layerFor(_limit: CompiledLimit): Layer {
    return this.inner;
  }

  [READ]<T>(limit: CompiledLimit, reading: FeatureReading<T>): T {
    const { counter } = reading;
    if (counter === undefined) return this.layerFor(limit)[READ](limit, reading);
    return this.operate({ name: 'read', counters: [counter], reading }) as T;
  }
}

/** A layer above the observing one, so that entries that it adds to a check are observed. Inserted layers go below. */
export abstract class OuterLayer extends StoreLayer {
  override get unobserved(): Layer {
    return this.inner.unobserved;
  }

  override insert(layer: (inner: Store) => StoreLayer): void {
    if (this.inner instanceof OuterLayer) this.inner.insert(layer);
    else this.put(layer);
  }
}
