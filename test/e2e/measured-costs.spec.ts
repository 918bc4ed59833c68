import { once } from 'node:events';
import { get as request, type IncomingMessage, type Server } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { createGzip, gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, type INestApplication, Logger, Module, Res, StreamableFile } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Redis } from 'ioredis';
import {
  type CostByBytes,
  type LimitDefinition,
  LimiterService,
  MemoryStore,
  type Outcome,
  RateLimit,
  RateLimitDecision,
  RateLimitModule,
  type RequestDecision,
  type Store,
} from '../../lib/index.js';
import { connectRedis, ManualClock, storeKinds } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';
import { everyAppKind, type Framework, nodeResponse, startUp } from './http-app.js';

const CHUNK = Buffer.alloc(65_536, 'x');
/** More than all buffers between a server and a client on one machine hold. */
const CHUNKS = 2000;
const ALL = CHUNKS * CHUNK.length;
const QUOTA = 1_000_000;

const slow = { gate: Promise.resolve(), leave: () => {} };
function closeGate(): void {
  slow.gate = new Promise((resolve) => (slow.leave = resolve));
}

const handled = { ms: 0 };

@Controller()
class DownloadsController {
  @Get('text')
  @RateLimit('measured')
  text() {
    return 'x'.repeat(2500);
  }

  @Get('empty')
  @RateLimit('measured')
  empty(@Res() response: object) {
    nodeResponse(response).end();
  }

  @Get('stream')
  @RateLimit('measured')
  stream() {
    return new StreamableFile(Readable.from([CHUNK, CHUNK, CHUNK]));
  }

  @Get('gate')
  @RateLimit('measured')
  async gate() {
    await slow.gate;
    return 'y'.repeat(700);
  }

  @Get('slow')
  @RateLimit('measured')
  async slow() {
    const from = performance.now();
    await slow.gate;
    handled.ms = performance.now() - from;
  }

  /** Takes no account of a client that reads slowly. */
  @Get('everything')
  @RateLimit('measured')
  everything(@Res() response: object) {
    const node = nodeResponse(response);
    node.writeHead(200, { 'content-type': 'application/octet-stream' });
    for (let chunk = 0; chunk < CHUNKS; chunk++) node.write(CHUNK);
    node.end();
  }

  @Get('settled')
  @RateLimit('measured')
  async settled(@RateLimitDecision() decision: RequestDecision) {
    await decision.settle(7, 'measured');
    return 'x'.repeat(2500);
  }
}

/** Compresses what is written, as the package `compression` does. */
function compress(_: unknown, given: object, next: () => void): void {
  const response = nodeResponse(given);
  const gzip = createGzip();
  const writeHead = response.writeHead.bind(response);
  const write = response.write.bind(response);
  const end = response.end.bind(response);
  const head = (status: number, headers: Record<string, string> = {}): unknown => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    response.removeHeader('content-length');
    response.setHeader('content-encoding', 'gzip');
    return writeHead(status);
  };
  gzip.on('data', (chunk) => write(chunk));
  gzip.on('end', () => end());
  gzip.on('drain', () => response.emit('drain'));
  const replaced = {
    writeHead: head,
    write: (chunk: Buffer) => gzip.write(chunk),
    end: (chunk?: Buffer) => {
      if (!response.headersSent) head(response.statusCode);
      gzip.end(chunk);
      return response;
    },
  };
  Object.assign(response, replaced);
  next();
}

function leave({ socket }: IncomingMessage, _: object, next: () => void): void {
  socket.destroy();
  next();
}

const bytes = (more: Partial<CostByBytes> = {}): CostByBytes => ({ by: 'bytes', per: '1kB', ...more });

/** Every framework once, and each store once. */
const kinds = everyAppKind.slice(0, 2);

let redis: Redis;
let app: INestApplication | undefined;
let outcomes: Outcome[] = [];

beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());
afterEach(async () => {
  slow.leave();
  (app?.getHttpServer() as Partial<Server> | undefined)?.closeAllConnections?.();
  await app?.close();
  app = undefined;
  outcomes = [];
  jest.restoreAllMocks();
});

