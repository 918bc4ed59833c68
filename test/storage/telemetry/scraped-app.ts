import type { Server } from 'node:http';
import { Test } from '@nestjs/testing';
import type { INestApplication } from '@nestjs/common';
import { metrics } from '@opentelemetry/api';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { LimiterService, RateLimitModule, RateLimitStoreError } from '../../../lib/index.js';
import { until } from '../../app/overrides/overrides-app.js';
import { startRedis } from '../../support/redis/redis-servers.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

/** What Prometheus reads from an app whose limits have done all that is measured. */
export async function scrapedText(): Promise<string> {
  const redis = await startRedis();
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const meters = new MeterProvider({ readers: [exporter] });
  metrics.setGlobalMeterProvider(meters);
  const module = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ redis: redis.url, prefix: freshPrefix(), timeout: PATIENCE })],
  }).compile();
  const app = module.createNestApplication({ logger: false });
  try {
    app.use('/metrics', exporter.getMetricsRequestHandler.bind(exporter));
    await app.listen(0, '127.0.0.1');
    await causeAll(app.get(LimiterService), () => redis.stop());
    return await scrape(app);
  } finally {
    await app.close();
    await meters.shutdown();
    metrics.disable();
    await redis.stop();
  }
}

async function causeAll(limiters: LimiterService, stopRedis: () => Promise<unknown>): Promise<void> {
  const one = { algo: 'fixed-window', rate: 1, interval: '1d' } as const;
  const login = limiters.for({ name: 'login', ...one });
  await login.consume('user:1');
  // The first refusals may come before the instance hears of units that others give back.
  await until(async () => (await login.consume('user:1')).source, 'cache');
  const tried = limiters.for({ name: 'GET /tried', ...one, mode: 'shadow', candidate: { rate: 1, interval: '2d' } });
  for (let call = 0; call < 2; call++) await tried.consume('user:1');
  const busy = limiters.for({
    name: 'busy',
    algo: 'gcra',
    rate: 10_000,
    interval: '1h',
    prefetch: { units: 10, ttl: '1m' },
  });
  await until(async () => (await busy.consume('global')).source, 'prefetch');
  await limiters.for({ name: 'here', ...one, scope: 'instance' }).consume('user:1');
  await limiters.deny({ identity: 'user:2' });
  await until(async () => (await login.consume('user:2')).source, 'list');
  await login.peek('user:1');
  await login.block('user:1', '1m');
  await login.reset('user:1');
  await stopRedis();
  await login.consume('user:3');
  const strict = limiters.for({ name: 'strict', ...one, onStoreError: 'deny' });
  await strict.consume('user:1').catch((error: unknown) => {
    if (!(error instanceof RateLimitStoreError)) throw error;
  });
}

async function scrape(app: INestApplication<Server>): Promise<string> {
  const response = await fetch(`${await app.getUrl()}/metrics`);
  return response.text();
}
