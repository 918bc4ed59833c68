import type {
  Attributes,
  Counter,
  Histogram,
  Meter,
  ObservableGauge,
  ObservableResult,
  Span,
} from '@opentelemetry/api';
import { checkResultOf } from '../stores/store-decision.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import type { StoreDecision } from '../stores/store.js';
import type { UnnamedEvent } from './decision-event.js';

/** The names of attributes, following the semantic conventions of OpenTelemetry. */
export const attribute = {
  name: 'nestjs_sluice.limit',
  candidate: 'nestjs_sluice.candidate',
  outcome: 'nestjs_sluice.outcome',
  priority: 'nestjs_sluice.priority',
  source: 'nestjs_sluice.source',
  quota: 'nestjs_sluice.quota',
  remaining: 'nestjs_sluice.remaining',
  cost: 'nestjs_sluice.cost',
  retryAfter: 'nestjs_sluice.retry_after_ms',
  operation: 'nestjs_sluice.operation',
  errorType: 'error.type',
} as const;

/** Records on a span how a check ended: attributes of the limit that binds most, and an event for each limit that matters. */
export function recordOnSpan(
  span: Span,
  entries: readonly CheckEntry[],
  decisions: readonly StoreDecision[],
  events: readonly UnnamedEvent[],
): void {
  // Candidates come after all limits of a check.
  const firstCandidate = entries.findIndex(({ limit }) => limit.isCandidate);
  const result = checkResultOf(firstCandidate < 0 ? decisions : decisions.slice(0, firstCandidate), entries);
  span.setAttributes(resultOf(events[result.decisions.indexOf(result.tightest)]!));
  for (const event of events) {
    if (event.outcome !== 'allowed') span.addEvent('nestjs_sluice.refused', attributesOf(event));
    if (event.nearLimit) span.addEvent('nestjs_sluice.near_limit', attributesOf(event));
  }
}

function resultOf({ limit, outcome, source, quota, remaining }: UnnamedEvent): Attributes {
  return {
    [attribute.name]: limit,
    [attribute.outcome]: outcome,
    [attribute.source]: source,
    [attribute.quota]: quota,
    [attribute.remaining]: remaining,
  };
}

function attributesOf(event: UnnamedEvent): Attributes {
  const { outcome, cost, retryAfterMs, candidate } = event;
  const attributes = resultOf(event);
  attributes[attribute.cost] = cost;
  if (candidate === true) attributes[attribute.candidate] = true;
  // A request that can never fit has no wait, and exporters do not support infinity.
  if (outcome !== 'allowed' && retryAfterMs < Infinity) attributes[attribute.retryAfter] = retryAfterMs;
  return attributes;
}

/** Maximum number of limits to measure. */
const MOST_LIMITS = 100;

/** Reads a counter without charging it. Returns `undefined` if the answer isn't available synchronously. */
export type LookAtAdaptive = (entry: CheckEntry) => Pick<StoreDecision, 'quota' | 'inFlight'> | undefined;

/** Reports the units that adaptive limits admit, have in flight and reject. */
export class AdaptiveMetrics {
  private readonly entries = new Map<string, CheckEntry>();
  private readonly shed: Counter;
  private readonly ends: readonly (() => void)[];

  constructor(
    private readonly meter: Meter,
    private readonly look: LookAtAdaptive,
  ) {
    this.ends = [
      this.observe('limit', 'Units that an adaptive limit lets in now.', ({ quota }) => quota),
      this.observe(
        'in_flight',
        'Units in flight, those that wait for the event loop included.',
        ({ inFlight = 0 }) => inFlight,
      ),
    ];
    this.shed = meter.createCounter('nestjs_sluice.adaptive.shed', {
      description: 'Requests that an adaptive limit refused, by their priority.',
      unit: '{request}',
    });
  }

  /** Counts a decision of an adaptive limit. */
  decided(entry: CheckEntry, { limit, outcome, priority }: UnnamedEvent): void {
    if (this.entries.size < MOST_LIMITS || this.entries.has(limit)) this.entries.set(limit, entry);
    if (outcome !== 'refused') return;
    this.shed.add(1, { [attribute.name]: limit, [attribute.priority]: priority ?? 'default' });
  }

  close(): void {
    for (const end of this.ends) end();
  }

