import { createServer, type Server } from 'node:net';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, Injectable, Module } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import {
  type CheckResult,
  InjectLimiter,
  Limiter,
  LimiterService,
  RateLimit,
  RateLimitConfigError,
  RateLimitDecision,
  RateLimitModule,
  type RateLimitModuleOptions,
  RateLimitStoreError,
} from '../../lib/index.js';
import {
  createTestingStore,
  exhaust,
  expectAllowed,
  expectRefused,
  RateLimitTesting,
  TestClock,
} from '../../lib/testing/index.js';
import { type Framework, frameworks } from '../e2e/http-app.js';

@Injectable()
class Mailer {
  constructor(@InjectLimiter('login') readonly logins: Limiter) {}
}

@Controller('things')
class ThingsController {
  @Get('few')
  @RateLimit({ name: 'few', algo: 'fixed-window', rate: 1, interval: '10s' })
  few(@RateLimitDecision() { tightest }: CheckResult) {
    return { remaining: tightest.remaining };
  }

  @Get('own')
  @RateLimit({ name: 'own', algo: 'fixed-window', rate: 1, interval: '10s', scope: 'instance' })
  own() {}

  @Get('shaped')
  @RateLimit({ name: 'shaped', algo: 'leaky-bucket', rate: 1, interval: '1h', queue: 1 })
  shaped() {}

  @Get('held')
  @RateLimit({ name: 'held', algo: 'concurrency', limit: 1, ttl: '1m' })
  held() {}

  @Get('dear')
  @RateLimit({ name: 'dear', algo: 'gcra', rate: 1, interval: '1s', cost: 5 })
  dear() {}

  @Get('login')
  @RateLimit('login')
  login() {}
}

/** What an app looks like that nobody wrote for a test: its limits are on Redis. */
function appModule(options: RateLimitModuleOptions) {
  @Module({
    imports: [
      RateLimitModule.forRootAsync({
        useFactory: async () => ({
          define: { login: { algo: 'sliding-log', rate: 2, interval: '15m', blockFor: '1h' } },
          ...options,
        }),
      }),
    ],
    controllers: [ThingsController],
    providers: [Mailer],
  })
  class AppModule {}
  return AppModule;
}

