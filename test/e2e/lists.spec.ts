import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Controller, type ExecutionContext, Get, type ModuleMetadata, Param, UseGuards } from '@nestjs/common';
import { GraphQLModule, Query, Resolver } from '@nestjs/graphql';
import { ClientProxyFactory, MessagePattern, Transport } from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { firstValueFrom } from 'rxjs';
import {
  type CheckResult,
  type DecisionEvent,
  LimiterService,
  RateLimit,
  RateLimitDecision,
  RateLimitDeniedException,
  RateLimitGuard,
  rateLimitMiddleware,
  type RateLimitModuleOptions,
  type RequestDecision,
  SkipRateLimit,
} from '../../lib/index.js';
import { adapters, HttpApp } from './http-app.js';
import { connect, libraries } from './websocket-clients.js';

const minute = { algo: 'fixed-window', interval: '1m' } as const;
const tenantOf = (context: ExecutionContext) =>
  context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>().headers['x-tenant'];
const define = {
  address: { ...minute, rate: 2 },
  tenant: { ...minute, rate: 1, key: tenantOf, onMissingKey: 'skip' },
  tried: { ...minute, rate: 1, mode: 'shadow' },
  metered: { ...minute, rate: 5, cost: 2, count: 'succeeded' },
} as const;

@Controller()
class ApiController {
  @Get('address')
  @RateLimit('address')
  address(@RateLimitDecision() { tightest }: CheckResult) {
    return tightest.source;
  }

  @Get('both')
  @RateLimit('address', 'tenant')
  both() {}

  @Get('tried')
  @RateLimit('tried')
  tried() {}

  @Get('skipped')
  @SkipRateLimit()
  skipped() {}

  @Get('skipped-by-name')
  @SkipRateLimit('address')
  skippedByName() {}

  @Get('own')
  @RateLimit({ ...minute, name: 'address', rate: 3 })
  own() {}

  @Get('metered/:cost')
  @RateLimit('metered')
  async metered(@RateLimitDecision() decision: RequestDecision, @Param('cost') cost: string) {
    await decision.settle(Number(cost));
    if (cost === '0') throw new Error('failed');
  }

  @Get('plain')
  plain() {}
}

let app: HttpApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

const limitersOf = (running: HttpApp) => running.nest.get(LimiterService);
const HERE = { ip: '127.0.0.1' };
const FORBIDDEN = { statusCode: 403, message: 'Forbidden', error: 'Forbidden' };

const rateHeaders = ({ headers }: Response) => [...headers.keys()].filter((name) => /ratelimit|retry-after/.test(name));

