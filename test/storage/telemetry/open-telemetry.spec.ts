import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, type INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { context, trace } from '@opentelemetry/api';
import { AlwaysOffSampler } from '@opentelemetry/sdk-trace-base';
import {
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitModule,
  type RateLimitModuleOptions,
  RateLimitStoreError,
} from '../../../lib/index.js';
import { Metrics } from '../../../lib/storage/telemetry/metrics.js';
import { frameworks, HttpApp } from '../../e2e/http-app.js';
import { startRedis } from '../../support/redis/redis-servers.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { OpenTelemetrySdk } from './open-telemetry-sdk.js';
import { until } from '../../support/time/until.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

const five: LimitDefinition = { name: 'five', algo: 'fixed-window', rate: 5, interval: '1m' };
const one: LimitDefinition = { name: 'one', algo: 'fixed-window', rate: 1, interval: '1m' };

@Controller()
class ReportsController {
  @Get('both')
  @RateLimit(five, one)
  both() {}

  @Get('watched')
  @RateLimit({ ...one, name: 'watched', mode: 'shadow' })
  watched() {}
}

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  jest.restoreAllMocks();
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

function sdk(options?: ConstructorParameters<typeof OpenTelemetrySdk>[0]): OpenTelemetrySdk {
  const made = new OpenTelemetrySdk(options);
  cleanups.push(() => made.stop());
  return made;
}

async function http(
  framework: (typeof frameworks)[number] = 'express',
  { configure, ...limits }: RateLimitModuleOptions & { configure?: (app: INestApplication) => void } = {},
): Promise<HttpApp> {
  const app = await HttpApp.start(framework, {
    controllers: [ReportsController],
    limits,
    ...(configure && { configure }),
  });
  cleanups.push(() => app.close());
  return app;
}

/** The service of an app on a Redis of its own. */
async function onRedis(options: RateLimitModuleOptions = {}) {
  const server = await startRedis();
  cleanups.push(() => server.stop());
  const testing = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ redis: server.url, prefix: freshPrefix(), timeout: PATIENCE, ...options })],
  }).compile();
  testing.useLogger(false);
  await testing.init();
  cleanups.push(() => testing.close());
  return { server, service: testing.get(LimiterService) };
}

const sum = (measured: { value: unknown }[] | undefined) =>
  (measured ?? []).reduce((total, { value }) => total + (value as number), 0);

const decision = (name: string, outcome: string, value: number) => ({
  attributes: { 'nestjs_sluice.limit': name, 'nestjs_sluice.outcome': outcome, 'nestjs_sluice.source': 'memory' },
  value,
});