describe.each(frameworks)('RateLimitTesting over %s', (framework: Framework) => {
  let redis: Server;
  let connections: number;
  let app: INestApplication | undefined;
  let url: string;

  beforeEach(async () => {
    connections = 0;
    redis = createServer((socket) => {
      connections++;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(redis, 'listening');
  });

  afterEach(async () => {
    await app?.close();
    app = undefined;
    redis.close();
  });

  const builder = (options: RateLimitModuleOptions = {}): TestingModuleBuilder => {
    const { port } = redis.address() as AddressInfo;
    return Test.createTestingModule({ imports: [appModule({ redis: `redis://127.0.0.1:${port}`, ...options })] });
  };

  async function start(from: TestingModuleBuilder): Promise<INestApplication> {
    const testing = await from.compile();
    app =
      framework === 'fastify' ? testing.createNestApplication(new FastifyAdapter()) : testing.createNestApplication();
    await app.listen(0, '127.0.0.1');
    url = await app.getUrl();
    return app;
  }

  async function statuses(path: string, count = 3): Promise<number[]> {
    const all: number[] = [];
    for (let request = 0; request < count; request++) {
      const response = await fetch(`${url}/things/${path}`, { headers: { connection: 'close' } });
      await response.arrayBuffer();
      all.push(response.status);
    }
    return all;
  }

  describe('disable', () => {
    it.each(['few', 'own', 'shaped', 'held', 'dear', 'login'])('lets everything pass: %s', async (path) => {
      await start(RateLimitTesting.disable(builder()));
      expect(await statuses(path)).toEqual([200, 200, 200]);
      expect(connections).toBe(0);
    });

    it('tells handlers and clients that everything is left', async () => {
      await start(RateLimitTesting.disable(builder()));
      const response = await fetch(`${url}/things/few`);
      expect(await response.json()).toEqual({ remaining: 1 });
      expect(response.headers.get('ratelimit')).toBe('"few";r=1;t=0');
    });

    it('lets all code pass, whatever it does', async () => {
      const { logins } = (await start(RateLimitTesting.disable(builder()))).get(Mailer);
      for (let call = 0; call < 5; call++) expectAllowed(await logins.consume('a', 2), { remaining: 2 });
      await logins.block('a', '1h');
      await logins.penalize('a', 2);
      await logins.refund('a', 1);
      await logins.unblock('a');
      await logins.reset('a');
      expectAllowed(await logins.acquire('a', { timeout: 0 }));
      const service = app!.get(LimiterService);
      const held = service.for({ name: 'held', algo: 'concurrency', limit: 1, ttl: '1m' });
      const inside = await held.hold('a', (one) =>
        held.hold('a', async (other) => [await one.renew(), await other.renew(), one.id === other.id]),
      );
      expect(inside).toEqual([true, true, false]);
      const bucket = service.for({ name: 'bucket', algo: 'gcra', rate: 1, interval: '1h' });
      for (let call = 0; call < 3; call++)
        expect(await bucket.reserve('a')).toMatchObject({ allowed: true, delayMs: 0 });
      const daily = service.for({ name: 'daily', algo: 'calendar-window', rate: 1, period: 'day', retain: '7d' });
      expect(await daily.history('a')).toEqual([]);
      await service.setRate('login', { rate: 50 });
      expect(await service.getRate('login')).toMatchObject({ options: { rate: 50 } });
      expect(connections).toBe(0);
    });

    it('still refuses wrong options', async () => {
      const wrong = RateLimitTesting.disable(builder({ limits: [{ algo: 'gcra', rate: 0, interval: '1s' }] }));
      await expect(wrong.compile()).rejects.toThrow(RateLimitConfigError);
    });
  });

  describe('useStore', () => {
    it('counts on the clock of the test, without Redis', async () => {
      const clock = new TestClock();
      const store = createTestingStore({ clock });
      await start(RateLimitTesting.useStore(builder(), store));
      expect(await statuses('few', 2)).toEqual([200, 429]);
      clock.advance('9s');
      expect(await statuses('few', 1)).toEqual([429]);
      clock.advance('1s');
      expect(await statuses('few', 2)).toEqual([200, 429]);
      expect(connections).toBe(0);
    });

    it('moves limits of an instance, too', async () => {
      const clock = new TestClock();
      await start(RateLimitTesting.useStore(builder(), createTestingStore({ clock })));
      expect(await statuses('own', 2)).toEqual([200, 429]);
      clock.advance('10s');
      expect(await statuses('own', 2)).toEqual([200, 429]);
    });

    it('lets a test use up what a route allows', async () => {
      const clock = new TestClock();
      await start(RateLimitTesting.useStore(builder(), createTestingStore({ clock })));
      const { logins } = app!.get(Mailer);
      await exhaust(logins, 'ip:127.0.0.1');
      expect(await statuses('login', 1)).toEqual([429]);
      expectRefused(await logins.peek('ip:127.0.0.1'), { limit: 'login', retryAfterMs: 3_600_000 });
      clock.advance('1h');
      expect(await statuses('login')).toEqual([200, 200, 429]);
    });

    it('leaves the store as it is when the app closes', async () => {
      const store = createTestingStore();
      await start(RateLimitTesting.useStore(builder(), store));
      await statuses('few', 1);
      await app!.close();
      await start(RateLimitTesting.useStore(builder(), store));
      expect(await statuses('few', 1)).toEqual([429]);
      await store.close();
      expect(await statuses('few', 1)).toEqual([200]);
    });

    it('does what onStoreError says with a store that fails', async () => {
      const store = createTestingStore();
      store.check = () => Promise.reject(new RateLimitStoreError('down'));
      await start(RateLimitTesting.useStore(builder({ onStoreError: 'deny' }), store).setLogger(silent));
      expect(await statuses('few', 1)).toEqual([503]);
    });
  });

  describe('decisions$', () => {
    const replacements: [string, (from: TestingModuleBuilder) => TestingModuleBuilder, string[]][] = [
      ['useStore', (from) => RateLimitTesting.useStore(from, createTestingStore()), ['allowed', 'refused']],
      ['disable', (from) => RateLimitTesting.disable(from), ['allowed', 'allowed']],
    ];

    it.each(replacements)(
      'tells of each decision with %s, and completes with the app',
      async (_, replace, outcomes) => {
        await start(replace(builder()));
        const told: string[] = [];
        let isComplete = false;
        app!.get(LimiterService).decisions$.subscribe({
          next: ({ limit, outcome, source }) => told.push(`${limit} ${outcome} ${source}`),
          complete: () => (isComplete = true),
        });
        await statuses('few', 2);
        await statuses('own', 2);
        expect(told).toEqual(['few', 'own'].flatMap((name) => outcomes.map((outcome) => `${name} ${outcome} memory`)));
        await app!.close();
        expect(isComplete).toBe(true);
      },
    );
  });

  it('does what the last call says', async () => {
    const store = createTestingStore();
    await start(RateLimitTesting.useStore(RateLimitTesting.disable(builder()), store));
    expect(await statuses('few', 2)).toEqual([200, 429]);
    await app!.close();
    await start(RateLimitTesting.disable(RateLimitTesting.useStore(builder(), store)));
    expect(await statuses('few', 2)).toEqual([200, 200]);
  });
});

const nothing = () => undefined;
const silent = { log: nothing, error: nothing, warn: nothing };