  /** Creates a gauge of each limit. Returns a function that ends it. */
  private observe(
    name: string,
    description: string,
    valueOf: (state: Pick<StoreDecision, 'quota' | 'inFlight'>) => number,
  ): () => void {
    const gauge = this.meter.createObservableGauge(`nestjs_sluice.adaptive.${name}`, {
      description,
      unit: '{request}',
    });
    const callback = (result: ObservableResult) => {
      for (const [limit, entry] of this.entries) {
        const reading = this.look(entry);
        if (reading !== undefined) result.observe(valueOf(reading), { [attribute.name]: limit });
      }
    };
    gauge.addCallback(callback);
    return () => gauge.removeCallback(callback);
  }
}

/** In seconds: from a check in process to one that times out. */
const DURATION_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

/** If a call has decisions from several sources, the first of these determines its duration. */
const SLOWEST_FIRST = ['fallback', 'redis', 'cache', 'prefetch', 'memory', 'list'] as const;

/** The metrics of the app. No attribute ever identifies a key. */
export class Metrics {
  private readonly decisions: Counter;
  private readonly nearLimit: Counter;
  private readonly fallbacks: Counter;
  private readonly cacheHits: Counter;
  private readonly duration: Histogram;
  private readonly breaker: ObservableGauge | undefined;
  private adaptive: AdaptiveMetrics | undefined;

  constructor(
    private readonly meter: Meter,
    private readonly isBroken: (() => boolean) | undefined,
    private readonly look: LookAtAdaptive,
  ) {
    this.decisions = meter.createCounter('nestjs_sluice.decisions', {
      description: 'Decisions of limits.',
      unit: '{decision}',
    });
    this.nearLimit = meter.createCounter('nestjs_sluice.near_limit', {
      description: 'How often a counter of a limit came to the share of its quota that nearLimit says.',
      unit: '{event}',
    });
    this.fallbacks = meter.createCounter('nestjs_sluice.fallbacks', {
      description: 'Checks that were decided as onStoreError says, since the store failed.',
      unit: '{check}',
    });
    this.cacheHits = meter.createCounter('nestjs_sluice.refusal_cache.hits', {
      description: 'Checks that were refused without asking the store, since their refusal was remembered.',
      unit: '{check}',
    });
    this.duration = meter.createHistogram('nestjs_sluice.store.duration', {
      description: 'How long calls of the store take.',
      unit: 's',
      advice: { explicitBucketBoundaries: DURATION_BUCKETS },
    });
    if (isBroken === undefined) return;
    this.breaker = meter.createObservableGauge('nestjs_sluice.store.breaker', {
      description: '1 while the store is not asked, since it failed repeatedly; else 0.',
    });
    this.breaker.addCallback(this.observeBreaker);
  }

  decided({ limit, outcome, source, nearLimit, candidate }: UnnamedEvent): void {
    const named: Attributes = { [attribute.name]: limit };
    if (candidate === true) named[attribute.candidate] = true;
    if (nearLimit) this.nearLimit.add(1, named);
    this.decisions.add(1, { ...named, [attribute.outcome]: outcome, [attribute.source]: source });
  }

  /** Counts a decision of an adaptive limit. The first such decision creates the instruments. */
  adapted(entry: CheckEntry, event: UnnamedEvent): void {
    this.adaptive ??= new AdaptiveMetrics(this.meter, this.look);
    this.adaptive.decided(entry, event);
  }

  /** Counts the outcome of one check. */
  checked(decisions: readonly StoreDecision[]): void {
    if (decisions.some(({ source }) => source === 'fallback')) this.fallbacks.add(1);
    if (decisions.some(({ source }) => source === 'cache')) this.cacheHits.add(1);
  }

  /** Measures one call. */
  took(operation: string, durationMs: number, decisions: readonly StoreDecision[] = []): void {
    const source = SLOWEST_FIRST.find((each) => decisions.some((decision) => decision.source === each));
    const attributes: Attributes = { [attribute.operation]: operation };
    if (source !== undefined) attributes[attribute.source] = source;
    this.measure(durationMs, attributes);
  }

  /** Measures one call that failed. */
  failed(operation: string, durationMs: number, error: unknown): void {
    const type = error instanceof Error ? error.name : 'Error';
    this.measure(durationMs, { [attribute.operation]: operation, [attribute.errorType]: type });
  }

  close(): void {
    this.adaptive?.close();
    this.breaker?.removeCallback(this.observeBreaker);
  }

  private measure(durationMs: number, attributes: Attributes): void {
    this.duration.record(durationMs / 1000, attributes);
  }

  private readonly observeBreaker = (result: ObservableResult): void => {
    result.observe(this.isBroken?.() === true ? 1 : 0);
  };
}
