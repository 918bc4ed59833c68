import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type CanActivate, Controller, type ExecutionContext, Get, Injectable, UseGuards } from '@nestjs/common';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test, type TestingModule } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import { type Observable, of, Subject } from 'rxjs';
import {
  type LimitDefinition,
  LimiterService,
  MemoryStore,
  type Outcome,
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
  RedisStore,
} from '../../lib/index.js';
import { npm, PACKAGE_FOLDER } from '../support/processes/npm.js';
import { PATIENCE_MS } from '../support/redis/patience.mjs';
import { ask, compile, connectRedis, freshPrefix, ManualClock, storeKinds } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';
import { interceptorOf } from '../support/nest/app-parts.js';

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

describe.each(Object.entries(storeKinds))('messages of a microservice with %s', (_, make) => {
  const outcomes: Outcome[] = [];
  const seen = (outcome: Outcome) => outcomes.push(outcome) > 0 && outcome.failed;

  @Controller()
  class MessagesController {
    @RateLimit('jobs', { name: 'failures', algo: 'fixed-window', rate: 2, interval: '1m', key: 'global', count: seen })
    handle() {}

    @RateLimit('jobs', 'late')
    late() {}
  }

  let module: TestingModule;
  afterEach(() => module.close());

  async function start() {
    outcomes.length = 0;
    const jobs: LimitDefinition = { algo: 'concurrency', limit: 1, ttl: '30s', key: 'global' };
    const late: LimitDefinition = {
      algo: 'fixed-window',
      rate: 1,
      interval: '1m',
      key: 'global',
      phase: 'authenticated',
    };
    module = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ store: make(new ManualClock(), redis), define: { jobs, late } })],
      controllers: [MessagesController],
    }).compile();
    await module.init();
    const service = module.get(LimiterService);
    const call = async (handler: 'handle' | 'late', work: Observable<unknown>) => {
      const context = {
        getType: () => 'rpc',
        getArgs: () => args,
        getClass: () => MessagesController,
        getHandler: () => MessagesController.prototype[handler],
      } as unknown as ExecutionContext;
      const args = [{ some: 'data' }, {}];
      await module.get(RateLimitGuard).canActivate(context);
      return interceptorOf(module).intercept(context, { handle: () => work });
    };
    return { call, left: async (name: string) => (await service.for(name).peek('global')).remaining };
  }

  it.each<[string, (work: Subject<unknown>, stop: () => void) => void, object]>([
    ['completes', (work) => work.complete(), { failed: false, aborted: false }],
    ['fails', (work) => work.error(new Error('a bug')), { failed: true, error: new Error('a bug'), aborted: false }],
    ['is given up', (_, stop) => stop(), { failed: true, aborted: true }],
  ])('hold something until the work %s', async (_, end, outcome) => {
    const { call, left } = await start();
    const work = new Subject();
    const running = (await call('handle', work)).subscribe({ error: () => undefined });
    work.next('a part');
    expect(await left('jobs')).toBe(0);
    await expect(call('handle', work)).rejects.toMatchObject({ error: { statusCode: 429 } });
    end(work, () => running.unsubscribe());
    expect(await left('jobs')).toBe(1);
    expect(outcomes).toHaveLength(1);
    expect(outcomes[0]).toMatchObject(outcome);
  });

  it('hold nothing if a limit refuses that is checked after the guards', async () => {
    const { call, left } = await start();
    (await call('late', of('done'))).subscribe();
    expect([await left('jobs'), await left('late')]).toEqual([1, 0]);
    await expect(call('late', of('done'))).rejects.toMatchObject({ error: { statusCode: 429 } });
    expect(await left('jobs')).toBe(1);
  });
});

