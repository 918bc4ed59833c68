import { afterAll, afterEach, beforeAll, describe, expect } from '@jest/globals';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  type ModuleMetadata,
  UnauthorizedException,
  UseGuards,
} from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  type LimitDefinition,
  type Limiter,
  RateLimit,
  RateLimitModule as Limits,
  type RateLimitModuleOptions,
  RateLimitStoreError,
} from '../../lib/index.js';
import { expectAllowed, expectRefused } from '../../lib/testing/index.js';
import { until } from '../app/overrides/overrides-app.js';
import { type RedisServer, startRedis } from '../support/redis/redis-servers.js';
import { connectRedis, freshPrefix } from '../support/limits/stores.js';
import { patient } from '../support/redis/patience.mjs';
import { Rows } from './rows.js';
import { TriedApp } from './tried-app.js';

/** Waits for Redis as long as a slow machine takes. */
const RateLimitModule = {
  forRoot: (options: RateLimitModuleOptions = {}) => Limits.forRoot(patient(options)),
};

interface Request {
  ip: string;
  headers: Record<string, string | undefined>;
  user?: { id: string };
}

const requestOf = (context: ExecutionContext) => context.switchToHttp().getRequest<Request>();
const key = 'user:1';

@Controller()
class PlainController {
  @Get()
  all() {}
}
const few: LimitDefinition = { name: 'few', algo: 'fixed-window', rate: 5, interval: '15m' };

