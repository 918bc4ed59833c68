import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Logger } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  LimiterService,
  RateLimitArgumentError,
  RateLimitHealthIndicator,
  RateLimitModule,
  type RateLimitModuleOptions,
  type Store,
} from '../../../lib/index.js';
import { startCluster, startRedis } from '../../support/redis/redis-servers.js';
import { connectCluster, connectRedis, freshPrefix } from '../../support/limits/stores.js';
import { OwnTime } from '../../support/time/own-time.mjs';
import { until } from '../../support/time/until.js';
import { storeOf } from '../../support/nest/app-parts.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly limits: RateLimitHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  byDefault() {
    return this.health.check([() => this.limits.isHealthy('limits')]);
  }

  @Get('degraded')
  @HealthCheck()
  degraded() {
    return this.health.check([() => this.limits.isHealthy('limits', { whileFailing: 'degraded' })]);
  }

  @Get('down')
  @HealthCheck()
  down() {
    return this.health.check([() => this.limits.isHealthy('limits', { whileFailing: 'down' })]);
  }
}

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function start(
  options: RateLimitModuleOptions,
): Promise<{ app: TestingModule; get: (path: string) => Promise<unknown[]> }> {
  const app = await Test.createTestingModule({
    imports: [
      RateLimitModule.forRoot({ prefix: freshPrefix(), ...options }),
      TerminusModule.forRoot({ logger: false }),
    ],
    controllers: [HealthController],
  }).compile();
  app.useLogger(false);
  const nest = app.createNestApplication();
  await nest.listen(0, '127.0.0.1');
  cleanups.push(() => nest.close());
  const url = await nest.getUrl();
  const get = async (path: string) => {
    const response = await fetch(url + path, { headers: { connection: 'close' } });
    const { status, details } = (await response.json()) as { status: string; details: { limits: unknown } };
    return [response.status, status, details.limits];
  };
  return { app, get };
}

const MESSAGE =
  "the store failed, so each limit follows its 'onStoreError' (by default each instance counts by itself)";

const failing = (status: string) => ({ status, source: 'fallback', message: MESSAGE });

const fail = () => Promise.reject(new Error('out of order'));

describe('RateLimitHealthIndicator with @nestjs/terminus', () => {
  it('tells of a Redis that is stopped and started, without any other traffic', async () => {
    const server = await startRedis();
    cleanups.push(() => server.stop());
    const { get } = await start({ redis: server.url, timeout: PATIENCE });
    const well = [200, 'ok', { status: 'up', source: 'redis' }];
    for (const path of ['/health', '/health/degraded', '/health/down']) expect(await get(path)).toEqual(well);
    await server.kill();
    // More often than the breaker lets pass.
    for (let round = 0; round < 3; round++) {
      expect(await get('/health')).toEqual([200, 'ok', failing('up')]);
      expect(await get('/health/degraded')).toEqual([200, 'degraded', failing('degraded')]);
      expect(await get('/health/down')).toEqual([503, 'error', failing('down')]);
    }
    await server.start();
    await until(async () => (await get('/health/down'))[0] === 200);
    for (const path of ['/health', '/health/degraded', '/health/down']) expect(await get(path)).toEqual(well);
  });

  it('answers within the deadline of a Redis that says nothing', async () => {
    const server = await startRedis();
    cleanups.push(() => server.stop());
    const { app } = await start({ redis: server.url, timeout: '100ms' });
    const indicator = app.get(RateLimitHealthIndicator);
    server.pause();
    const time = new OwnTime();
    expect(await indicator.isHealthy('limits')).toMatchObject({ limits: { source: 'fallback' } });
    expect(time.now()).toBeLessThan(1000);
    time.stop();
    server.resume();
  });

  it('writes nothing', async () => {
    const redis = await connectRedis();
    cleanups.push(() => redis.quit());
    const prefix = freshPrefix();
    const { get } = await start({ redis, prefix, timeout: PATIENCE });
    await get('/health');
    expect(await redis.keys(`${prefix}*`)).toEqual([]);
  });

  it('works on a Cluster', async () => {
    const cluster = await startCluster();
    cleanups.push(() => cluster.stop());
    const { get } = await start({ redis: { nodes: cluster.nodes }, timeout: PATIENCE });
    expect(await get('/health/down')).toEqual([200, 'ok', { status: 'up', source: 'redis' }]);
  });

  it('is up again on a Cluster once a replica has taken over, without any other traffic', async () => {
    const cluster = await startCluster();
    cleanups.push(() => cluster.stop());
    const lines: unknown[] = [];
    const client = await connectCluster(cluster);
    const { app, get } = await start({ redis: client, timeout: PATIENCE });
    cleanups.push(() => Promise.resolve(client.disconnect()));
    const logged = jest.spyOn(Logger.prototype, 'log').mockImplementation((message: unknown) => {
      lines.push(message);
    });
    cleanups.push(() => Promise.resolve(logged.mockRestore()));
    const limiter = app.get(LimiterService).for({ algo: 'gcra', rate: 1_000_000, interval: '1h' });
    const [victim] = await cluster.masters();
    const holdBack = async (isHeldBack: 'yes' | 'no') => {
      for (const node of client.nodes()) {
        if (node.options.port !== victim!.port) await node.config('SET', 'cluster-replica-no-failover', isHeldBack);
      }
    };
    await holdBack('yes');
    const name = `${victim!.host}:${victim!.port}`;
    await victim!.kill();
    // Until the breaker of the dead master leaves it alone.
    const store = storeOf(app);
    for (let i = 0; !store.isBroken; i++) {
      if (i === 2000) throw new Error('no failure was noticed');
      await limiter.consume(`user:${i}`);
    }
    expect(await get('/health/down')).toEqual([503, 'error', failing('down')]);
    await holdBack('no');
    // All that is asked from now on.
    await until(async () => (await get('/health/down'))[0] === 200);
    expect(await get('/health/down')).toEqual([200, 'ok', { status: 'up', source: 'redis' }]);
    expect(store.isBroken).toBe(false);
    expect(lines).toContain(`node ${name} of the store no longer has any counters: other nodes have taken them over`);
    for (let i = 0; i < 100; i++) expect((await limiter.consume(`user:${i}`)).source).toBe('redis');
  });

  it('is up in process, where nothing can fail', async () => {
    const { get } = await start({});
    expect(await get('/health/down')).toEqual([200, 'ok', { status: 'up', source: 'memory' }]);
  });

  it('tells of a store of the own that fails in its own way', async () => {
    const store = { check: fail, close: () => Promise.resolve() } as unknown as Store;
    const { get } = await start({ store });
    expect(await get('/health/down')).toEqual([503, 'error', { status: 'down', source: 'fallback', message: MESSAGE }]);
  });

  it('refuses a status that there is not', async () => {
    const { app } = await start({});
    const asking = app.get(RateLimitHealthIndicator).isHealthy('limits', { whileFailing: 'ok' as 'up' });
    await expect(asking).rejects.toThrow(RateLimitArgumentError);
    await expect(asking).rejects.toThrow("whileFailing: expected one of up, degraded, down, received 'ok'");
  });
});
