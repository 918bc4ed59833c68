import { once } from 'node:events';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { ExecutionContext } from '@nestjs/common';
import { WsAdapter } from '@nestjs/platform-ws';
import { io, type Socket } from 'socket.io-client';
import { WebSocket, type WebSocketServer } from 'ws';
import type { RateLimitModuleOptions } from '../../../lib/index.js';
import { bySocket, type SocketLimitOptions } from '../../../lib/integrations/sockets/index.js';
import type { HttpApp } from '../../e2e/http-app.js';
import { connect, type GatewayClient, libraries, type Library } from '../../e2e/websocket-clients.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { ChatGateway, reached, startSocketApp } from './socket-app.js';

const redis = process.env['TEST_REDIS_URL']!;
const onRedis = () => ({ redis, prefix: freshPrefix(), store: undefined }) as unknown as RateLimitModuleOptions;
const minute = { algo: 'fixed-window', rate: 3, interval: '1m' } as const;

let app: HttpApp | undefined;
const opened: { close: () => void }[] = [];

afterEach(async () => {
  for (const each of opened.splice(0)) each.close();
  await app?.close();
  app = undefined;
});

async function start(
  library: Library,
  sockets: SocketLimitOptions,
  limits: RateLimitModuleOptions = {},
): Promise<() => Promise<GatewayClient>> {
  const { url } = (app = await startSocketApp(library, sockets, { limits }));
  return async () => {
    const client = await connect(library, url);
    opened.push(client);
    return client;
  };
}

async function connectIo(): Promise<Socket> {
  const socket = io(app!.url, { transports: ['websocket'], forceNew: true });
  opened.push(socket);
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  return socket;
}
const answer = (socket: Socket) =>
  new Promise<unknown[]>((resolve) => socket.onAny((event: string, data: unknown) => resolve([event, data])));

const frameOf = (context: ExecutionContext) => String(context.switchToWs().getData());
const failsWithSay = (context: ExecutionContext) => {
  if (frameOf(context).includes('say')) throw new TypeError('a bug');
  return 'all';
};

/** socket.io has a frame of its own that connects to a namespace. */
const OWN_FRAMES = { 'socket.io': 1, ws: 0 };
const refusal = {
  event: 'exception',
  data: expect.objectContaining({
    status: 'error',
    statusCode: 429,
    retryAfterMs: expect.any(Number) as unknown,
  }) as unknown,
};

describe.each(libraries)('frames of %s', (library) => {
  const frames = { ...minute, name: 'frames', rate: 3 + OWN_FRAMES[library] };

  it.each(['in process', 'on Redis'])('reach no handler over the limit, %s', async (where) => {
    const connected = await start(library, { frames }, where === 'on Redis' ? onRedis() : {});
    const [one, other] = [await connected(), await connected()];
    const used = OWN_FRAMES[library];
    for (let frame = 0; frame < 50; frame++) one.send('say', frame);
    const answers = [];
    for (let frame = 0; frame < 50; frame++) answers.push(await one.next());
    const said = answers.filter(({ event }) => event === 'said');
    // Both clients have one address. Frames keep their order.
    expect(said.map(({ data }) => data)).toEqual([0, 1, 2].slice(0, 3 - used));
    expect(reached.messages).toHaveLength(3 - used);
    expect(answers.filter(({ event }) => event === 'exception')).toHaveLength(47 + used);
    expect(answers.find(({ event }) => event === 'exception')).toEqual(refusal);
    other.send('say', 'more');
    expect(await other.next()).toEqual(refusal);
  });

  it('count those without a handler', async () => {
    const connected = await start(library, { frames });
    const client = await connected();
    for (let frame = 0; frame < 3; frame++) client.send('nothing has this name', {});
    client.send('say', 'late');
    expect(await client.next()).toEqual(refusal);
    expect(reached.messages).toEqual([]);
  });

  it('count each connection by itself with bySocket', async () => {
    const connected = await start(library, { frames: { ...frames, key: bySocket, scope: 'instance' } }, onRedis());
    for (const client of [await connected(), await connected()]) {
      for (let frame = 0; frame < 4; frame++) client.send('say', frame);
      const answers = [await client.next(), await client.next(), await client.next(), await client.next()];
      // A refusal needs no handler to be answered.
      expect(answers.map(({ event }) => event).toSorted()).toEqual(['exception', 'said', 'said', 'said']);
    }
  });

  it('may cost as many units as they have bytes', async () => {
    const connected = await start(library, {
      frames: { ...minute, rate: 200, cost: (context) => frameOf(context).length },
    });
    const client = await connected();
    client.send('say', 'short');
    expect(await client.next()).toEqual({ event: 'said', data: 'short' });
    client.send('say', 'long'.repeat(50));
    expect(await client.next()).toMatchObject({ event: 'exception', data: { statusCode: 429, retryAfterMs: null } });
  });

  it('are dropped, not passed, if a function of the app fails', async () => {
    const connected = await start(library, { frames: { ...minute, key: failsWithSay } });
    const client = await connected();
    client.send('say', 1);
    expect(await client.next()).toMatchObject({ event: 'exception', data: { statusCode: 500 } });
    expect(reached.messages).toEqual([]);
  });
});