describe('moving over from rate-limiter-flexible', () => {
  const rows = new Rows(
    'docs/migrating-from-rate-limiter-flexible.md',
    'test/docs/migrating-from-rate-limiter-flexible.long.spec.ts',
  );
  let server: RedisServer;
  let app: TriedApp | undefined;

  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(() => server.stop());

  afterEach(async () => {
    server.resume();
    await app?.close();
    app = undefined;
  });

  const start = async (metadata: ModuleMetadata, options?: Parameters<typeof TriedApp.start>[1]) =>
    (app = await TriedApp.start(metadata, options));
  const startPlain = () => start({ imports: [RateLimitModule.forRoot()] });
  /** A limiter of which one unit is taken. */
  const startUsed = async (): Promise<Limiter> => {
    const limiter = (await startPlain()).limiters.for(few);
    await limiter.consume(key);
    return limiter;
  };

  rows.tried('new RateLimiterRedis({ storeClient, … })', async () => {
    const storeClient = await connectRedis();
    const { limiters } = await start(
      { imports: [RateLimitModule.forRoot({ redis: storeClient })] },
      { ownStore: true },
    );
    const limiter = limiters.for({ ...few, name: freshPrefix() });
    expect(await limiter.consume(key)).toMatchObject({ allowed: true, remaining: 4, source: 'redis' });
    await limiter.reset(key);
    await app?.close();
    app = undefined;
    expect(storeClient.status).toBe('ready');
    await storeClient.quit();
  });

  rows.tried('new RateLimiterMemory({ … })', async () => {
    const { limiters } = await start({ imports: [RateLimitModule.forRoot()] }, { ownStore: true });
    expect(await limiters.for(few).consume(key)).toMatchObject({ allowed: true, source: 'memory' });
    await app?.close();
    const redis = server.url;
    const beside = await start({ imports: [RateLimitModule.forRoot({ redis })] }, { ownStore: true });
    expect(await beside.limiters.for(few).consume(key)).toMatchObject({ source: 'redis' });
    const own = beside.limiters.for({ ...few, name: 'own', scope: 'instance' });
    expect(await own.consume(key)).toMatchObject({ source: 'memory' });
  });

  rows.tried("{ keyPrefix: 'login', points: 5, duration: 900 }", async () => {
    const { limiters, clock } = await startPlain();
    const limiter = limiters.for({ name: 'login', algo: 'fixed-window', rate: 5, interval: '15m' });
    expectAllowed(await limiter.consume(key, 5), { remaining: 0 });
    clock.advance('14m');
    expectRefused(await limiter.consume(key), { limit: 'login', retryAfterMs: 60_000 });
    clock.advance('1m');
    expectAllowed(await limiter.consume(key), { remaining: 4 });
  });

  rows.tried('blockDuration: 900', async () => {
    const { limiters, clock } = await startPlain();
    const limiter = limiters.for({ algo: 'fixed-window', rate: 1, interval: '1m', blockFor: '15m' });
    await limiter.consume(key);
    expectRefused(await limiter.consume(key), { retryAfterMs: 900_000 });
    clock.advance('14m');
    expectRefused(await limiter.consume(key), { retryAfterMs: 60_000 });
    clock.advance('1m');
    expectAllowed(await limiter.consume(key));
    const short = limiters.for({ name: 'short', algo: 'fixed-window', rate: 2, interval: '1m', blockFor: '2s' });
    await short.consume(key, 2);
    expectRefused(await short.consume(key), { retryAfterMs: 2000 });
    clock.advance('2300ms');
    expectAllowed(await short.consume(key), { remaining: 1 });
  });

  rows.tried('inMemoryBlockOnConsumed: 5', async () => {
    const { url } = server;
    const prefix = freshPrefix();
    const { limiters } = await start(
      { imports: [RateLimitModule.forRoot({ redis: url, prefix })] },
      { ownStore: true },
    );
    const limiter = limiters.for(few);
    await limiter.consume(key, 5);
    // The first refusals may come before the instance hears of units that others give back.
    await until(async () => (await limiter.consume(key)).source, 'cache');
    await limiter.refund(key, 1);
    expectAllowed(await limiter.consume(key));
  });

  rows.tried('insuranceLimiter: new RateLimiterMemory({ … })', async () => {
    const options = { redis: server.url, prefix: freshPrefix(), define: { local: { ...few, name: 'local' } } };
    const { limiters } = await start({ imports: [Limits.forRoot(options)] }, { ownStore: true });
    const limiter = limiters.for({ ...few, onStoreError: 'local' });
    server.pause();
    expect(await limiter.consume(key, 5)).toMatchObject({ allowed: true, remaining: 0, source: 'fallback' });
    expect(await limiter.consume(key)).toMatchObject({ allowed: false, source: 'fallback' });
    expect(await limiters.for('local').consume(key)).toMatchObject({ allowed: true, source: 'fallback' });
  });

  rows.tried('new RLWrapperTimeouts({ limiter, timeoutMs: 100 })', async () => {
    const options = { redis: server.url, prefix: freshPrefix(), timeout: '100ms' };
    const { limiters } = await start({ imports: [Limits.forRoot(options)] }, { ownStore: true });
    server.pause();
    const before = performance.now();
    expect(await limiters.for(few).consume(key)).toMatchObject({ source: 'fallback' });
    // Its client would wait for as long as the server is paused.
    expect(performance.now() - before).toBeGreaterThanOrEqual(95);
  });

  rows.tried('execEvenly: true', async () => {
    const { limiters } = await startPlain();
    const limiter = limiters.for({ name: 'even', algo: 'leaky-bucket', rate: 10, interval: '1s', queue: 20 });
    expect(await limiter.consume(key)).toMatchObject({ allowed: true, delayMs: 0 });
    expect(await limiter.consume(key)).toMatchObject({ allowed: true, delayMs: 100 });
    expect(await limiter.consume(key)).toMatchObject({ allowed: true, delayMs: 200 });
  });

  rows.tried('new BurstyRateLimiter(limiter, burstLimiter)', async () => {
    const { limiters, clock } = await startPlain();
    const limiter = limiters.for({ name: 'bursty', algo: 'token-bucket', rate: 2, interval: '1s', burst: 7 });
    expectAllowed(await limiter.consume(key, 7));
    expectRefused(await limiter.consume(key), { retryAfterMs: 500 });
    clock.advance('1s');
    expectAllowed(await limiter.consume(key, 2), { remaining: 0 });
  });

  rows.tried('new RateLimiterUnion(perSecond, perMinute).consume(key)', async () => {
    const { limiters } = await startPlain();
    const perSecond = limiters.for({ algo: 'fixed-window', rate: 1, interval: '1s' });
    const perMinute = limiters.for({ algo: 'fixed-window', rate: 5, interval: '1m' });
    const both = () =>
      limiters.check([
        { limit: perSecond, key },
        { limit: perMinute, key },
      ]);
    expectAllowed(await both());
    expectRefused(await both(), { limit: perSecond.name, retryAfterMs: 1000 });
    expectAllowed(await perMinute.peek(key), { remaining: 4 });
  });

  rows.tried('new RateLimiterQueue(limiter).removeTokens(1, key)', async () => {
    const { limiters } = await start({ imports: [RateLimitModule.forRoot()] }, { ownStore: true });
    const limiter = limiters.for({ algo: 'gcra', rate: 1, interval: '50ms' });
    const { signal } = new AbortController();
    const order: number[] = [];
    const waiting = [0, 1, 2].map(async (place) => {
      expectAllowed(await limiter.acquire(key, { timeout: '5s', signal }));
      order.push(place);
    });
    await Promise.all(waiting);
    expect(order).toEqual([0, 1, 2]);
    const late = AbortSignal.abort(new Error('given up'));
    await expect(limiter.acquire(key, { signal: late })).rejects.toThrow('given up');
  });

  rows.tried('new RLWrapperBlackAndWhite({ limiter, whiteList, blackList })', async () => {
    const options: RateLimitModuleOptions = {
      limits: [{ algo: 'fixed-window', rate: 1, interval: '1m' }],
      lists: { allow: [{ ip: '10.0.0.0/8' }], deny: [{ ip: '203.0.113.7' }] },
    };
    const fastify = new FastifyAdapter({ trustProxy: '127.0.0.1' });
    const metadata = { imports: [RateLimitModule.forRoot(options)], controllers: [PlainController] };
    const tried = await start(metadata, { fastify });
    const { limiters } = tried;
    const statuses = tried.statuses.bind(tried);
    expect(await statuses(2, '/', { 'x-forwarded-for': '10.1.2.3' })).toEqual([200, 200]);
    expect(await statuses(1, '/', { 'x-forwarded-for': '203.0.113.7' })).toEqual([403]);
    expect(await statuses(2, '/', { 'x-forwarded-for': '203.0.113.8' })).toEqual([200, 429]);
    await limiters.deny({ ip: '203.0.113.9' });
    expect(await statuses(1, '/', { 'x-forwarded-for': '203.0.113.9' })).toEqual([403]);
    await limiters.unlist({ ip: '203.0.113.9' });
    expect(await statuses(1, '/', { 'x-forwarded-for': '203.0.113.9' })).toEqual([200]);
  });

  rows.tried('limiter.consume(key, 2) that rejects', async () => {
    const limiter = await startUsed();
    const take = async () => {
      const { allowed } = await limiter.consume(key, 2);
      return allowed;
    };
    expect([await take(), await take(), await take()]).toEqual([true, true, false]);
  });

  rows.tried('catch (error) { error instanceof Error }', async () => {
    const options = { redis: server.url, prefix: freshPrefix() };
    const { limiters } = await start({ imports: [Limits.forRoot(options)] }, { ownStore: true });
    const limiter = limiters.for({ ...few, onStoreError: 'deny' });
    server.pause();
    let error: unknown;
    try {
      await limiter.consume(key);
    } catch (caught) {
      error = caught;
    }
    expect(error instanceof RateLimitStoreError).toBe(true);
  });

  rows.tried('limiter.get(key)', async () => {
    const limiter = await startUsed();
    expectAllowed(await limiter.peek(key), { remaining: 4 });
    expectAllowed(await limiter.peek(key), { remaining: 4 });
    expectAllowed(await limiter.peek('user:unknown'), { remaining: 5 });
  });

  rows.tried('limiter.penalty(key, 2)', async () => {
    const limiter = await startUsed();
    await limiter.penalize(key, 2);
    expectAllowed(await limiter.peek(key), { remaining: 2 });
    await limiter.penalize(key, 3);
    await limiter.refund(key, 1);
    expectRefused(await limiter.peek(key));
  });

  rows.tried('limiter.reward(key, 2)', async () => {
    const limiter = await startUsed();
    await limiter.consume(key, 2);
    await limiter.refund(key, 2);
    expectAllowed(await limiter.peek(key), { remaining: 4 });
    await limiter.refund(key, 2);
    expectAllowed(await limiter.peek(key), { remaining: 5 });
  });

  rows.tried('limiter.block(key, 900)', async () => {
    const limiter = await startUsed();
    await limiter.block(key, '15m');
    expectRefused(await limiter.consume(key), { retryAfterMs: 900_000 });
    await limiter.unblock(key);
    expectAllowed(await limiter.consume(key), { remaining: 3 });
    await limiter.reset(key);
    await limiter.block(key, '15m');
    expectRefused(await limiter.consume(key), { retryAfterMs: 900_000 });
    await limiter.unblock(key);
    expectAllowed(await limiter.consume(key), { remaining: 4 });
  });

  rows.tried('limiter.delete(key)', async () => {
    const limiter = await startUsed();
    await limiter.block(key, '15m');
    await limiter.reset(key);
    expectAllowed(await limiter.peek(key), { remaining: 5 });
  });

  rows.tried('limiter.set(key, 3, 900)', async () => {
    const limiter = await startUsed();
    await limiter.reset(key);
    await limiter.penalize(key, 3);
    expect(await limiter.peek(key)).toMatchObject({ remaining: 2, resetAfterMs: 900_000 });
  });

  rows.tried('limiter.points = 50', async () => {
    const login: LimitDefinition = { algo: 'fixed-window', rate: 5, interval: '15m' };
    const { limiters } = await start({ imports: [RateLimitModule.forRoot({ define: { login } })] });
    const limiter = limiters.for('login');
    await limiter.consume(key);
    await limiters.setRate('login', { rate: 50 });
    expectAllowed(await limiter.peek(key), { remaining: 49 });
  });

  rows.tried('res.remainingPoints', async () => {
    const decision = await (await startUsed()).consume(key);
    expect(decision.remaining).toBe(3);
  });

  rows.tried('res.consumedPoints', async () => {
    const decision = await (await startUsed()).consume(key);
    expect(decision.quota - decision.remaining).toBe(2);
  });

  rows.tried('res.msBeforeNext of a refusal', async () => {
    const limiter = await startUsed();
    let decision = await limiter.consume(key, 5);
    expect(decision.retryAfterMs).toBe(900_000);
    decision = await limiter.consume(key, 6);
    expect(decision.retryAfterMs).toBe(Infinity);
  });

  rows.tried('res.msBeforeNext otherwise', async () => {
    const limiter = await startUsed();
    app!.clock.advance('5m');
    const decision = await limiter.consume(key);
    expect(decision.resetAfterMs).toBe(600_000);
  });

  rows.tried('res.isFirstInDuration', async () => {
    const limiter = (await startPlain()).limiters.for(few);
    const cost = 2;
    const isFirst = async () => {
      const decision = await limiter.consume(key, cost);
      return decision.remaining === decision.quota - cost;
    };
    expect([await isFirst(), await isFirst()]).toEqual([true, false]);
    app!.clock.advance('15m');
    expect(await isFirst()).toBe(true);
  });

  rows.tried('a middleware that calls consume(req.ip) and answers 429', async () => {
    @Controller()
    class LimitedController {
      @Get()
      @RateLimit({ algo: 'fixed-window', rate: 10, interval: '1s' })
      all() {}
    }
    const started = await start({ imports: [RateLimitModule.forRoot()], controllers: [LimitedController] });
    expect(await started.statuses(10)).toEqual(Array.from({ length: 10 }, () => 200));
    const refusal = await started.get();
    expect(refusal.status).toBe(429);
    expect(refusal.headers.get('retry-after')).toBe('1');
    expect(refusal.headers.get('ratelimit')).toContain('r=0');
  });

  rows.tried("res.set('X-RateLimit-Remaining', …)", async () => {
    @Controller()
    class AnyController {
      @Get()
      all() {}
    }
    const module = RateLimitModule.forRoot({ headers: 'legacy', limits: [few] });
    const { headers } = await (await start({ imports: [module], controllers: [AnyController] })).get();
    expect(headers.get('x-ratelimit-limit')).toBe('5');
    expect(headers.get('x-ratelimit-remaining')).toBe('4');
    expect(headers.get('x-ratelimit-reset')).toBe('900');
  });

  rows.tried('consume(req.userId ?? req.ip, req.userId ? 1 : 30)', async () => {
    class LoginGuard implements CanActivate {
      canActivate(context: ExecutionContext): boolean {
        const request = requestOf(context);
        const id = request.headers['x-user'];
        if (id !== undefined) request.user = { id };
        return true;
      }
    }
    @Controller()
    @UseGuards(LoginGuard)
    class AnyController {
      @Get()
      @RateLimit({
        algo: 'fixed-window',
        rate: 60,
        interval: '1m',
        phase: 'authenticated',
        key: 'user',
        cost: (context) => (requestOf(context).user ? 1 : 30),
      })
      all() {}
    }
    const started = await start({ imports: [RateLimitModule.forRoot()], controllers: [AnyController] });
    expect(await started.statuses(3)).toEqual([200, 200, 429]);
    expect((await started.get('/', { 'x-user': 'ada' })).headers.get('ratelimit')).toContain('r=59');
  });

  rows.tried('get, then consume when the login failed', async () => {
    @Controller()
    class LoginController {
      @Get()
      @RateLimit({ algo: 'fixed-window', rate: 5, interval: '15m', count: 'failed' })
      login() {}

      @Get('wrong')
      @RateLimit({ algo: 'fixed-window', rate: 1, interval: '15m', count: 'failed' })
      wrong() {
        throw new UnauthorizedException();
      }
    }
    const started = await start({ imports: [RateLimitModule.forRoot()], controllers: [LoginController] });
    expect(await started.statuses(7)).toEqual([200, 200, 200, 200, 200, 200, 200]);
    expect(await started.statuses(2, '/wrong')).toEqual([401, 429]);
  });

  rows.end();
});
