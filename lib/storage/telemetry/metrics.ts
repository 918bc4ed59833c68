import type { Attributes, Counter, Histogram, Meter, ObservableGauge, ObservableResult } from '@opentelemetry/api';
import type { StoreDecision } from '../stores/store.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { AdaptiveMetrics, type LookAtAdaptive } from './adaptive-metrics.js';
import { attribute } from './span.js';
import type { UnnamedEvent } from './decision-event.js';

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
