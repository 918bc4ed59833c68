import type { Counter, Meter, ObservableGauge, ObservableResult } from '@opentelemetry/api';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { attribute } from './span.js';
import type { UnnamedEvent } from './decision-event.js';

/** Maximum number of limits to measure. */
const MOST_LIMITS = 100;

/** The measured state of an adaptive limit. */
export interface AdaptiveReading {
  readonly quota: number;
  readonly inFlight?: number | undefined;
}

/** Reads a counter without charging it. Returns `undefined` if the answer isn't available synchronously. */
export type LookAtAdaptive = (entry: CheckEntry) => AdaptiveReading | undefined;

/** Reports the units that adaptive limits admit, have in flight and reject. */
export class AdaptiveMetrics {
  private readonly entries = new Map<string, CheckEntry>();
  private readonly limits: ObservableGauge;
  private readonly inFlight: ObservableGauge;
  private readonly shed: Counter;

  constructor(
    meter: Meter,
    private readonly look: LookAtAdaptive,
  ) {
    this.limits = meter.createObservableGauge('nestjs_sluice.adaptive.limit', {
      description: 'Units that an adaptive limit lets in now.',
      unit: '{request}',
    });
    this.inFlight = meter.createObservableGauge('nestjs_sluice.adaptive.in_flight', {
      description: 'Units in flight, those that wait for the event loop included.',
      unit: '{request}',
    });
    this.shed = meter.createCounter('nestjs_sluice.adaptive.shed', {
      description: 'Requests that an adaptive limit refused, by their priority.',
      unit: '{request}',
    });
    this.limits.addCallback(this.observeLimits);
    this.inFlight.addCallback(this.observeInFlight);
  }

  /** Counts a decision of an adaptive limit. */
  decided(entry: CheckEntry, { limit, outcome, priority }: UnnamedEvent): void {
    if (this.entries.size < MOST_LIMITS || this.entries.has(limit)) this.entries.set(limit, entry);
    if (outcome !== 'refused') return;
    this.shed.add(1, { [attribute.name]: limit, [attribute.priority]: priority ?? 'default' });
  }

  close(): void {
    this.limits.removeCallback(this.observeLimits);
    this.inFlight.removeCallback(this.observeInFlight);
  }

  private readonly observeLimits = (result: ObservableResult): void => {
    this.each((name, { quota }) => result.observe(quota, { [attribute.name]: name }));
  };

  private readonly observeInFlight = (result: ObservableResult): void => {
    this.each((name, { inFlight = 0 }) => result.observe(inFlight, { [attribute.name]: name }));
  };

  private each(observe: (name: string, reading: AdaptiveReading) => void): void {
    for (const [name, entry] of this.entries) {
      const reading = this.look(entry);
      if (reading !== undefined) observe(name, reading);
    }
  }
}
