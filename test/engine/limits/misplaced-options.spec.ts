import { describe, expect, it } from '@jest/globals';
import { Controller, Get, type Type } from '@nestjs/common';
import {
  type LimitDefinition,
  RateLimit,
  RateLimitConfigError,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { startUp } from '../../e2e/http-app.js';

const gcra: LimitDefinition = { algo: 'gcra', rate: 2, interval: '1m' };

/** Options of the module, as JavaScript may write them. */
const options = (given: object) => given as RateLimitModuleOptions;

/** Starts an app with a feature. */
const startFeature = (given: object) => startUp({}, [], { imports: [RateLimitModule.forFeature(given as never)] });

function controllerWith(limit: unknown): Type {
  @Controller('a')
  class A {
    @Get()
    @RateLimit(limit as LimitDefinition)
    get(): void {}
  }
  return A;
}

describe('an option that stands in a wrong place', () => {
  const ofLimit = 'It is an option of a limit';
  it.each<[string, object, string]>([
    ['status', { status: 402 }, `RateLimitModule: unknown option 'status'. ${ofLimit}, or of`],
    ['hidden', { hidden: true }, `RateLimitModule: unknown option 'hidden'. ${ofLimit}, or of`],
    ['nearLimit', { nearLimit: 0.5 }, `RateLimitModule: unknown option 'nearLimit'. ${ofLimit}, or of`],
    ['strike', { strike: true }, `RateLimitModule: unknown option 'strike'. ${ofLimit}`],
    ['perRoute', { perRoute: true }, `RateLimitModule: unknown option 'perRoute'. ${ofLimit}: move it there`],
    ['rate', { rate: 5 }, `RateLimitModule: unknown option 'rate'. ${ofLimit}: move it there`],
    ['algo', { algo: 'gcra' }, `RateLimitModule: unknown option 'algo'. ${ofLimit}: move it there`],
    [
      'onRefused',
      { defaults: { onRefused: () => undefined } },
      `defaults: unknown option 'onRefused'. ${ofLimit}: move it there`,
    ],
    ['rate of defaults', { defaults: { rate: 5 } }, `defaults: unknown option 'rate'. ${ofLimit}`],
    [
      'redis',
      { defaults: { redis: 'redis://localhost' } },
      "defaults: unknown option 'redis'. It is an option of RateLimitModule: move it there",
    ],
    [
      'headers',
      { limits: [{ ...gcra, headers: 'draft-8' }] },
      "limits[0]: unknown option 'headers'. It is an option of RateLimitModule: move it there",
    ],
    [
      'guard',
      { limits: [{ ...gcra, guard: false }] },
      "limits[0]: unknown option 'guard'. It is an option of RateLimitModule: move it there",
    ],
    [
      'timezone, which is far from timeout',
      { timezone: 'UTC' },
      `RateLimitModule: unknown option 'timezone'. ${ofLimit}: move it there`,
    ],
    [
      'limit, almost limits',
      { limit: [gcra] },
      "RateLimitModule: unknown option 'limit'. Did you mean 'limits'? 'limit' is an option of a limit",
    ],
    [
      'limits, almost limit',
      { limits: [{ algo: 'concurrency', limits: 3, ttl: '1m' }] },
      "limits[0]: unknown option 'limits'. Did you mean 'limit'? 'limits' is an option of RateLimitModule",
    ],
    [
      'a limit as define',
      { define: gcra },
      `define: unknown option 'algo'. ${ofLimit}; here, expected limits by their names`,
    ],
  ])('is named with what it belongs to: %s', async (_, given, message) => {
    await expect(startUp(options(given))).rejects.toThrow(message);
  });

  it('is so on a route', async () => {
    const message = "@RateLimit on A.get: unknown option 'redis'. It is an option of RateLimitModule: move it there";
    await expect(startUp({}, [controllerWith({ ...gcra, redis: 'a' })])).rejects.toThrow(message);
  });

  it('is so in a feature', async () => {
    await expect(startFeature(gcra)).rejects.toThrow(
      `forFeature: unknown option 'algo'. ${ofLimit}; here, expected limits by their names`,
    );
    await expect(startFeature({ headers: 'draft-8' })).rejects.toThrow(
      "forFeature: unknown option 'headers'. It is an option of RateLimitModule; here, expected limits by their names",
    );
    await expect(startFeature({ status: gcra })).resolves.toBeUndefined();
  });

  it('is still compared with the known ones if it belongs nowhere', async () => {
    await expect(startUp(options({ limtis: [] }))).rejects.toThrow("unknown option 'limtis'. Did you mean 'limits'?");
  });
});

describe('an option that a limit does not have', () => {
  it.each<[string, object, string]>([
    [
      'an unknown name for the rate',
      { algo: 'fixed-window', quota: 10, interval: '1m' },
      "limits[0]: unknown option 'quota'; 'fixed-window' needs 'rate'",
    ],
    [
      'unknown names for both',
      { algo: 'fixed-window', amount: 10, per: '1m' },
      "limits[0]: unknown option 'amount'; 'fixed-window' needs 'rate' and 'interval'",
    ],
    [
      'the option of another algorithm',
      { algo: 'fixed-window', max: 10, interval: '1m' },
      "limits[0]: option 'max' is not an option of 'fixed-window': it belongs to adaptive; 'fixed-window' needs 'rate'",
    ],
    [
      'the name of another package',
      { algo: 'gcra', rate: 1, interval: '1s', keyGenerator: 1 },
      "limits[0]: unknown option 'keyGenerator', which is 'key' here",
    ],
    [
      'rates of plans',
      { algo: 'gcra', rate: { free: 1, pro: 9 }, interval: '1s' },
      'limits[0].rate: expected a whole number >= 1, received { free: 1, pro: 9 }; for a rate that depends on the request, pass a function that returns it',
    ],
  ])('leads to those that it needs and lacks: %s', async (_, limit, message) => {
    await expect(startUp(options({ limits: [limit] }))).rejects.toThrow(new RateLimitConfigError(message));
  });

  it('leads to none if it lacks none', async () => {
    const unknown = new RateLimitConfigError("limits[0]: unknown option 'quota'");
    await expect(startUp(options({ limits: [{ ...gcra, quota: 5 }] }))).rejects.toThrow(unknown);
  });
});

describe('what is no limit', () => {
  class Plans {
    resolve = () => gcra;
  }
  const CLASS =
    "expected a limit, received Plans { resolve: [Function: resolve] }; to use a class that finds limits, pass the class itself to the module's 'limits' or @RateLimit, and list it as a provider of a module";

  it.each<[string, unknown, string]>([
    ['an instance of a LimitResolver', new Plans(), CLASS],
    [
      'a promise',
      Promise.resolve(gcra),
      "expected a limit such as { algo: 'gcra', rate: 10, interval: '1s' }, received Promise { { algo: 'gcra', rate: 2, interval: '1m' } }; await the promise first",
    ],
    [
      'a list',
      [gcra],
      "expected a limit such as { algo: 'gcra', rate: 10, interval: '1s' }, received [ { algo: 'gcra', rate: 2, interval: '1m' } ]; write the limits of the list one by one",
    ],
  ])('is refused with what would be right: %s', async (_, given, message) => {
    await expect(startUp(options({ limits: [gcra, given] }))).rejects.toThrow(message);
    await expect(startUp(options({ limits: [gcra, given] }))).rejects.toThrow('limits[1]: expected a limit');
    await expect(startUp(options({ define: { api: given } }))).rejects.toThrow(message);
    await expect(startUp({}, [controllerWith(given)])).rejects.toThrow(message);
    await expect(startUp({}, [controllerWith(given)])).rejects.toThrow('@RateLimit on A.get: expected a limit');
    const feature = RateLimitModule.forFeature({ api: given } as never);
    await expect(startUp({}, [], { imports: [feature] })).rejects.toThrow(message);
  });

  it('is a name among the limits of the module', async () => {
    const message =
      "limits[0]: expected a limit such as { algo: 'gcra', rate: 10, interval: '1s' }, received 'api'; you can use the name of a defined limit in @RateLimit, or return it from a function";
    await expect(startUp(options({ define: { api: gcra }, limits: ['api'] }))).rejects.toThrow(message);
  });

  it('is a function or a class of a definition', async () => {
    const message =
      /^define\.api: expected a limit such as .+; you can use a function or class that finds limits in the module's 'limits' and in @RateLimit/;
    await expect(startUp(options({ define: { api: Plans } }))).rejects.toThrow(message);
    await expect(startUp(options({ define: { api: () => gcra } }))).rejects.toThrow(message);
  });
});
