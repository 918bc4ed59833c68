import { AsyncResource } from 'node:async_hooks';
import type { Span } from '@opentelemetry/api';
import { type Layer, LowestLayer, StoreLayer } from '../stores/layers/store-layer.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { measuredName, type Operation, type OperationAnswer, type OperationName, rowOf } from '../stores/operation.js';
import type { Check, CheckAnswer, ReserveEntry, Store, StoreDecision } from '../stores/store.js';
import { decidedEntries } from '../stores/store-decision.js';
import { isOfStarts, type CheckEntry } from '../../engine/limits/counter.js';
import { isRefusal } from '../../engine/limits/decision.js';
import { shownIdentity } from '../../engine/limits/hierarchy.js';
import { MemoryStore } from '../stores/memory/memory.store.js';
import { eventOf, type UnnamedEvent } from './decision-event.js';
import { decideOneTapped, decideTapped, type DecisionStream, type DecisionTap, tapped } from './decision-stream.js';
import { type Metrics, recordOnSpan } from './metrics.js';
import { OpenTelemetry } from './open-telemetry.js';

function memoryStoreOf(layer: Layer): MemoryStore | undefined {
  return layer instanceof LowestLayer && layer.store instanceof MemoryStore ? layer.store : undefined;
}

/** Publishes the decisions of the inner store to subscribers. Without subscribers it only passes checks on. */
export class ObservedStore extends StoreLayer {
  private openTelemetry: OpenTelemetry | undefined;
  /** The store in process, if no layer lies between. It decides in the fewest steps. */
  private inProcess = memoryStoreOf(this.inner);

  /** `telemetry`: whether to report to OpenTelemetry. If OpenTelemetry isn't installed, `true` is an error, and `undefined` means false. */
  constructor(
    inner: Store,
    private readonly stream: DecisionStream,
    private readonly telemetry: boolean | undefined,
  ) {
    super(inner);
  }

  override get unobserved(): Layer {
    return this.inner;
  }

  protected override put(layer: (inner: Store) => StoreLayer): void {
    super.put(layer);
    this.inProcess = memoryStoreOf(this.inner);
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
    this.openTelemetry?.metrics?.close();
    this.stream.close();
  }

  override decideOne(limit: CompiledLimit, identity: string, cost: number): StoreDecision | undefined {
    if (this.listens(this.openTelemetry?.span())) return undefined;
    const { tap } = this.stream;
    if (tap === undefined) return this.inner.decideOne(limit, identity, cost);
    return decideOneTapped(this.inner, { limit, identity, cost }, tap);
  }

  override decide(check: Check, answer: CheckAnswer): void {
    const span = this.openTelemetry?.span();
    const { tap } = this.stream;
    const listens = this.listens(span);
    // Reading isn't a decision. A reservation's decision is known once it is answered.
    const counts = tap !== undefined && check.peek !== true;
    if (counts && check.reserving !== true) {
      if (!listens && this.inProcess !== undefined) return decideTapped(this.inProcess, check, answer, tap);
      const counted = tapped(tap, check, answer);
      this.inner.decide(check, listens ? new ObservedAnswer(this, check, counted, span) : counted);
    } else this.inner.decide(check, listens || counts ? new ObservedAnswer(this, check, answer, span) : answer);
  }

