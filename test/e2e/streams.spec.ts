import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createReadStream } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Sse,
  StreamableFile,
  UseGuards,
} from '@nestjs/common';
import type { Redis } from 'ioredis';
import { NEVER, type Observable, of, startWith } from 'rxjs';
import { type LimitDefinition, LimiterService, RateLimit } from '../../lib/index.js';
import { connectRedis, ManualClock, storeKinds } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';
import { everyAppKind, HttpApp } from './http-app.js';
import { variants } from '../support/tier.js';

const minute = { algo: 'fixed-window', rate: 2, interval: '1m' } as const;
const define = {
  address: minute,
  person: { ...minute, rate: 1, key: 'user' },
  slots: { algo: 'concurrency', limit: 1, ttl: '30s' },
  'user-slots': { algo: 'concurrency', limit: 1, ttl: '30s', key: 'user' },
} satisfies Record<string, LimitDefinition>;

@Injectable()
class HeaderAuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ user?: object; headers: Record<string, string> }>();
    request.user = { id: request.headers['x-user'] };
    return true;
  }
}

/** More than connections hold on their way, so that a client that does not read stops the file. */
const FILE_BYTES = 32 * 2 ** 20;
let folder: string;
let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
  folder = await mkdtemp(join(tmpdir(), 'sluice-streams-'));
  await writeFile(join(folder, 'file'), Buffer.alloc(FILE_BYTES, 'x'));
});
afterAll(async () => {
  redis.disconnect();
  await rm(folder, { recursive: true });
});

/** How many streams of events have begun. */
let begun = 0;

@Controller()
class StreamsController {
  @Sse('events')
  @RateLimit('address')
  events(): Observable<{ data: string }> {
    begun++;
    return of({ data: 'one' }, { data: 'two' });
  }

  @Sse('own-events')
  @UseGuards(HeaderAuthGuard)
  @RateLimit('person')
  ownEvents(): Observable<{ data: string }> {
    begun++;
    return of({ data: 'one' });
  }

  @Sse('endless')
  @RateLimit('slots')
  endless(): Observable<{ data: string }> {
    begun++;
    return NEVER.pipe(startWith({ data: 'one' }));
  }

  @Sse('own-endless')
  @UseGuards(HeaderAuthGuard)
  @RateLimit('user-slots')
  ownEndless(): Observable<{ data: string }> {
    begun++;
    return NEVER.pipe(startWith({ data: 'one' }));
  }

  @Get('file')
  @RateLimit('address')
  small() {
    return new StreamableFile(Buffer.from('small'));
  }

  @Get('large-file')
  @RateLimit('slots')
  large() {
    return new StreamableFile(createReadStream(join(folder, 'file')));
  }
}

/** What a client sees of an answer, once it has ended. */
async function seen(response: Response) {
  const { status, headers } = response;
  const type = headers.get('content-type')?.split(';')[0];
  return [
    status,
    type,
    headers.get('ratelimit'),
    headers.get('retry-after'),
    (await response.text()).includes('Too many'),
  ];
}

describe.each(variants(everyAppKind))('streams over %s with %s', (framework, kind) => {
  let app: HttpApp | undefined;
  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  async function start() {
    begun = 0;
    const started = await HttpApp.start(framework, {
      controllers: [StreamsController],
      limits: { store: storeKinds[kind]!(new ManualClock(), redis), define },
    });
    app = started;
    const service = started.nest.get(LimiterService);
    return {
      get: started.get.bind(started),
      open: (path: string, signal: AbortSignal, headers = {}) => fetch(started.url + path, { signal, headers }),
      left: async (name: string, key = 'ip:127.0.0.1') => (await service.for(name).peek(key)).remaining,
    };
  }

  it('events: the headers tell of limits, and a refusal is a 429 before the stream', async () => {
    const { get } = await start();
    expect(await seen(await get('/events'))).toEqual([200, 'text/event-stream', '"address";r=1;t=60', null, false]);
    expect(await seen(await get('/events'))).toEqual([200, 'text/event-stream', '"address";r=0;t=60', null, false]);
    expect(await seen(await get('/events'))).toEqual([429, 'application/json', '"address";r=0;t=60', '60', true]);
    expect(begun).toBe(2);
  });

  it('events of a user: likewise, though the check comes after the guards', async () => {
    const { get } = await start();
    const ada = { 'x-user': 'ada' };
    expect(await seen(await get('/own-events', ada))).toEqual([
      200,
      'text/event-stream',
      '"person";r=0;t=60',
      null,
      false,
    ]);
    expect(await seen(await get('/own-events', ada))).toEqual([
      429,
      'application/json',
      '"person";r=0;t=60',
      '60',
      true,
    ]);
    expect((await get('/own-events', { 'x-user': 'bob' })).status).toBe(200);
    expect(begun).toBe(2);
  });

  it.each([
    ['/endless', 'slots', 'ip:127.0.0.1'],
    ['/own-endless', 'user-slots', 'user:ada'],
  ])('events: %s is held until the client leaves', async (path, name, key) => {
    const { get, open, left } = await start();
    const leaving = new AbortController();
    const ada = { 'x-user': 'ada' };
    const listening = await open(path, leaving.signal, ada);
    expect(listening.status).toBe(200);
    await until(() => begun === 1);
    expect([await left(name, key), (await get(path, ada)).status]).toEqual([0, 429]);
    leaving.abort();
    await until(async () => (await left(name, key)) === 1);
    const again = new AbortController();
    expect((await open(path, again.signal, ada)).status).toBe(200);
    again.abort();
  });

  it('files: the headers tell of limits, and a refusal is a 429', async () => {
    const { get } = await start();
    const stream = 'application/octet-stream';
    expect(await seen(await get('/file'))).toEqual([200, stream, '"address";r=1;t=60', null, false]);
    expect(await seen(await get('/file'))).toEqual([200, stream, '"address";r=0;t=60', null, false]);
    expect(await seen(await get('/file'))).toEqual([429, 'application/json', '"address";r=0;t=60', '60', true]);
  });

  it('files: something is held until the file has been sent, or its client leaves', async () => {
    const { get, open, left } = await start();
    const sent = await get('/large-file');
    expect([await left('slots'), (await get('/large-file')).status]).toEqual([0, 429]);
    expect((await sent.arrayBuffer()).byteLength).toBe(FILE_BYTES);
    await until(async () => (await left('slots')) === 1);
    const leaving = new AbortController();
    await open('/large-file', leaving.signal);
    expect(await left('slots')).toBe(0);
    leaving.abort();
    await until(async () => (await left('slots')) === 1);
  });
});