interface Started {
  /** True if clients leave while their requests are read. */
  readonly hasLeft?: boolean;
  readonly isCompressed?: boolean;
  readonly isHttp2?: boolean;
}

/** Starts an app with one limit, whose `count` sees all outcomes. */
async function startWith(framework: Framework, store: Store, more: Partial<LimitDefinition>, how: Started = {}) {
  const count = (outcome: Outcome) => {
    outcomes.push(outcome);
    return true;
  };
  const usual = { algo: 'fixed-window', rate: QUOTA, interval: '1h', cost: bytes(), count };
  const measured = { ...usual, ...more } as LimitDefinition;
  class AppModule {}
  Module({
    imports: [RateLimitModule.forRoot({ store, define: { measured } })],
    controllers: [DownloadsController],
  })(AppModule);
  app =
    framework === 'express'
      ? await NestFactory.create(AppModule, { logger: false })
      : await NestFactory.create<NestFastifyApplication>(
          AppModule,
          new FastifyAdapter(how.isHttp2 === true ? ({ http2: true } as object) : {}),
          { logger: false },
        );
  if (how.isCompressed === true) app.use(compress);
  if (how.hasLeft === true) app.use(leave);
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const limiter = app.get(LimiterService).for('measured');
  const used = async () => QUOTA - (await limiter.peek('ip:127.0.0.1')).remaining;
  return {
    url,
    port: Number(new URL(url).port),
    used,
    becomes: async (units: number) => {
      await until(async () => (await used()) === units);
    },
    /** The bytes of all responses, once this many have ended. */
    ended: async (requests = 1) => {
      await until(() => outcomes.length === requests);
      return outcomes.map((outcome) => outcome.bytes);
    },
  };
}