describe('metrics', () => {
  it.each(frameworks)('count decisions and crossings of requests over HTTP with %s', async (framework) => {
    const telemetry = sdk().collectMetrics();
    const app = await http(framework);
    await app.statuses(3, '/both');
    await app.statuses(2, '/watched');
    const measured = await telemetry.measured();
    expect(measured['nestjs_sluice.decisions']).toEqual([
      decision('five', 'allowed', 3),
      decision('one', 'allowed', 1),
      decision('one', 'refused', 2),
      decision('watched', 'allowed', 1),
      decision('watched', 'shadow-refused', 1),
    ]);
    expect(measured['nestjs_sluice.near_limit']).toEqual([
      { attributes: { 'nestjs_sluice.limit': 'one' }, value: 1 },
      { attributes: { 'nestjs_sluice.limit': 'watched' }, value: 1 },
    ]);
    expect(measured['nestjs_sluice.store.breaker']).toEqual([{ attributes: {}, value: 0 }]);
    expect(JSON.stringify(measured)).not.toContain('127.0.0.1');
  });

  it('measure each operation in seconds, on Redis', async () => {
    const start = performance.now();
    const telemetry = sdk().collectMetrics();
    const { service } = await onRedis();
    const tokens = service.for({ name: 'tokens', algo: 'token-bucket', rate: 10, interval: '1h' });
    await tokens.consume('a');
    await tokens.consume('a');
    await tokens.peek('a');
    await tokens.reserve('a');
    await tokens.refund('a', 1);
    await tokens.penalize('a', 1);
    await tokens.block('a', '1s');
    await tokens.reset('a');
    await service.for({ name: 'slots', algo: 'concurrency', limit: 1, ttl: '1m' }).hold('a', (lease) => lease.renew());
    await service.for({ name: 'days', algo: 'sliding-window', rate: 5, interval: '1d' }).history('a');
    const durations = (await telemetry.measured())['nestjs_sluice.store.duration']!;
    const byOperation = durations.map(({ attributes, value }) => {
      const { count, sum: seconds } = value as { count: number; sum: number };
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThan((performance.now() - start) / 1000);
      return [attributes['nestjs_sluice.operation'], attributes['nestjs_sluice.source'], count];
    });
    expect(byOperation).toEqual([
      ['check', 'redis', 2],
      ['peek', 'redis', 1],
      ['reserve', 'redis', 2],
      ['refund', undefined, 2],
      ['penalize', undefined, 1],
      ['block', undefined, 1],
      ['reset', undefined, 1],
      ['renew', undefined, 1],
      ['history', undefined, 1],
    ]);
    const [first] = durations;
    const { buckets } = first!.value as { buckets: { boundaries: number[] } };
    expect(buckets.boundaries).toContain(0.25);
  });

  it('have names and units', async () => {
    const telemetry = sdk().collectMetrics();
    const { server, service } = await onRedis();
    await service.for({ ...one, nearLimit: 0.5 }).consume('a');
    await until(async () => (await service.for(one).consume('a')).source === 'cache');
    await server.kill();
    await service.for(five).consume('a');
    const scope = 'nestjs-sluice';
    expect(await telemetry.descriptors()).toEqual({
      'nestjs_sluice.decisions': { type: 'SUM', unit: '{decision}', scope },
      'nestjs_sluice.near_limit': { type: 'SUM', unit: '{event}', scope },
      'nestjs_sluice.fallbacks': { type: 'SUM', unit: '{check}', scope },
      'nestjs_sluice.refusal_cache.hits': { type: 'SUM', unit: '{check}', scope },
      'nestjs_sluice.store.duration': { type: 'HISTOGRAM', unit: 's', scope },
      'nestjs_sluice.store.breaker': { type: 'GAUGE', unit: '', scope },
    });
  });

  it('show the breaker and count what is decided without Redis, from its end to its return', async () => {
    const telemetry = sdk().collectMetrics();
    const { server, service } = await onRedis();
    const limiter = service.for(five);
    const breaker = async () => (await telemetry.measured())['nestjs_sluice.store.breaker']?.[0]?.value;
    const fallbacks = async () => sum((await telemetry.measured())['nestjs_sluice.fallbacks']);
    await limiter.consume('a');
    expect([await breaker(), await fallbacks()]).toEqual([0, 0]);
    await server.kill();
    for (let call = 0; call < 4; call++) await limiter.consume(`b${call}`);
    expect([await breaker(), await fallbacks()]).toEqual([0, 4]);
    await limiter.consume('c');
    expect([await breaker(), await fallbacks()]).toEqual([1, 5]);
    const denying = service.for({ ...one, name: 'denying', onStoreError: 'deny' });
    await expect(denying.consume('a')).rejects.toThrow('Redis failed');
    const failed = (await telemetry.measured())['nestjs_sluice.store.duration']!.filter(
      ({ attributes }) => attributes['error.type'] !== undefined,
    );
    expect(failed.map(({ attributes }) => attributes)).toEqual([
      { 'nestjs_sluice.operation': 'check', 'error.type': 'RateLimitStoreError' },
    ]);
    await server.start();
    await until(async () => (await limiter.consume('d')).source === 'redis');
    expect(await breaker()).toBe(0);
  });

  it('count refusals that were remembered', async () => {
    const telemetry = sdk().collectMetrics();
    const { service } = await onRedis();
    const limiter = service.for(one);
    let cached = 0;
    await until(async () => {
      if ((await limiter.consume('a')).source === 'cache') cached++;
      return cached === 3;
    });
    expect(sum((await telemetry.measured())['nestjs_sluice.refusal_cache.hits'])).toBe(3);
  });

  it('that cannot be taken make no check wait that the store failed', async () => {
    sdk().collectMetrics();
    const { server, service } = await onRedis({ timeout: 100 });
    const limiter = service.for({ ...one, onStoreError: 'deny' });
    const failing = jest.spyOn(Metrics.prototype, 'failed').mockImplementation(() => {
      throw new Error('no metrics');
    });
    server.pause();
    const outcomes = await Promise.allSettled(['a', 'b', 'c'].map((key) => limiter.consume(key)));
    server.resume();
    expect(failing).toHaveBeenCalledTimes(3);
    expect(outcomes).toEqual(outcomes.map(() => ({ status: 'rejected', reason: expect.any(RateLimitStoreError) })));
  });

  it('have no breaker where nothing can fail', async () => {
    const telemetry = sdk().collectMetrics();
    const testing = await Test.createTestingModule({ imports: [RateLimitModule.forRoot()] }).compile();
    await testing.init();
    cleanups.push(() => testing.close());
    await testing.get(LimiterService).for(five).consume('a');
    const names = Object.keys(await telemetry.measured());
    expect(names).toContain('nestjs_sluice.decisions');
    expect(names).not.toContain('nestjs_sluice.store.breaker');
  });

  it('of an app that is closed are no longer observed', async () => {
    const telemetry = sdk().collectMetrics();
    await (await http()).close();
    expect(Object.keys(await telemetry.measured())).toEqual([]);
    cleanups.splice(1);
  });
});

