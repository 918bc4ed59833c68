import { afterEach, describe, expect, it } from '@jest/globals';
import { NestApplicationContext } from '@nestjs/core';
import type { INestApplication } from '@nestjs/common';
import { AbstractWsAdapter } from '@nestjs/websockets';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { Test } from '@nestjs/testing';
import { type LimitDefinition, RateLimitConfigError, RateLimitModule } from '../../../lib/index.js';
import { rateLimitSockets, type SocketLimitOptions } from '../../../lib/integrations/sockets/index.js';
import { ChatGateway } from './socket-app.js';

const minute = { algo: 'fixed-window', rate: 1, interval: '1m' } as const;
const define: Record<string, LimitDefinition> = { hello: minute };

let app: INestApplication | undefined;
afterEach(() => app?.close());

async function made(imports = [RateLimitModule.forRoot({ define })]): Promise<INestApplication> {
  const testing = await Test.createTestingModule({ imports, providers: [ChatGateway] }).compile();
  testing.useLogger(false);
  return (app = testing.createNestApplication());
}

describe('rateLimitSockets refuses', () => {
  it.each<[string, unknown, string]>([
    ['no options', undefined, 'rateLimitSockets: '],
    ['an unknown option', { handshake: 'hello' }, "'handshake'"],
    ['no limits', { closeAfter: 3 }, 'expected limits for handshakes, connections or frames'],
    [
      'an empty list',
      { handshakes: [] },
      'rateLimitSockets.handshakes: expected the name of a defined limit, a limit such as',
    ],
    ['an unknown name', { handshakes: 'helo' }, "'hello'"],
    [
      'a wrong limit',
      { frames: { ...minute, rate: 0 } },
      'rateLimitSockets.frames.rate: expected a whole number >= 1, received 0',
    ],
    [
      'a limit twice',
      { handshakes: ['hello', 'hello'] },
      "rateLimitSockets.handshakes: the limit 'hello' is in the list twice. List it once",
    ],
    [
      'a count',
      { handshakes: { ...minute, count: 'failed' } },
      "limit 'fixed-window:1/1m:failed' has the option 'count', but handshakes and frames have no outcome. Use a limit without it",
    ],
    [
      'a measured cost',
      { frames: { ...minute, cost: { by: 'duration', per: '1s' } } },
      "limit 'fixed-window:1/1m' has a cost by bytes or duration, but handshakes and frames have no response. Use a limit with another 'cost'",
    ],
    ['a leaky bucket', { frames: { algo: 'leaky-bucket', rate: 1, interval: '1s' } }, 'gcra allows the same rate'],
    ['held handshakes', { handshakes: { algo: 'concurrency', limit: 1, ttl: '1m' } }, "by 'connections'"],
    [
      'connections that are not held',
      { connections: minute },
      "limit 'fixed-window:1/1m' has algo 'fixed-window', but connections are held. Use a concurrency limit, and limit how often they are opened by 'handshakes'",
    ],
    ['no number', { frames: minute, closeAfter: 0 }, 'expected a whole number >= 1, received 0'],
    ['no function', { frames: minute, authenticate: 'jwt' }, "expected a function of the request, received 'jwt'"],
    ['no function for addresses', { frames: minute, address: 1 }, 'expected a function of the request, received 1'],
  ])('%s', async (_, options, message) => {
    const nest = await made();
    const limit = () => rateLimitSockets(nest, new IoAdapter(nest), options as SocketLimitOptions);
    expect(limit).toThrow(RateLimitConfigError);
    expect(limit).toThrow(message);
  });

  it('what is no app, no adapter, an app without the module, and a second call', async () => {
    const nest = await made();
    const adapter = new IoAdapter(nest);
    const options = { frames: minute };
    expect(() => rateLimitSockets({} as NestApplicationContext, adapter, options)).toThrow(
      'first argument: expected the app of NestFactory.create, received {}',
    );
    expect(() => rateLimitSockets(nest, {} as IoAdapter, options)).toThrow(
      'second argument: expected an adapter such as new IoAdapter(app) or new WsAdapter(app), received {}',
    );
    expect(rateLimitSockets(nest, adapter, options)).toBe(adapter);
    expect(() => rateLimitSockets(nest, adapter, options)).toThrow('this adapter already has limits');
    await nest.close();
    const other = await made([]);
    expect(() => rateLimitSockets(other, new IoAdapter(other), options)).toThrow('RateLimitModule was not found');
  });

  it('a server that it cannot limit: the app does not start', async () => {
    class OtherAdapter extends AbstractWsAdapter {
      create() {
        return { on: () => undefined };
      }
      bindMessageHandlers() {}
    }
    const nest = await made();
    nest.useWebSocketAdapter(rateLimitSockets(nest, new OtherAdapter(nest), { handshakes: minute }));
    await expect(nest.init()).rejects.toThrow(
      'OtherAdapter created a server whose handshakes cannot be limited. Use a socket.io Server that is attached to an HTTP server, or a WebSocketServer of ws',
    );
  });
});
