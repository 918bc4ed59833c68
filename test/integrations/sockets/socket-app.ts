import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { get, type IncomingHttpHeaders } from 'node:http';
import type { INestApplication, WebSocketAdapter } from '@nestjs/common';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { type OnGatewayConnection, SubscribeMessage, WebSocketGateway, WebSocketServer } from '@nestjs/websockets';
import { rateLimitSockets, type SocketLimitOptions } from '../../../lib/integrations/sockets/index.js';
import { type AppOptions, type Framework, HttpApp } from '../../e2e/http-app.js';
import type { Library } from '../../e2e/websocket-clients.js';

/** What reached the gateway. */
export const reached = { connections: 0, messages: [] as unknown[] };

@WebSocketGateway()
export class ChatGateway implements OnGatewayConnection {
  @WebSocketServer()
  server: unknown;

  handleConnection(): void {
    reached.connections++;
  }

  @SubscribeMessage('say')
  say(client: unknown, data: unknown) {
    reached.messages.push(data);
    return { event: 'said', data: Buffer.isBuffer(data) ? data.length : data };
  }
}

export interface SocketAppOptions extends AppOptions {
  readonly framework?: Framework;
  readonly adapterOf?: (app: INestApplication) => WebSocketAdapter;
}

/** An app whose gateway has limits. */
export function startSocketApp(
  library: Library,
  sockets: SocketLimitOptions,
  { framework = 'express', adapterOf, ...options }: SocketAppOptions = {},
): Promise<HttpApp> {
  reached.connections = 0;
  reached.messages = [];
  const makeAdapter = adapterOf ?? ((app) => (library === 'ws' ? new WsAdapter(app) : new IoAdapter(app)));
  return HttpApp.start(framework, {
    providers: [ChatGateway],
    ...options,
    configure: (app) => void app.useWebSocketAdapter(rateLimitSockets(app, makeAdapter(app), sockets)),
  });
}

/** The answer to a handshake. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const UPGRADE = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

/** The path of a handshake that upgrades at once. */
export function pathOf(library: Library): string {
  return library === 'ws' ? '/' : '/socket.io/?EIO=4&transport=websocket';
}

/** Connects by a handshake as it is on the wire. `close` ends what it has connected. */
export async function shake(
  library: Library,
  url: string,
  headers: Record<string, string> = {},
): Promise<Answer & { close: () => void }> {
  const request = get(url + pathOf(library), { headers: { ...UPGRADE, ...headers }, agent: false });
  request.on('error', () => undefined);
  return new Promise((resolve, reject) => {
    request.once('upgrade', (response, socket) => {
      socket.on('error', () => undefined);
      socket.resume();
      const { statusCode = 0, headers: got } = response;
      resolve({ status: statusCode, headers: got, body: '', close: () => socket.destroy() });
    });
    request.once('response', (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      response.once('end', () => {
        const { statusCode = 0, headers: got } = response;
        resolve({ status: statusCode, headers: got, body, close: () => undefined });
      });
    });
    request.once('error', reject);
  });
}

/** Sends a handshake, and resets the connection before it is answered. */
export async function shakeAndReset(library: Library, url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connectTcp(Number(port), hostname);
  await once(socket, 'connect');
  const lines = Object.entries({ Host: hostname, ...UPGRADE }).map(([name, value]) => `${name}: ${value}`);
  socket.write(`GET ${pathOf(library)} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  await new Promise((resolve) => setImmediate(resolve));
  socket.resetAndDestroy();
  await once(socket, 'close');
}