describe('over HTTP/2', () => {
  const key = 'global';
  const failures: LimitDefinition = { algo: 'fixed-window', rate: 5, interval: '1m', key, count: 'failed' };
  const slots: LimitDefinition = { algo: 'concurrency', limit: 1, ttl: '30s', key, phase: 'authenticated' };
  const work = { reached: 0, leave: () => {}, gate: Promise.resolve() };

  @Injectable()
  class SlowGuard implements CanActivate {
    async canActivate(): Promise<boolean> {
      work.reached++;
      await work.gate;
      return true;
    }
  }

  @Controller()
  class WorkController {
    @Get('handler')
    @RateLimit('failures', 'slots')
    async handler() {
      work.reached++;
      await work.gate;
    }

    @Get('guard')
    @UseGuards(SlowGuard)
    @RateLimit('slots')
    guard() {
      work.reached++;
    }
  }

  let app: NestFastifyApplication;
  let client: ClientHttp2Session;
  let service: LimiterService;

  beforeEach(async () => {
    work.reached = 0;
    work.gate = new Promise((resolve) => (work.leave = resolve));
    const store = new MemoryStore({ clock: new ManualClock().now });
    const testing = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ store, define: { failures, slots } })],
      controllers: [WorkController],
    }).compile();
    app = testing.createNestApplication<NestFastifyApplication>(new FastifyAdapter({ http2: true }) as never);
    await app.listen(0, '127.0.0.1');
    client = connect(await app.getUrl());
    service = app.get(LimiterService);
  });
  afterEach(async () => {
    client.destroy();
    await app.close();
  });

  function get(path: string): ClientHttp2Stream {
    const request = client.request({ ':path': path });
    request.on('error', () => undefined).resume();
    return request;
  }
  const left = async (name: string) => (await service.for(name).peek(key)).remaining;

  it('an answer that arrives succeeded', async () => {
    const answer = once(get('/handler'), 'end');
    await until(() => work.reached === 1);
    expect([await left('failures'), await left('slots')]).toEqual([4, 0]);
    work.leave();
    await answer;
    await until(async () => (await left('slots')) === 1);
    expect(await left('failures')).toBe(5);
  });

  it('a client that resets its stream failed, and holds something as long as the handler runs', async () => {
    const request = get('/handler');
    await until(() => work.reached === 1);
    request.close(constants.NGHTTP2_CANCEL);
    // The server has read it once it has answered another stream behind it.
    await once(get('/nowhere'), 'end');
    expect(await left('slots')).toBe(0);
    work.leave();
    await until(async () => (await left('slots')) === 1);
    expect(await left('failures')).toBe(4);
  });

  it('a client that went away while a guard was at work holds nothing', async () => {
    const request = get('/guard');
    await until(() => work.reached === 1);
    request.close(constants.NGHTTP2_CANCEL);
    // The server has read it once it has answered another stream behind it.
    await once(get('/nowhere'), 'end');
    work.leave();
    await once(get('/nowhere'), 'end');
    expect([work.reached, await left('slots')]).toEqual([1, 1]);
  });
});

describe('a process that is killed', () => {
  const WORKER = fileURLToPath(new URL('../support/processes/lease-worker.mjs', import.meta.url));
  const BUILT = fileURLToPath(new URL('../../dist/index.js', import.meta.url));

  beforeAll(async () => {
    if (!existsSync(BUILT)) await npm(['run', 'build'], PACKAGE_FOLDER, 500_000);
  });

  it('holds its units until ttl is over, and no longer', async () => {
    const limit = { algo: 'concurrency', limit: 1, ttl: 9000 } as const;
    const [prefix, key] = [freshPrefix(), 'jobs'];
    const input = { url: process.env['TEST_REDIS_URL'], prefix, name: 'jobs', limit, key };
    const worker = fork(WORKER, [JSON.stringify(input)], { execArgv: [] });
    /** The time at which the store looks, once it is set: it stands still. */
    let stoppedAt: number | undefined;
    const clock = { now: () => stoppedAt ?? Date.now() * 1000, slackMs: 0 };
    const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS, clock });
    const peek = () => ask(store, compile(limit, 'jobs'), { identity: key, peek: true });
    try {
      expect(await once(worker, 'message')).toEqual(['held', undefined]);
      // It renews its lease as long as it lives.
      let [before, renewed] = [Infinity, false];
      await until(async () => {
        stoppedAt = Date.now() * 1000;
        const { retryAfterMs } = await peek();
        renewed ||= retryAfterMs > before;
        before = retryAfterMs;
        return renewed;
      });
      expect(await peek()).toMatchObject({ allowed: false, remaining: 0 });
    } finally {
      worker.kill('SIGKILL');
    }
    await once(worker, 'exit');
    const { allowed, retryAfterMs } = await peek();
    // It may have renewed its lease since.
    const sinceMs = Math.ceil(Date.now() - stoppedAt! / 1000);
    expect([allowed, retryAfterMs > 0 && retryAfterMs <= limit.ttl + sinceMs]).toEqual([false, true]);
    stoppedAt! += (retryAfterMs - 1) * 1000;
    expect(await peek()).toMatchObject({ allowed: false });
    stoppedAt! += 1000;
    expect(await peek()).toMatchObject({ allowed: true, remaining: 1 });
  });
});
