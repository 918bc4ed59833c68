import { randomUUID } from 'node:crypto';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  type CanActivate,
  Controller,
  Get,
  Injectable,
  type NestInterceptor,
  type PipeTransform,
  Query,
  Sse,
  StreamableFile,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { catchError, defer, from, interval, map, mergeMap, NEVER, type Observable, of, startWith, timeout } from 'rxjs';
import {
  type LimitDefinition,
  LimiterService,
  RateLimit,
  rateLimitMiddleware,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { Gate } from '../support/time/gate.js';
import { until } from '../support/time/until.js';
import { adapters, HttpApp } from './http-app.js';

/** Work of requests: how much of it is under way, how much has been at most, and what lets it end. */
class Work {
  gate = new Gate();
  now = 0;
  most = 0;
  /** How often a handler was reached behind what was at work before it. */
  handled = 0;

  async do<T>(result: T): Promise<T> {
    this.most = Math.max(this.most, ++this.now);
    try {
      await this.gate.passed;
    } finally {
      this.now--;
    }
    return result;
  }
}
let work = new Work();

@Injectable()
class SlowGuard implements CanActivate {
  canActivate(): Promise<boolean> {
    return work.do(true);
  }
}

@Injectable()
class RefusingGuard implements CanActivate {
  canActivate(): Promise<boolean> {
    return work.do(false);
  }
}

@Injectable()
class SlowPipe implements PipeTransform {
  transform(value: unknown): Promise<unknown> {
    return work.do(value);
  }
}

@Injectable()
class RefusingPipe implements PipeTransform {
  async transform(): Promise<never> {
    await work.do('');
    throw new Error('refused');
  }
}

@Injectable()
class SlowInterceptor implements NestInterceptor {
  async intercept(_: unknown, next: CallHandler): Promise<Observable<unknown>> {
    await work.do('');
    return next.handle();
  }
}

/** Answers in the place of whatever takes long. */
@Injectable()
class ImpatientInterceptor implements NestInterceptor {
  intercept(_: unknown, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(
      timeout(1),
      catchError(() => of('another answer')),
    );
  }
}

async function* chunks() {
  yield 'begun ';
  yield await work.do('done');
}

@Controller()
@RateLimit('slots')
class WorkController {
  @Get('handler')
  @UseInterceptors(ImpatientInterceptor)
  handler() {
    return work.do('done');
  }

  @Get('promise')
  @UseInterceptors(ImpatientInterceptor)
  promise() {
    return from(work.do('done'));
  }

  @Get('deferred')
  @UseInterceptors(ImpatientInterceptor)
  deferred() {
    return defer(() => work.do('done')).pipe(map((text) => text.toUpperCase()));
  }

  @Get('piped')
  @UseInterceptors(ImpatientInterceptor)
  piped(@Query('q', SlowPipe) _query: unknown) {
    work.handled++;
  }

  @Get('piped-badly')
  @UseInterceptors(ImpatientInterceptor)
  pipedBadly(@Query('q', RefusingPipe) _query: unknown) {
    work.handled++;
  }

  @Get('intercepted')
  @UseInterceptors(ImpatientInterceptor, SlowInterceptor)
  intercepted() {
    work.handled++;
  }

  @Get('guarded')
  @UseGuards(SlowGuard)
  guarded() {
    work.handled++;
  }

  @Get('guarded-well')
  @UseGuards(RefusingGuard)
  guardedWell() {
    work.handled++;
  }

  @Get('generated')
  generated() {
    return new StreamableFile(Readable.from(chunks()));
  }

  @Sse('events/promise')
  promisedEvents(): Observable<{ data: string }> {
    return from(work.do({ data: 'done' }));
  }

  @Sse('events/mapped')
  mappedEvents(): Observable<{ data: string }> {
    return interval(1).pipe(mergeMap(() => work.do({ data: 'done' }), 1));
  }

  @Sse('events/generated')
  generatedEvents(): Observable<{ data: string }> {
    return from(chunks()).pipe(map((data) => ({ data })));
  }

  @Sse('events/endless')
  endlessEvents(): Observable<{ data: string }> {
    return NEVER.pipe(startWith({ data: 'one' }));
  }
}

const slots: LimitDefinition = { algo: 'concurrency', limit: 2, ttl: '30s', key: 'global' };

describe.each(adapters)('a slot over %s', (framework) => {
  let app: HttpApp;
  /** Requests that have come, and those whose connection is open. */
  const seen = new Set<string>();
  const open = new Set<string>();

  afterEach(async () => {
    work.gate.open();
    await app.close();
  });

  async function start(limits: RateLimitModuleOptions = {}) {
    work = new Work();
    app = await HttpApp.start(framework, {
      controllers: [WorkController],
      limits: { define: { slots }, ...limits },
      configure: (nest) =>
        nest
          .use((req: IncomingMessage, res: ServerResponse, next: () => void) => {
            const id = String(req.headers['x-id']);
            seen.add(id);
            open.add(id);
            // The response of another's adapter only holds Node's own.
            (('raw' in res ? res.raw : res) as ServerResponse).once('close', () => open.delete(id));
            next();
          })
          .use(rateLimitMiddleware(nest)),
    });
  }
  const left = async () => (await app.nest.get(LimiterService).for('slots').peek('global')).remaining;

  /** Asks, and leaves once the request is where it stays: at work, answered or refused. */
  async function askAndLeave(path: string, isThere: () => boolean): Promise<void> {
    const id = randomUUID();
    const asked = request(app.url + path, { headers: { 'x-id': id }, agent: false });
    let answered = false;
    asked.on('error', () => undefined).end();
    asked.on('response', (response) => {
      answered = true;
      response.resume();
    });
    await until(() => seen.has(id) && (answered || isThere()));
    asked.destroy();
    await until(() => !open.has(id));
  }

  it.each(['/handler', '/promise', '/deferred', '/piped', '/piped-badly', '/intercepted'])(
    'is held while %s is at work, though an interceptor has answered in its place',
    async (path) => {
      await start();
      const statuses = await app.statuses(10, path);
      expect(statuses).toEqual([200, 200, ...Array.from({ length: 8 }, () => 429)]);
      expect([work.most, await left()]).toEqual([2, 0]);
      work.gate.open();
      await until(async () => (await left()) === 2);
      // Those whose pipes or interceptors were given up are not handled any more.
      expect(work.handled).toBe(0);
    },
  );

  it.each(['/guarded', '/guarded-well', '/generated', '/events/promise', '/events/mapped', '/events/generated'])(
    'is held while %s is at work, though its client has left',
    async (path) => {
      await start();
      for (let client = 1; client <= 10; client++) await askAndLeave(path, () => work.now >= Math.min(client, 2));
      expect([work.most, await left()]).toEqual([2, 0]);
      work.gate.open();
      await until(async () => (await left()) === 2);
      expect(work.handled).toBe(0);
    },
  );

  it('of a middleware is held while a guard is at work, though its client has left', async () => {
    await start({
      define: { slots: { ...slots, limit: 9 } },
      limits: [{ ...slots, name: 'early', phase: 'middleware' }],
    });
    for (let client = 1; client <= 5; client++) await askAndLeave('/guarded', () => work.now >= Math.min(client, 2));
    expect([work.most, (await app.get('/handler')).status]).toEqual([2, 429]);
    work.gate.open();
    await until(async () => (await app.get('/handler')).status === 200);
  });

  it('is free at once when a client leaves that only listens', async () => {
    await start();
    for (let client = 1; client <= 3; client++) {
      await askAndLeave('/events/endless', () => false);
      await until(async () => (await left()) === 2);
    }
  });
});
