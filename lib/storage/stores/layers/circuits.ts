import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import type { Counter } from '../../../engine/limits/counter.js';
import type { Store } from '../store.js';
import { type Layer, layerOf } from './store-layer.js';
import { reasonOf } from '../../../engine/errors/reasons.js';
import { Circuit, type CircuitReport, SlotCircuits, type SlotReport } from './circuit.js';

/** A change of state of a store or of one of its nodes. */
export type StoreReport =
  | (CircuitReport & { readonly node?: string; readonly slot?: undefined })
  | SlotReport
  | { state: 'replaced'; readonly node: string }
  | { state: 'unconfirmed'; readonly error: Error; readonly node?: undefined }
  | { state: 'late'; readonly error: Error; readonly node?: undefined };

/** A failure that isn't the fault of a node: replicas lag, or a check has too many parts. */
type Blameless = Extract<StoreReport, { state: 'unconfirmed' | 'late' }>;

/** How often to look for nodes that may have taken over while a node fails. */
const LOOK_AFTER_MS = 1000;

/** The minimum time between two reports about failures that aren't the fault of a node, of each kind. */
const BLAMELESS_EVERY_MS = 60_000;

/** The circuits of a store: one for each node with counters, and one without a name for the whole store. */
export class Circuits {
  private readonly circuits = new Map<string, Circuit>();
  private readonly slots: SlotCircuits | undefined;
  private lookedAt = -Infinity;
  /** True if no call has failed recently, so that answers change nothing. */
  isHealthy = true;
  private readonly toldAt = { unconfirmed: -Infinity, late: -Infinity };
  private readonly store: Layer;

  constructor(
    guarded: Store,
    private report: (report: StoreReport) => void,
  ) {
    const store = (this.store = layerOf(guarded));
    if (store.nodeOf !== undefined && store.slotOf !== undefined) {
      this.slots = new SlotCircuits(
        (counter) => store.slotOf!(counter),
        (news) => this.report(news),
      );
    }
  }

  /** True while the store or one of its nodes is skipped. */
  get isBroken(): boolean {
    return [...this.circuits].some(([node, { isOpen }]) => isOpen && this.isCurrent(node));
  }

  /** Checks if skipped nodes are back. Never rejects. */
  async probe(): Promise<void> {
    const left = [...this.circuits.values()].filter(({ isOpen }) => isOpen);
    const asking = left.flatMap(({ counter }) => {
      if (counter === undefined) return [];
      const check = { entries: [{ ...counter, cost: 1 }], peek: true };
      return [this.ask([counter], () => this.store.decided(check)).catch(() => undefined)];
    });
    await Promise.all(asking);
    this.forgetReplaced();
  }

  /** Calls the store for these counters, unless a node with some of them is skipped. */
  async ask<T>(counters: readonly Counter[], call: () => Promise<T>): Promise<T> {
    try {
      const answer = await this.guarded(counters, call);
      if (!this.isHealthy) this.isHealthy = this.slots?.isEmpty !== false && this.areWell();
      return answer;
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      if (error.isUnconfirmed === true) this.tell('unconfirmed', error);
      else if (error.isOutOfTime === true) this.tell('late', error);
      else {
        this.isHealthy = false;
        if (error.slot !== undefined) this.slots?.failed(error, error.node ?? '', error.slot);
      }
      throw error;
    }
  }

  /** True if the store has several nodes. */
  get areSeveral(): boolean {
    return this.store.nodeOf !== undefined;
  }

  /** Returns true if the error comes from the node or the slot of a counter, rather than from others of the store. */
  hasFailed(counter: Counter, error: unknown): boolean {
    if (!(error instanceof RateLimitStoreError)) return false;
    const { node, slot } = error;
    if (slot !== undefined) return this.store.slotOf?.(counter) === slot;
    return node !== undefined && this.store.nodeOf?.(counter) === node;
  }

  /** Records a call that failed without being guarded. Never rejects. */
  async failed(counters: readonly Counter[], error: unknown): Promise<void> {
    await this.ask(counters, () => Promise.reject(error)).catch(() => undefined);
  }

  /** Reports failures that aren't the fault of a node, at intervals. No recovery is reported. */
  private tell(state: Blameless['state'], error: RateLimitStoreError): void {
    const now = performance.now();
    if (now - this.toldAt[state] < BLAMELESS_EVERY_MS) return;
    this.toldAt[state] = now;
    this.report({ state, error });
  }

  private guarded<T>(counters: readonly Counter[], call: () => Promise<T>): Promise<T> {
    const { store } = this;
    if (store.nodeOf === undefined) return this.of('', counters[0]).run(call);
    const nodes = new Map(counters.map((counter) => [store.nodeOf!(counter), counter]));
    // An answer shows that a store that could not be opened is available now.
    let guarded = async () => {
      const answer = await call();
      this.of('').recovered();
      this.lookForReplaced();
      return answer;
    };
    for (const [node, counter] of nodes) {
      const next = guarded;
      guarded = () => this.of(node, counter).run(next);
    }
    return this.slots === undefined || this.slots.isEmpty ? guarded() : this.slots.guard(counters, guarded)();
  }

  private areWell(): boolean {
    for (const { isFailing } of this.circuits.values()) if (isFailing) return false;
    return true;
  }

  /** Stops reporting. The store is no longer called, so failures don't matter. */
  close(): void {
    this.report = () => undefined;
  }

  /** Records that the store could not be opened. */
  absent(error: unknown): void {
    this.isHealthy = false;
    this.of('').absent(error instanceof Error ? error : new Error(reasonOf(error)));
  }

  private isCurrent(node: string): boolean {
    return this.store.hasNode?.(node) ?? true;
  }

  private lookForReplaced(): void {
    if (this.areWell()) return;
    const now = performance.now();
    if (now - this.lookedAt < LOOK_AFTER_MS) return;
    this.lookedAt = now;
    this.forgetReplaced();
  }

  /**
   * Forgets nodes without counters, such as a failed master that was replaced: no call would ever show their recovery.
   */
  private forgetReplaced(): void {
    for (const [node, { isFailing }] of this.circuits) {
      if (node === '' || this.isCurrent(node)) continue;
      this.circuits.delete(node);
      if (isFailing) this.report({ state: 'replaced', node });
    }
  }

  private of(node: string, counter?: Counter): Circuit {
    let circuit = this.circuits.get(node);
    if (circuit === undefined) {
      this.forgetReplaced();
      const named = node === '' ? {} : { node };
      circuit = new Circuit(node, (report) => this.report({ ...report, ...named }));
      this.circuits.set(node, circuit);
    }
    circuit.counter = counter ?? circuit.counter;
    return circuit;
  }
}
