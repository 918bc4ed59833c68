import type { WindowCount } from '../../algorithms/algorithm.js';
import type { Charge, Check, HeldLease, Refund, ReserveEntry, Store, StoreDecision } from '../store.js';
import type { CheckEntry, Counter } from '../../limits/counter.js';

/** Asks one store for what all instances of the app count together, and one for what each counts for itself. */
export class InstanceScopeStore implements Store {
  constructor(
    private readonly shared: Store,
    private readonly own: Store,
  ) {}

  check(checks: readonly Check[]): Promise<StoreDecision[][]> {
    if (!checks.some(({ entries }) => entries.some(isOwn))) return this.shared.check(checks);
    return Promise.all(checks.map((check) => this.decide(check)));
  }

  reserve(entry: ReserveEntry): Promise<StoreDecision> {
    return this.storeOf(entry).reserve(entry);
  }

  async refund(refunds: readonly Refund[]): Promise<void> {
    const own = refunds.filter(isOwn);
    const shared = refunds.filter((refund) => !isOwn(refund));
    if (own.length > 0) await this.own.refund(own);
    if (shared.length > 0) await this.shared.refund(shared);
  }

  penalize(charge: Charge): Promise<void> {
    return this.storeOf(charge).penalize(charge);
  }

  block(counter: Counter, durationMs: number): Promise<void> {
    return this.storeOf(counter).block(counter, durationMs);
  }

  renew(lease: HeldLease): Promise<boolean> {
    return this.storeOf(lease).renew(lease);
  }

  async reset(counters: readonly Counter[]): Promise<void> {
    await this.own.reset(counters.filter(isOwn));
    const shared = counters.filter((counter) => !isOwn(counter));
    if (shared.length > 0) await this.shared.reset(shared);
  }

  history(counter: Counter): Promise<WindowCount[]> {
    return this.storeOf(counter).history(counter);
  }

  async open(): Promise<void> {
    await this.shared.open?.();
  }

  async close(): Promise<void> {
    await Promise.all([this.shared.close(), this.own.close()]);
  }

  /**
   * The instance's own limits are charged first, since that takes no time; if the others refuse or fail, it is given back, and
   * what the own ones say is looked up once more.
   */
  private async decide({ entries, peek = false, refundable = false }: Check): Promise<StoreDecision[]> {
    const own = entries.filter(isOwn);
    const shared = entries.filter((entry) => !isOwn(entry));
    let ownAnswers = await only(this.own, { entries: own, peek, refundable: true });
    if (shared.length === 0) return ownAnswers;
    const refused = own.some(({ limit }, index) => !limit.shadow && ownAnswers[index]?.allowed !== true);
    const giveBack = () => this.own.refund(taken(own, ownAnswers));
    let sharedAnswers: StoreDecision[];
    try {
      sharedAnswers = await only(this.shared, { entries: shared, peek: peek || refused, refundable });
    } catch (error) {
      if (!peek && !refused) await giveBack();
      throw error;
    }
    const allowed = shared.every(({ limit }, index) => limit.shadow || sharedAnswers[index]?.allowed === true);
    if (!peek && !refused && !allowed) {
      await giveBack();
      ownAnswers = await only(this.own, { entries: own, peek: true });
    }
    return entries.map((entry) =>
      isOwn(entry) ? ownAnswers[own.indexOf(entry)]! : sharedAnswers[shared.indexOf(entry)]!,
    );
  }

  private storeOf(counter: Counter): Store {
    return isOwn(counter) ? this.own : this.shared;
  }
}

function isOwn({ limit }: Counter): boolean {
  return limit.instance;
}

async function only(store: Store, check: Check): Promise<StoreDecision[]> {
  const [decisions = []] = await store.check([check]);
  return decisions;
}

function taken(entries: readonly CheckEntry[], answers: readonly StoreDecision[]): Refund[] {
  return entries.flatMap((entry, index) =>
    answers[index]?.allowed === true
      ? [{ ...entry, units: entry.cost, ticket: answers[index].ticket, chargedAt: answers[index].chargedAt }]
      : [],
  );
}
