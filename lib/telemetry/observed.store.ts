import type { Span } from '@opentelemetry/api';
import type { WindowCount } from '../algorithms/algorithm.js';
import type { LearntRate, Lesson } from '../stores/lesson.js';
import { StoreLayer } from '../stores/layers/store-layer.js';
import { decide } from '../stores/decide.js';
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
} from '../stores/store.js';
import { isOfStarts, type CheckEntry, type Counter } from '../limits/counter.js';
import { isRefusal } from '../limits/check-result.js';
import type { NamedUnits, TimeRange } from '../limits/usage-range.js';
import { shownIdentity } from '../limits/hierarchy.js';
import { MemoryStore } from '../stores/memory/memory.store.js';
import { eventOf } from './decision-event.js';
import type { DecisionStream } from './decision-stream.js';
import { decideTapped, tapped } from './decision-tap.js';
import { OpenTelemetry } from './open-telemetry.js';
import { tellSpan } from './span.js';

/** Tells the decisions of the inner store to those that listen. Without any it only asks. */
export class ObservedStore extends StoreLayer {
  private openTelemetry: OpenTelemetry | undefined;

  /** `telemetry`: whether OpenTelemetry is told. If it is not installed, `true` is an error, and nothing means no. */
  constructor(
    inner: Store,
    private readonly stream: DecisionStream,
    private readonly telemetry: boolean | undefined,
  ) {
    super(inner);
  }

  override get unobserved(): Store {
    return this.inner;
  }

  override async open(): Promise<void> {
    if (this.telemetry !== false) {
      const canBreak = this.isBroken !== undefined;
      this.openTelemetry = await OpenTelemetry.load(
        this.telemetry === true,
        canBreak ? this.measureBroken : undefined,
        this.look,
      );
    }
    await super.open();
  }

  override async close(): Promise<void> {
    await super.close();
    this.openTelemetry?.close();
    this.stream.close();
  }

  override decide(check: Check, answer: CheckAnswer): void {
    const span = this.openTelemetry?.span();
    const { tap } = this.stream;
    const listens = this.listens(span);
    // A look decides nothing.
    const counts = tap !== undefined && check.peek !== true;
    if (counts && !listens && this.inner instanceof MemoryStore) return decideTapped(this.inner, check, answer, tap);
    const counted = counts ? tapped(tap, check, answer) : answer;
    decide(this.inner, check, listens ? new ObservedAnswer(this, check, counted, span) : counted);
  }

  override reserve(entry: ReserveEntry): Promise<StoreDecision> {
    const span = this.openTelemetry?.span();
    const observed = this.listens(span) || this.stream.tap !== undefined;
    return observed ? this.observeReservation(entry, span) : this.inner.reserve(entry);
  }

  override refund(refunds: readonly Refund[]): Promise<void> {
    return this.timed('refund', () => this.inner.refund(refunds));
  }

  override penalize(charge: Charge): Promise<void> {
    return this.timed('penalize', () => this.inner.penalize(charge));
  }

  override block(counter: Counter, durationMs: number): Promise<void> {
    // It is blocked together with the counter that it is beside.
    if (isOfStarts(counter)) return this.inner.block(counter, durationMs);
    return this.timed('block', () => this.inner.block(counter, durationMs));
  }

  protected override credited(credit: Credit): Promise<number> {
    return this.timed('credit', () => super.credited(credit));
  }

  protected override learnt(counter: Counter, lesson: Lesson): Promise<LearntRate | undefined> {
    return this.timed('learn', () => super.learnt(counter, lesson));
  }

  override renew(lease: HeldLease): Promise<boolean> {
    return this.timed('renew', () => this.inner.renew(lease));
  }

  override reset(counters: readonly Counter[]): Promise<void> {
    return this.timed('reset', () => this.inner.reset(counters));
  }

  override history(counter: Counter): Promise<WindowCount[]> {
    return this.timed('history', () => this.inner.history(counter));
  }

  protected override read(counter: Counter, range: TimeRange): Promise<NamedUnits[]> {
    return this.timed('usage', () => super.read(counter, range));
  }

  /** Where nothing else is asked, the next measurement tells whether the store is back. */
  private readonly measureBroken = (): boolean => {
    if (this.isBroken === true) void this.probe();
    return this.isBroken === true;
  };

