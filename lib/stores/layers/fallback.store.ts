import type { WindowCount } from '../../algorithms/algorithm.js';
import { RateLimitStoreError } from '../../errors/errors.js';
import type { CompiledLimit, StoreErrorPolicy } from '../../limits/compiled-limit.js';
import type { Counter } from '../../limits/counter.js';
import type { NamedUnits, TimeRange } from '../../limits/usage-range.js';
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
import { Circuits, type StoreReport } from './circuits.js';
import { StoreErrorPolicies, uncountedDecision } from './store-error-policies.js';
import type { LearntRate, Lesson } from '../lesson.js';
import { StoreLayer } from './store-layer.js';

export interface FallbackStoreOptions {
  /** Is told when the first store, or a node of it, begins to fail and when it is back. */
  report?: (report: StoreReport) => void;
  /**
   * Whether closing closes the first store, too.
   * @default true
   */
  closesPrimary?: boolean;
  /**
   * The part of each limit that this instance allows while it counts for itself.
   * @default 1
   */
  localShare?: number;
}

/**
 * Asks one store, and does what each limit's `onStoreError` says while that one fails. A circuit breaker stops asking a store
 * that fails repeatedly; of a store with several nodes, only the node that fails. Only failures lead here, never a refusal.
 */
export class FallbackStore extends StoreLayer {
  private readonly circuits: Circuits;
  private readonly policies = new StoreErrorPolicies();
  private readonly closesPrimary: boolean;
  private readonly localShare: number;
  private readonly shares = new WeakMap<CompiledLimit, CompiledLimit>();

  constructor(
    inner: Store,
    private readonly local: Store,
    { report = () => undefined, closesPrimary = true, localShare = 1 }: FallbackStoreOptions = {},
  ) {
    super(inner);
    this.circuits = new Circuits(inner, report);
    this.closesPrimary = closesPrimary;
    this.localShare = localShare;
  }

  override get isBroken(): boolean {
    return this.circuits.isBroken;
  }

  override probe(): Promise<void> {
    return this.circuits.probe();
  }

  /** Never rejects: an app starts without its store, and is told so. */
  override async open(): Promise<void> {
    try {
      await super.open();
    } catch (error) {
      this.circuits.absent(error);
    }
  }

  override async close(): Promise<void> {
    this.circuits.close();
    await this.local.close();
    if (this.closesPrimary) await super.close();
  }

  override decide(check: Check, answer: CheckAnswer): void {
    if (this.circuits.isHealthy) decide(this.inner, check, new WatchedAnswer(this, check, answer));
    else answerWith(this.ask(check), answer);
  }

  /** Has the circuits count a call that failed, and decides the check as its limits say. */
  decideWithout(check: Check, answer: CheckAnswer, error: unknown): void {
    const failed = this.circuits.ask(check.entries, async () => {
      throw error;
    });
    // Of many that fail at once each tells its own error, though the circuit breaks meanwhile.
    answerWith(
      failed.catch(() => this.fallBack(check, error)),
      answer,
    );
  }

  private async ask(check: Check): Promise<StoreDecision[]> {
    try {
      return await this.circuits.ask(check.entries, () => decided(this.inner, check));
    } catch (error) {
      return this.fallBack(check, error);
    }
  }

  override async reserve(reservation: ReserveEntry): Promise<StoreDecision> {
    try {
      return await this.circuits.ask([reservation], () => this.inner.reserve(reservation));
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      const policy = this.policies.of({ ...reservation, units: reservation.cost }, error);
      if (policy === 'deny') throw error;
      if (policy !== 'local') return uncountedDecision(reservation);
      return { ...(await this.local.reserve(this.share(reservation))), source: 'fallback' };
    }
  }

  override async refund(refunds: readonly Refund[]): Promise<void> {
    const local = refunds.filter(({ source }) => source === 'fallback');
    const rest = refunds.filter(({ source }) => source !== 'fallback');
    if (local.length > 0) await this.local.refund(local.map((refund) => this.share(refund)));
    if (rest.length === 0) return;
    try {
      await this.circuits.ask(rest, () => this.inner.refund(rest));
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      // What Redis charged can be given back there only.
      const policies = rest.map((refund) => (refund.source === undefined ? this.without(refund, error) : 'deny'));
      const counted = rest.filter((_, index) => policies[index] === 'local');
      if (counted.length > 0) await this.local.refund(counted.map((refund) => this.share(refund)));
      if (policies.includes('deny')) throw error;
    }
  }

