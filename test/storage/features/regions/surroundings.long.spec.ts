import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import {
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitHealthIndicator,
  RateLimitModule,
} from '../../../../lib/index.js';
import { createTestingStore, exhaust, RateLimitTesting, TestClock } from '../../../../lib/testing/index.js';
import { RateLimitConsoleModule } from '../../../../lib/console/index.js';
import { type Lookup, OpsGuard, PAGE } from '../../../console/console-app.js';
import { type RedisCluster, startCluster } from '../../../support/redis/redis-servers.js';
import { freshPrefix } from '../../../support/limits/stores.js';
import { until } from '../../../support/time/until.js';
import { World } from './world.js';

const define = {
  shared: { algo: 'sliding-window', rate: 100, interval: '1h', scope: 'world', key: 'global' },
  budget: { algo: 'budget', limit: 50, period: 'year', scope: 'world' },
  here: { algo: 'gcra', rate: 10, interval: '1h' },
} satisfies Record<string, LimitDefinition>;

@Controller('reports')
class ReportsController {
  @Get()
  @RateLimit('shared')
  list(): void {}
}

const GUIDE = readFileSync('docs/guides/redis-users.md', 'utf8');
/** The rules of all users, and those that regions need besides, as the guide prints them. */
const RULES = /ACL SETUSER \S+ ([^`]+)/.exec(GUIDE)![1]!.trim().split(/\s+/);
const [, IN_REGION = '', AT_HOME = ''] =
  /the user in a region also needs `([^`]+)`, and the user at the home region `([^`]+)`/.exec(
    GUIDE.replaceAll(/\s+/g, ' '),
  )!;

/** A user of a server with these rules. */
const userAt = async (server: { url: string; host: string; port: number }, rules: readonly string[]) => {
  const admin = new Redis(server.url);
  await admin.call('ACL', 'SETUSER', 'limited', ...rules);
  admin.disconnect();
  return `redis://limited:password@${server.host}:${server.port}`;
};

describe('beside limits over several regions', () => {
  let world: World;
  let cluster: RedisCluster | undefined;

  beforeAll(async () => {
    world = await World.start();
  }, 300_000);
  afterAll(async () => {
    await cluster?.stop();
    await world.stop();
  });

  let prefix: string;
  beforeEach(() => {
    prefix = freshPrefix();
  });
  afterEach(() => world.closeApps());

  it('explanations say what they would decide', async () => {
    const app = { limits: { prefix, define }, controllers: [ReportsController] };
    const [eu, us] = [await world.app('eu', app), await world.app('us', app)];
    for (let i = 0; i < 3; i++) await eu.get('/reports');
    const { limits } = await us.limiters.explain({
      controller: ReportsController,
      handler: 'list',
      key: 'ip:127.0.0.1',
    });
    expect(limits).toMatchObject([{ name: 'shared', decision: { allowed: true } }]);
    expect(limits[0]!.state!.remaining).toBeLessThanOrEqual(97);
    expect(await us.limiters.explain({ limit: 'budget', key: 'org' })).toMatchObject({
      limits: [
        {
          name: 'budget',
          decision: { allowed: true },
          state: { remaining: 50, regions: [{ region: 'eu', held: 0 }, { region: 'us' }] },
        },
      ],
    });
    // Nothing was charged.
    expect(await eu.limiters.for('budget').peek('org')).toMatchObject({ remaining: 50 });
  });

  it('the console looks them up, changes and blocks them', async () => {
    const limits = { prefix, define };
    const imports = [RateLimitConsoleModule.forRoot({ guards: [OpsGuard], write: [OpsGuard], path: 'ops/limits' })];
    const us = await world.app('us', { limits, controllers: [ReportsController], imports });
    const eu = await world.app('eu', { limits, controllers: [ReportsController] });
    await us.get('/reports');
    const post = async (path: string, body: object) => {
      const headers = { ...PAGE, 'x-user': 'admin' };
      return fetch(`${us.url}/ops/limits/api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    };
    const lookUp = async () => {
      const { limits: found } = (await (await post('lookup', { identity: 'global' })).json()) as Lookup;
      return found.find(({ limit }) => limit === 'shared');
    };
    expect(await lookUp()).toMatchObject({ quota: 100, remaining: 99, blockedUntil: null });
    const overview = await us.get('/ops/limits/api/overview', { ...PAGE, 'x-user': 'ops' });
    expect(overview.status).toBe(200);
    const blocked = await post('keys/block', {
      limit: 'shared',
      identity: 'global',
      duration: '10m',
      reason: 'a test',
    });
    expect(blocked.status).toBe(200);
    await until(async () => (await eu.get('/reports')).status === 429);
    expect(await lookUp()).toMatchObject({ remaining: 0, blockedUntil: expect.any(Number) });
  });

  it('health tells whether the store answers', async () => {
    const us = await world.app('us', { limits: { prefix, define } });
    expect(await us.nest.get(RateLimitHealthIndicator).isHealthy('limits')).toMatchObject({
      limits: { status: 'up', source: 'redis' },
    });
  });

  it('tests of apps count in process', async () => {
    const builder = Test.createTestingModule({
      imports: [
        RateLimitModule.forRoot({
          redis: 'redis://127.0.0.1:1',
          regions: { name: 'us', home: 'redis://127.0.0.1:1' },
          define,
        }),
      ],
    });
    RateLimitTesting.useStore(builder, createTestingStore({ clock: new TestClock() }));
    const app = await builder.compile();
    await app.init();
    const limiter = app.get(LimiterService).for('shared');
    await exhaust(limiter, 'a');
    expect(await limiter.consume('a')).toMatchObject({ allowed: false, quota: 100, source: 'memory' });
    await app.close();
  });

  it('limits count in process without Redis, all of their rate', async () => {
    const store = createTestingStore({ clock: new TestClock() });
    for (const place of [{}, { store }]) {
      const app = await Test.createTestingModule({
        imports: [RateLimitModule.forRoot({ ...place, define })],
      }).compile();
      await app.init();
      const service = app.get(LimiterService);
      const limiter = service.for('shared');
      let taken = 0;
      while ((await limiter.consume('a')).allowed) taken++;
      expect(taken).toBe(100);
      const reserved = await service.for('budget').reserve('org', { cost: 50 });
      await reserved.settle(10);
      expect(await service.for('budget').peek('org')).toMatchObject({ remaining: 40, source: 'memory' });
      await app.close();
    }
  });

  it.each([[[]], [['-zadd']]])('users of Redis have the rights that the guide names, but for %j', async (lacking) => {
    const warnings: string[] = [];
    const inRegion = [...RULES, ...IN_REGION.split(' '), ...lacking];
    const redis = await userAt(world.serverOf('us'), inRegion);
    const home = await userAt(world.home, [...RULES, ...AT_HOME.split(' ')]);
    const us = await world.app('us', {
      limits: { define, redis, regions: { name: 'us', home }, onStoreError: 'deny' },
      controllers: [ReportsController],
      logger: { log: () => undefined, error: () => undefined, warn: (text: string) => warnings.push(text) },
    });
    expect(await us.statuses(3, '/reports')).toEqual([200, 200, 200]);
    const limiter = us.limiters.for('budget');
    expect(await limiter.consume('org', 20)).toMatchObject({ allowed: true, source: 'redis' });
    await limiter.refund('org', 5);
    await limiter.block('org', '1m');
    expect(await limiter.consume('org')).toMatchObject({ allowed: false, source: 'redis' });
    await limiter.unblock('org');
    await limiter.reset('org');
    await limiter.history('org', 1);
    expect(await limiter.peek('org')).toMatchObject({ remaining: 50, source: 'redis' });
    await us.limiters.setRate('shared', { rate: 40 });
    await until(async () => (await us.limiters.for('shared').peek('x')).quota === 40);
    // Units that are left behind by instances could not be found.
    const isTold = () => warnings.some((text) => text.includes('cannot be recorded in this region'));
    await until(() => isTold() === lacking.length > 0);
    expect(warnings.filter((text) => text.includes('cannot be recorded'))).toHaveLength(lacking.length);
  });

  it('a region may have a Cluster', async () => {
    cluster = await startCluster();
    const redis = { nodes: cluster.nodes };
    const us = await world.app('us', { limits: { prefix, define, redis }, controllers: [ReportsController] });
    const eu = await world.app('eu', { limits: { prefix, define }, controllers: [ReportsController] });
    for (const key of ['a', 'b', 'c']) {
      let taken = 0;
      for (let misses = 0; misses < 4;) {
        for (const { limiters } of [eu, us]) {
          const { allowed } = await limiters.for('budget').consume(key);
          if (allowed) taken++;
          misses = allowed ? 0 : misses + 1;
        }
      }
      expect(taken).toBe(50);
    }
  }, 300_000);
});
