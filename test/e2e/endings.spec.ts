import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  Body,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ArgumentsHost,
  Get,
  HttpCode,
  HttpException,
  Injectable,
  Logger,
  Post,
  Query,
  Sse,
  UnauthorizedException,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { interval, map, type Observable, take } from 'rxjs';
import { RateLimitDecision } from '../../lib/decorators/rate-limit-decision.decorator.js';
import { RateLimit } from '../../lib/decorators/rate-limit.decorator.js';
import type { LimitDefinition, Outcome } from '../../lib/limit-definition.js';
import { LimiterService } from '../../lib/limiter.service.js';
import type { RequestDecision } from '../../lib/request/request-decision.js';
import { type AppOptions, frameworks, HttpApp } from './http-app.js';

const fifteen = (more: Partial<LimitDefinition>): LimitDefinition =>
  ({ algo: 'sliding-log', rate: 5, interval: '15m', ...more }) as LimitDefinition;

const strict: LimitDefinition = { algo: 'fixed-window', rate: 2, interval: '1m', blockFor: '15m' };

/** Refuses who has no password. */
@Injectable()
class PasswordGuard implements CanActivate {
  canActivate(): boolean {
    throw new UnauthorizedException();
  }
}

/** Answers 200 whatever happened. */
@Catch()
class ForgivingFilter implements ExceptionFilter {
  catch(_: unknown, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<{ status(code: number): { send(body: string): void } }>();
    response.status(200).send('forgiven');
  }
}

let inside = 0;
let most = 0;

@Controller()
class Routes {
  @Post('login')
  @HttpCode(200)
  @RateLimit(fifteen({ name: 'login', count: 'failed' }))
  login(@Query('right') right?: string): string {
    if (right === undefined) throw new UnauthorizedException();
    return 'welcome';
  }

  @Get('guarded')
  @UseGuards(PasswordGuard)
  @RateLimit(fifteen({ name: 'guarded', count: 'failed' }))
  guarded(): void {}

  @Get('forgiven')
  @UseFilters(ForgivingFilter)
  @RateLimit(fifteen({ name: 'forgiven', count: 'failed' }))
  forgiven(): void {
    throw new Error('never mind');
  }

  @Get('bought')
  @RateLimit(fifteen({ name: 'bought', count: 'succeeded' }))
  bought(@Query('broken') broken?: string): void {
    if (broken !== undefined) throw new HttpException('broken', 500);
  }

  @Get('teapots')
  @RateLimit(fifteen({ name: 'teapots', count: ({ statusCode }: Outcome) => statusCode === 418 }))
  teapots(@Query('code') code: string): void {
    throw new HttpException('as you wish', Number(code));
  }

  @Get('confused')
  @RateLimit(
    fifteen({
      name: 'confused',
      count: () => {
        throw new Error('confused');
      },
    }),
  )
  confused(): void {}

  @Get('slow')
  @RateLimit(
    { name: 'slots', algo: 'concurrency', limit: 2, ttl: '1m' },
    { name: 'beside', algo: 'fixed-window', rate: 10, interval: '1m' },
  )
  async slow(@Query('ms') ms = '20', @Query('broken') broken?: string): Promise<void> {
    most = Math.max(most, ++inside);
    await sleep(Number(ms));
    inside--;
    if (broken !== undefined) throw new Error('broken');
  }

  @Get('slow-guarded')
  @UseGuards(PasswordGuard)
  @RateLimit({ name: 'slots', algo: 'concurrency', limit: 2, ttl: '1m' })
  slowGuarded(): void {}

  @Get('long')
  @RateLimit({ name: 'long', algo: 'concurrency', limit: 1, ttl: 200 })
  async long(): Promise<void> {
    await sleep(600);
  }

  @Sse('events')
  @RateLimit({ name: 'events', algo: 'concurrency', limit: 1, ttl: '1m' })
  events(): Observable<{ data: number }> {
    return interval(10).pipe(
      take(1000),
      map((data) => ({ data })),
    );
  }

  @Post('answers')
  @HttpCode(200)
  @RateLimit(
    { name: 'tokens', algo: 'token-bucket', rate: 1000, interval: '1h', cost: () => 500 },
    { name: 'requests', algo: 'fixed-window', rate: 10, interval: '1h' },
  )
  async answers(
    @RateLimitDecision() decision: RequestDecision,
    @Body() { actual, name }: { actual: number; name?: string },
  ): Promise<RequestDecision> {
    await decision.settle(actual, name);
    await decision.settle(0, name);
    return decision;
  }

  @Get('strict')
  @RateLimit('strict')
  strict(): void {}
}

const left = (response: Response, name: string) =>
  Number(new RegExp(`"${name}";r=(\\d+)`).exec(response.headers.get('ratelimit') ?? '')?.[1]);

