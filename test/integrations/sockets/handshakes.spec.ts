import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { UnauthorizedException } from '@nestjs/common';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import type { ServerOptions } from 'socket.io';
import { io } from 'socket.io-client';
import { LimiterService, type RateLimitModuleOptions } from '../../../lib/index.js';
import type { SocketLimitOptions } from '../../../lib/integrations/sockets/index.js';
import type { HttpApp } from '../../e2e/http-app.js';
import { libraries, type Library } from '../../e2e/websocket-clients.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { reached, shake, shakeAndReset, type SocketAppOptions, startSocketApp } from './socket-app.js';

const redis = process.env['TEST_REDIS_URL']!;
const CLIENT = 'ip:127.0.0.1';
const define = {
  hello: { algo: 'fixed-window', rate: 2, interval: '1m' },
  open: { algo: 'concurrency', limit: 2, ttl: '1m' },
  each: { algo: 'concurrency', limit: 1, ttl: '1m', key: 'user' },
} satisfies RateLimitModuleOptions['define'];
const onRedis = () => ({ redis, prefix: freshPrefix(), store: undefined }) as unknown as RateLimitModuleOptions;

let app: HttpApp | undefined;
const opened: { close: () => void }[] = [];

async function close(): Promise<void> {
  for (const each of opened.splice(0)) each.close();
  await app?.close();
  app = undefined;
}

afterEach(close);

async function start(
  library: Library,
  sockets: SocketLimitOptions,
  { limits, ...options }: SocketAppOptions = {},
): Promise<{
  connect: (headers?: Record<string, string>) => ReturnType<typeof shake>;
  left: (name: string, key?: string) => Promise<number>;
}> {
  const started = (app = await startSocketApp(library, sockets, { ...options, limits: { define, ...limits } }));
  return {
    connect: async (headers) => {
      const answer = await shake(library, started.url, headers);
      opened.push(answer);
      return answer;
    },
    left: async (name, key = CLIENT) => (await started.nest.get(LimiterService).for(name).peek(key)).remaining,
  };
}

