import 'reflect-metadata';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type INestApplication, Module, type Type } from '@nestjs/common';
import { NestFactory as Factory } from '@nestjs/core';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { WebSocket } from 'ws';
import { RateLimitModule as Limits, type RateLimitModuleOptions } from '../../lib/index.js';
import { bySocket, rateLimitSockets, type SocketLimitOptions } from '../../lib/integrations/sockets/index.js';
import { connect, type GatewayClient } from '../e2e/websocket-clients.js';
import { shake } from '../integrations/sockets/socket-app.js';
import { freshPrefix } from '../support/limits/stores.js';
import { PATIENCE } from '../support/redis/patience.mjs';
import { untriedCode } from './rows.js';

const SPEC = 'test/docs/websockets.long.spec.ts';
const redis = process.env['TEST_REDIS_URL']!;

/** On the server of the tests. */
const RateLimitModule = {
  forRoot: (options: RateLimitModuleOptions) =>
    Limits.forRoot({ ...options, redis, prefix: freshPrefix(), timeout: PATIENCE }),
};

@WebSocketGateway()
class ChatGateway {
  @SubscribeMessage('say')
  say(client: unknown, text: string) {
    return { event: 'said', data: text };
  }
}

@Module({
  imports: [RateLimitModule.forRoot({ redis: 'redis://localhost:6379' })],
  providers: [ChatGateway],
})
class AppModule {}

let running: INestApplication | undefined;
const clients: { close: () => void }[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await running?.close();
});

/** Nest's, on a port that is free. */
const NestFactory = {
  create: async (module: Type): Promise<INestApplication> => {
    const app = await Factory.create(module, { logger: false, abortOnError: false });
    const listen = app.listen.bind(app);
    app.listen = () => listen(0, '127.0.0.1');
    return (running = app);
  },
};

const tokenOf = (cookie = '') => cookie.slice('token='.length);
const jwt = {
  verifyAsync: async (token: string) => {
    await Promise.resolve();
    if (token === '') throw new Error('jwt must be provided');
    return { sub: token };
  },
};

async function started(options?: (app: INestApplication) => void): Promise<string> {
  if (options === undefined) {
    const app = await NestFactory.create(AppModule);
    app.useWebSocketAdapter(
      rateLimitSockets(app, new IoAdapter(app), {
        handshakes: { name: 'handshakes', algo: 'sliding-window', rate: 30, interval: '1m' },
        connections: { name: 'connections', algo: 'concurrency', limit: 5, ttl: '1m' },
        frames: { name: 'frames', algo: 'token-bucket', rate: 20, interval: '1s', key: bySocket, scope: 'instance' },
      }),
    );
    await app.listen(3000);
  } else {
    const app = await NestFactory.create(AppModule);
    options(app);
    await app.listen(3000);
  }
  return running!.getUrl();
}

describe('the guide', () => {
  it('has no code that is not tried here', () => {
    expect(untriedCode('docs/guides/websockets.md', SPEC, 'started')).toEqual([]);
    const others = untriedCode('docs/reference/websockets.md', SPEC, 'started');
    expect(others.filter((code) => !code.startsWith('handleConnection('))).toEqual([]);
  });

  it('limits connections, handshakes and frames', async () => {
    const url = await started();
    const client: GatewayClient = await connect('socket.io', url);
    clients.push(client);
    for (let frame = 0; frame < 40; frame++) client.send('say', 'hi');
    const events: string[] = [];
    for (let frame = 0; frame < 40; frame++) events.push((await client.next()).event);
    expect(events.filter((event) => event === 'exception').length).toBeGreaterThan(10);
    const answers = await Promise.all(Array.from({ length: 40 }, () => shake('socket.io', url)));
    clients.push(...answers);
    expect(answers.filter(({ status }) => status === 101)).toHaveLength(4);
    const { headers, body } = answers.find(({ status }) => status === 429)!;
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    expect(headers['ratelimit-policy']).toContain('"handshakes";q=30;w=66');
    expect(JSON.parse(body)).toMatchObject({ statusCode: 429, message: 'Too many requests' });
  });

  it('limits connections by user', async () => {
    const url = await started((app) => {
      const options: WsAdapter = rateLimitSockets(app, new WsAdapter(app), {
        handshakes: { algo: 'sliding-window', rate: 30, interval: '1m' },
        connections: { algo: 'concurrency', limit: 5, ttl: '1m', key: 'user' },
        authenticate: (request) => jwt.verifyAsync(tokenOf(request.headers.cookie)),
      });
      app.useWebSocketAdapter(options);
    });
    const answers = [];
    for (let handshake = 0; handshake < 6; handshake++) answers.push(await shake('ws', url, { Cookie: 'token=ada' }));
    answers.push(await shake('ws', url, { Cookie: 'token=bob' }), await shake('ws', url));
    clients.push(...answers);
    expect(answers.map(({ status }) => status)).toEqual([101, 101, 101, 101, 101, 429, 101, 401]);
  });

  it('limits the bytes of frames', async () => {
    const options: SocketLimitOptions = {
      frames: {
        name: 'bytes',
        algo: 'token-bucket',
        rate: 65_536,
        interval: '1s',
        key: bySocket,
        cost: (context) => Buffer.byteLength(context.switchToWs().getData<string | Buffer>()),
      },
    };
    const url = await started(
      (app) => void app.useWebSocketAdapter(rateLimitSockets(app, new WsAdapter(app), options)),
    );
    const socket = new WebSocket(url.replace('http', 'ws'));
    clients.push(socket);
    await once(socket, 'open');
    socket.send('x'.repeat(65_000));
    socket.send(Buffer.alloc(65_000));
    const [refused] = (await once(socket, 'message')) as [Buffer];
    expect(JSON.parse(refused.toString())).toMatchObject({ event: 'exception', data: { limits: ['bytes'] } });
  });
});
