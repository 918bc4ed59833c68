import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { metrics } from '@opentelemetry/api';
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { LimiterService, RateLimitModule } from '../../../../lib/index.js';
import { PACKAGE_FOLDER } from '../../../support/processes/npm.js';
import { OpenTelemetrySdk } from '../../telemetry/open-telemetry-sdk.js';

const api = { name: 'api', algo: 'fixed-window', rate: 10, interval: '1d', candidate: { rate: 2 } } as const;

describe('OpenTelemetry is told of a candidate', () => {
  let telemetry: OpenTelemetrySdk;
  let nest: TestingModule;
  let service: LimiterService;

  beforeEach(async () => {
    telemetry = new OpenTelemetrySdk().collectMetrics().trace();
    nest = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ telemetry: true })] }).compile();
    await nest.init();
    service = nest.get(LimiterService);
  });

  afterEach(async () => {
    await nest.close();
    await telemetry.stop();
  });

  it('by an attribute that its limit has not', async () => {
    const limiter = service.for(api);
    for (let call = 0; call < 3; call++) await limiter.consume('a');
    const measured = await telemetry.measured();
    const named = { 'nestjs_sluice.limit': 'api' };
    const ofCandidate = { ...named, 'nestjs_sluice.candidate': true };
    const allowed = { 'nestjs_sluice.outcome': 'allowed', 'nestjs_sluice.source': 'memory' };
    expect(measured['nestjs_sluice.decisions']).toEqual([
      { attributes: { ...named, ...allowed }, value: 3 },
      { attributes: { ...ofCandidate, ...allowed }, value: 2 },
      { attributes: { ...ofCandidate, ...allowed, 'nestjs_sluice.outcome': 'shadow-refused' }, value: 1 },
    ]);
    expect(measured['nestjs_sluice.near_limit']).toEqual([{ attributes: ofCandidate, value: 1 }]);
  });

  it('by events of the span, whose attributes are of limits that were asked for', async () => {
    const limiter = service.for({ ...api, mode: 'shadow', candidate: { rate: 1 } });
    await telemetry.inSpan('work', async () => {
      await limiter.consume('a');
      await limiter.consume('a');
    });
    const [span] = telemetry.spans();
    expect(span!.attributes).toMatchObject({ 'nestjs_sluice.quota': 10, 'nestjs_sluice.remaining': 8 });
    expect(span!.events.map(({ name, attributes }) => [name, attributes!['nestjs_sluice.candidate']])).toEqual([
      ['nestjs_sluice.near_limit', true],
      ['nestjs_sluice.refused', true],
    ]);
  });
});

it('Prometheus has the labels that the guide asks for', async () => {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const meters = new MeterProvider({ readers: [exporter] });
  metrics.setGlobalMeterProvider(meters);
  const nest = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ telemetry: true })] }).compile();
  await nest.init();
  const limiter = nest.get(LimiterService).for(api);
  for (let call = 0; call < 3; call++) await limiter.consume('a');
  const { resourceMetrics } = await exporter.collect();
  const text = new PrometheusSerializer().serialize(resourceMetrics);
  await nest.close();
  await meters.shutdown();
  metrics.disable();

  const guide = readFileSync(join(PACKAGE_FOLDER, 'docs/guides/candidates.md'), 'utf8');
  const queries = [...guide.matchAll(/^```promql\n(.*?)^```/gms)].map(([, query]) => query!);
  const labels = queries.flatMap((query) => [...query.matchAll(/nestjs_sluice_\w+="[\w-]+"/g)].map(([label]) => label));
  expect(labels).toHaveLength(3);
  for (const label of labels) expect(text).toContain(label);
});