describe.each(libraries)('handshakes of %s', (library) => {
  it('are refused with 429 and Retry-After before they are upgraded', async () => {
    const { connect } = await start(library, { handshakes: 'hello' });
    const allowed = [await connect(), await connect()];
    expect(allowed.map(({ status }) => status)).toEqual([101, 101]);
    expect(allowed[1]!.headers['ratelimit']).toBe('"hello";r=0;t=60');
    app!.clock.advanceMs(15_000);
    const { status, headers, body } = await connect();
    expect({ status, retryAfter: headers['retry-after'], type: headers['content-type'] }).toEqual({
      status: 429,
      retryAfter: '45',
      type: 'application/json; charset=utf-8',
    });
    expect(JSON.parse(body)).toMatchObject({ statusCode: 429, message: 'Too many requests', limits: ['hello'] });
    await until(() => reached.connections === (library === 'ws' ? 2 : 0));
    app!.clock.advanceMs(45_000);
    expect((await connect()).status).toBe(101);
  });

  it.each(['in process', 'on Redis'])('let no more in than the limit of 200 at once, %s', async (where) => {
    const { connect, left } = await start(
      library,
      {
        handshakes: { name: 'twenty', algo: 'fixed-window', rate: 20, interval: '1h' },
        connections: { name: 'seven', algo: 'concurrency', limit: 7, ttl: '1m' },
      },
      { limits: where === 'on Redis' ? onRedis() : {} },
    );
    const answers = await Promise.all(Array.from({ length: 200 }, () => connect()));
    const count = (wanted: number) => answers.filter(({ status }) => status === wanted).length;
    // All limits are decided together: those that refuse charge nothing.
    expect([count(101), count(429)]).toEqual([7, 193]);
    expect(await left('hello')).toBe(2);
    for (const { close } of answers) close();
    for (let more = 0; more < 13; more++) {
      await until(async () => {
        const { status, close } = await connect();
        close();
        return status === 101;
      });
    }
    expect((await connect()).status).toBe(429);
  });

  it('hold a connection until it closes, whoever closes it', async () => {
    const { connect, left } = await start(library, { connections: 'open' });
    const [one, other] = [await connect(), await connect()];
    expect([one.status, other.status, (await connect()).status, await left('open')]).toEqual([101, 101, 429, 0]);
    one.close();
    await until(async () => (await left('open')) === 1);
    expect((await connect()).status).toBe(101);
    other.close();
    await until(async () => (await left('open')) === 1);
  });

  it('renew what a connection holds for as long as it is open, and no longer', async () => {
    const { connect, left } = await start(library, { connections: { ...define.open, name: 'brief', ttl: '60ms' } });
    const renewed = jest.spyOn(app!.store, 'renew');
    const { close: leave } = await connect();
    for (let round = 1; round < 4; round++) {
      app!.clock.advanceMs(50);
      const before = renewed.mock.calls.length;
      await until(() => renewed.mock.calls.length > before);
    }
    const other = await connect();
    // Two are open, though more than the time to live is over.
    expect([other.status, (await connect()).status]).toEqual([101, 429]);
    leave();
    await until(async () => (await connect()).status === 101);
    expect(await left('hello')).toBe(2);
  });

  it('hold nothing for clients that leave before they are connected', async () => {
    const { left } = await start(library, { connections: 'open' }, { limits: onRedis() });
    for (let round = 0; round < 10; round++) await shakeAndReset(library, app!.url);
    await until(async () => (await left('open')) === 2);
  });

  it('count connections by the user that `authenticate` returns', async () => {
    const seen: unknown[] = [];
    const { connect, left } = await start(library, {
      handshakes: { ...define.hello, rate: 5 },
      connections: 'each',
      authenticate: async ({ headers }) => {
        seen.push(headers['x-user']);
        if (headers['x-user'] === 'mallory') throw new Error('jwt malformed');
        if (headers['x-user'] === 'eve') throw new UnauthorizedException('expired');
        return { id: headers['x-user'] };
      },
    });
    const by = async (user: string) => (await connect({ 'x-user': user })).status;
    expect([await by('ada'), await by('ada'), await by('mallory'), await by('eve'), await by('bob')]).toEqual([
      101, 429, 401, 401, 101,
    ]);
    expect(seen).toHaveLength(5);
    expect([await left('each', 'user:ada'), await left('each', 'user:bob')]).toEqual([0, 0]);
    // Failed ones count: tokens cannot be tried without a limit.
    expect([await by('carl'), seen.length]).toEqual([429, 5]);
  });

  it('count by the address behind trusted proxies, and IPv6 clients by their network', async () => {
    for (const framework of ['express', 'fastify'] as const) {
      const { connect, left } = await start(library, { handshakes: 'hello' }, { framework, trustProxy: true });
      const from = async (address: string) => (await connect({ 'X-Forwarded-For': address })).status;
      expect([await from('203.0.113.7'), await from('203.0.113.7'), await from('203.0.113.7')]).toEqual([
        101, 101, 429,
      ]);
      expect([await from('2001:db8:1:2::1'), await from('2001:db8:1:2::2'), await from('2001:db8:1:2::3')]).toEqual([
        101, 101, 429,
      ]);
      expect(await left('hello')).toBe(2);
      await close();
    }
    for (const framework of ['express', 'fastify'] as const) {
      const { connect, left } = await start(library, { handshakes: 'hello' }, { framework });
      await connect({ 'X-Forwarded-For': '203.0.113.7' });
      expect(await left('hello')).toBe(1);
      await close();
    }
  });

  it('count by the `address` of the app', async () => {
    const { connect, left } = await start(library, {
      handshakes: 'hello',
      address: ({ headers }) => headers['x-real-ip'] as string | undefined,
    });
    await connect({ 'X-Real-IP': '203.0.113.7' });
    await connect();
    expect([await left('hello', 'ip:203.0.113.7'), await left('hello')]).toEqual([1, 1]);
  });

  it('obey lists, shadow mode, and functions of the request', async () => {
    const { connect } = await start(
      library,
      {
        handshakes: [
          'hello',
          { ...define.hello, name: 'shown', rate: 1, mode: 'shadow' },
          {
            ...define.hello,
            name: 'partners',
            rate: 1,
            key: (context) =>
              context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-partner'],
            onMissingKey: 'skip',
          },
        ],
      },
      { limits: { lists: { deny: [{ ip: '203.0.113.0/24' }] } }, trustProxy: true },
    );
    expect((await connect({ 'X-Forwarded-For': '203.0.113.9' })).status).toBe(403);
    const partner = { 'X-Partner': 'acme' };
    expect([(await connect(partner)).status, (await connect(partner)).status, (await connect()).status]).toEqual([
      101, 429, 101,
    ]);
  });

  it('refuse what cannot be decided, and never end the process', async () => {
    const { connect } = await start(library, {
      handshakes: {
        ...define.hello,
        key: () => {
          throw new TypeError('a bug');
        },
      },
    });
    const { status, body } = await connect();
    expect({ status, body: JSON.parse(body) as unknown }).toEqual({
      status: 500,
      body: { statusCode: 500, message: 'Internal server error', error: 'Internal Server Error' },
    });
  });

  it.each([
    ['deny', 503, '1'],
    ['allow', 101, undefined],
    ['local', 101, undefined],
  ] as const)('while Redis fails, onStoreError %s answers %i', async (onStoreError, status, retryAfter) => {
    const { connect } = await start(
      library,
      { handshakes: { algo: 'gcra', rate: 5, interval: '1m', onStoreError } },
      { limits: { redis: 'redis://127.0.0.1:1', timeout: 100, store: undefined } as unknown as RateLimitModuleOptions },
    );
    const answer = await connect();
    expect([answer.status, answer.headers['retry-after']]).toEqual([status, retryAfter]);
  });
});

