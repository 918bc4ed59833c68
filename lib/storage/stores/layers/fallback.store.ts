import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { decideInTwo } from '../all-or-nothing.js';
import { answerWith } from '../decide.js';
import {
  blocksNobody,
  type Operation,
  type OperationAnswer,
  type OperationCounter,
  type OperationName,
  rowOf,
} from '../operation.js';
import type { Charge, Check, CheckAnswer, Refund, Store, StoreDecision } from '../store.js';
import { Circuits, type StoreReport } from './circuits.js';
import { LocalDecisions } from './local-decisions.js';
import { StoreLayer } from './store-layer.js';

export interface FallbackStoreOptions {
  /** Called when the first store, or one of its nodes, starts to fail and when it has recovered. */
  report?: (report: StoreReport) => void;
  /**
   * True if closing also closes the first store.
   * @default true
   */
  closesPrimary?: boolean;
  /**
   * The share of each limit that this instance allows while it counts locally.
   * @default 1
   */
  localShare?: number;
}

/**
 * Passes checks to one store, and applies the `onStoreError` of each limit while that store fails. A circuit breaker skips a store that
 * fails repeatedly; with several nodes, only the node that fails. Only failures lead here, never a rejection.
 */
export class FallbackStore extends StoreLayer {
  private readonly circuits: Circuits;
  private readonly closesPrimary: boolean;
  private readonly here: LocalDecisions;

  constructor(
    inner: Store,
    local: Store,
    { report = () => undefined, closesPrimary = true, localShare = 1 }: FallbackStoreOptions = {},
  ) {
    super(inner);
    this.circuits = new Circuits(this.inner, report);
    this.closesPrimary = closesPrimary;
    this.here = new LocalDecisions(local, localShare);
  }

  override get isBroken(): boolean {
    return this.circuits.isBroken;
  }

  override probe(): Promise<void> {
    return this.circuits.probe();
  }

  /** Never rejects: an app starts without its store, and the failure is logged. */
  override async open(): Promise<void> {
    try {
      await super.open();
    } catch (error) {
      this.circuits.absent(error);
    }
  }

  override async close(): Promise<void> {
    this.circuits.close();
    await this.here.store.close();
    if (this.closesPrimary) await super.close();
  }

  override decide(check: Check, answer: CheckAnswer): void {
    if (this.circuits.isHealthy) this.inner.decide(check, new WatchedAnswer(this, check, answer));
    else answerWith(this.ask(check), answer);
  }

  override decidesAtOnce(limit: CompiledLimit): boolean {
    return this.circuits.isHealthy && super.decidesAtOnce(limit);
  }

  /** Reports a failed call to the circuits, and decides the check without what failed. */
  decideWithout(check: Check, answer: CheckAnswer, error: unknown): void {
    // Calls that fail together reject with their own errors, although the circuit opens in between.
    answerWith(
      this.circuits.failed(check.entries, error).then(() => this.without(check, error)),
      answer,
    );
  }

  /** `waited` is true if a node has used up the time of the check. */
  private async ask(check: Check, waited = false): Promise<StoreDecision[]> {
    try {
      return await this.circuits.ask(check.entries, () => this.inner.decided(check));
    } catch (error) {
      return this.without(check, error, waited);
    }
  }

  /**
   * Decides limits whose node of a Cluster failed by their `onStoreError`, and all other limits in the store. These get their own time,
   * since the failed node may have used it up. If that happens again, the process decides them as well.
   */
  private without(check: Check, error: unknown, waited = false): Promise<StoreDecision[]> {
    const { entries } = check;
    const isLate = error instanceof RateLimitStoreError && error.code === 'SLUICE_STORE_TIMEOUT';
    const isOver = check.strict === true || (waited && isLate);
    const lost = isOver ? entries : entries.filter((entry) => this.circuits.hasFailed(entry, error));
    if (lost.length === 0 || lost.length === entries.length) return this.here.decide(check, error);
    const here = {
      decided: (part: Check) => this.here.decide(part, error),
      refund: (refunds: readonly Refund[]) => this.refund(refunds),
    };
    const there = { decided: (part: Check) => this.ask(part, waited || isLate), refund: here.refund };
    return decideInTwo(check, lost, here, there);
  }

  override async operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    const { local } = rowOf(operation);
    if (local === undefined) return this.first(operation, operation.counters);
    if (local === 'too') return this.both(operation);
    const all: readonly OperationCounter[] = operation.counters;
    if (local === 'uncounted' && all.length > 1 && this.circuits.areSeveral) {
      // Each counter on its own: only those of a failed node are left to the process.
      await Promise.all(operation.counters.map((counter) => this.operate({ ...operation, counters: [counter] })));
      return undefined;
    }
    const here = all.filter(isLocal);
    const answer = here.length === 0 ? undefined : await this.doHere(operation, here);
    if (here.length === all.length) return answer;
    const rest = here.length === 0 ? all : all.filter((counter) => !isLocal(counter));
    try {
      return await this.first(operation, rest);
    } catch (error) {
      if (local !== 'uncounted' || !(error instanceof RateLimitStoreError)) throw error;
      const policies = (rest as readonly Charge[]).map((charge) => {
        // Units that were charged on Redis can only be refunded there.
        const isThere = operation.name === 'refund' && charge.source !== undefined;
        return isThere || charge.strict === true ? 'deny' : this.here.policyOf(charge, error);
      });
      const counted = rest.filter((_, index) => policies[index] === 'local');
      if (counted.length > 0) await this.doHere(operation, counted);
      if (policies.includes('deny')) throw error;
      return undefined;
    }
  }

  /** Blocks also have to apply while the store fails, and lessons learned then have to be known afterwards. */
  private async both<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    const isNeeded = this.circuits.isBroken || !blocksNobody(operation);
    const answer = isNeeded ? await this.doHere(operation, operation.counters) : undefined;
    try {
      return await this.first(operation, operation.counters);
    } catch (error) {
      // Only a lesson that was learned here can replace the store's answer. A block or a reset has to be known everywhere.
      const isLesson = operation.name === 'learn' && answer !== undefined;
      if (!isLesson || !(error instanceof RateLimitStoreError)) throw error;
      return answer;
    }
  }

  private first<N extends OperationName>(
    operation: Operation<N>,
    counters: readonly Counter[],
  ): Promise<OperationAnswer<N>> {
    return this.circuits.ask(counters, () => super.operate({ ...operation, counters }));
  }

  private doHere<N extends OperationName>(
    operation: Operation<N>,
    counters: readonly Counter[],
  ): Promise<OperationAnswer<N>> {
    return this.here.store.operate({ ...operation, counters: counters.map((counter) => this.here.partOf(counter)) });
  }
}

/** Returns true if the units were charged in process. */
function isLocal({ source }: OperationCounter): boolean {
  return source === 'fallback';
}

/** Passes an answer on, and reports failures to the circuits. */
class WatchedAnswer implements CheckAnswer {
  constructor(
    private readonly store: FallbackStore,
    private readonly check: Check,
    private readonly answer: CheckAnswer,
  ) {}

  decided(decisions: StoreDecision[]): void {
    this.answer.decided(decisions);
  }

  failed(error: unknown): void {
    this.store.decideWithout(this.check, this.answer, error);
  }
}
