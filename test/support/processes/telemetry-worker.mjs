/**
 * An app with the built package, in a process of its own. Its input says where the package is, its option `telemetry`, and whether the
 * app sets up OpenTelemetry's SDK for metrics; its result is what was decided, how many files of OpenTelemetry were loaded, what was
 * logged, and what the SDK has counted.
 */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { runTask } from './process-task.mjs';

const loaded = () => Object.keys(createRequire(import.meta.url).cache).filter((path) => path.includes('opentelemetry'));

/** Sets up the SDK. The result reads the decisions that it has counted, by outcome. */
async function setUpSdk() {
  const { metrics } = await import('@opentelemetry/api');
  const sdk = await import('@opentelemetry/sdk-metrics');
  const exporter = new sdk.InMemoryMetricExporter(sdk.AggregationTemporality.CUMULATIVE);
  const reader = new sdk.PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  metrics.setGlobalMeterProvider(new sdk.MeterProvider({ readers: [reader] }));
  return async () => {
    const { resourceMetrics } = await reader.collect();
    await reader.shutdown();
    const all = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
    const decisions = all.find(({ descriptor }) => descriptor.name === 'nestjs_sluice.decisions');
    return Object.fromEntries(
      decisions.dataPoints.map(({ attributes, value }) => [attributes['nestjs_sluice.outcome'], value]),
    );
  };
}

await runTask(async ({ entry, telemetry, sdk }) => {
  const counted = sdk === true ? await setUpSdk() : () => undefined;
  const { RateLimitModule, LimiterService } = await import(pathToFileURL(entry).href);
  const lines = [];
  const keep = (level) => (message) => lines.push(`${level}: ${message}`);
  const logger = { log: () => undefined, warn: keep('warn'), error: keep('error') };
  const options = telemetry === null ? {} : { telemetry };
  try {
    const module = { module: class AppModule {}, imports: [RateLimitModule.forRoot(options)] };
    const app = await NestFactory.createApplicationContext(module, { logger, abortOnError: false });
    const limiter = app.get(LimiterService).for({ algo: 'fixed-window', rate: 1, interval: '1m' });
    const allowed = [(await limiter.consume('a')).allowed, (await limiter.consume('a')).allowed];
    const decisions = await counted();
    await app.close();
    return { allowed, loaded: loaded().length, lines, decisions };
  } catch (error) {
    return { error: `${error.name}: ${error.message}`, loaded: loaded().length };
  }
});