it('lets the polling clients of socket.io connect as often, with one connection each', async () => {
  const { left } = await start('socket.io', { handshakes: { ...define.hello, rate: 3 }, connections: 'open' });
  const connected = async (transports: string[]) => {
    const socket = io(app!.url, { transports, reconnection: false, forceNew: true });
    opened.push(socket);
    return new Promise<string>((resolve) => {
      socket.once('connect', () => resolve('connected'));
      socket.once('connect_error', (error) => resolve(String((error as { description?: unknown }).description)));
    });
  };
  // The second upgrades its connection after it has polled.
  expect([await connected(['polling']), await connected(['polling', 'websocket'])]).toEqual(['connected', 'connected']);
  expect(await left('open')).toBe(0);
  expect(await connected(['polling'])).toBe('429');
  opened.shift()!.close();
  await until(async () => (await left('open')) === 1);
  expect(await left('open')).toBe(1);
  // It would be the fourth handshake.
  expect(await connected(['polling'])).toBe('connected');
  expect(await connected(['polling'])).toBe('429');
});

it('asks the own functions of the app after the limits, and releases what they refuse', async () => {
  const ws = await start(
    'ws',
    { connections: 'open' },
    {
      adapterOf: (nest) => {
        class OwnAdapter extends WsAdapter {
          override create(port: number, options?: Record<string, unknown>) {
            return super.create(port, { ...options, verifyClient: () => false }) as unknown;
          }
        }
        return new OwnAdapter(nest);
      },
    },
  );
  expect([(await ws.connect()).status, (await ws.connect()).status, (await ws.connect()).status]).toEqual([
    401, 401, 401,
  ]);
  await until(async () => (await ws.left('open')) === 2);
  await app!.close();
  const { connect, left } = await start(
    'socket.io',
    { connections: 'open' },
    {
      adapterOf: (nest) => {
        class OwnAdapter extends IoAdapter {
          override createIOServer(port: number, options?: ServerOptions) {
            return super.createIOServer(port, { ...options!, allowRequest: (_, done) => done(null, false) });
          }
        }
        return new OwnAdapter(nest);
      },
    },
  );
  expect([(await connect()).status, (await connect()).status, (await connect()).status]).toEqual([400, 400, 400]);
  await until(async () => (await left('open')) === 2);
});
