import type { WindowCount } from '../../algorithms/algorithm.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import type { CheckEntry, Counter } from '../../limits/counter.js';
import { allOrNothing, type Part } from '../all-or-nothing.js';
import { answerWith, decide, decided } from '../decide.js';
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
import { refundsOf } from '../store-decision.js';
import type { LearntRate, Lesson } from '../lesson.js';
import { StoreLayer } from './store-layer.js';

/** Asks the inner store for what all instances of the app count together, and another one for what each counts for itself. */
export class InstanceScopeStore extends StoreLayer {
  constructor(
    inner: Store,
    private readonly own: Store,
  ) {
    super(inner);
  }

  override decide(check: Check, answer: CheckAnswer): void {
    const { entries } = check;
    if (entries.every(isOwn)) decide(this.own, check, answer);
    else if (!entries.some(isOwn)) decide(this.inner, check, answer);
    else answerWith(this.decideInParts(check), answer);
  }

  override reserve(entry: ReserveEntry): Promise<StoreDecision> {
    return this.storeOf(entry).reserve(entry);
  }

  override async refund(refunds: readonly Refund[]): Promise<void> {
    const own = refunds.filter(isOwn);
    const shared = refunds.filter((refund) => !isOwn(refund));
    if (own.length > 0) await this.own.refund(own);
    if (shared.length > 0) await this.inner.refund(shared);
  }

  override penalize(charge: Charge): Promise<void> {
    return this.storeOf(charge).penalize(charge);
  }

  override block(counter: Counter, durationMs: number): Promise<void> {
    return this.storeOf(counter).block(counter, durationMs);
  }

  protected override async learnt(counter: Counter, lesson: Lesson): Promise<LearntRate | undefined> {
    return this.storeOf(counter).learn?.(counter, lesson);
  }

  protected override credited(credit: Credit): Promise<number> {
    return this.storeOf(credit).credit!(credit);
  }

  override renew(lease: HeldLease): Promise<boolean> {
    return this.storeOf(lease).renew(lease);
  }

  override async reset(counters: readonly Counter[]): Promise<void> {
    await this.own.reset(counters.filter(isOwn));
    const shared = counters.filter((counter) => !isOwn(counter));
    if (shared.length > 0) await this.inner.reset(shared);
  }

  override history(counter: Counter): Promise<WindowCount[]> {
    return this.storeOf(counter).history(counter);
  }

  override async close(): Promise<void> {
    await Promise.all([this.inner.close(), this.own.close()]);
  }

  /** Of limits of both kinds. The instance's own are charged first, since that takes no time. */
  private decideInParts({ entries, peek = false, refundable = false, hold = false }: Check): Promise<StoreDecision[]> {
    const shared = entries.filter((entry) => !isOwn(entry));
    const parts = [partOf(this.own, entries.filter(isOwn), true, hold), partOf(this.inner, shared, refundable, hold)];
    return allOrNothing(entries, parts, peek);
  }

  protected override innerOf(counter: Counter): Store {
    return this.storeOf(counter);
  }

  protected override usageStoreOf(limit: CompiledLimit): Store {
    return limit.instance ? this.own : this.inner;
  }

  private storeOf(counter: Counter): Store {
    return isOwn(counter) ? this.own : this.inner;
  }
}

function isOwn({ limit }: Counter): boolean {
  return limit.instance;
}

function partOf(store: Store, entries: readonly CheckEntry[], refundable: boolean, hold: boolean): Part {
  return {
    entries,
    ask: (peek) => decided(store, { entries, peek, refundable, hold }),
    giveBack: (charged) => store.refund(refundsOf(entries, charged)),
  };
}