const said = (name: string, outcome: string) => ({
  'nestjs_sluice.limit': name,
  'nestjs_sluice.outcome': outcome,
  'nestjs_sluice.source': 'memory',
  'nestjs_sluice.quota': 1,
  'nestjs_sluice.remaining': 0,
});

/** What instrumentation of HTTP does: each request has its span. */
const spanOfRequests = (telemetry: OpenTelemetrySdk) => (app: INestApplication) => {
  app.use((_request: unknown, response: NodeJS.EventEmitter, next: () => void) => {
    void telemetry.inSpan(
      'request',
      () =>
        new Promise<void>((resolve) => {
          response.once('close', resolve);
          next();
        }),
    );
  });
};

describe('spans', () => {
  it('of requests are told the limit that binds most, and of refusals and crossings', async () => {
    const telemetry = sdk().trace();
    const app = await http('express', { configure: spanOfRequests(telemetry) });
    await app.statuses(2, '/both');
    await app.statuses(2, '/watched');
    await until(() => telemetry.spans().length >= 4);
    const near = (name: string) => ({
      name: 'nestjs_sluice.near_limit',
      attributes: { ...said(name, 'allowed'), 'nestjs_sluice.cost': 1 },
    });
    const refused = (name: string, outcome: string) => ({
      name: 'nestjs_sluice.refused',
      attributes: { ...said(name, outcome), 'nestjs_sluice.cost': 1, 'nestjs_sluice.retry_after_ms': 60_000 },
    });
    expect(telemetry.spans()).toEqual([
      { name: 'request', attributes: said('one', 'allowed'), events: [near('one')] },
      { name: 'request', attributes: said('one', 'refused'), events: [refused('one', 'refused')] },
      { name: 'request', attributes: said('watched', 'allowed'), events: [near('watched')] },
      {
        name: 'request',
        attributes: said('watched', 'shadow-refused'),
        events: [refused('watched', 'shadow-refused')],
      },
    ]);
  });

  it('of code are told, and what can never fit has no wait', async () => {
    const telemetry = sdk().trace();
    const service = (await http()).nest.get(LimiterService);
    await telemetry.inSpan('job', () => service.for(one).consume('user:42', 2));
    await telemetry.inSpan('reserve', () =>
      service.for({ name: 'one', algo: 'gcra', rate: 1, interval: '1m' }).reserve('user:42'),
    );
    await telemetry.inSpan('peek', () => service.for(one).peek('user:42'));
    const [job, reserve, peek] = telemetry.spans();
    expect(job!.attributes).toMatchObject({ 'nestjs_sluice.outcome': 'refused' });
    expect(job!.events.map(({ attributes }) => Object.keys(attributes ?? {}))).toEqual([
      [
        'nestjs_sluice.limit',
        'nestjs_sluice.outcome',
        'nestjs_sluice.source',
        'nestjs_sluice.quota',
        'nestjs_sluice.remaining',
        'nestjs_sluice.cost',
      ],
    ]);
    expect(reserve!.attributes).toMatchObject({ 'nestjs_sluice.outcome': 'allowed' });
    expect(peek).toMatchObject({ attributes: {}, events: [] });
    expect(JSON.stringify(telemetry.spans())).not.toContain('user:42');
  });

  it('that do not record are left alone', async () => {
    const telemetry = sdk({ sampler: new AlwaysOffSampler() }).trace();
    const service = (await http()).nest.get(LimiterService);
    await telemetry.inSpan('job', async () => {
      const span = trace.getSpan(context.active())!;
      expect(span.isRecording()).toBe(false);
      const set = jest.spyOn(span, 'setAttributes');
      await service.for(one).consume('a');
      expect(set).not.toHaveBeenCalled();
    });
  });
});

describe('telemetry: false', () => {
  it('measures nothing and tells no span, whatever is set up', async () => {
    const telemetry = sdk().collectMetrics().trace();
    const service = (await http('express', { telemetry: false })).nest.get(LimiterService);
    await telemetry.inSpan('job', () => service.for(one).consume('a'));
    expect(await telemetry.measured()).toEqual({});
    expect(telemetry.spans()).toEqual([{ name: 'job', attributes: {}, events: [] }]);
  });
});
