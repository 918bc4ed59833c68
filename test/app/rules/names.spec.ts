import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, type ExecutionContext, Get, Injectable, Logger, type Type } from '@nestjs/common';
import {
  InjectLimiter,
  Limiter,
  LimiterService,
  type LimitResolver,
  type ModuleLimit,
  RateLimit,
  RateLimitConfigError,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { HttpApp } from '../../e2e/http-app.js';
import { headerOf, OpenController, reported } from './dynamic-app.js';

const plan = { name: 'plan', algo: 'fixed-window', rate: 10, interval: '1h' } as const;

@Injectable()
class PlanLimits implements LimitResolver {
  resolve() {
    return plan;
  }
}

let app: HttpApp | undefined;
afterEach(async () => {
  jest.restoreAllMocks();
  await app?.close();
  app = undefined;
});

const planOf = (context: ExecutionContext) => headerOf(context, 'x-plan') ?? 'free';
const define = {
  free: { ...plan, name: 'free', rate: 5 },
  business: { ...plan, name: 'business', rate: 50 },
};

async function start(limit: ModuleLimit): Promise<LimiterService> {
  const providers = [PlanLimits];
  app = await HttpApp.start('express', {
    controllers: [OpenController],
    providers,
    limits: { limits: [limit], define },
  });
  return app.nest.get(LimiterService);
}

it.each<[string, ModuleLimit]>([
  ['that a function returns', () => plan],
  ['that a class resolves', PlanLimits],
  ['whose rate is a function', { ...plan, rate: () => 10 }],
])('a limit %s cannot be changed by its name, and the error says what can', async (_, limit) => {
  const limiters = await start(limit);
  await app!.get('/open');
  const calls = [
    () => limiters.setRate('plan', { rate: 1 }),
    () => limiters.setMode('plan', 'off'),
    () => limiters.getRate('plan'),
    () => limiters.listRates('plan'),
    () => limiters.explain({ limit: 'plan', key: 'ip:203.0.113.7' }),
  ];
  for (const call of calls) {
    await expect(call()).rejects.toThrow(RateLimitConfigError);
    await expect(call()).rejects.toThrow(
      "unknown limit 'plan', expected a limit of 'define', 'forFeature' or 'limits' with a 'name': 'free', 'business'; to change limits that a function returns, let it return the names of defined limits",
    );
  }
});

const quotaOf = async (name: string) => reported(await app!.get('/open', { 'x-plan': name }))[0]?.[1];

it('a defined limit whose name a function returns can be changed', async () => {
  const limiters = await start(planOf);
  expect([await quotaOf('free'), await quotaOf('business')]).toEqual([5, 50]);
  await limiters.setRate('business', { rate: 25 });
  expect([await quotaOf('free'), await quotaOf('business')]).toEqual([5, 25]);
});

@Controller()
class FunctionController {
  @Get('plan')
  @RateLimit(() => ({ ...plan, name: 'own' }))
  plan() {}
}

@Controller()
class ClassController {
  @Get('plan')
  @RateLimit(PlanLimits)
  plan() {}
}

@Controller()
class RateController {
  @Get('plan')
  @RateLimit({ ...plan, rate: () => 10 })
  plan() {}
}

@Controller()
class FixedController {
  @Get('plan')
  @RateLimit(plan)
  plan() {}
}

const startWith = async (controller: Type, limits: RateLimitModuleOptions = { define }) => {
  app = await HttpApp.start('express', { controllers: [controller], providers: [PlanLimits], limits });
  return app.nest.get(LimiterService);
};

it.each([
  ['a function', FunctionController],
  ['a class', ClassController],
  ['a rate by the request', RateController],
])('the error says so, too, if %s stands on a route alone', async (_, controller) => {
  const limiters = await startWith(controller);
  for (const call of [limiters.setRate('own', { rate: 1 }), limiters.explain({ limit: 'own', key: 'ip:::1' })]) {
    await expect(call).rejects.toThrow(
      "unknown limit 'own', expected a limit of 'define', 'forFeature' or 'limits' with a 'name': 'free', 'business'; to change limits that a function returns, let it return the names of defined limits",
    );
  }
});

it('the error speaks of no functions where there are none', async () => {
  const limiters = await startWith(FixedController);
  await expect(limiters.setRate('own', { rate: 1 })).rejects.not.toThrow('a function reaches these');
});

it.each([
  ['a rate', { rate: 3 }],
  ['another algorithm', { algo: 'gcra', rate: 3, interval: '1h' }],
])('a policy with the name of a limit of the module gives that limit %s, and it counts once', async (_, options) => {
  const policy = { source: () => ({ limits: { plan: options } }) };
  const limiters = await startWith(OpenController, { limits: [plan], policy });
  expect(await app!.statuses(2, '/open')).toEqual([200, 200]);
  expect(reported(await app!.get('/open'))).toEqual([['plan', 3, 0]]);
  expect((await app!.get('/open')).status).toBe(429);
  expect(await limiters.getRate('plan')).toMatchObject({ source: 'policy', options: { rate: 3 } });
});

/** Warnings of such names, as they are later. */
const warnings = () => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  return () => warn.mock.calls.map(([text]) => String(text)).filter((text) => text.includes('has the name of'));
};

