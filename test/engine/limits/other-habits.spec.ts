import { describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  RateLimit,
  RateLimitConfigError,
  RateLimitGuard,
  RateLimitMiddleware,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';

async function refusalOf(imports: () => object[], controllers: (new () => object)[] = []): Promise<string> {
  const started = (async () => {
    const app = await Test.createTestingModule({ imports: imports() as never, controllers }).compile();
    await app.init();
  })();
  const error: unknown = await started.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(RateLimitConfigError);
  return (error as Error).message;
}

const forRoot = (options: unknown) => [RateLimitModule.forRoot(options as RateLimitModuleOptions)];
const forRootAsync = (options: unknown) => [
  RateLimitModule.forRootAsync({ useFactory: () => options as RateLimitModuleOptions }),
];

const make = (type: unknown) => () => new (type as new () => object)();

const MOVES = "and 'npx nestjs-sluice migrate' converts an app from it";
const THROTTLER = `{ limit, ttl } is a limit of @nestjs/throttler, ${MOVES}`;
const FLEXIBLE = `'points' is an option of rate-limiter-flexible, ${MOVES}`;

describe('habits of other packages are met with the way to move', () => {
  const throttled = { limit: 10, ttl: 60_000 };
  const flexible = { points: 10, duration: 60 };

  it.each<[string, () => object[], string]>([
    ['a list of throttlers', () => forRoot([throttled]), THROTTLER],
    ['a list of throttlers from a factory', () => forRootAsync([throttled]), THROTTLER],
    [
      'throttlers',
      () => forRoot({ throttlers: [throttled] }),
      `'throttlers' is an option of @nestjs/throttler, ${MOVES}`,
    ],
    ['a throttler', () => forRoot({ limits: [throttled] }), THROTTLER],
    ['a throttler with a name', () => forRoot({ define: { short: { name: 'short', ...throttled } } }), THROTTLER],
    ['points', () => forRoot({ limits: [flexible] }), FLEXIBLE],
    ['points of an algorithm', () => forRoot({ limits: [{ algo: 'fixed-window', ...flexible }] }), FLEXIBLE],
  ])('%s', async (_, imports, hint) => {
    expect(await refusalOf(imports)).toMatch(new RegExp(`; ${hint.replaceAll(/[{}./]/g, String.raw`\$&`)}$`));
  });

  it('the argument of @Throttle', async () => {
    @Controller()
    class Routes {
      @Get()
      @RateLimit({ default: { limit: 3, ttl: 60_000 } } as never)
      list() {}
    }
    const message = await refusalOf(() => forRoot({}), [Routes]);
    expect(message).toBe(
      `@RateLimit on Routes.list.algo: missing, expected one of ${message.split('expected one of ')[1]!.split(';')[0]}; ${THROTTLER}`,
    );
  });

  it.each<[string, unknown]>([
    ['an algorithm', { rate: 10, interval: '1m' }],
    ['a known algorithm', { algo: 'gcr', rate: 10, interval: '1m' }],
    ['an option', { algo: 'gcra', rate: 10, interval: '1m', lots: 1 }],
  ])('and a limit that lacks %s is not', async (_, limit) => {
    expect(await refusalOf(() => forRoot({ limits: [limit] }))).not.toContain('migrate');
  });
});

describe('what an app makes by hand', () => {
  it('is no guard and no middleware', () => {
    expect(make(RateLimitGuard)).toThrow(
      new RateLimitConfigError(
        "new RateLimitGuard(): this instance has none of the app's limits. Let Nest create it: the module binds it to " +
          "all routes; with 'guard: false', write @UseGuards(RateLimitGuard) or app.useGlobalGuards(app.get(RateLimitGuard))",
      ),
    );
    expect(make(RateLimitMiddleware)).toThrow(
      /^new RateLimitMiddleware\(\): .* app\.use\(rateLimitMiddleware\(app\)\)$/,
    );
  });
});

it('an empty text is no connection, and the app can do without', async () => {
  expect(await refusalOf(() => forRoot({ redis: '' }))).toMatch(
    /^RateLimitModule\.redis: expected a URL .*, received ''; leave the option out to count in the process$/,
  );
});
