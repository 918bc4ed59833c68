import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, StreamableFile } from '@nestjs/common';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import {
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { until } from '../support/time/until.js';
import { adapters, HttpApp } from './http-app.js';

/** More than connections hold on their way. */
const LARGE = 'x'.repeat(32 * 2 ** 20);

const counts = { generators: 0 };

async function* endless() {
  counts.generators++;
  try {
    while (true) yield Buffer.alloc(2 ** 16);
  } finally {
    counts.generators--;
  }
}

@Controller()
class AnswersController {
  @Get('large')
  @RateLimit('slots', 'load')
  large() {
    return LARGE;
  }

  @Get('endless')
  @RateLimit('slots', 'load')
  endless() {
    return new StreamableFile(Readable.from(endless()));
  }

  @Get('quick')
  @RateLimit('slots', 'load')
  quick() {
    return 'done';
  }
}

const define = {
  slots: { algo: 'concurrency', limit: 2, ttl: '1s', key: 'global' },
  load: { algo: 'adaptive', scope: 'instance', min: 2, max: 10, initial: 10, ttl: '1h', key: 'global' },
} satisfies Record<string, LimitDefinition>;

const cleanups: (() => unknown)[] = [];
/** Intervals are moved by hand, and what they measure by; all else runs as it is, as the connections do. */
beforeEach(() => {
  jest.useFakeTimers({
    doNotFake: 'Date hrtime nextTick queueMicrotask setImmediate clearImmediate setTimeout clearTimeout'.split(
      ' ',
    ) as never,
  });
});
const pass = (seconds: number) => jest.advanceTimersByTime(1000 * seconds);
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** A client that asks and does not read. */
function idle(url: string, path: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname)
    .on('error', () => undefined)
    .pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n`);
  cleanups.push(() => socket.destroy());
  return socket;
}

describe.each(adapters)('clients that do not read their answers, over %s,', (framework) => {
  async function start(limits: RateLimitModuleOptions = {}) {
    const app = await HttpApp.start(framework, { controllers: [AnswersController], limits: { define, ...limits } });
    cleanups.push(() => app.close());
    const service = app.nest.get(LimiterService);
    return {
      app,
      left: async () => (await service.for('slots').peek('global')).remaining,
      load: async () => (await service.for('load').peek('global')) as { quota: number; inFlight?: number },
    };
  }

  it('hold a slot no longer than sendTimeout, and get all of what is complete', async () => {
    const { app, left } = await start();
    const clients = [idle(app.url, '/large'), idle(app.url, '/large')];
    await until(async () => (await left()) === 0);
    // Both answers are on their way.
    await Promise.all(clients.map((client) => once(client, 'readable')));
    pass(29);
    expect([await left(), (await app.get('/quick')).status]).toEqual([0, 429]);
    pass(2);
    await until(async () => (await left()) === 2);
    expect((await app.get('/quick')).status).toBe(200);
    for (const client of clients) {
      let bytes = 0;
      client.on('data', (chunk) => (bytes += chunk.length)).resume();
      await once(client, 'close');
      expect(bytes).toBeGreaterThan(LARGE.length);
    }
  });

  it('are left once sendTimeout is over, if their answers are still being written', async () => {
    const { app, left } = await start({ sendTimeout: '10s' });
    const clients = [idle(app.url, '/endless'), idle(app.url, '/endless')];
    await until(async () => counts.generators === 2 && (await left()) === 0);
    await until(async () => {
      pass(5);
      return (await left()) === 2;
    });
    expect(counts.generators).toBe(0);
    for (const client of clients) {
      client.resume();
      await once(client, 'close');
    }
  });

  it('are waited for with sendTimeout: false', async () => {
    const { app, left } = await start({ sendTimeout: false });
    idle(app.url, '/large');
    idle(app.url, '/endless');
    await until(async () => counts.generators === 1 && (await left()) === 0);
    for (let minute = 0; minute < 10; minute++) {
      pass(60);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(await left()).toBe(0);
  });

  it.each(['/large', '/endless'])('count for no load: %s', async (path) => {
    const { app, load } = await start({ define: { ...define, slots: { ...define.slots, limit: 100 } } });
    const before = await load();
    const clients = Array.from({ length: 9 }, () => idle(app.url, path));
    await Promise.all(clients.map((client) => once(client, 'readable')));
    await until(async () => {
      pass(1);
      return (await load()).inFlight === 0;
    });
    expect(await load()).toMatchObject({ quota: before.quota });
    expect((await app.get('/quick')).status).toBe(200);
  });
});

it('clients of HTTP/2 that do not read are bounded, too', async () => {
  const testing = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ define })],
    controllers: [AnswersController],
  }).compile();
  const app = testing.createNestApplication<NestFastifyApplication>(new FastifyAdapter({ http2: true }) as never);
  cleanups.push(() => app.close());
  await app.listen(0, '127.0.0.1');
  const client = connectHttp2(await app.getUrl());
  cleanups.push(() => client.destroy());
  const left = async () => (await app.get(LimiterService).for('slots').peek('global')).remaining;
  for (const path of ['/large', '/endless'])
    client
      .request({ ':path': path })
      .on('error', () => undefined)
      .pause();
  await until(async () => counts.generators === 1 && (await left()) === 0);
  await until(async () => {
    pass(5);
    return (await left()) === 2;
  });
  expect(counts.generators).toBe(0);
});
