import { type EventEmitter, once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { get as getOver, type Server as HttpServer } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';
import { connect as connectTls } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext, Get, type INestApplication, UseGuards } from '@nestjs/common';
import { MessagePattern, type MicroserviceOptions, Transport } from '@nestjs/microservices';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { WsAdapter } from '@nestjs/platform-ws';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { type LimitDefinition, LimiterService, RateLimit, RateLimitGuard, RateLimitModule } from '../../lib/index.js';
import { createTestingStore } from '../../lib/testing/index.js';
import { connect as connectGateway } from '../e2e/websocket-clients.js';
import { selfSigned } from '../support/redis/certificate.js';
import { freePort } from '../support/processes/ports.mjs';
import { ManualClock } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';

const RATE = 3;
const ATTACKS = 60;
/** For what takes no time, on machines that are busy with other things. */
const SLACK_MS = 20_000;
const work = { reached: 0 };

@Controller()
class TargetController {
  @Get('target')
  @RateLimit('address')
  target() {
    work.reached++;
  }

  @MessagePattern('target')
  @RateLimit('address')
  message() {
    work.reached++;
  }
}

@WebSocketGateway()
@UseGuards(RateLimitGuard)
class TargetGateway {
  @SubscribeMessage('target')
  @RateLimit('address')
  target() {
    work.reached++;
    return { event: 'answer', data: 'done' };
  }
}

const cleanups: (() => unknown)[] = [];
/** Connections that any server of this process has taken, and those that are open. */
const sockets = { taken: 0, open: 0 };
const taken = (message: unknown) => {
  sockets.taken++;
  sockets.open++;
  (message as { socket: Socket }).socket.once('close', () => sockets.open--);
};

beforeEach(() => {
  work.reached = 0;
  Object.assign(sockets, { taken: 0, open: 0 });
  subscribe('net.server.socket', taken);
});
afterEach(async () => {
  unsubscribe('net.server.socket', taken);
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

const ignore = () => undefined;

async function compiled(logged: string[] = []) {
  const store = createTestingStore({ clock: new ManualClock() });
  const define = { address: { algo: 'fixed-window', rate: RATE, interval: '1m' } } as const;
  const testing = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ store, define })],
    controllers: [TargetController],
    providers: [TargetGateway],
  }).compile();
  testing.useLogger({ log: ignore, error: ignore, warn: (message: string) => logged.push(message) });
  cleanups.push(() => store.close());
  return testing;
}

const left = async (app: { get(type: typeof LimiterService): LimiterService }) =>
  (await app.get(LimiterService).for('address').peek('ip:127.0.0.1')).remaining;

async function listening(app: INestApplication): Promise<number> {
  cleanups.push(async () => {
    (app.getHttpServer() as Partial<HttpServer>).closeAllConnections?.();
    await app.close();
  });
  await app.listen(0, '127.0.0.1');
  return Number(new URL(await app.getUrl()).port);
}

