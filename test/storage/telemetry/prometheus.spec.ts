import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { metrics } from '@opentelemetry/api';
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { LimiterService, RateLimitModule } from '../../../lib/index.js';
import { PACKAGE_FOLDER } from '../../support/processes/npm.js';
import { until } from '../../app/overrides/overrides-app.js';
import { startRedis } from '../../support/redis/redis-servers.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

const packageJson = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'package.json'), 'utf8')) as { version: string };
const guide = readFileSync(join(PACKAGE_FOLDER, 'docs/reference/metrics.md'), 'utf8');

describe('what Prometheus is told', () => {
  let testing: TestingModule | undefined;

  afterEach(async () => {
    await testing?.close();
    metrics.disable();
  });

  it('has the names that the guide says', async () => {
    const server = await startRedis();
    const exporter = new PrometheusExporter({ preventServerStart: true });
    const meters = new MeterProvider({ readers: [exporter] });
    metrics.setGlobalMeterProvider(meters);
    testing = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ redis: server.url, prefix: freshPrefix(), timeout: PATIENCE })],
    }).compile();
    await testing.init();
    const limiters = testing.get(LimiterService);
    const limiter = limiters.for({ name: 'one', algo: 'fixed-window', rate: 1, interval: '1m' });
    await limiter.consume('a');
    const adaptive = limiters.for({ name: 'many', algo: 'adaptive', scope: 'instance', min: 1, max: 1, initial: 1 });
    const { lease } = await adaptive.consume('a');
    expect(await adaptive.consume('a')).toMatchObject({ allowed: false });
    await lease!.release();
    // The first refusals may come before the instance hears of units that others give back.
    await until(async () => (await limiter.consume('a')).source, 'cache');
    await server.stop();
    await limiter.consume('b');
    const { resourceMetrics } = await exporter.collect();
    const text = new PrometheusSerializer().serialize(resourceMetrics);
    await meters.shutdown();

    const names = [...guide.matchAll(/^\| `nestjs_sluice\.[^|]+\| `(nestjs_sluice_\w+)`/gm)].map(([, name]) => name!);
    const told = [...text.matchAll(/^# TYPE (nestjs_sluice\w+) /gm)].map(([, name]) => name!);
    expect(names.toSorted()).toEqual(told.toSorted());
    const [decision] = text.split('\n').filter((line) => line.startsWith('nestjs_sluice_decisions_total{'));
    expect(decision).toContain(
      'nestjs_sluice_limit="one",nestjs_sluice_outcome="allowed",nestjs_sluice_source="redis"',
    );
    expect(decision).toContain(`otel_scope_name="nestjs-sluice",otel_scope_version="${packageJson.version}"`);
  });
});
