import 'reflect-metadata';
import { AssertionError } from 'node:assert';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import {
  Controller,
  Get,
  type INestApplication,
  Injectable,
  Logger,
  Post,
  type Type,
  VersioningType,
} from '@nestjs/common';
import { RouterModule } from '@nestjs/core';
import { MessagePattern } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  Limited,
  LimiterService,
  RateLimit,
  RateLimitConfigError,
  rateLimitMiddleware,
  RateLimitModule,
  type RateLimitModuleOptions,
  SkipRateLimit,
} from '../../lib/index.js';
import { expectAllRoutesLimited } from '../../lib/testing/index.js';

const one = { algo: 'gcra', rate: 1, interval: '1s' } as const;
let app: INestApplication | undefined;

beforeEach(() => {
  jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
});
afterEach(async () => {
  jest.restoreAllMocks();
  await app?.close();
  app = undefined;
});

async function start(
  controllers: Type[],
  options: RateLimitModuleOptions = {},
  providers: Type[] = [],
): Promise<INestApplication> {
  class ShopModule {}
  const shop = { module: ShopModule, controllers, providers };
  const imports = [
    RateLimitModule.forRoot(options),
    shop,
    RouterModule.register([{ path: 'shop', module: ShopModule }]),
  ];
  const testing = await Test.createTestingModule({ imports }).compile();
  app = testing.createNestApplication();
  app.setGlobalPrefix('api');
  app.enableVersioning({ type: VersioningType.URI });
  return app.init();
}

/** The routes that it reports. */
function unlimited(of: INestApplication): unknown {
  try {
    expectAllRoutesLimited(of);
    return 'none';
  } catch (error) {
    expect(error).toBeInstanceOf(AssertionError);
    return (error as AssertionError).actual;
  }
}

@Controller({ path: 'orders', version: '1' })
class Orders {
  @Get()
  list() {}

  @Post(':id/items')
  @RateLimit(one)
  add() {}

  @MessagePattern('orders.count')
  count() {}

  helper() {}
}

@Controller('health')
@SkipRateLimit({ because: 'the load balancer polls it' })
class Health {
  @Get()
  check() {}
}

@WebSocketGateway({ namespace: 'chat' })
class Chat {
  @SubscribeMessage('say')
  say() {}
}

it('lists the routes without a limit, as clients call them', async () => {
  const started = await start([Orders, Health], {}, [Chat]);
  expect(() => expectAllRoutesLimited(started)).toThrow(
    new AssertionError({
      message:
        'expected a limit on each route, found none on 3 of 5 routes:\n' +
        '  GET /api/v1/shop/orders (Orders.list)\n' +
        '  chat say (Chat.say)\n' +
        '  orders.count (Orders.count)\n' +
        "Add @RateLimit, a limit to the module's 'limits', or @SkipRateLimit({ because: '…' })",
    }),
  );
});

it('takes limits of the module, and of functions', async () => {
  expect(unlimited(await start([Orders, Health], { limits: [one] }, [Chat]))).toBe('none');
  await app!.close();
  expect(unlimited(await start([Orders], { limits: [() => []] }))).toBe('none');
});

it('takes limits in shadow mode, but none that are off', async () => {
  expect(unlimited(await start([Orders], { limits: [{ ...one, mode: 'shadow' }] }))).toBe('none');
  await app!.close();
  const started = await start([Orders], { limits: [{ ...one, name: 'all' }] });
  await started.get(LimiterService).setMode('all', 'off');
  expect(unlimited(started)).toEqual(['GET /api/v1/shop/orders (Orders.list)', 'orders.count (Orders.count)']);
});

it('takes exceptions with a reason only', async () => {
  @Controller('skips')
  class Skips {
    @Get('all')
    @SkipRateLimit()
    all() {}

    @Get('because')
    @SkipRateLimit('hourly', { because: 'cached by the CDN' })
    because() {}

    @Get('hourly')
    @SkipRateLimit('hourly')
    hourly() {}
  }
  const limits = [{ ...one, name: 'hourly' }];
  expect(unlimited(await start([Skips], { limits }))).toEqual([
    'GET /api/shop/skips/all (Skips.all)',
    'GET /api/shop/skips/hourly (Skips.hourly)',
  ]);
});

it('a reason is a text', () => {
  for (const because of ['', 5, undefined]) {
    expect(() => SkipRateLimit({ because: because as string })).toThrow(RateLimitConfigError);
  }
  expect(() => SkipRateLimit({ because: '' })).toThrow(
    "@SkipRateLimit.because: expected the reason as a text that is not empty, received ''",
  );
});

it('is quiet about providers that nobody calls', async () => {
  @Injectable()
  class Service {
    run() {}
  }
  expect(unlimited(await start([], {}, [Service]))).toBe('none');
});

it('takes @Limited on a route unless the mode of its limit is off', async () => {
  @Controller('jobs')
  class Jobs {
    @Get('above')
    @Limited('jobs')
    async above() {}

    @Limited({ ...one, mode: 'shadow' }, { key: () => 'all' })
    @Get('below')
    async below() {}

    @Limited('off')
    @Get('off')
    async off() {}

    @Limited('off')
    @Limited('jobs')
    @Get('both')
    async both() {}
  }
  const started = await start([Jobs], { define: { jobs: one, off: one } });
  await started.get(LimiterService).setMode('off', 'off');
  expect(unlimited(started)).toEqual(['GET /api/shop/jobs/off (Jobs.off)']);
});

it('says that the module is missing', async () => {
  app = (await Test.createTestingModule({ controllers: [Health] }).compile()).createNestApplication();
  const started = await app.init();
  for (const [location, run] of [
    ['expectAllRoutesLimited', () => expectAllRoutesLimited(started)],
    ['rateLimitMiddleware', () => rateLimitMiddleware(started)],
  ] as const) {
    expect(run).toThrow(
      expect.objectContaining({
        name: 'RateLimitConfigError',
        code: 'SLUICE_NO_MODULE',
        message: `${location}: RateLimitModule was not found. Add it to the imports of the app`,
      }),
    );
  }
});
