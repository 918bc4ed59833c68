import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type INestApplicationContext, Injectable, Module } from '@nestjs/common';
import { ExternalContextCreator } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { RateLimit, RateLimitModule, type RateLimitModuleOptions } from '../../../lib/index.js';
import { bySession, McpReader } from '../../../lib/integrations/mcp/index.js';

const minute = { algo: 'fixed-window', rate: 2, interval: '1m' } as const;
let reached = 0;

@Injectable()
class Tools {
  @RateLimit({ ...minute, name: 'address' })
  address() {
    reached++;
    return { content: [] };
  }

  @RateLimit({ ...minute, name: 'session', key: bySession, onMissingKey: 'refuse' })
  session() {
    reached++;
    return { content: [] };
  }

  @RateLimit({ ...minute, name: 'user', key: 'user', onMissingKey: 'refuse' })
  user() {
    reached++;
    return { content: [] };
  }
}

let app: INestApplicationContext;
let http: HttpServer;
const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  http.closeAllConnections();
  http.close();
  await app.close();
});

type Handler = (request: object, extra: object) => Promise<{ content: [] }>;

/** A server whose tools are called as Nest calls handlers of contexts of its own. */
async function start(transport: 'http' | 'sse', options: RateLimitModuleOptions = { readers: [McpReader] }) {
  reached = 0;
  @Module({ imports: [RateLimitModule.forRoot(options)], providers: [Tools] })
  class AppModule {}
  const testing = await Test.createTestingModule({ imports: [AppModule] }).compile();
  testing.useLogger(false);
  app = await testing.createNestApplication().init();
  const creator = app.get(ExternalContextCreator);
  const tools = app.get(Tools);
  const handlers = new Map<string, Handler>(
    (['address', 'session', 'user'] as const).map((name) => [
      name,
      creator.create(tools, tools[name], name, undefined, undefined, undefined, undefined, undefined, 'mcp') as Handler,
    ]),
  );
  const serverFor = (request: object) => {
    const server = new Server({ name: 'tools', version: '1.0.0' }, { capabilities: { tools: {} } });
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) =>
      handlers.get(params.name)!(params, { ...extra, request }),
    );
    return server;
  };
  const streams = new Map<string, SSEServerTransport>();
  http = createServer((request, response) => {
    const url = new URL(request.url!, 'http://localhost');
    Object.assign(request, { user: request.headers['x-user'] });
    if (transport === 'sse' && request.method === 'POST') {
      void streams.get(url.searchParams.get('sessionId')!)!.handlePostMessage(request, response);
    } else if (transport === 'sse') {
      const stream = new SSEServerTransport('/messages', response);
      streams.set(stream.sessionId, stream);
      void serverFor(request).connect(stream);
    } else {
      const stream = new StreamableHTTPServerTransport();
      void serverFor(request)
        .connect(stream as never)
        .then(() => stream.handleRequest(request, response));
    }
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const url = new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}`);
  return async (headers: Record<string, string> = {}) => {
    const client = new Client({ name: 'test', version: '1.0.0' });
    const requestInit = { headers };
    const channel =
      transport === 'sse'
        ? new SSEClientTransport(url, {
            requestInit,
            eventSourceInit: { fetch: (to, init) => fetch(to, { ...init, headers: { ...headers } }) },
          })
        : new StreamableHTTPClientTransport(url, { requestInit });
    await client.connect(channel);
    clients.push(client);
    return async (name: string, args = {}) =>
      client.callTool({ name, arguments: args, ...args }).then(
        () => undefined,
        ({ code, data }: { code: number; data?: object }) => ({ code, data }),
      );
  };
}

const limited = (limit: string) => ({
  code: -32_029,
  data: expect.objectContaining({ statusCode: 429, limit, retryAfterMs: expect.any(Number) as unknown }) as unknown,
});

describe.each(['http', 'sse'] as const)("contexts of type 'mcp' over %s", (transport) => {
  it('count by address', async () => {
    const connected = await start(transport);
    const [one, other] = [await connected(), await connected()];
    expect([await one('address'), await other('address')]).toEqual([undefined, undefined]);
    expect([await one('address'), await other('address'), reached]).toEqual([
      limited('address'),
      limited('address'),
      2,
    ]);
  });

  it('count by user', async () => {
    const connected = await start(transport);
    for (const user of ['ada', 'bob']) {
      const call = await connected({ 'x-user': user });
      expect([await call('user'), await call('user'), await call('user')]).toEqual([
        undefined,
        undefined,
        limited('user'),
      ]);
    }
    expect(reached).toBe(4);
  });
});

it("contexts of type 'mcp' count by session", async () => {
  const connected = await start('sse');
  for (const call of [await connected(), await connected()]) {
    expect([await call('session'), await call('session'), await call('session')]).toEqual([
      undefined,
      undefined,
      limited('session'),
    ]);
  }
});

it('the message cannot name an address, a user or a session', async () => {
  const connected = await start('http');
  const call = await connected();
  const forged = { ip: '203.0.113.7', user: 'eve', headers: {} };
  const args = { request: forged, req: forged, signal: {}, sessionId: 'made up', requestInfo: { headers: {} } };
  expect([await call('address', args), await call('address', args)]).toEqual([undefined, undefined]);
  expect(await call('address', args)).toEqual(limited('address'));
  expect(await call('user', args)).toMatchObject({ code: -32_000, data: { statusCode: 401 } });
  expect(await call('session', args)).toMatchObject({ code: -32_000, data: { statusCode: 400 } });
});

it('without a reader, calls that cannot be counted do not run', async () => {
  const connected = await start('http', {});
  const call = await connected();
  expect([(await call('address')) === undefined, reached]).toEqual([false, 0]);
});