describe.each(adapters)('a list, on routes of %s', (framework) => {
  const start = async (limits: RateLimitModuleOptions = {}, more: object = {}) => {
    app = await HttpApp.start(framework, {
      limits: { define, ...limits },
      controllers: [ApiController],
      trustProxy: true,
      ...more,
    });
    return { app, limiters: limitersOf(app) };
  };
  it('refuses with 403, and says no more', async () => {
    const { app: running, limiters } = await start();
    await limiters.deny({ ip: '127.0.0.0/8' }, { limit: 'address', reason: 'secret' });
    const refused = await running.get('/address');
    expect([refused.status, await refused.json()]).toEqual([403, FORBIDDEN]);
    expect(rateHeaders(refused)).toEqual([]);
    expect(await running.statuses(2, '/plain')).toEqual([200, 200]);
    await limiters.unlist({ ip: '127.0.0.0/8' }, { limit: 'address' });
    expect(await running.statuses(3, '/address')).toEqual([200, 200, 429]);
  });

  it('of all limits refuses addresses wherever the guard is, but where all limits are skipped', async () => {
    const { app: running, limiters } = await start();
    const events: DecisionEvent[] = [];
    limiters.decisions$.subscribe((event) => events.push(event));
    await limiters.deny(HERE);
    const statuses = async () =>
      Promise.all(
        ['address', 'plain', 'own', 'tried', 'skipped'].map(async (path) => (await running.get(`/${path}`)).status),
      );
    expect(await statuses()).toEqual([403, 403, 403, 403, 200]);
    expect(events.map(({ limit, outcome, source }) => [limit, outcome, source])).toEqual(
      Array.from({ length: 4 }, () => ['*', 'refused', 'list']),
    );
    await limiters.allow(HERE);
    expect(await statuses()).toEqual([200, 200, 200, 200, 200]);
    expect(new Set(events.slice(4).map(({ source }) => source))).toEqual(new Set(['list']));
  });

  it('skipped by the name of one limit still refuses', async () => {
    const { app: running, limiters } = await start({ limits: [{ name: 'module', ...minute, rate: 2 }] });
    await limiters.deny(HERE, { limit: 'module' });
    expect((await running.get('/plain')).status).toBe(403);
    expect((await running.get('/skipped')).status).toBe(200);
    // A limit of the same name that a route declares is another one.
    await limiters.unlist(HERE, { limit: 'module' });
    await limiters.deny(HERE, { limit: 'address' });
    expect((await running.get('/own')).status).toBe(200);
  });

  it('exempts without a charge, and without a word of when there is more', async () => {
    const { app: running, limiters } = await start();
    await limiters.allow(HERE, { limit: 'address' });
    for (let count = 0; count < 4; count++) {
      const response = await running.get('/address');
      expect([response.status, await response.text()]).toEqual([200, 'list']);
      expect(response.headers.get('ratelimit')).toBe('"address";r=2;t=0');
    }
    await limiters.unlist(HERE, { limit: 'address' });
    expect((await running.get('/address')).headers.get('ratelimit')).toBe('"address";r=1;t=60');
  });

  it('gives nothing back that it did not charge', async () => {
    const { app: running, limiters } = await start();
    await limiters.for('metered').consume('ip:127.0.0.1', 3);
    await limiters.allow(HERE);
    for (const cost of [0, 1, 2, 4]) await running.get(`/metered/${cost}`);
    expect(await limiters.for('metered').peek('ip:127.0.0.1')).toMatchObject({ remaining: 2 });
  });

  it('matches the whole address that the framework believes', async () => {
    const { app: running, limiters } = await start({ ipv6Prefix: 48 });
    const status = async (address: string) => (await running.get('/address', { 'x-forwarded-for': address })).status;
    await limiters.deny({ ip: '2001:db8:1:2::/64' });
    await limiters.deny({ ip: '198.51.100.7' });
    await limiters.allow({ ip: '2001:db8:1:2::7' });
    await limiters.deny({ ip: '2002::/16' }, { limit: 'address' });
    const addresses = [
      '2001:db8:1:3::1',
      '2001:db8:1:2::1',
      '2001:DB8:1:2:0:0:0:7',
      '198.51.100.7',
      '::ffff:198.51.100.7',
      '::ffff:c633:6407',
      '198.51.100.7:4711',
      '64:ff9b::198.51.100.7',
      '198.51.100.8',
      '2002:c633:6408::1',
    ];
    const statuses = [];
    for (const address of addresses) statuses.push(await status(address));
    expect(statuses).toEqual([200, 403, 200, 403, 403, 403, 403, 403, 200, 403]);
  });

  it('lets no header choose the address where no proxy is trusted', async () => {
    const { app: running, limiters } = await start({}, { trustProxy: false });
    await limiters.deny(HERE);
    await limiters.allow({ ip: '10.0.0.1' });
    expect((await running.get('/address', { 'x-forwarded-for': '10.0.0.1' })).status).toBe(403);
  });

  it('refuses identities through the limits that count by them', async () => {
    const { app: running, limiters } = await start();
    const get = async (path: string, tenant: string) => (await running.get(path, { 'x-tenant': tenant })).status;
    await limiters.deny({ pattern: 'bad*' });
    await limiters.allow({ identity: 'good' });
    await limiters.allow(HERE, { limit: 'tenant' });
    expect([await get('/both', 'bad1'), await get('/address', 'bad1')]).toEqual([403, 200]);
    expect(await get('/both', 'good')).toBe(200);
    // The address is charged, whoever comes from it.
    expect(await get('/both', 'good')).toBe(429);
  });

  it('of a limit in shadow mode reports, and one that is off is not asked', async () => {
    const { app: running, limiters } = await start();
    const events: DecisionEvent[] = [];
    limiters.decisions$.subscribe((event) => events.push(event));
    await limiters.deny(HERE, { limit: 'tried' });
    expect(await running.statuses(2, '/tried')).toEqual([200, 200]);
    expect(events.map(({ outcome, source }) => [outcome, source])).toEqual([
      ['shadow-refused', 'list'],
      ['shadow-refused', 'list'],
    ]);
    await limiters.setMode('tried', 'off');
    expect(await running.statuses(1, '/tried')).toEqual([200]);
    expect(events).toHaveLength(2);
    await limiters.setMode('tried', 'enforce');
    expect(await running.statuses(1, '/tried')).toEqual([403]);
  });

  it('refuses nothing while RATE_LIMIT_MODE is shadow', async () => {
    process.env['RATE_LIMIT_MODE'] = 'shadow';
    try {
      const { app: running, limiters } = await start();
      const events: DecisionEvent[] = [];
      limiters.decisions$.subscribe((event) => events.push(event));
      await limiters.deny(HERE);
      expect(await running.statuses(1, '/address')).toEqual([200]);
      expect(events.map(({ limit, outcome }) => [limit, outcome])).toEqual([
        ['*', 'shadow-refused'],
        ['address', 'shadow-refused'],
      ]);
    } finally {
      delete process.env['RATE_LIMIT_MODE'];
    }
  });

  it.each([
    [{ status: 429 as const }, {}, { statusCode: 429, message: 'Too many requests', error: 'Too Many Requests' }],
    [{}, { problem: true }, { type: 'about:blank', title: 'Forbidden', status: 403, detail: 'Forbidden' }],
    [
      { status: 429 as const },
      { problem: true },
      { type: 'about:blank', title: 'Too Many Requests', status: 429, detail: 'Too many requests' },
    ],
  ])('of %j with %j answers as it is told', async (lists, more, body) => {
    const { app: running } = await start({ lists: { deny: [HERE], ...lists }, ...more });
    for (const path of ['/address', '/plain']) {
      const refused = await running.get(path);
      expect([refused.status, await refused.json()]).toEqual(['status' in lists ? lists.status : 403, body]);
      expect(refused.headers.get('content-type')).toContain(
        'problem' in more ? 'application/problem' : 'application/json',
      );
      expect(rateHeaders(refused)).toEqual([]);
    }
  });

  it('refuses before the route is known where a middleware checks limits', async () => {
    const early = { name: 'early', ...minute, rate: 9, phase: 'middleware' } as const;
    const { app: running, limiters } = await start(
      { limits: [early] },
      { configure: (nest: HttpApp['nest']) => nest.use(rateLimitMiddleware(nest)) },
    );
    await limiters.deny(HERE, { limit: 'early' });
    expect(await running.statuses(1, '/nowhere')).toEqual([403]);
    await limiters.unlist(HERE, { limit: 'early' });
    await limiters.deny(HERE);
    expect(await running.statuses(1, '/nowhere')).toEqual([403]);
    await limiters.allow(HERE);
    expect(await running.statuses(1, '/address')).toEqual([200]);
  });
});