describe('a limit of its own that has the name of a defined one', () => {
  const bothDefined = { define: { plan: { ...plan, rate: 3 }, own: { ...plan, name: 'own', rate: 3 } } };
  it.each<[string, Type, string, string]>([
    ['from a function', FunctionController, 'own', '@RateLimit on FunctionController.plan'],
    ['from a class', ClassController, 'plan', '@RateLimit on ClassController.plan'],
    ['with a rate by the request', RateController, 'plan', '@RateLimit on RateController.plan'],
    ['of a route', FixedController, 'plan', '@RateLimit on FixedController.plan'],
  ])('%s is not changed by that name, and one warning says so', async (_, controller, name, place) => {
    const said = warnings();
    const limiters = await startWith(controller, bothDefined);
    await app!.get('/plan');
    await limiters.setRate(name, { rate: 1 });
    expect(reported(await app!.get('/plan'))[0]?.[1]).toBe(10);
    expect(said()).toEqual([expect.stringContaining(place) as unknown]);
    expect(said()[0]).toContain(
      `the limit '${name}' has the name of another one in define.${name}, and changes by that name do not reach it. ` +
        `Use the name alone ('${name}') to use that limit, or choose another name`,
    );
  });

  it('from a function for all routes is one, too', async () => {
    const said = warnings();
    await startWith(OpenController, { ...bothDefined, limits: [() => plan] });
    for (let request = 0; request < 3; request++) await app!.get('/open');
    expect(said()).toEqual([expect.stringContaining('limits[0]') as unknown]);
  });

  it('in code is one, too', async () => {
    const said = warnings();
    const limiters = await startWith(OpenController, bothDefined);
    for (let call = 0; call < 2; call++) await limiters.for(plan).consume('acme');
    expect(said()).toHaveLength(1);
  });

  it('is none where the name stands alone, or no definition has it', async () => {
    const said = warnings();
    const limiters = await startWith(OpenController, {
      define: { own: { ...plan, name: 'own' } },
      limits: [() => 'own', () => plan],
    });
    await app!.get('/open');
    await limiters.for('own').consume('acme');
    await limiters.for(plan).consume('acme');
    expect(said()).toEqual([]);
  });
});

describe("a name of the module's limits", () => {
  const api = { ...plan, name: 'api' };

  it.each<[string, RateLimitModuleOptions]>([
    ['a fixed limit', { limits: [plan, api], define: { api: { ...plan, name: 'api', rate: 4 } } }],
    ['a limit whose rate depends on the request', { limits: [plan, { ...api, rate: () => 4 }], define: { api } }],
    ['an equal limit', { limits: [plan, api], define: { api } }],
  ])('is refused for a defined limit as well: %s', async (_, limits) => {
    await expect(startWith(OpenController, limits)).rejects.toThrow(
      new RateLimitConfigError(
        "define.api: limits[1] also has the name 'api', and the two would be counted separately. Give this limit another name, or keep " +
          "only one of the two: in 'limits' it applies to every route, in 'define' only where a route or code names it",
      ),
    );
  });

  it('is refused for a limit of a feature module, too', async () => {
    const feature = RateLimitModule.forFeature({ api });
    const start = HttpApp.start('express', { controllers: [], imports: [feature], limits: { limits: [api] } });
    await expect(start).rejects.toThrow(
      "forFeature.api: limits[0] also has the name 'api', and the two would be counted separately. Give this limit another name, or keep only one of the two: in 'limits' it applies to every route, in 'define' only where a route or code names it",
    );
  });

  const applies = (place: string) =>
    `${place}: 'api' is the limit limits[0], which already applies to every route, so remove it here. Routes and code choose limits of ` +
    "'define' by their names";

  it('on a route is refused, since the limit applies already', async () => {
    @Controller()
    class NamingController {
      @Get('open')
      @RateLimit('api')
      open() {}
    }
    await expect(startWith(NamingController, { limits: [api] })).rejects.toThrow(
      new RateLimitConfigError(applies('@RateLimit on NamingController.open')),
    );
  });

  it('in code is refused as well', async () => {
    @Injectable()
    class Mails {
      constructor(@InjectLimiter('api') readonly limiter: Limiter) {}
    }
    const limiters = await startWith(OpenController, { limits: [api] });
    expect(() => limiters.for('api')).toThrow("'api' is the limit limits[0], which already applies to every route");
    const start = HttpApp.start('express', { controllers: [], providers: [Mails], limits: { limits: [api] } });
    await expect(start).rejects.toThrow(applies('@InjectLimiter in Mails'));
  });
});
