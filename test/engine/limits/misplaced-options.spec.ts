import { describe, expect, it } from '@jest/globals';
import { Controller, Get, type Type } from '@nestjs/common';
import { type LimitDefinition, RateLimit, RateLimitModule, type RateLimitModuleOptions } from '../../../lib/index.js';
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
  const ofLimit = 'it is an option of a limit';
  it.each<[string, object, string]>([
    ['status', { status: 402 }, `RateLimitModule: option 'status' is unknown here, since ${ofLimit}, or of`],
    ['hidden', { hidden: true }, `RateLimitModule: option 'hidden' is unknown here, since ${ofLimit}, or of`],
    ['nearLimit', { nearLimit: 0.5 }, `RateLimitModule: option 'nearLimit' is unknown here, since ${ofLimit}, or of`],
    ['strike', { strike: true }, `RateLimitModule: option 'strike' is unknown here, since ${ofLimit}`],
    [
      'perRoute',
      { perRoute: true },
      `RateLimitModule: option 'perRoute' is unknown here, since ${ofLimit}; wants it there`,
    ],
    ['rate', { rate: 5 }, `RateLimitModule: option 'rate' is unknown here, since ${ofLimit}; wants it there`],
    ['algo', { algo: 'gcra' }, `RateLimitModule: option 'algo' is unknown here, since ${ofLimit}; wants it there`],
    [
      'onRefused',
      { defaults: { onRefused: () => undefined } },
      `defaults: option 'onRefused' is unknown here, since ${ofLimit}; wants it there`,
    ],
    ['rate of defaults', { defaults: { rate: 5 } }, `defaults: option 'rate' is unknown here, since ${ofLimit}`],
    [
      'redis',
      { defaults: { redis: 'redis://localhost' } },
      "defaults: option 'redis' is unknown here, since it is an option of RateLimitModule; wants it there",
    ],
    [
      'headers',
      { limits: [{ ...gcra, headers: 'draft-8' }] },
      "limits[0]: option 'headers' is unknown here, since it is an option of RateLimitModule; wants it there",
    ],
    [
      'guard',
      { limits: [{ ...gcra, guard: false }] },
      "limits[0]: option 'guard' is unknown here, since it is an option of",
    ],
    [
      'timezone, which is far from timeout',
      { timezone: 'UTC' },
      `RateLimitModule: option 'timezone' is unknown here, since ${ofLimit}; wants it there`,
    ],
    [
      'limit, almost limits',
      { limit: [gcra] },
      "RateLimitModule: option 'limit' is unknown here (did you mean 'limits'?), since it is an option of a limit; wants it",
    ],
    [
      'limits, almost limit',
      { limits: [{ algo: 'concurrency', limits: 3, ttl: '1m' }] },
      "limits[0]: option 'limits' is unknown here (did you mean 'limit'?), since it is an option of RateLimitModule; wants it",
    ],
    [
      'a limit as define',
      { define: gcra },
      `define: option 'algo' is unknown here, since ${ofLimit}; wants limits by their names`,
    ],
  ])('is named with what it belongs to: %s', async (_, given, message) => {
    await expect(startUp(options(given))).rejects.toThrow(message);
  });

  it('is so on a route', async () => {
    const message = "@RateLimit on A.get: option 'redis' is unknown here, since it is an option of RateLimitModule";
    await expect(startUp({}, [controllerWith({ ...gcra, redis: 'a' })])).rejects.toThrow(message);
  });

  it('is so in a feature', async () => {
    await expect(startFeature(gcra)).rejects.toThrow(
      `forFeature: option 'algo' is unknown here, since ${ofLimit}; wants limits by`,
    );
    await expect(startFeature({ headers: 'draft-8' })).rejects.toThrow(
      "forFeature: option 'headers' is unknown here, since it is an option of RateLimitModule; wants limits by their names",
    );
    await expect(startFeature({ status: gcra })).resolves.toBeUndefined();
  });

  it('is still compared with the known ones if it belongs nowhere', async () => {
    await expect(startUp(options({ limtis: [] }))).rejects.toThrow(
      "is unknown (did you mean 'limits'?), wants only redis",
    );
  });
});

describe('what is no limit', () => {
  class Plans {
    resolve = () => gcra;
  }
  const CLASS = "the module's 'limits' and @RateLimit take the class itself";

  it.each<[string, unknown, string]>([
    ['an instance of a LimitResolver', new Plans(), CLASS],
    ['a promise', Promise.resolve(gcra), '; a promise is none: await it before'],
    ['a list', [gcra], '; a list is none: write its limits one by one'],
  ])('is refused with what would be right: %s', async (_, given, message) => {
    await expect(startUp(options({ limits: [gcra, given] }))).rejects.toThrow(message);
    await expect(startUp(options({ limits: [gcra, given] }))).rejects.toThrow('limits[1]: got ');
    await expect(startUp(options({ define: { api: given } }))).rejects.toThrow(message);
    await expect(startUp({}, [controllerWith(given)])).rejects.toThrow(message);
    await expect(startUp({}, [controllerWith(given)])).rejects.toThrow('@RateLimit on A.get: got ');
    const feature = RateLimitModule.forFeature({ api: given } as never);
    await expect(startUp({}, [], { imports: [feature] })).rejects.toThrow(message);
  });

  it('is a name among the limits of the module', async () => {
    const message =
      "limits[0]: got 'api', wants a limit such as { algo: 'gcra', rate: 10, interval: '1s' }; the name of a defined limit";
    await expect(startUp(options({ define: { api: gcra }, limits: ['api'] }))).rejects.toThrow(message);
  });

  it('is a function or a class of a definition', async () => {
    const message = "; a function or class that finds limits can stand in the module's 'limits' and in @RateLimit";
    await expect(startUp(options({ define: { api: Plans } }))).rejects.toThrow(message);
    await expect(startUp(options({ define: { api: () => gcra } }))).rejects.toThrow(message);
  });
});