const ask = async (running: HttpApp) => {
  const body = JSON.stringify({ query: '{ book free }' });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${running.url}/graphql`, { method: 'POST', body, headers });
  return (await response.json()) as { data: unknown; errors?: { message: string; extensions: { code: string } }[] };
};

it('a list refuses a GraphQL field as one that is forbidden', async () => {
  @Resolver()
  class FieldResolver {
    @Query(() => String, { nullable: true })
    @RateLimit('address')
    book() {
      return 'book';
    }

    @Query(() => String, { nullable: true })
    free() {
      return 'free';
    }
  }
  const start = async (lists: RateLimitModuleOptions['lists'] = {}) => {
    app = await HttpApp.start('express', {
      limits: { define, lists },
      imports: [GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true })],
      providers: [FieldResolver],
    });
    return app;
  };
  const running = await start();
  await limitersOf(running).deny(HERE, { limit: 'address' });
  const { data, errors } = await ask(running);
  expect(data).toEqual({ book: null, free: 'free' });
  expect(errors).toMatchObject([{ message: 'Forbidden', extensions: { code: 'FORBIDDEN' } }]);
  await limitersOf(running).deny(HERE);
  expect((await ask(running)).data).toEqual({ book: null, free: null });
  await running.close();
  const hidden = await ask(await start({ deny: [HERE], status: 429 }));
  expect(hidden.errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED' } }, {}]);
});

it.each(libraries)('a list refuses a message to a gateway of %s', async (library) => {
  @WebSocketGateway()
  @UseGuards(RateLimitGuard)
  class Gateway {
    @SubscribeMessage('limited')
    @RateLimit('address')
    limited() {
      return { event: 'answer', data: 'limited' };
    }

    @SubscribeMessage('free')
    free() {
      return { event: 'answer', data: 'free' };
    }
  }
  const metadata: ModuleMetadata = { providers: [Gateway] };
  const running = (app = await HttpApp.start('express', {
    ...metadata,
    limits: { define },
    configure: (nest) => {
      if (library === 'ws') nest.useWebSocketAdapter(new WsAdapter(nest));
    },
  }));
  const client = await connect(library, running.url);
  const send = (event: string) => {
    client.send(event, {});
    return client.next();
  };
  await limitersOf(running).deny(HERE, { limit: 'address' });
  const refused = { event: 'exception', data: { status: 'error', ...FORBIDDEN } };
  expect(await send('limited')).toMatchObject(refused);
  expect(await send('free')).toEqual({ event: 'answer', data: 'free' });
  await limitersOf(running).deny(HERE);
  expect(await send('free')).toMatchObject(refused);
  await limitersOf(running).allow(HERE);
  expect(await send('free')).toEqual({ event: 'answer', data: 'free' });
  client.close();
});

it('a list refuses a message of a microservice', async () => {
  @Controller()
  class MessageController {
    @MessagePattern('limited')
    @RateLimit('address')
    limited() {
      return 'limited';
    }

    @MessagePattern('free')
    free() {
      return 'free';
    }
  }
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  const options = { host: '127.0.0.1', port };
  const running = (app = await HttpApp.start('express', {
    limits: { define },
    controllers: [MessageController],
    configure: (nest) => {
      nest.connectMicroservice({ transport: Transport.TCP, options }, { inheritAppConfig: true });
    },
  }));
  await running.nest.startAllMicroservices();
  const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
  const send = (pattern: string) => firstValueFrom(client.send(pattern, {})).catch((error: unknown) => ({ error }));
  try {
    await limitersOf(running).deny(HERE, { limit: 'address' });
    const refused = { error: { status: 'error', ...FORBIDDEN } };
    expect(await send('limited')).toEqual(refused);
    expect(await send('free')).toBe('free');
    await limitersOf(running).deny({ ip: '127.0.0.0/8' });
    expect(await send('free')).toEqual(refused);
    await limitersOf(running).allow(HERE);
    expect([await send('free'), await send('limited')]).toEqual(['free', refused]);
  } finally {
    client.close();
  }
});

it('what a list refuses is an exception of its own', () => {
  expect(new RateLimitDeniedException().getResponse()).toEqual(FORBIDDEN);
  expect(new RateLimitDeniedException(429)).toMatchObject({ message: 'Too many requests', status: 429 });
});
