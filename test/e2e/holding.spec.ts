import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  type CallHandler,
  type CanActivate,
  Controller,
  ForbiddenException,
  Get,
  Injectable,
  type NestInterceptor,
  RequestTimeoutException,
  Res,
  Sse,
  StreamableFile,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import type { Redis } from 'ioredis';
import { catchError, interval, map, type Observable, of, throwError, timeout } from 'rxjs';
import { type LimitDefinition, LimiterService, RateLimit } from '../../lib/index.js';
import { connectRedis, ManualClock, storeKinds } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';
import { appKinds, HttpApp, nodeResponse, sendText } from './http-app.js';

const CLIENT = 'ip:127.0.0.1';

/** What the routes share: how often one was reached, and what lets those go on that wait. */
const work = { reached: 0, leave: () => {}, gate: Promise.resolve() };
function closeGate(): void {
  work.reached = 0;
  work.gate = new Promise((resolve) => (work.leave = resolve));
}

@Injectable()
class ClosedGuard implements CanActivate {
  canActivate(): boolean {
    throw new ForbiddenException();
  }
}

@Injectable()
class SlowGuard implements CanActivate {
  async canActivate(): Promise<boolean> {
    work.reached++;
    await work.gate;
    return true;
  }
}

@Injectable()
class ImpatientInterceptor implements NestInterceptor {
  intercept(_: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(
      timeout(1),
      catchError(() => throwError(() => new RequestTimeoutException())),
    );
  }
}

async function* chunks() {
  yield Buffer.from('begun ');
  await work.gate;
  yield Buffer.from('done');
}

@Controller()
class WorkController {
  @Get('quick')
  @RateLimit('slots')
  quick() {
    return 'done';
  }

  @Get('slow')
  @RateLimit('slots')
  async slow() {
    work.reached++;
    await work.gate;
    return 'done';
  }

  @Get('own-answer')
  @RateLimit('slots')
  async ownAnswer(@Res() response: object) {
    work.reached++;
    await work.gate;
    sendText(response, 'done');
  }

  @Get('answered')
  @RateLimit('slots')
  async answered(@Res() response: object) {
    work.reached++;
    sendText(response, 'done');
    await work.gate;
  }

  @Sse('slow-events')
  @RateLimit('slots')
  async slowEvents(): Promise<Observable<{ data: string }>> {
    work.reached++;
    await work.gate;
    return of({ data: 'one' });
  }

  @Get('given-up')
  @UseInterceptors(ImpatientInterceptor)
  @RateLimit('slots')
  async givenUp() {
    work.reached++;
    await work.gate;
    return 'done';
  }

  @Get('guarded-slowly')
  @UseGuards(SlowGuard)
  @RateLimit('slots')
  guardedSlowly() {
    work.reached++;
  }

  @Get('broken')
  @RateLimit('slots')
  broken() {
    throw new TypeError('a bug');
  }

  @Get('guarded')
  @UseGuards(ClosedGuard)
  @RateLimit('slots')
  guarded() {}

  @Get('stream')
  @RateLimit('slots')
  stream() {
    return new StreamableFile(Readable.from(chunks()));
  }

  @Sse('events')
  @RateLimit('slots')
  events(): Observable<{ data: string }> {
    return interval(10).pipe(map((number) => ({ data: String(number) })));
  }

  @Sse('few-events')
  @RateLimit('slots')
  fewEvents() {
    return of({ data: 'one' }, { data: 'two' });
  }

  @Get('both')
  @RateLimit('slots', 'rate')
  async both() {
    work.reached++;
    await work.gate;
  }

  @Get('late')
  @UseGuards(SlowGuard)
  @RateLimit({ name: 'failures', algo: 'fixed-window', rate: 5, interval: '1m', count: 'failed' }, 'late-slots')
  late() {
    work.reached++;
  }

  @Get('login')
  @RateLimit('login')
  login() {}

  @Get('watched')
  @RateLimit({ name: 'watched', algo: 'fixed-window', rate: 1, interval: '1m', blockFor: '15m', mode: 'shadow' })
  watched() {}
}

const slots: LimitDefinition = { algo: 'concurrency', limit: 2, ttl: '30s' };
const define = {
  slots,
  'late-slots': { ...slots, phase: 'authenticated' },
  rate: { algo: 'fixed-window', rate: 3, interval: '1m' },
  login: { algo: 'fixed-window', rate: 2, interval: '1m', blockFor: '15m' },
} satisfies Record<string, LimitDefinition>;

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

