import { afterEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  McpController,
  type McpContext,
  McpStrategy,
  Prompt,
  Resource,
  StreamableHttpTransport,
  Tool,
} from '@rekog/mcp-nest';
import { z } from 'zod';
import {
  type CheckResult,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitDecision,
  RateLimitExceededException,
  RateLimitModule,
  type RateLimitModuleExtras,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { bySession } from '../../../lib/integrations/mcp/index.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

const redis = process.env['TEST_REDIS_URL']!;
const minute = { algo: 'fixed-window', rate: 2, interval: '1m' } as const;
const define = {
  address: minute,
  session: { ...minute, key: bySession, onMissingKey: 'refuse' },
  user: { ...minute, key: 'user' },
  budget: { ...minute, rate: 1, status: 402, message: 'Out of budget' },
  slots: { algo: 'concurrency', limit: 1, ttl: '30s' },
  secret: { ...minute, rate: 1, interval: '1h', hidden: true },
  shown: { ...minute, rate: 1 },
} satisfies Record<string, LimitDefinition>;

/** How often each handler ran, and what slow ones wait for. */
const ran: Record<string, number> = {};
const work = { leave: () => {}, gate: Promise.resolve() };
const run = (name: string) => (ran[name] = (ran[name] ?? 0) + 1);

@McpController()
class Capabilities {
  constructor(private readonly limiters: LimiterService) {}

  @Tool({ name: 'address', description: 'By address', parameters: z.object({ text: z.string().default('') }) })
  @RateLimit('address')
  byAddress(
    @Payload() { text }: { text: string },
    @Ctx() _context: McpContext,
    @RateLimitDecision() decision?: CheckResult,
  ) {
    run('address');
    return { content: [{ type: 'text', text: `${text}${decision?.tightest.remaining}` }] };
  }

  @Tool({ name: 'session', description: 'By session' })
  @RateLimit('session')
  bySession() {
    run('session');
    return { content: [{ type: 'text', text: 'done' }] };
  }

  @Tool({ name: 'user', description: 'By user' })
  @RateLimit('user')
  byUser() {
    run('user');
    return { content: [{ type: 'text', text: 'done' }] };
  }

  @Tool({ name: 'slow', description: 'One at a time' })
  @RateLimit('slots')
  async slow() {
    run('slow');
    await work.gate;
    return { content: [{ type: 'text', text: 'done' }] };
  }

  @Tool({ name: 'secret', description: 'By a limit that clients learn nothing of' })
  @RateLimit('secret')
  secret() {
    return { content: [{ type: 'text', text: 'done' }] };
  }

  @Tool({ name: 'half', description: 'By a hidden limit and another one' })
  @RateLimit('secret', 'shown')
  half() {
    return { content: [{ type: 'text', text: 'done' }] };
  }

  @Tool({ name: 'thrown', description: 'Refuses by itself' })
  async thrown() {
    const result = await this.limiters.check([{ limit: 'budget', key: 'acme', cost: 2 }]);
    throw new RateLimitExceededException(result);
  }

  @Prompt({ name: 'hello', description: 'A prompt' })
  @RateLimit({ ...minute, name: 'prompts' })
  hello() {
    run('hello');
    return { messages: [{ role: 'user', content: { type: 'text', text: 'Hello' } }] };
  }

  @Resource({ name: 'readme', uri: 'mcp://readme', description: 'A resource', mimeType: 'text/plain' })
  @RateLimit({ ...minute, name: 'resources' })
  readme(@Payload() { uri }: { uri: string }) {
    run('readme');
    return { contents: [{ uri, mimeType: 'text/plain', text: 'Read me' }] };
  }
}

let app: INestApplication | undefined;
const clients: Client[] = [];
afterEach(async () => {
  work.leave();
  for (const client of clients.splice(0)) await client.close();
  await app?.close();
  app = undefined;
  for (const name of Object.keys(ran)) delete ran[name];
});

interface Options {
  readonly stateful?: boolean;
  readonly limits?: RateLimitModuleOptions & RateLimitModuleExtras;
  readonly inherit?: boolean | undefined;
  readonly fastify?: boolean;
}

async function start({ stateful = false, limits, inherit, fastify = false }: Options = {}) {
  work.gate = new Promise((resolve) => (work.leave = resolve));
  const strategy = new McpStrategy({
    name: 'tools',
    version: '1.0.0',
    logging: false,
    transports: [new StreamableHttpTransport({ statefulMode: stateful })],
  });
  const testing = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ define, ...limits })],
    controllers: [Capabilities],
  }).compile();
  testing.useLogger(false);
  app = fastify ? testing.createNestApplication(new FastifyAdapter()) : testing.createNestApplication();
  if (!fastify) {
    app.use((request: { user?: unknown; headers: Record<string, string> }, _: unknown, next: () => void) => {
      if (request.headers['x-user'] !== undefined) request.user = { id: request.headers['x-user'] };
      next();
    });
  }
  strategy.setHttpAdapter(app.getHttpAdapter());
  app.connectMicroservice({ strategy }, inherit === undefined ? undefined : { inheritAppConfig: inherit });
  await app.startAllMicroservices();
  await app.listen(0, '127.0.0.1');
  const url = new URL('/mcp', await app.getUrl());
  return async (headers: Record<string, string> = {}) => {
    const client = new Client({ name: 'test', version: '1.0.0' });
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    clients.push(client);
    return client;
  };
}