/** Connects many times over, does something with each, and waits until all of it has been read. */
async function flood(port: number, attack: (socket: Socket) => unknown): Promise<void> {
  await Promise.all(
    Array.from({ length: ATTACKS }, async () => {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      await once(socket, 'connect');
      await attack(socket);
    }),
  );
  // Connections are taken in order, so all have been seen when this one has come.
  const last = connect(port, '127.0.0.1').on('error', () => undefined);
  await until(() => sockets.taken > ATTACKS, SLACK_MS);
  last.destroy();
  await until(() => sockets.open === 0, SLACK_MS);
  // What was read is answered in the turns after.
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Sends something and is gone before, or after, the kernel has it. */
const ways: Record<string, (socket: Socket, text: string | Buffer) => Promise<void>> = {
  'in the turn of the message': async (socket, text) => {
    socket.write(text);
    socket.resetAndDestroy();
  },
  'once the kernel has it': async (socket, text) => {
    await new Promise((resolve) => socket.write(text, resolve));
    socket.resetAndDestroy();
  },
};

describe.each(Object.keys(ways))('clients that reset their connections %s', (how) => {
  const way = ways[how]!;

  it('over TCP: no more messages are handled than the limit allows', async () => {
    const port = await freePort();
    const testing = await compiled();
    const app = testing.createNestMicroservice<MicroserviceOptions>({
      transport: Transport.TCP,
      options: { host: '127.0.0.1', port },
    });
    cleanups.push(() => app.close());
    await app.listen();
    const json = JSON.stringify({ pattern: 'target', data: {}, id: '1' });
    await flood(port, (socket) => way(socket, `${json.length}#${json}`));
    expect(work.reached).toBeLessThanOrEqual(RATE);
  });

  it('over ws: no more messages are handled than the limit allows', async () => {
    const app = (await compiled()).createNestApplication();
    app.useWebSocketAdapter(new WsAdapter(app));
    const port = await listening(app);
    const frame = textFrame(JSON.stringify({ event: 'target', data: {} }));
    await flood(port, (socket) => way(socket, Buffer.concat([Buffer.from(upgrade('/')), frame, frame])));
    expect(work.reached).toBeLessThanOrEqual(RATE);
  });

  it('over ws, once connected: messages count for the address of the handshake', async () => {
    const app = (await compiled()).createNestApplication();
    app.useWebSocketAdapter(new WsAdapter(app));
    const port = await listening(app);
    const frame = textFrame(JSON.stringify({ event: 'target', data: {} }));
    await flood(port, async (socket) => {
      socket.write(upgrade('/'));
      await once(socket, 'data');
      await way(socket, Buffer.concat([frame, frame]));
    });
    expect([work.reached, await left(app)]).toEqual([RATE, 0]);
  });

  it('over socket.io: messages count for the address of the handshake', async () => {
    const app = (await compiled()).createNestApplication();
    const port = await listening(app);
    await flood(port, async (socket) => {
      socket.write(upgrade('/socket.io/?EIO=4&transport=websocket'));
      await said(socket, '"sid"');
      socket.write(textFrame('40'));
      await said(socket, '40{"sid"');
      await way(socket, textFrame('42["target",{}]'));
    });
    expect([work.reached, await left(app)]).toEqual([RATE, 0]);
  });

  it('over socket.io, with the handshake: no more messages are handled than the limit allows', async () => {
    const app = (await compiled()).createNestApplication();
    const port = await listening(app);
    const all = [textFrame('40'), textFrame('42["target",{}]'), textFrame('42["target",{}]')];
    const request = Buffer.from(upgrade('/socket.io/?EIO=4&transport=websocket'));
    await flood(port, (socket) => way(socket, Buffer.concat([request, ...all])));
    expect(work.reached).toBeLessThanOrEqual(RATE);
  });

  it.each([
    ['with the handshake: no more requests are handled than the limit allows', false],
    ['once connected: requests count', true],
  ])('over TLS, %s', async (_, connected) => {
    const testing = await compiled();
    const app = testing.createNestApplication({ httpsOptions: selfSigned() } as object);
    const port = await listening(app);
    await flood(port, async (socket) => {
      const secure = connectTls({ socket, rejectUnauthorized: false }).on('error', () => undefined);
      await once(secure, 'secureConnect');
      if (connected) {
        secure.write('GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n');
        await once(secure, 'data');
      }
      await new Promise((resolve) => secure.write('GET /target HTTP/1.1\r\nHost: x\r\n\r\n', resolve));
      socket.resetAndDestroy();
      secure.destroy();
    });
    if (connected) expect([work.reached, await left(app)]).toEqual([RATE, 0]);
    else expect(work.reached).toBeLessThanOrEqual(RATE);
  });
});

it('over HTTP/2: no more requests are handled than the limit allows', async () => {
  const app = (await compiled()).createNestApplication(new FastifyAdapter({ http2: true }) as never);
  const port = await listening(app);
  await flood(port, async (socket) => {
    const session = connectHttp2(`http://127.0.0.1:${port}`, { createConnection: () => socket });
    session.on('error', () => undefined);
    await once(session, 'remoteSettings');
    for (let stream = 0; stream < 3; stream++) session.request({ ':path': '/target' }).on('error', () => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    socket.resetAndDestroy();
  });
  expect(work.reached).toBeLessThanOrEqual(RATE);
});

it.each<[string, (left: (context: ExecutionContext) => Promise<unknown>) => Partial<LimitDefinition>]>([
  ['key, which finds none', (left) => ({ key: (context) => left(context).then(() => undefined) })],
  ['skip', (left) => ({ skip: (context) => left(context).then(() => false) })],
])('over HTTP/2: a client that cancels its request while a function is asked runs nothing: %s', async (_, asked) => {
  let asks = 0;
  const left = async (context: ExecutionContext) => {
    asks++;
    const { raw } = context.switchToHttp().getRequest<{ raw: { stream: EventEmitter } }>();
    await once(raw.stream, 'close');
  };

  @Controller()
  class AskingController {
    @Get('target')
    @RateLimit({ algo: 'fixed-window', rate: RATE, interval: '1m', ...asked(left) } as LimitDefinition)
    target() {
      work.reached++;
    }
  }
  const testing = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot()],
    controllers: [AskingController],
  }).compile();
  testing.useLogger(false);
  const app = testing.createNestApplication(new FastifyAdapter({ http2: true }) as never);
  const port = await listening(app);
  const session = connectHttp2(`http://127.0.0.1:${port}`).on('error', () => undefined);
  cleanups.push(() => session.destroy());
  const streams = Array.from({ length: RATE + 2 }, () =>
    session.request({ ':path': '/target' }).on('error', () => undefined),
  );
  await until(() => asks === streams.length, SLACK_MS);
  for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL);
  const others = session.request({ ':path': '/nowhere' });
  others.resume();
  await once(others, 'end');
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(work.reached).toBe(0);
});