it('lets frames of ws arrive that were sent before the client left', async () => {
  const connected = await start('ws', { frames: minute }, onRedis());
  const client = await connected();
  client.send('say', 'farewell');
  client.close();
  await until(() => reached.messages.includes('farewell'));
});

it('refuses frames while the store fails with onStoreError deny, and keeps the connection', async () => {
  const connected = await start(
    'ws',
    { frames: { ...minute, onStoreError: 'deny' }, closeAfter: 2 },
    {
      redis: 'redis://127.0.0.1:1',
      timeout: 100,
      store: undefined,
    },
  );
  const client = await connected();
  for (let frame = 0; frame < 5; frame++) client.send('say', frame);
  for (let frame = 0; frame < 5; frame++) {
    expect(await client.next()).toMatchObject({ event: 'exception', data: { statusCode: 503 } });
  }
  expect(reached.messages).toEqual([]);
});

it('closes a connection of ws with 1008 after too many refused frames', async () => {
  await start('ws', { frames: minute, closeAfter: 5, connections: { algo: 'concurrency', limit: 1, ttl: '1m' } });
  const socket = new WebSocket(app!.url.replace('http', 'ws'));
  opened.push({ close: () => socket.terminate() });
  let answers = 0;
  socket.on('message', () => answers++);
  await once(socket, 'open');
  for (let frame = 0; frame < 100; frame++) socket.send('not even JSON');
  const [code, reason] = (await once(socket, 'close')) as [number, Buffer];
  expect([code, String(reason), answers]).toEqual([1008, 'Too many frames', 5]);
  // Its connection is free again.
  await until(async () => {
    const next = new WebSocket(app!.url.replace('http', 'ws'));
    opened.push({ close: () => next.terminate() });
    return new Promise<boolean>((resolve) => {
      next.once('open', () => resolve(true));
      next.once('error', () => resolve(false));
    });
  });
});

it('counts a message of ws once, by its whole size, however it is compressed or split', async () => {
  const bytes = (context: ExecutionContext) => frameOf(context).length;
  class CompressingAdapter extends WsAdapter {
    override create(port: number, options?: object) {
      return super.create(port, { ...options, perMessageDeflate: { threshold: 0 } });
    }
  }
  const text = JSON.stringify({ event: 'say', data: 'x'.repeat(1000) });
  const frames = { ...minute, rate: 3 * text.length, cost: bytes };
  app = await startSocketApp('ws', { frames }, { adapterOf: (nest) => new CompressingAdapter(nest) });
  const socket = new WebSocket(app.url.replace('http', 'ws'));
  opened.push({ close: () => socket.terminate() });
  await once(socket, 'open');
  expect(socket.extensions).toBe('permessage-deflate');
  const received: string[] = [];
  socket.on('message', (data: Buffer) => received.push(String(data)));
  socket.send(text);
  for (const compress of [true, false]) {
    for (let at = 0; at < text.length; at += 100) {
      socket.send(text.slice(at, at + 100), { compress, fin: at + 100 >= text.length });
    }
  }
  socket.send(JSON.stringify({ event: 'say', data: 1 }));
  await until(() => received.length === 4);
  expect(JSON.parse(received[3]!)).toEqual(refusal);
  expect(reached.messages).toHaveLength(3);
});

it('counts pings of ws', async () => {
  await start('ws', { frames: minute });
  const socket = new WebSocket(app!.url.replace('http', 'ws'));
  opened.push({ close: () => socket.terminate() });
  await once(socket, 'open');
  for (let ping = 0; ping < 3; ping++) socket.ping();
  socket.send(JSON.stringify({ event: 'say', data: 1 }));
  const [message] = (await once(socket, 'message')) as [Buffer];
  expect(JSON.parse(message.toString())).toEqual(refusal);
});

