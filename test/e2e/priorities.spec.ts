import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  type MiddlewareConsumer,
  Module,
  type NestModule,
} from '@nestjs/common';
import {
  type LimitDefinition,
  LimiterService,
  type Priority,
  RateLimit,
  RateLimitMiddleware,
  rateLimitMiddleware,
} from '../../lib/index.js';
import { adapters, HttpApp } from './http-app.js';

const priorityOf = (context: ExecutionContext) =>
  context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-priority'] as Priority;

const kept = {
  name: 'kept',
  algo: 'sliding-window',
  rate: 5,
  interval: '1m',
  reserveFor: { critical: 0.4 },
} as const satisfies LimitDefinition;

@Controller()
class Orders {
  @Get('orders')
  @RateLimit({ ...kept, priority: async (context) => Promise.resolve(priorityOf(context) ?? 'default') })
  orders() {}

  @Get('payments')
  @RateLimit({ ...kept, priority: 'critical' })
  payments() {}

  @Get('broken')
  @RateLimit({ ...kept, priority: () => 'high' as Priority })
  broken() {}

  @Get('open')
  @RateLimit({
    ...kept,
    reserveFor: undefined!,
    priority: () => {
      throw new Error('is not asked where nothing is kept');
    },
  })
  open() {}
}

describe('priorities of requests', () => {
  let app: HttpApp;
  afterEach(() => app.close());

  const critical = { 'x-priority': 'critical' };

  it('are what a function of the request says, or the limit', async () => {
    app = await HttpApp.start('express', { controllers: [Orders] });
    expect(await app.statuses(4, '/orders')).toEqual([200, 200, 200, 429]);
    const refused = await app.get('/orders');
    // What a decision tells is of the request's priority: 3 of 5 units.
    expect(refused.headers.get('ratelimit-policy')).toContain('q=3');
    expect(refused.headers.get('ratelimit')).toContain('r=0');
    const answer = await app.get('/orders', critical);
    expect([answer.status, answer.headers.get('ratelimit-policy')]).toEqual([200, expect.stringContaining('q=5')]);
    expect(answer.headers.get('ratelimit')).toContain('r=1');
    expect(await app.statuses(2, '/orders', critical)).toEqual([200, 429]);
    expect(await app.statuses(6, '/payments')).toEqual([200, 200, 200, 200, 200, 429]);
  });

  it('fail a request whose function gives none, and ask no function where nothing is kept', async () => {
    app = await HttpApp.start('express', { controllers: [Orders] });
    expect((await app.get('/broken')).status).toBe(500);
    expect((await app.get('/open')).status).toBe(200);
  });

  it('may be a default of all limits, and what is kept is of each route', async () => {
    const limits = { limits: [{ ...kept, rate: 4, perRoute: true }], defaults: { priority: priorityOf } };
    app = await HttpApp.start('express', { controllers: [Plain], limits });
    expect(await app.statuses(3, '/a', { 'x-priority': 'sheddable' })).toEqual([200, 200, 429]);
    expect(await app.statuses(3, '/b', critical)).toEqual([200, 200, 200]);
    expect(await app.statuses(3, '/a', critical)).toEqual([200, 200, 429]);
  });

  it('are what a function says, too, where a middleware asks', async () => {
    app = await HttpApp.start('express', {
      controllers: [Plain],
      imports: [EarlyModule],
      limits: { limits: [{ ...kept, phase: 'middleware', priority: priorityOf }] },
    });
    expect(await app.statuses(4, '/a', { 'x-priority': 'sheddable' })).toEqual([200, 200, 200, 429]);
    expect(await app.statuses(3, '/none', critical)).toEqual([404, 404, 429]);
    expect((await app.get('/a')).status).toBe(500);
  });

  it('hold with other rates, too, while the app runs', async () => {
    app = await HttpApp.start('express', {
      controllers: [Plain],
      limits: { limits: [kept], defaults: { priority: priorityOf } },
    });
    const service = app.nest.get(LimiterService);
    await service.setRate('kept', { rate: 10 });
    const refused = await app.statuses(7, '/a', { 'x-priority': 'default' });
    expect(refused).toEqual([200, 200, 200, 200, 200, 200, 429]);
    expect(await app.statuses(5, '/a', critical)).toEqual([200, 200, 200, 200, 429]);
  });

  it('are explained', async () => {
    app = await HttpApp.start('express', { controllers: [Orders] });
    const service = app.nest.get(LimiterService);
    const of = async (handler: string) =>
      (await service.explain({ controller: Orders, handler, key: 'ip:127.0.0.1' })).limits[0]!;
    expect(await of('payments')).toMatchObject({ status: 'asked', state: { remaining: 5 } });
    expect(await of('orders')).toMatchObject({
      status: 'depends on the request',
      reason: expect.stringContaining('priority'),
    });
  });
});

const limitEarly = (nest: INestApplication) => nest.use(rateLimitMiddleware(nest));

it.each(adapters)('a function is asked where the middleware checks, over %s', async (framework) => {
  const limits = { limits: [{ ...kept, phase: 'middleware', priority: priorityOf } as const] };
  const app = await HttpApp.start(framework, { controllers: [Plain], limits, configure: limitEarly });
  const to = (path: string, priority: Priority) => app.statuses(3, path, { 'x-priority': priority });
  expect([await to('/a', 'default'), await to('/nowhere', 'sheddable')]).toEqual([
    [200, 200, 200],
    [429, 429, 429],
  ]);
  expect(await to('/b', 'critical')).toEqual([200, 200, 429]);
  expect(await to('/a', 'high' as Priority)).toEqual([500, 500, 500]);
  await app.close();
});

@Controller()
class Plain {
  @Get('a')
  a() {}

  @Get('b')
  b() {}
}

@Module({})
class EarlyModule implements NestModule {
  configure(consumer: MiddlewareConsumer) {
    consumer.apply(RateLimitMiddleware).forRoutes('{*path}');
  }
}