describe('a server on a socket of the Unix domain', () => {
  it.each(['express', 'fastify'])(
    'has no addresses on %s, and a limit by address does not apply',
    async (framework) => {
      const folder = await mkdtemp(join(tmpdir(), 'sluice-socket-'));
      cleanups.push(() => rm(folder, { recursive: true }));
      const logged: string[] = [];
      const testing = await compiled(logged);
      const app = testing.createNestApplication((framework === 'fastify' ? new FastifyAdapter() : undefined) as never);
      cleanups.push(() => app.close());
      const socketPath = join(folder, 'socket');
      await app.listen(socketPath);
      const statuses: unknown[] = [];
      for (let request = 0; request < RATE + 2; request++) {
        const asked = getOver({ socketPath, path: '/target', agent: false });
        const [response] = (await once(asked, 'response')) as [import('node:http').IncomingMessage];
        response.resume();
        statuses.push(response.statusCode);
      }
      expect(statuses).toEqual(Array(RATE + 2).fill(200));
      expect(logged.filter((line) => line.includes("limit 'address' does not apply"))).toHaveLength(1);
    },
  );
});

/** Who is told of connections. Those that other tests of the same process left are none of this app's. */
function subscribers(): number {
  const { ['_subscribers']: all = [] } = channel('net.server.socket') as { readonly _subscribers?: readonly unknown[] };
  return all.length;
}

it('ends what it began when the app closes', async () => {
  const before = subscribers();
  const app = (await compiled()).createNestApplication();
  await app.init();
  expect(subscribers()).toBe(before + 1);
  await app.close();
  expect(subscribers()).toBe(before);
});

it('clients that stay are counted as before', async () => {
  const app = (await compiled()).createNestApplication();
  const port = await listening(app);
  const client = await connectGateway('socket.io', `http://127.0.0.1:${port}`);
  cleanups.push(() => client.close());
  const events: string[] = [];
  for (let message = 0; message <= RATE; message++) {
    client.send('target', {});
    events.push((await client.next()).event);
  }
  expect(events).toEqual([...Array<string>(RATE).fill('answer'), 'exception']);
});

/** The handshake of a WebSocket. */
function upgrade(path: string): string {
  return [
    `GET ${path} HTTP/1.1`,
    'Host: x',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    '\r\n',
  ].join('\r\n');
}

/** A short text as a client frames it; the mask is zero. */
function textFrame(text: string): Buffer {
  const payload = Buffer.from(text);
  return Buffer.concat([Buffer.from([0x81, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
}

/** Waits until a socket has been told something. */
async function said(socket: Socket, text: string): Promise<void> {
  for (let all = ''; !all.includes(text);) all += String((await once(socket, 'data'))[0]);
}