it('counts pongs of ws, which reach the app even if they are refused', async () => {
  await start('ws', { frames: minute, closeAfter: 7 });
  const pongs: string[] = [];
  const server = app!.nest.get(ChatGateway).server as WebSocketServer;
  server.on('connection', (client) => client.on('pong', (data) => pongs.push(String(data))));
  const socket = new WebSocket(app!.url.replace('http', 'ws'));
  opened.push({ close: () => socket.terminate() });
  await once(socket, 'open');
  for (let pong = 0; pong < 20; pong++) socket.pong(String(pong));
  const [code] = (await once(socket, 'close')) as [number];
  // Three are allowed, and seven are refused.
  expect([code, pongs]).toEqual([1008, Array.from({ length: 10 }, (_, index) => String(index))]);
});

/** A connection of engine.io, as it is on the wire. */
async function connectEngine(): Promise<WebSocket> {
  const socket = new WebSocket(`${app!.url.replace('http', 'ws')}/socket.io/?EIO=4&transport=websocket`);
  opened.push({ close: () => socket.terminate() });
  await once(socket, 'message');
  return socket;
}

it.each<[string, (socket: WebSocket) => void]>([
  ['pongs', (socket) => socket.send('3')],
  ['noops', (socket) => socket.send('6')],
  ['pings of its WebSocket', (socket) => socket.ping()],
  ['pongs of its WebSocket', (socket) => socket.pong()],
])('counts %s of engine.io', async (_, send) => {
  await start('socket.io', { frames: minute, closeAfter: 5 });
  const socket = await connectEngine();
  // One frame to connect.
  socket.send('40');
  await once(socket, 'message');
  const received: string[] = [];
  socket.on('message', (data: Buffer) => received.push(String(data)));
  for (let frame = 0; frame < 20; frame++) send(socket);
  await once(socket, 'close');
  // Two are allowed, and five are refused.
  expect(received.filter((each) => each.startsWith('42["exception"'))).toHaveLength(5);
});

it('counts probes of engine.io, and lets a client upgrade', async () => {
  await start('socket.io', { frames: { ...minute, rate: 2 }, closeAfter: 5 });
  const socket = io(app!.url, { transports: ['polling', 'websocket'], forceNew: true });
  opened.push(socket);
  await new Promise<void>((resolve) => socket.io.engine.once('upgrade', () => resolve()));
  // One frame to connect, one to probe.
  socket.emit('say', 1);
  expect((await answer(socket))[0]).toBe('exception');
  const opening = await (await fetch(`${app!.url}/socket.io/?EIO=4&transport=polling`)).text();
  const { sid } = JSON.parse(opening.slice(1)) as { sid: string };
  const probing = new WebSocket(`${app!.url.replace('http', 'ws')}/socket.io/?EIO=4&transport=websocket&sid=${sid}`);
  opened.push({ close: () => probing.terminate() });
  await once(probing, 'open');
  let answered = 0;
  probing.on('message', () => answered++);
  for (let probe = 0; probe < 20; probe++) probing.send('2probe');
  await once(probing, 'close');
  expect(answered).toBeLessThanOrEqual(5);
});

describe('frames of socket.io', () => {
  const ofLimit = ['exception', refusal.data];

  it('close the connection after too many refusals, and the client does not connect again', async () => {
    await start('socket.io', { frames: minute, closeAfter: 5 });
    const socket = await connectIo();
    const left = new Promise((resolve) => socket.once('disconnect', resolve));
    for (let frame = 0; frame < 2; frame++) {
      socket.emit('say', frame);
      expect(await answer(socket)).toEqual(['said', frame]);
      socket.offAny();
    }
    for (let frame = 2; frame < 20; frame++) socket.emit('say', frame);
    expect([await left, socket.active, reached.messages]).toEqual(['io server disconnect', false, [0, 1]]);
  });

  it('count attachments, which share the decision of their event', async () => {
    await start('socket.io', { frames: { ...minute, rate: 5 } });
    const socket = await connectIo();
    // One frame to connect, one of the event, one of its attachment.
    socket.emit('say', Buffer.from('four'));
    expect(await answer(socket)).toEqual(['said', 4]);
    socket.offAny();
    // Three frames: two are left.
    socket.emit('say', [Buffer.from('a'), Buffer.from('b')]);
    expect(await answer(socket)).toEqual(ofLimit);
    socket.offAny();
    // The connection can still be read.
    socket.emit('say', 'text');
    expect(await answer(socket)).toEqual(['said', 'text']);
  });
});