  override operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    const metrics = this.openTelemetry?.metrics;
    // The counter of starts gets its operations together with the counter that it belongs to.
    const isMeasured = rowOf(operation).unmeasured === undefined && !operation.counters.every(isOfStarts);
    const ask = () => super.operate(operation);
    const answer =
      metrics === undefined || !isMeasured ? ask() : timed(metrics, measuredName(operation as Operation), ask);
    const { tap } = this.stream;
    if (tap !== undefined) noteOperation(tap, operation as Operation, answer);
    return answer;
  }

  /** If nothing else calls the store, the next measurement checks if it is back. */
  private readonly measureBroken = (): boolean => {
    if (this.isBroken === true) void this.probe();
    return this.isBroken === true;
  };

  /** The state of adaptive limits is in process, so it is available synchronously. */
  private readonly look = (entry: CheckEntry): StoreDecision | undefined => this.inner.lookAt(entry);

  private listens(span: Span | undefined): boolean {
    return span !== undefined || this.openTelemetry?.metrics !== undefined || this.stream.isUsed;
  }

  /** The async context for hooks: that of the caller, no matter which call of the store answers it. `undefined` without hooks. */
  scope(): AsyncResource | undefined {
    return this.stream.listener === undefined ? undefined : new AsyncResource('nestjs-sluice');
  }

  /** Publishes a check that was answered. */
  checked(
    check: Check,
    decisions: readonly StoreDecision[],
    latencyMs: number,
    span?: Span,
    scope?: AsyncResource,
  ): void {
    this.openTelemetry?.metrics?.took(operationOf(check), latencyMs, decisions);
    let entries = decidedEntries(check, decisions);
    if (check.reserving === true) {
      if (!isMade(entries[0] as ReserveEntry, decisions[0]!)) return;
      entries = entries.slice(0, decisions.length);
      this.stream.tap?.decided(entries, decisions, latencyMs);
    }
    // Reading isn't a decision.
    if (check.peek === true || !this.listens(span)) return;
    const events = this.report(check, entries, decisions, latencyMs, span);
    const { listener } = this.stream;
    if (listener === undefined) return;
    const publish = () => listener.decided(check, entries, decisions, events);
    if (scope === undefined) publish();
    else scope.runInAsyncScope(publish);
  }

  /** Publishes a check that failed. */
  failed(check: Check, latencyMs: number, error: unknown): void {
    if (check.reserving === true) this.stream.tap?.failed();
    this.openTelemetry?.metrics?.failed(operationOf(check), latencyMs, error);
  }

  /** Returns the events; `undefined` for a limit that was not checked. */
  private report(
    check: Check,
    entries: readonly CheckEntry[],
    decisions: readonly StoreDecision[],
    latencyMs: number,
    span: Span | undefined,
  ): (UnnamedEvent | undefined)[] {
    const charged = !entries.some(({ limit }, index) => isRefusal(limit, decisions[index]!));
    // If a list denied the request, its other limits were not checked.
    const isByList = !charged && decisions.some(({ allowed, source }) => !allowed && source === 'list');
    const route = this.stream.isUsed ? check.origin?.route : undefined;
    const events = entries.map((entry, index) => eventOf(entry, decisions[index]!, charged, latencyMs, route));
    const metrics = this.openTelemetry?.metrics;
    metrics?.checked(decisions);
    if (span !== undefined) recordOnSpan(span, entries, decisions, events);
    return events.map((event, index) => {
      if (isByList && event.source === 'list' && event.outcome === 'allowed') return undefined;
      metrics?.decided(event);
      if (event.inFlight !== undefined) metrics?.adapted(entries[index]!, event);
      if (this.stream.observed) this.stream.publish(event, shownIdentity(entries[index]!));
      return event;
    });
  }
}

/** Reports blocks and held units to the tap once the operation is done. */
function noteOperation(tap: DecisionTap, operation: Operation, answer: Promise<unknown>): void {
  const { name } = operation;
  if (name !== 'block' && name !== 'renew') return;
  const note = () => {
    if (name === 'block') {
      for (const counter of operation.counters) {
        if (!isOfStarts(counter)) tap.blocked?.(counter, operation.durationMs);
      }
    } else for (const lease of operation.counters) tap.renewed?.(lease);
  };
  // The caller handles a failure.
  void answer.then(note, () => undefined);
}

/** The name of a check in metrics. */
function operationOf({ peek, reserving }: Check): string {
  return reserving === true ? 'reserve' : peek === true ? 'peek' : 'check';
}

/** Returns true if this call made the reservation. An earlier claim was already reported, and reading makes none. */
function isMade({ claim, ofStarts }: ReserveEntry, { wasClaimed }: StoreDecision): boolean {
  return wasClaimed !== true && claim?.looks !== true && ofStarts !== true;
}

async function timed<T>(metrics: Metrics, operation: string, call: () => Promise<T>): Promise<T> {
  const start = performance.now();
  try {
    const answer = await call();
    metrics.took(operation, performance.now() - start);
    return answer;
  } catch (error) {
    metrics.failed(operation, performance.now() - start, error);
    throw error;
  }
}

/** Reports an answer, then passes it on. */
class ObservedAnswer implements CheckAnswer {
  private readonly start = performance.now();
  private readonly scope: AsyncResource | undefined;

  constructor(
    private readonly store: ObservedStore,
    private readonly check: Check,
    private readonly answer: CheckAnswer,
    private readonly span: Span | undefined,
  ) {
    this.scope = store.scope();
  }

  decided(decisions: StoreDecision[]): void {
    this.store.checked(this.check, decisions, performance.now() - this.start, this.span, this.scope);
    this.answer.decided(decisions);
  }

  failed(error: unknown): void {
    try {
      this.store.failed(this.check, performance.now() - this.start, error);
    } catch {
      // This check fails like the store. Other checks that wait for the same call are not affected.
    }
    this.answer.failed(error);
  }
}