describe.each(frameworks)('the end of a request over %s', (framework) => {
  let app: HttpApp;
  const start = async (limits: AppOptions['limits'] = {}) => {
    inside = 0;
    most = 0;
    app = await HttpApp.start(framework, { controllers: [Routes], limits: { define: { strict }, ...limits } });
  };
  afterEach(async () => {
    jest.restoreAllMocks();
    await app.close();
  });

  const post = (path: string, body?: object) =>
    fetch(app.url + path, {
      method: 'POST',
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });

  async function send(path: string): Promise<Socket> {
    const { hostname, port } = new URL(app.url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`, resolve));
    return socket;
  }

  /** What is left of a limit in the end: units come back a moment after the response. */
  async function settlesAt(path: string, name: string, expected: number): Promise<void> {
    let seen = NaN;
    for (let tries = 0; tries < 50 && seen !== expected; tries++) {
      await sleep(5);
      seen = left(await app.get(path), name);
    }
    expect(seen).toBe(expected);
  }

  describe('count', () => {
    it('failed: successful logins are free', async () => {
      await start();
      for (let i = 0; i < 12; i++) expect((await post('/login?right')).status).toBe(200);
      await sleep(20);
      for (let i = 0; i < 5; i++) expect((await post('/login')).status).toBe(401);
      expect((await post('/login?right')).status).toBe(429);
      app.clock.advanceMs(15 * 60_000);
      expect((await post('/login?right')).status).toBe(200);
    });

    it('failed: a burst cannot slip through', async () => {
      await start();
      const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await post('/login')).status));
      expect(statuses.filter((status) => status === 401)).toHaveLength(5);
      expect(statuses.filter((status) => status === 429)).toHaveLength(15);
    });

    it('failed: what a later guard refuses counts', async () => {
      await start();
      expect(await app.statuses(6, '/guarded')).toEqual([401, 401, 401, 401, 401, 429]);
    });

    it('failed: what a filter answered is what counts', async () => {
      await start();
      for (let i = 0; i < 8; i++) {
        expect((await app.get('/forgiven')).status).toBe(200);
        await sleep(5);
      }
    });

    it('succeeded: what failed is free', async () => {
      await start();
      for (let i = 0; i < 8; i++) {
        expect((await app.get('/bought?broken')).status).toBe(500);
        await sleep(5);
      }
      expect(await app.statuses(6, '/bought')).toEqual([200, 200, 200, 200, 200, 429]);
    });

    it('a function says it', async () => {
      await start();
      for (let i = 0; i < 8; i++) {
        expect((await app.get('/teapots?code=404')).status).toBe(404);
        await sleep(5);
      }
      expect(await app.statuses(6, '/teapots?code=418')).toEqual([418, 418, 418, 418, 418, 429]);
    });

    it('a function that fails makes nothing free', async () => {
      jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
      await start();
      expect(await app.statuses(6, '/confused')).toEqual([200, 200, 200, 200, 200, 429]);
    });
  });

  describe('concurrency', () => {
    it('lets no more in than the limit, and charges nothing that it refuses', async () => {
      await start();
      const responses = await Promise.all(Array.from({ length: 8 }, () => app.get('/slow?ms=100')));
      expect(responses.filter(({ status }) => status === 200)).toHaveLength(2);
      expect(most).toBe(2);
      const after = await app.get('/slow');
      expect(after.status).toBe(200);
      expect(left(after, 'beside')).toBe(7);
      expect(after.headers.get('ratelimit-policy')).toBe('"slots";q=2;qu="concurrent-requests", "beside";q=10;w=60');
    });

    it.each(['/slow', '/slow?broken', '/slow-guarded'])('is released when the response ends, %s', async (path) => {
      await start();
      for (let i = 0; i < 5; i++) expect((await app.get(path)).status).not.toBe(429);
    });

    it('is released when the client goes away', async () => {
      await start();
      const sockets = [await send('/slow?ms=800'), await send('/slow?ms=800')];
      await sleep(30);
      expect((await app.get('/slow')).status).toBe(429);
      for (const socket of sockets) socket.destroy();
      await settlesAt('/slow', 'slots', 1);
    });

    it('is held as long as a stream of events', async () => {
      await start();
      const socket = await send('/events');
      await sleep(50);
      expect((await app.get('/events')).status).toBe(429);
      socket.destroy();
      await sleep(30);
      const aborting = new AbortController();
      const next = await fetch(`${app.url}/events`, { signal: aborting.signal });
      expect(next.status).toBe(200);
      aborting.abort();
    });

    it('is renewed as long as the handler runs', async () => {
      // On the clock of the process.
      await start({ store: undefined as never });
      const running = app.get('/long');
      await sleep(450);
      expect((await app.get('/long')).status).toBe(429);
      expect((await running).status).toBe(200);
      expect((await app.get('/long')).status).toBe(200);
    });
  });

  describe('settle', () => {
    it.each<[string, object, number, number]>([
      ['gives back what was too much', { actual: 100 }, 400, 8],
      ['charges what was too little, which refuses the next', { actual: 700 }, 300, 9],
      ['of a named limit', { actual: 0, name: 'requests' }, 0, 9],
    ])('%s, once', async (_, body, tokens, requests) => {
      await start();
      const response = await post('/answers', body);
      expect(await response.json()).toEqual({
        allowed: true,
        delayMs: 0,
        tightest: expect.objectContaining({ limit: 'requests', remaining: 9 }),
        decisions: [expect.objectContaining({ limit: 'tokens' }), expect.objectContaining({ limit: 'requests' })],
      });
      const next = await post('/answers', body);
      expect([left(next, 'tokens'), left(next, 'requests')]).toEqual([tokens, requests]);
    });

    it('refuses a limit that was not charged', async () => {
      jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
      await start();
      expect((await post('/answers', { actual: 1, name: 'other' })).status).toBe(500);
    });
  });

  describe('blockFor', () => {
    it('refuses who was refused, until it is over or unblocked', async () => {
      await start();
      expect(await app.statuses(3, '/strict')).toEqual([200, 200, 429]);
      app.clock.advanceMs(2 * 60_000);
      const blocked = await app.get('/strict');
      expect(blocked.status).toBe(429);
      expect(blocked.headers.get('retry-after')).toBe('780');
      app.clock.advanceMs(780_000);
      expect(await app.statuses(3, '/strict')).toEqual([200, 200, 429]);
      app.clock.advanceMs(2 * 60_000);
      await app.nest.get(LimiterService).for('strict').unblock('ip:127.0.0.1');
      expect((await app.get('/strict')).status).toBe(200);
    });
  });
});