  override async penalize(charge: Charge): Promise<void> {
    if (charge.source === 'fallback') return this.local.penalize(this.share(charge));
    try {
      await this.circuits.ask([charge], () => this.inner.penalize(charge));
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      const policy = this.without(charge, error);
      if (policy === 'deny') throw error;
      if (policy === 'local') await this.local.penalize(this.share(charge));
    }
  }

  override async block(counter: Counter, durationMs: number): Promise<void> {
    await this.local.block(this.share(counter), durationMs);
    await this.circuits.ask([counter], () => this.inner.block(counter, durationMs));
  }

  /** In process, too: a block has to hold while Redis fails. */
  protected override async learnt(counter: Counter, lesson: Lesson): Promise<LearntRate | undefined> {
    const isNeeded = this.circuits.isBroken || (lesson.blockMs ?? 0) > 0;
    const here = isNeeded ? await this.local.learn?.(this.share(counter), lesson) : undefined;
    try {
      return await this.circuits.ask([counter], () => super.learnt(counter, lesson));
    } catch (error) {
      if (here === undefined || !(error instanceof RateLimitStoreError)) throw error;
      return here;
    }
  }

  /** Only where they are kept: credits that this instance took by itself would be taken twice. */
  protected override credited(credit: Credit): Promise<number> {
    return this.circuits.ask([credit], () => super.credited(credit));
  }

  override renew(lease: HeldLease): Promise<boolean> {
    return lease.source === 'fallback'
      ? this.local.renew(this.share(lease))
      : this.circuits.ask([lease], () => this.inner.renew(lease));
  }

  override async reset(counters: readonly Counter[]): Promise<void> {
    await this.local.reset(counters.map((counter) => this.share(counter)));
    await this.circuits.ask(counters, () => this.inner.reset(counters));
  }

  override history(counter: Counter): Promise<WindowCount[]> {
    return this.circuits.ask([counter], () => this.inner.history(counter));
  }

  protected override read(counter: Counter, range: TimeRange): Promise<NamedUnits[]> {
    return this.circuits.ask([counter], () => super.read(counter, range));
  }

  protected override innerOf(counter: Counter): Pick<Store, 'blockedFor'> {
    const ask = () => this.inner.blockedFor!(counter);
    return { blockedFor: () => this.circuits.ask([counter], ask) };
  }

  /** What becomes of units that the first store could not be told of. */
  private without(charge: Charge, error: RateLimitStoreError): StoreErrorPolicy {
    return charge.strict === true ? 'deny' : this.policies.of(charge, error);
  }

  /** Decides a check that got no answer, as the limits say. */
  private async fallBack(check: Check, error: unknown): Promise<StoreDecision[]> {
    if (!(error instanceof RateLimitStoreError) || check.strict === true) throw error;
    const { entries, ...rest } = check;
    const policies = entries.map((entry) => this.policies.of({ ...entry, units: entry.cost }, error));
    if (policies.includes('deny')) throw error;
    const counted = entries.filter((_, index) => policies[index] === 'local');
    const shares = counted.map((entry) => this.share(entry));
    const local = counted.length > 0 ? await decided(this.local, { ...rest, entries: shares }) : [];
    return entries.map((entry) => {
      const decision = local[counted.indexOf(entry)] ?? uncountedDecision(entry);
      return { ...decision, source: 'fallback' };
    });
  }

  /**
   * The same counter, of the part of its limit that this instance allows while it counts for itself. Units are not prefetched in
   * process, so that it is the limit as it was declared; and nothing is recorded there, which would not be found later.
   */
  private share<C extends Counter>(counter: C): C {
    const { ofAllTenants, prefetch, tenant, usage } = counter.limit;
    if (this.localShare === 1 && prefetch === undefined && usage === undefined) return counter;
    let limit = this.shares.get(ofAllTenants);
    if (limit === undefined) this.shares.set(ofAllTenants, (limit = ofAllTenants.share(this.localShare)));
    return { ...counter, limit: limit.forTenant(tenant) };
  }
}

/** Hands an answer on, and has a failure told to the circuits. */
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