describe.each(appKinds)('over %s with %s', (framework, kind) => {
  let app: HttpApp | undefined;
  /** Requests that have come, and responses that have not ended yet. */
  let seen = 0;
  let open = 0;

  afterEach(async () => {
    work.leave();
    await app?.close();
    app = undefined;
  });

  async function start(limits: Record<string, LimitDefinition> = {}) {
    const clock = new ManualClock();
    const store = storeKinds[kind]!(clock, redis);
    seen = open = 0;
    closeGate();
    const started = await HttpApp.start(framework, {
      controllers: [WorkController],
      limits: {
        store,
        define: { ...define, ...limits },
      },
      configure: (nest) =>
        nest.use((_: unknown, response: ServerResponse, next: () => void) => {
          seen++;
          open++;
          nodeResponse(response).once('close', () => open--);
          next();
        }),
    });
    app = started;
    const service = started.nest.get(LimiterService);
    return {
      clock,
      store,
      service,
      url: started.url,
      get: started.get.bind(started),
      ended: () => until(() => open === 0),
      left: async (name: string) => (await service.for(name).peek(CLIENT)).remaining,
    };
  }

  describe('blockFor', () => {
    it('refuses for the whole of blockFor, though the window is over', async () => {
      const { get, clock, service } = await start();
      const statusAndWait = async () => {
        const { status, headers } = await get('/login');
        return [status, headers.get('retry-after')];
      };
      expect([await statusAndWait(), await statusAndWait()]).toEqual([
        [200, null],
        [200, null],
      ]);
      expect(await statusAndWait()).toEqual([429, '900']);
      clock.advanceMs(120_000);
      // Asking again does not make it longer.
      for (let request = 0; request < 2; request++) expect(await statusAndWait()).toEqual([429, '780']);
      expect(await service.for('login').peek(CLIENT)).toMatchObject({
        allowed: false,
        remaining: 0,
        retryAfterMs: 780_000,
        resetAfterMs: 780_000,
      });
      clock.advanceMs(779_999);
      expect(await statusAndWait()).toEqual([429, '1']);
      clock.advanceMs(1);
      expect(await statusAndWait()).toEqual([200, null]);
    });

    it('ends when code says so', async () => {
      const { get, clock, service } = await start();
      const statuses = async () => [(await get('/login')).status, (await get('/login')).status];
      expect([await statuses(), await statuses()]).toEqual([
        [200, 200],
        [429, 429],
      ]);
      clock.advanceMs(60_000);
      expect((await get('/login')).status).toBe(429);
      await service.for('login').unblock(CLIENT);
      expect([await statuses(), await statuses()]).toEqual([
        [200, 200],
        [429, 429],
      ]);
    });

    it('refuses no request in shadow mode, and reports it', async () => {
      const { get, clock } = await start();
      const told = async () => {
        const { status, headers } = await get('/watched');
        return [status, headers.get('ratelimit')];
      };
      expect(await told()).toEqual([200, '"watched";r=0;t=60']);
      expect(await told()).toEqual([200, '"watched";r=0;t=900']);
      clock.advanceMs(60_000);
      expect(await told()).toEqual([200, '"watched";r=0;t=840']);
    });
  });

  describe('concurrency', () => {
    it('lets so many in at once, tells how many, and the next when one is done', async () => {
      const { get, ended, left } = await start();
      const inside = [get('/slow'), get('/slow')];
      await until(() => work.reached === 2);
      const refused = await get('/quick');
      expect(refused.status).toBe(429);
      expect(refused.headers.get('ratelimit-policy')).toBe('"slots";q=2;qu="concurrent-requests"');
      // Not that of the leases, which are released long before they end.
      const wait = Number(refused.headers.get('retry-after'));
      expect(wait).toBeGreaterThanOrEqual(1);
      expect(wait).toBeLessThan(30);
      expect(refused.headers.get('ratelimit')).toBe(`"slots";r=0;t=${wait}`);
      work.leave();
      for (const { status } of await Promise.all(inside)) expect(status).toBe(200);
      await ended();
      expect(await left('slots')).toBe(2);
      expect((await get('/quick')).headers.get('ratelimit')).toBe('"slots";r=1;t=30');
    });

    it('holds its cost', async () => {
      const { get, left, ended } = await start({ slots: { algo: 'concurrency', limit: 5, ttl: '30s', cost: 3 } });
      const inside = get('/slow');
      await until(() => work.reached === 1);
      expect([await left('slots'), (await get('/quick')).status]).toEqual([2, 429]);
      work.leave();
      await inside;
      await ended();
      expect(await left('slots')).toBe(5);
    });

    it('holds and charges all limits of a check, or none', async () => {
      const { get, left, ended } = await start();
      const inside = [get('/both'), get('/both')];
      await until(() => work.reached === 2);
      expect([(await get('/both')).status, await left('rate')]).toEqual([429, 1]);
      work.leave();
      await Promise.all(inside);
      await ended();
      expect([await left('slots'), await left('rate')]).toEqual([2, 1]);
      expect([(await get('/both')).status, (await get('/both')).status]).toEqual([200, 429]);
      await ended();
      expect([await left('slots'), await left('rate')]).toEqual([2, 0]);
    });

    it.each([
      ['/quick', 200],
      ['/broken', 500],
      ['/guarded', 403],
      ['/few-events', 200],
    ])('%s, answered with %d, holds nothing afterwards', async (path, status) => {
      const { get, left, ended } = await start();
      for (let request = 0; request < 3; request++) {
        const response = await get(path);
        await response.text();
        await ended();
        expect([response.status, await left('slots')]).toEqual([status, 2]);
      }
    });

    it.each(['/slow', '/own-answer', '/answered', '/slow-events'])(
      '%s is held while its handler runs, though its clients have left',
      async (path) => {
        const { url, get, left, ended } = await start();
        for (let round = 0; round < 5; round++) {
          const leaving = new AbortController();
          const asked = [1, 2, 3].map(async () => {
            const response = await fetch(url + path, { signal: leaving.signal }).catch(() => undefined);
            // Some have had an answer, of which they do not wait for the end.
            await response?.text().catch(() => undefined);
          });
          await until(() => work.reached >= 2 && seen === 3 * (round + 1) && open <= 2);
          leaving.abort();
          await Promise.all(asked);
          await ended();
        }
        expect([work.reached, await left('slots')]).toEqual([2, 0]);
        expect((await get('/quick')).status).toBe(429);
        work.leave();
        await until(async () => (await left('slots')) === 2);
        expect((await get('/quick')).status).toBe(200);
      },
    );

    it('is held while its handler runs, though an interceptor has given it up', async () => {
      const { get, left } = await start();
      for (let round = 0; round < 2; round++) expect((await get('/given-up')).status).toBe(408);
      for (let round = 0; round < 5; round++) expect((await get('/given-up')).status).toBe(429);
      expect([work.reached, await left('slots')]).toEqual([2, 0]);
      work.leave();
      await until(async () => (await left('slots')) === 2);
    });

    it('is held while a guard is at work, though its client has left, and then no handler runs', async () => {
      const { url, left, ended } = await start();
      const leaving = new AbortController();
      const asked = [1, 2].map(() => fetch(`${url}/guarded-slowly`, { signal: leaving.signal }).catch(() => undefined));
      await until(() => work.reached === 2);
      leaving.abort();
      await Promise.all(asked);
      await ended();
      expect(await left('slots')).toBe(0);
      work.leave();
      await until(async () => (await left('slots')) === 2);
      // The guard reached it, and the handler did not.
      expect([work.reached, await left('slots')]).toEqual([2, 2]);
    });

    it('is not taken if the client went away while a guard was at work', async () => {
      const { url, get, left, ended } = await start();
      const leaving = new AbortController();
      const gone = fetch(`${url}/late`, { signal: leaving.signal });
      await until(() => work.reached === 1);
      leaving.abort();
      await expect(gone).rejects.toThrow('abort');
      await ended();
      work.leave();
      // What follows the guard has been decided once another request is answered.
      await get('/nowhere');
      expect([work.reached, await left('late-slots')]).toEqual([1, 2]);
    });

    it('is held while a stream is sent', async () => {
      const { get, left, ended } = await start();
      const response = await get('/stream');
      expect([response.status, await left('slots')]).toEqual([200, 1]);
      work.leave();
      expect(await response.text()).toBe('begun done');
      await ended();
      expect(await left('slots')).toBe(2);
    });

    it('is held as long as a client listens to events', async () => {
      const { url, left, ended } = await start();
      const leaving = new AbortController();
      const response = await fetch(`${url}/events`, { signal: leaving.signal });
      await response.body?.getReader().read();
      expect(await left('slots')).toBe(1);
      leaving.abort();
      await ended();
      expect(await left('slots')).toBe(2);
    });

    it('is held as long as the handler takes, also beyond ttl', async () => {
      const ttlMs = 30_000;
      const timers = jest.spyOn(globalThis, 'setInterval');
      const { get, clock, store, left, ended } = await start({ slots: { algo: 'concurrency', limit: 1, ttl: ttlMs } });
      const renewed = jest.spyOn(store, 'renew');
      const inside = get('/slow');
      await until(() => work.reached === 1);
      const renewing = timers.mock.calls.filter(([, ms]) => ms! <= ttlMs / 2 && ms! >= ttlMs / 10);
      timers.mockRestore();
      expect(renewing).toHaveLength(1);
      const [renew, everyMs] = renewing[0]!;
      for (let ms = 0; ms < 3 * ttlMs; ms += everyMs!) {
        clock.advanceMs(everyMs!);
        renew();
        expect(await renewed.mock.results.at(-1)!.value).toBe(true);
      }
      expect((await get('/quick')).status).toBe(429);
      work.leave();
      expect((await inside).status).toBe(200);
      await ended();
      expect(await left('slots')).toBe(1);
      expect((await get('/quick')).status).toBe(200);
    });
  });
});