/** The error of a call, or `undefined` if it was answered. */
async function errorOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    ({ code, data }: { code: unknown; data: unknown }) => ({ code, data }),
  );
}

const limited = (limit: string, rest: object = {}) => ({
  code: -32_029,
  data: {
    status: 'error',
    statusCode: 429,
    message: 'Too many requests',
    error: 'Too Many Requests',
    limits: [limit],
    limit,
    retryAfterMs: expect.any(Number) as unknown,
    ...rest,
  },
});

describe.each([
  ['as its guide connects it', undefined],
  ['with inheritAppConfig', true],
])('a server of @rekog/mcp-nest, %s', (_, inherit) => {
  it('refuses tools over the limit with an error of JSON-RPC', async () => {
    const connected = await start({ inherit });
    const client = await connected();
    const call = () => client.callTool({ name: 'address', arguments: { text: 'left: ' } });
    expect((await call()).content).toEqual([{ type: 'text', text: 'left: 1' }]);
    await call();
    expect(await errorOf(call())).toEqual(limited('address'));
    const { retryAfterMs } = ((await errorOf(call())) as { data: { retryAfterMs: number } }).data;
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(retryAfterMs).toBeLessThanOrEqual(60_000);
    expect(ran).toEqual({ address: 2 });
  });

  it('refuses prompts and resources over the limit, too', async () => {
    const connected = await start({ inherit });
    const client = await connected();
    const calls = [() => client.getPrompt({ name: 'hello' }), () => client.readResource({ uri: 'mcp://readme' })];
    for (const [index, name] of ['prompts', 'resources'].entries()) {
      expect([await errorOf(calls[index]!()), await errorOf(calls[index]!())]).toEqual([undefined, undefined]);
      expect(await errorOf(calls[index]!())).toEqual(limited(name));
    }
    expect(ran).toEqual({ hello: 2, readme: 2 });
  });

  it('lets no more through than the limit of 200 calls at once, on Redis', async () => {
    const connected = await start({ inherit, limits: { redis, prefix: freshPrefix(), timeout: PATIENCE } });
    const all = await Promise.all(Array.from({ length: 10 }, () => connected()));
    const calls = Array.from({ length: 200 }, (_, index) =>
      all[index % 10]!.callTool({ name: 'address', arguments: {} }),
    );
    const errors = (await Promise.all(calls.map(errorOf))).filter((error) => error !== undefined);
    expect([errors.length, ran]).toEqual([198, { address: 2 }]);
  });

  it('counts by session', async () => {
    const connected = await start({ inherit, stateful: true });
    for (const client of [await connected(), await connected()]) {
      const call = () => client.callTool({ name: 'session' });
      expect([await errorOf(call()), await errorOf(call())]).toEqual([undefined, undefined]);
      expect(await errorOf(call())).toEqual(limited('session'));
    }
    expect(ran).toEqual({ session: 4 });
  });

  it('counts by user', async () => {
    const connected = await start({ inherit });
    for (const user of ['ada', 'bob']) {
      const client = await connected({ 'x-user': user });
      const call = () => client.callTool({ name: 'user' });
      expect([await errorOf(call()), await errorOf(call())]).toEqual([undefined, undefined]);
      expect(await errorOf(call())).toEqual(limited('user'));
    }
    expect(ran).toEqual({ user: 4 });
  });

  it('holds a slot until the tool ends', async () => {
    const connected = await start({ inherit });
    const [one, other] = [await connected(), await connected()];
    const first = one.callTool({ name: 'slow' });
    await until(() => ran['slow'] === 1);
    expect(await errorOf(other.callTool({ name: 'slow' }))).toEqual(limited('slots'));
    work.leave();
    await first;
    await until(async () => (await errorOf(other.callTool({ name: 'slow' }))) === undefined);
  });

  it('applies limits of the module', async () => {
    const connected = await start({ inherit, limits: { limits: [{ ...minute, name: 'all', rate: 1 }] } });
    const client = await connected();
    expect(await errorOf(client.callTool({ name: 'user' }))).toBeUndefined();
    expect(await errorOf(client.callTool({ name: 'address', arguments: {} }))).toEqual(limited('all'));
    expect(ran).toEqual({ user: 1 });
  });
});

