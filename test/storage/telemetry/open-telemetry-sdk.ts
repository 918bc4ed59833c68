import { AsyncLocalStorage } from 'node:async_hooks';
import { type Context, context, type ContextManager, metrics, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type Sampler,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';

/** Contexts that follow asynchronous calls, as the SDK for Node has them. */
class AsyncContexts implements ContextManager {
  private readonly storage = new AsyncLocalStorage<Context>();

  active(): Context {
    return this.storage.getStore() ?? ROOT_CONTEXT;
  }

  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    active: Context,
    fn: F,
    thisArg?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.storage.run(active, () => fn.call(thisArg, ...args));
  }

  bind<T>(_active: Context, target: T): T {
    return target;
  }

  enable(): this {
    return this;
  }

  disable(): this {
    this.storage.disable();
    return this;
  }
}

export interface Measured {
  readonly attributes: Record<string, unknown>;
  /** A number, or what a histogram holds. */
  readonly value: unknown;
}

/** The SDKs of OpenTelemetry, with exporters that keep what they are given. */
export class OpenTelemetrySdk {
  private readonly metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  private readonly reader = new PeriodicExportingMetricReader({
    exporter: this.metricExporter,
    exportIntervalMillis: 3_600_000,
  });
  private readonly meters = new MeterProvider({ readers: [this.reader] });
  private readonly spanExporter = new InMemorySpanExporter();
  private readonly tracers: BasicTracerProvider;
  private readonly contexts = new AsyncContexts();

  constructor({ sampler }: { sampler?: Sampler } = {}) {
    const spanProcessors = [new SimpleSpanProcessor(this.spanExporter)];
    this.tracers = new BasicTracerProvider({ spanProcessors, ...(sampler && { sampler }) });
  }

  collectMetrics(): this {
    metrics.setGlobalMeterProvider(this.meters);
    return this;
  }

  trace(): this {
    context.setGlobalContextManager(this.contexts.enable());
    trace.setGlobalTracerProvider(this.tracers);
    return this;
  }

  /** All metrics by their names. */
  async measured(): Promise<Record<string, Measured[]>> {
    this.metricExporter.reset();
    await this.reader.forceFlush();
    const all = this.metricExporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    return Object.fromEntries(
      all.flatMap((scope) =>
        scope.metrics.map(({ descriptor, dataPoints }) => [
          descriptor.name,
          (dataPoints as DataPoint<unknown>[]).map(({ attributes, value }) => ({ attributes, value })),
        ]),
      ),
    );
  }

  /** The instruments, as they were made. */
  async descriptors(): Promise<Record<string, { type: string; unit: string; scope: string }>> {
    await this.reader.forceFlush();
    const all = this.metricExporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    return Object.fromEntries(
      all.flatMap(({ scope, metrics }) =>
        metrics.map(({ descriptor: { name, unit }, dataPointType }) => [
          name,
          { type: DataPointType[dataPointType], unit, scope: scope.name },
        ]),
      ),
    );
  }

  /** Runs what a request does in a span. */
  inSpan<T>(name: string, work: () => Promise<T>): Promise<T> {
    return trace.getTracer('test').startActiveSpan(name, (span) => work().finally(() => span.end()));
  }

  spans() {
    return this.spanExporter.getFinishedSpans().map(({ name, attributes, events }) => ({
      name,
      attributes,
      events: events.map((event) => ({ name: event.name, attributes: event.attributes })),
    }));
  }

  async stop(): Promise<void> {
    metrics.disable();
    trace.disable();
    context.disable();
    await this.meters.shutdown();
    await this.tracers.shutdown();
  }
}