describe.each(kinds)('costs of responses over %s with %s', (framework, kind) => {
  const start = (more: Partial<LimitDefinition> = {}, how?: Started) =>
    startWith(framework, storeKinds[kind]!(new ManualClock(), redis), more, how);

  it('charges an estimate first, and the body of a response once it has ended', async () => {
    const { url, becomes, ended } = await start({ cost: bytes({ estimate: 40 }) });
    closeGate();
    const answer = fetch(`${url}/gate`);
    await becomes(40);
    slow.leave();
    await expect((await answer).text()).resolves.toHaveLength(700);
    await becomes(1);
    await expect(ended()).resolves.toEqual([700]);
    await (await fetch(`${url}/text`)).text();
    await becomes(4);
    await expect(ended(2)).resolves.toEqual([700, 2500]);
  });

  it('charges nothing for a response without a body', async () => {
    const { url, becomes, ended } = await start();
    await fetch(`${url}/empty`);
    await fetch(`${url}/text`, { method: 'HEAD' });
    expect((await ended(2)).every((each) => each! <= '0\r\n\r\n'.length)).toBe(true);
    const [, head] = outcomes;
    expect(head!.bytes).toBe(0);
    await becomes(Math.ceil(outcomes[0]!.bytes! / 1000));
  });

  it('charges a stream with its framing', async () => {
    const { url, becomes, ended } = await start();
    await expect((await fetch(`${url}/stream`)).text()).resolves.toHaveLength(3 * CHUNK.length);
    const framing = 3 * '10000\r\n\r\n'.length + '0\r\n\r\n'.length;
    await expect(ended()).resolves.toEqual([3 * CHUNK.length + framing]);
    await becomes(197);
  });

  it('charges what a compressed response takes, below the middleware that compresses it', async () => {
    const { url, becomes, ended } = await start({}, { isCompressed: true });
    const length = await new Promise<number>((resolve, reject) => {
      request(`${url}/stream`, (response: IncomingMessage) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const all = Buffer.concat(chunks);
          expect(gunzipSync(all)).toHaveLength(3 * CHUNK.length);
          resolve(all.length);
        });
      }).on('error', reject);
    });
    const [sent] = await ended();
    expect(sent).toBeGreaterThanOrEqual(length);
    // Each chunk of a compressed stream has at most 16 kB.
    expect(sent).toBeLessThan(length + 200);
    await becomes(1);
  });

  it('charges a download that its client gave up for what went through the socket', async () => {
    const { url, used, ended } = await start();
    let read = 0;
    const leaving = request(`${url}/everything`, (response: IncomingMessage) => {
      response.on('data', (chunk: Buffer) => {
        read += chunk.length;
        leaving.destroy();
      });
      response.on('error', () => {});
    });
    leaving.on('error', () => {});
    const [sent] = await ended();
    expect(read).toBeGreaterThan(0);
    expect(sent).toBeGreaterThanOrEqual(read);
    // What waits in the process was not sent: only the kernel's buffers are between them.
    expect(sent).toBeLessThan(ALL / 2);
    await until(async () => (await used()) === Math.ceil(sent! / 1000));
  });

  it('charges nothing for a response whose client had left before the check', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const { url, becomes, ended } = await start({}, { hasLeft: true });
    const leaving = request(`${url}/text`);
    leaving.on('error', () => {});
    expect(await ended()).toEqual([0]);
    await becomes(0);
    expect(warn.mock.calls).toEqual([]);
  });

  it('keeps the responses of one connection apart, pipelined or not', async () => {
    const { port, ended } = await start();
    const socket = connect(port, '127.0.0.1');
    closeGate();
    socket.write(['gate', 'text', 'gate'].map((path) => `GET /${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''));
    const closing = text(socket);
    slow.leave();
    const counted = await ended(3);
    expect(counted.toSorted((one, other) => one! - other!)).toEqual([700, 700, 2500]);
    socket.write('GET /text HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    expect((await closing).match(/HTTP\/1.1 200/g)).toHaveLength(4);
    await expect(ended(4)).resolves.toContain(2500);
    expect(outcomes.at(-1)!.bytes).toBe(2500);
  });

  it('charges time', async () => {
    const { url, ended, becomes } = await start({ cost: { by: 'duration', per: '1h', estimate: 3 } });
    closeGate();
    const from = performance.now();
    const answer = fetch(`${url}/slow`);
    await becomes(3);
    slow.leave();
    await answer;
    await ended();
    const [{ durationMs }] = outcomes as [Outcome];
    expect(durationMs).toBeGreaterThanOrEqual(handled.ms);
    expect(durationMs).toBeLessThanOrEqual(performance.now() - from);
    await becomes(1);
  });

  it('charges each unit of time that has begun', async () => {
    const { url, becomes } = await start({ cost: { by: 'duration', per: '100ms' } });
    closeGate();
    let now = 5000;
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    const answer = fetch(`${url}/slow`);
    await becomes(1);
    now += 301;
    slow.leave();
    await answer;
    await becomes(4);
  });

  it('gives the units of what does not count back', async () => {
    const { url, becomes } = await start({ count: 'failed', cost: bytes({ estimate: 9 }) });
    closeGate();
    const answer = fetch(`${url}/gate`);
    await becomes(9);
    slow.leave();
    await answer;
    await becomes(0);
  });

  it('leaves what a handler has settled', async () => {
    const { url, becomes, ended, used } = await start();
    await fetch(`${url}/settled`);
    await becomes(7);
    await ended();
    expect(await used()).toBe(7);
  });

  it('says in the headers that units are bytes', async () => {
    const { url } = await start();
    const { headers } = await fetch(`${url}/text`);
    expect(headers.get('ratelimit-policy')).toBe('"measured";q=1000000000;qu="content-bytes";w=3600');
    expect(headers.get('ratelimit')).toBe('"measured";r=999999000;t=3600');
  });
});

describe('over HTTP/2', () => {
  const start = (more: Partial<LimitDefinition> = {}) =>
    startWith('fastify', new MemoryStore({ clock: new ManualClock().now }), more, { isHttp2: true });

  it('charges bodies and streams, and nothing for HEAD', async () => {
    const { url, becomes, ended } = await start();
    const client = connectHttp2(url);
    for (const [path, method] of [['text'], ['stream'], ['text', 'HEAD']] as const) {
      const stream = client.request({ ':path': `/${path}`, ':method': method ?? 'GET' });
      stream.resume();
      await once(stream, 'close');
    }
    client.close();
    await expect(ended(3)).resolves.toEqual([2500, 3 * CHUNK.length, 0]);
    await becomes(3 + 197);
  });

  it('charges a download that its client gave up for what was sent, within one chunk', async () => {
    const { url, ended } = await start();
    const client = connectHttp2(url);
    const stream = client.request({ ':path': '/everything' });
    let read = 0;
    stream.on('data', (chunk: Buffer) => {
      read += chunk.length;
      stream.close(constants.NGHTTP2_CANCEL);
    });
    const [sent] = await ended();
    client.close();
    expect(sent).toBeGreaterThanOrEqual(read);
    // The windows of flow control are small, and what waits in the process was not sent.
    expect(sent).toBeLessThan(read + 10 * CHUNK.length);
  });
});

describe('what cannot be measured', () => {
  it('is charged its estimate, with a warning', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const store = new MemoryStore({ clock: new ManualClock().now });
    const { becomes, ended } = await startWith('fastify', store, { cost: bytes({ estimate: 5 }) });
    const injected = await (app as NestFastifyApplication).inject('/text');
    expect(injected.statusCode).toBe(200);
    await expect(ended()).resolves.toEqual([undefined]);
    await becomes(5);
    expect(warn.mock.calls.flat()).toEqual([
      "limit 'measured' has a cost by bytes, but the bytes of a response are unknown (transport 'http'), so its requests are charged the estimate. Bytes are known over HTTP, if the response has a connection",
    ]);
  });

  const limit = { algo: 'fixed-window', rate: 10, interval: '1m' } as const;

  it.each<[string, unknown, string]>([
    ['a wrong size', { by: 'bytes', per: '1KB' }, "limits[0].cost.per: expected bytes or a size such as '1kB'"],
    ['part of a byte', { by: 'bytes', per: '1.0001kB' }, 'limits[0].cost.per: expected bytes or a size'],
    ['a duration for bytes', { by: 'bytes', per: '1s' }, 'limits[0].cost.per: expected bytes or a size'],
    ['a wrong duration', { by: 'duration', per: '1kB' }, 'limits[0].cost.per: expected milliseconds or a duration'],
    ['something else', { by: 'cpu', per: 1 }, "limits[0].cost.by: expected one of bytes, duration, received 'cpu'"],
    ['no unit', { by: 'bytes' }, 'limits[0].cost.per: missing, expected a size'],
    [
      'a wrong estimate',
      { by: 'bytes', per: 1, estimate: -1 },
      'limits[0].cost.estimate: expected a whole number >= 0',
    ],
    ['an unknown option', { by: 'bytes', per: 1, unit: 'kB' }, "limits[0].cost: unknown option 'unit'"],
    ['a text', 'bytes', 'limits[0].cost: expected a whole number >= 0, a function of the context, or { by, per'],
  ])('refuses %s', async (_, cost, message) => {
    await expect(startUp({ limits: [{ ...limit, cost: cost as never }] })).rejects.toThrow(message);
  });

  it('refuses units that are held', async () => {
    const held = { algo: 'concurrency', limit: 3, cost: bytes() } as LimitDefinition;
    await expect(startUp({ limits: [held] })).rejects.toThrow("limits[0].cost: units of 'concurrency' are held");
  });

  it('refuses a limit within one without a cost, which nobody would settle', async () => {
    @Controller()
    @RateLimit('user')
    class FilesController {
      @Get()
      get() {}
    }
    const user = { ...limit, cost: bytes(), within: 'team' };
    await expect(startUp({ define: { team: limit, user } }, [FilesController])).rejects.toThrow(
      "within: 'team' has no 'cost', and the cost of 'user' is measured",
    );
    await startUp({ define: { team: { ...limit, cost: bytes() }, user } }, [FilesController]);
  });
});