describe('a server of @rekog/mcp-nest', () => {
  it('answers refusals that a tool throws like its own, where global filters reach it', async () => {
    const connected = await start({ inherit: true });
    const client = await connected();
    expect(await errorOf(client.callTool({ name: 'thrown' }))).toEqual(
      limited('budget', {
        statusCode: 402,
        message: 'Out of budget',
        error: 'Payment Required',
        retryAfterMs: null,
      }),
    );
  });

  it('names no hidden limit', async () => {
    const connected = await start();
    const client = await connected();
    const { limit: _, ...data } = limited('secret').data;
    expect(await errorOf(client.callTool({ name: 'half' }))).toBeUndefined();
    expect(await errorOf(client.callTool({ name: 'secret' }))).toEqual({
      code: -32_029,
      data: { ...data, limits: [] },
    });
    expect(await errorOf(client.callTool({ name: 'half' }))).toEqual(limited('shown'));
  });

  it('is limited on Fastify', async () => {
    const connected = await start({ fastify: true });
    const client = await connected();
    const call = () => client.callTool({ name: 'address', arguments: {} });
    expect([await errorOf(call()), await errorOf(call())]).toEqual([undefined, undefined]);
    expect(await errorOf(call())).toEqual(limited('address'));
    expect((await app!.get(LimiterService).for('address').peek('ip:127.0.0.1')).remaining).toBe(0);
  });

  it.each([true, false])('counts each call of a batch (with sessions: %s)', async (stateful) => {
    const connected = await start({ stateful });
    const { sessionId } = (await connected()).transport!;
    const response = await fetch(new URL('/mcp', await app!.getUrl()), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(sessionId !== undefined && { 'mcp-session-id': sessionId }),
      },
      body: JSON.stringify(
        Array.from({ length: 6 }, (_, id) => ({
          jsonrpc: '2.0',
          id,
          method: 'tools/call',
          params: { name: id % 2 === 0 ? 'address' : 'user', arguments: {} },
        })),
      ),
    });
    const answered = await response.text();
    expect(answered.match(/"result"/g)).toHaveLength(4);
    expect(answered.match(/-32029/g)).toHaveLength(2);
    expect(ran).toEqual({ address: 2, user: 2 });
  });

  it('refuses with other codes what no limit refused', async () => {
    const connected = await start();
    const client = await connected();
    // A stateless server has no sessions.
    expect(await errorOf(client.callTool({ name: 'session' }))).toMatchObject({
      code: -32_000,
      data: { status: 'error', statusCode: 400 },
    });
    expect(ran).toEqual({});
  });

  it('does not start with limits that no guard checks', async () => {
    await expect(start({ limits: { guard: false } })).rejects.toThrow('no RateLimitGuard checks');
  });
});
