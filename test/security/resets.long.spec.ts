import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect, type Server as NetServer, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { type LimitDefinition, LimiterService, RateLimit, rateLimitMiddleware } from '../../lib/index.js';
import { connectRedis, ManualClock, storeKinds } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';
import { type AppOptions, type Framework, frameworks, HttpApp } from '../e2e/http-app.js';

const RATE = 3;
const ATTACKS = 30;
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

  @Get('own-key')
  @RateLimit('own')
  ownKey() {
    work.reached++;
  }

  @Get('bare')
  bare() {
    work.reached++;
  }
}

const minute = { algo: 'fixed-window', rate: RATE, interval: '1m' } as const;
const define = {
  address: minute,
  own: {
    ...minute,
    key: (context) => `mine:${context.switchToHttp().getRequest<{ ip?: string }>().ip}`,
  },
} satisfies Record<string, LimitDefinition>;

/** Ways to be gone when the request is read. */
const attacks: Record<string, (socket: Socket, request: string) => Promise<void>> = {
  'in the turn of the request': async (socket, request) => {
    await once(socket, 'connect');
    socket.write(request);
    socket.resetAndDestroy();
  },
  'once the kernel has the request': async (socket, request) => {
    await once(socket, 'connect');
    await new Promise((resolve) => socket.write(request, resolve));
    socket.resetAndDestroy();
  },
  'behind a request that was answered': async (socket, request) => {
    await once(socket, 'connect');
    socket.write('GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket, 'data');
    socket.write(request);
    socket.resetAndDestroy();
  },
};

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

let app: HttpApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

const kinds = frameworks.flatMap((framework) => Object.keys(storeKinds).map((kind) => [framework, kind] as const));
const [firstKind] = Object.keys(storeKinds);

const all: (readonly [Framework, string])[] = [...kinds, ['plain', firstKind!]];

describe.each(all)('clients that reset their connections, over %s with %s', (framework, kind) => {
  async function start(options: { trustProxy?: AppOptions['trustProxy']; middleware?: boolean } = {}) {
    work.reached = 0;
    const sockets = { open: 0, seen: 0 };
    const early = { name: 'early', ...minute, phase: 'middleware' } as const;
    const started = await HttpApp.start(framework, {
      controllers: [TargetController],
      trustProxy: options.trustProxy ?? false,
      limits: {
        store: storeKinds[kind]!(new ManualClock(), redis),
        define,
        ...(options.middleware === true ? { limits: [early] } : {}),
      },
      configure: (nest: INestApplication) => {
        if (options.middleware === true) nest.use(rateLimitMiddleware(nest));
      },
    });
    app = started;
    (started.nest.getHttpServer() as NetServer).on('connection', (socket: Socket) => {
      sockets.seen++;
      sockets.open++;
      socket.once('close', () => sockets.open--);
    });
    const { port } = new URL(started.url);
    return {
      get: started.get.bind(started),
      attack: async (path: string, how: string, headers = '') => {
        const request = `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
        await Promise.all(
          Array.from({ length: ATTACKS }, async () => {
            const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
            await attacks[how]!(socket, request);
          }),
        );
        // Connections are taken in order, so all have been seen when this one has been answered.
        // It is not kept: a later request must not be sent on a connection that the server has just closed.
        await (await started.get('/nowhere', { connection: 'close' })).text();
        (started.nest.getHttpServer() as Server).closeIdleConnections();
        await until(() => sockets.open === 0, SLACK_MS);
        expect(sockets.seen).toBeGreaterThanOrEqual(ATTACKS);
      },
      left: async (name: string, key = 'ip:127.0.0.1') =>
        (await started.nest.get(LimiterService).for(name).peek(key)).remaining,
    };
  }

  it.each(Object.keys(attacks))('%s: the guard lets through no more than the limit', async (how) => {
    const { attack } = await start();
    await attack('/target', how);
    expect(work.reached).toBeLessThanOrEqual(RATE);
  });

  it.each(Object.keys(attacks))('%s: the middleware lets through no more than the limit', async (how) => {
    const { attack } = await start({ middleware: true });
    await attack('/bare', how);
    expect(work.reached).toBeLessThanOrEqual(RATE);
  });

  it('counts for the address that a connection had when it came', async () => {
    const { attack, left, get } = await start();
    await attack('/target', 'behind a request that was answered');
    expect(await left('address')).toBe(0);
    expect((await get('/target')).status).toBe(429);
  });

  it('no function of theirs is asked whose address it cannot know', async () => {
    const { attack, left } = await start();
    for (const how of Object.keys(attacks)) await attack('/own-key', how);
    expect(work.reached).toBeLessThanOrEqual(RATE);
    expect(await left('own', 'mine:undefined')).toBe(RATE);
  });

  it.each<[string, NonNullable<AppOptions['trustProxy']>]>([
    ['all', true],
    ['a proxy elsewhere', (address) => address === '10.0.0.1'],
    // Of such a function a client without an address would make a proxy.
    ['whom it does not know', (address) => address === undefined || address === '10.0.0.1'],
  ])('loses no count and chooses no address by a header where the framework trusts %s', async (whom, trustProxy) => {
    const { attack, left } = await start({ trustProxy });
    for (const how of Object.keys(attacks)) await attack('/target', how, 'X-Forwarded-For: 203.0.113.7\r\n');
    expect(work.reached).toBeLessThanOrEqual(RATE);
    const [own, chosen] = [await left('address'), await left('address', 'ip:203.0.113.7')];
    expect([own, chosen]).toEqual(whom === 'all' ? [RATE, 0] : [0, RATE]);
  });
});