  /** What adapts is known in process: its answer is there at once. */
  private readonly look = (entry: CheckEntry): StoreDecision | undefined => {
    let found: StoreDecision | undefined;
    const answer = { decided: ([decision]: StoreDecision[]) => void (found = decision), failed: () => undefined };
    decide(this.inner, { entries: [entry], peek: true }, answer);
    return found;
  };

  private listens(span: Span | undefined): boolean {
    return span !== undefined || this.openTelemetry?.metrics !== undefined || this.stream.observed;
  }

  /** Tells of a check that was answered. */
  checked({ entries, peek }: Check, decisions: readonly StoreDecision[], latencyMs: number, span?: Span): void {
    this.openTelemetry?.metrics?.took(peek === true ? 'peek' : 'check', latencyMs, decisions);
    // A look decides nothing.
    if (peek !== true) this.tell(entries, decisions, latencyMs, span);
  }

  /** Tells of a check that was not. */
  failed({ peek }: Check, latencyMs: number, error: unknown): void {
    this.openTelemetry?.metrics?.failed(peek === true ? 'peek' : 'check', latencyMs, error);
  }

  private async observeReservation(entry: ReserveEntry, span: Span | undefined): Promise<StoreDecision> {
    const start = performance.now();
    const ask = () => this.inner.reserve(entry);
    const decision = await this.timed('reserve', ask, (decided) => [decided]).catch((error: unknown) => {
      this.stream.tap?.failed();
      throw error;
    });
    // It was told of when it was claimed; a look decides nothing.
    if (decision.wasClaimed === true || entry.claim?.looks === true || entry.ofStarts === true) return decision;
    const { candidate } = decision;
    const { candidate: limit } = entry.limit;
    const hasBoth = candidate !== undefined && limit !== undefined;
    // What the fallback counts, it counts of both.
    const decisions = hasBoth ? [decision, { ...candidate, source: decision.source }] : [decision];
    const entries = hasBoth ? [entry, { ...entry, limit }] : [entry];
    this.stream.tap?.decided(entries, decisions, performance.now() - start);
    if (this.listens(span)) this.tell(entries, decisions, performance.now() - start, span);
    return decision;
  }

  private tell(
    entries: readonly CheckEntry[],
    decisions: readonly StoreDecision[],
    latencyMs: number,
    span: Span | undefined,
  ): void {
    const charged = !entries.some(({ limit }, index) => isRefusal(limit, decisions[index]!));
    // The limits beside one that a list refused were not asked.
    const isByList = !charged && decisions.some(({ allowed, source }) => !allowed && source === 'list');
    const events = entries.map((entry, index) => eventOf(entry, decisions[index]!, charged, latencyMs));
    const metrics = this.openTelemetry?.metrics;
    metrics?.checked(decisions);
    if (span !== undefined) tellSpan(span, entries, decisions, events);
    for (const [index, event] of events.entries()) {
      if (isByList && event.source === 'list' && event.outcome === 'allowed') continue;
      metrics?.decided(event);
      if (event.inFlight !== undefined) metrics?.adapted(entries[index]!, event);
      if (this.stream.observed) this.stream.publish(event, shownIdentity(entries[index]!));
    }
  }

  private async timed<T>(
    operation: string,
    call: () => Promise<T>,
    decisionsOf?: (answer: T) => readonly StoreDecision[],
  ): Promise<T> {
    const metrics = this.openTelemetry?.metrics;
    if (metrics === undefined) return call();
    const start = performance.now();
    try {
      const answer = await call();
      metrics.took(operation, performance.now() - start, decisionsOf?.(answer));
      return answer;
    } catch (error) {
      metrics.failed(operation, performance.now() - start, error);
      throw error;
    }
  }
}

/** Hands an answer on, and tells of it first. */
class ObservedAnswer implements CheckAnswer {
  private readonly start = performance.now();

  constructor(
    private readonly store: ObservedStore,
    private readonly check: Check,
    private readonly answer: CheckAnswer,
    private readonly span: Span | undefined,
  ) {}

  decided(decisions: StoreDecision[]): void {
    this.store.checked(this.check, decisions, performance.now() - this.start, this.span);
    this.answer.decided(decisions);
  }

  failed(error: unknown): void {
    try {
      this.store.failed(this.check, performance.now() - this.start, error);
    } catch {
      // The check fails as the store did, and so does no other one that waits for the same call.
    }
    this.answer.failed(error);
  }
}
