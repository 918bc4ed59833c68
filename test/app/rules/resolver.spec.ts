import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type ExecutionContext, Injectable, Logger, type MiddlewareConsumer, Module, type Type } from '@nestjs/common';
import {
  type LimitAnswer,
  LimiterService,
  type LimitResolver,
  type LimitSpec,
  RateLimitMiddleware,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { adapters, HttpApp, startUp } from '../../e2e/http-app.js';
import { until } from '../../support/time/until.js';
import { controllerWith, headerOf, OpenController, reported } from './dynamic-app.js';

/** A table of rates that tests change, and that fails or waits as they say. */
@Injectable()
class Plans {
  static rates: Record<string, number | undefined> = {};
  static asked: (string | undefined)[] = [];
  /** Number of requests that have reached the resolver. */
  static requests = 0;
  static answer: (rate: number | undefined) => unknown = (rate) => rate;

  async rateOf(tenant: string | undefined): Promise<number> {
    Plans.asked.push(tenant);
    return (await Plans.answer(Plans.rates[tenant ?? ''])) as number;
  }
}

@Injectable()
class PlanLimits implements LimitResolver {
  readonly ttl: string | number = '1m';

  constructor(private readonly plans: Plans) {}

  keyOf(context: ExecutionContext): string | null | undefined {
    Plans.requests++;
    return headerOf(context, 'x-tenant');
  }

  async resolve(_: ExecutionContext, tenant: string | undefined): Promise<LimitAnswer> {
    const rate = await this.plans.rateOf(tenant);
    return { name: 'plan', algo: 'fixed-window', rate, interval: '1h', key: 'header:x-tenant' };
  }
}

@Injectable()
class PlanLimitsOrFew extends PlanLimits {
  readonly fallback = { name: 'plan', algo: 'fixed-window', rate: 3, interval: '1h', key: 'header:x-tenant' } as const;
}

const outage = () => Promise.reject(new Error('no database'));

/** Lets the table answer once it is opened. */
function closedGate() {
  const waiting: (() => void)[] = [];
  Plans.answer = (rate) => new Promise((resolve) => waiting.push(() => resolve(rate)));
  return { open: () => waiting.forEach((go) => go()) };
}

let app: HttpApp | undefined;
let now: number;
let logged: jest.SpiedFunction<Logger['error']>;
beforeEach(() => {
  Plans.rates = { acme: 10, globex: 50 };
  Plans.asked = [];
  Plans.requests = 0;
  Plans.answer = (rate) => rate;
  now = performance.now();
  logged = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
});
afterEach(async () => {
  await app?.close();
  app = undefined;
  jest.restoreAllMocks();
});

const moveBy = (ms: number) => {
  now += ms;
  const at = now;
  jest.spyOn(performance, 'now').mockImplementation(() => at);
};

async function start(
  type: Type<LimitResolver> = PlanLimits,
  more: RateLimitModuleOptions = {},
  framework = adapters[0]!,
) {
  const limits = { limits: [type], ...more };
  return (app = await HttpApp.start(framework, { controllers: [OpenController], providers: [Plans, type], limits }));
}
const quotaOf = async (tenant: string) => {
  const response = await app!.get('/open', { 'x-tenant': tenant });
  return response.status === 200 ? reported(response)[0]?.[1] : response.status;
};

describe.each(adapters)('a class that resolves limits for all routes over %s', (framework) => {
  it('is injected, and asked once a key', async () => {
    await start(PlanLimits, {}, framework);
    for (let request = 0; request < 3; request++) {
      expect([await quotaOf('acme'), await quotaOf('globex')]).toEqual([10, 50]);
    }
    expect(Plans.asked).toEqual(['acme', 'globex']);
  });
});

it('is asked again once the answer is as old as its ttl', async () => {
  await start();
  moveBy(0);
  await quotaOf('acme');
  Plans.rates['acme'] = 20;
  moveBy(59_000);
  expect(await quotaOf('acme')).toBe(10);
  moveBy(1_001);
  expect(await quotaOf('acme')).toBe(20);
  expect(Plans.asked).toEqual(['acme', 'acme']);
});

it('is asked again once its answer for a key, or all of them, are forgotten', async () => {
  await start();
  expect([await quotaOf('acme'), await quotaOf('globex')]).toEqual([10, 50]);
  Plans.rates = { acme: 20, globex: 60 };
  const limiters = app!.nest.get(LimiterService);
  limiters.forgetResolved(PlanLimits, 'acme');
  limiters.forgetResolved(PlanLimits, 'nobody');
  expect([await quotaOf('acme'), await quotaOf('globex')]).toEqual([20, 50]);
  limiters.forgetResolved(PlanLimits);
  expect([await quotaOf('acme'), await quotaOf('globex')]).toEqual([20, 60]);
  // The last good answer applies if it fails now.
  limiters.forgetResolved(PlanLimits);
  Plans.answer = outage;
  expect(await quotaOf('acme')).toBe(20);
  expect(() => limiters.forgetResolved(PlanLimitsOrFew)).toThrow(
    'LimiterService.forgetResolved: expected a class that finds limits of this app, received [class PlanLimitsOrFew extends PlanLimits]',
  );
});

it('is not answered by a call that began before its answer was forgotten', async () => {
  await start();
  const gate = closedGate();
  const early = quotaOf('acme');
  await until(() => Plans.asked.length > 0);
  Plans.answer = (rate) => rate;
  Plans.rates['acme'] = 20;
  app!.nest.get(LimiterService).forgetResolved(PlanLimits, 'acme');
  expect(await quotaOf('acme')).toBe(20);
  gate.open();
  await early;
  expect(await quotaOf('acme')).toBe(20);
  expect(Plans.asked).toEqual(['acme', 'acme']);
});

it('is not asked for requests that a limit in a middleware refuses', async () => {
  const addresses = { name: 'addresses', algo: 'fixed-window', rate: 5, interval: '1h', phase: 'middleware' } as const;
  @Module({})
  class EarlyModule {
    configure(consumer: MiddlewareConsumer) {
      consumer.apply(RateLimitMiddleware).forRoutes('{*path}');
    }
  }
  const limits = { limits: [addresses, PlanLimits] };
  const providers = [Plans, PlanLimits];
  app = await HttpApp.start(adapters[0]!, { controllers: [OpenController], providers, limits, imports: [EarlyModule] });
  Plans.answer = () => 10;
  const statuses: unknown[] = [];
  for (let request = 0; request < 50; request++) statuses.push(await quotaOf(`made-up-${request}`));
  expect(statuses.filter((each) => each === 429)).toHaveLength(45);
  expect(Plans.asked).toHaveLength(5);
});

it('keeps what a client has used when its rate changes', async () => {
  await start();
  moveBy(0);
  for (let request = 0; request < 4; request++) await quotaOf('acme');
  Plans.rates['acme'] = 20;
  moveBy(60_001);
  expect(reported(await app!.get('/open', { 'x-tenant': 'acme' }))).toEqual([['plan', 20, 15]]);
});

it('joins the calls for one key', async () => {
  await start();
  const gate = closedGate();
  const all = [quotaOf('acme'), quotaOf('acme'), quotaOf('acme')];
  await until(() => Plans.requests === 3);
  gate.open();
  expect(await Promise.all(all)).toEqual([10, 10, 10]);
  expect(Plans.asked).toEqual(['acme']);
});

it.each<[string, () => unknown]>([
  ['fails', outage],
  ['gives a rate that is none', () => NaN],
  ['never answers', () => new Promise(() => {})],
])('has its last good answer while it %s', async (_, answer) => {
  await start(PlanLimits, { resolveTimeout: 50 });
  moveBy(0);
  Plans.answer = (rate) => rate;
  expect(await quotaOf('acme')).toBe(10);
  Plans.answer = answer;
  moveBy(60_001);
  const asked = quotaOf('acme');
  await until(() => Plans.asked.length === 2);
  moveBy(50);
  expect(await asked).toBe(10);
  // It is not called by each request that comes within the next second.
  expect(await quotaOf('acme')).toBe(10);
  expect(Plans.asked).toHaveLength(2);
  expect(logged.mock.calls.map(([line]) => line)).toEqual([
    'PlanLimits.resolve failed, so its last valid result applies to the key',
  ]);
});

it('is called again a second after a failure', async () => {
  await start();
  moveBy(0);
  await quotaOf('acme');
  moveBy(60_001);
  Plans.answer = outage;
  await quotaOf('acme');
  Plans.answer = (rate) => rate;
  Plans.rates['acme'] = 20;
  moveBy(999);
  expect(await quotaOf('acme')).toBe(10);
  moveBy(2);
  expect(await quotaOf('acme')).toBe(20);
});

it('fails the request of a key without an answer', async () => {
  await start();
  Plans.answer = outage;
  expect(await app!.statuses(3, '/open', { 'x-tenant': 'acme' })).toEqual([500, 500, 500]);
  expect(Plans.asked).toEqual(['acme']);
  expect(logged.mock.calls.map(([line]) => String(line))).toContain(
    "PlanLimits.resolve failed, so requests of keys without a valid result fail; set 'fallback' to avoid that",
  );
});

it('has its fallback for a key without an answer', async () => {
  await start(PlanLimitsOrFew);
  moveBy(0);
  Plans.answer = outage;
  expect(await quotaOf('acme')).toBe(3);
  Plans.answer = (rate) => rate;
  moveBy(1001);
  expect(await quotaOf('acme')).toBe(10);
});

it('takes an answer that comes too late for the next requests', async () => {
  await start(PlanLimitsOrFew, { resolveTimeout: 50 });
  const gate = closedGate();
  expect(await quotaOf('acme')).toBe(3);
  gate.open();
  await until(async () => (await quotaOf('acme')) === 10);
  expect(Plans.asked).toEqual(['acme']);
});

it('shares one answer among requests without a key', async () => {
  Plans.rates[''] = 5;
  await start();
  const quotas = [];
  for (let request = 0; request < 2; request++) quotas.push(reported(await app!.get('/open'))[0]?.[1]);
  expect([quotas, Plans.asked]).toEqual([[5, 5], [undefined]]);
});

it('forgets the keys that were used least recently', async () => {
  @Injectable()
  class Few extends PlanLimits {
    readonly maxKeys = 2;
  }
  Plans.rates['third'] = 1;
  await start(Few);
  for (const tenant of ['acme', 'globex', 'acme', 'third', 'acme', 'globex']) await quotaOf(tenant);
  expect(Plans.asked).toEqual(['acme', 'globex', 'third', 'globex']);
});

it('is asked for each request without keyOf, by controllers and with others, too', async () => {
  let asked = 0;
  @Injectable()
  class EachTime implements LimitResolver {
    resolve(context: ExecutionContext): LimitAnswer {
      asked++;
      return headerOf(context, 'x-free') === undefined
        ? { name: 'each', algo: 'gcra', rate: 5, interval: '1m', key: 'global' }
        : null;
    }
  }
  app = await HttpApp.start('express', { controllers: [controllerWith(EachTime)] });
  const responses = [
    await app.get('/own/one'),
    await app.get('/own/two'),
    await app.get('/own/one', { 'x-free': '1' }),
  ];
  expect(responses.map(reported)).toEqual([[['each', 5, 4]], [['each', 5, 3]], []]);
  expect(asked).toBe(3);
});

describe('a class that cannot resolve limits', () => {
  class Without {}
  class Wrong {
    resolve = 5;
  }
  class BadKey {
    keyOf = 'tenant';
    resolve = () => null;
  }
  class BadTtl {
    ttl = 'soon';
    resolve = () => null;
  }
  class BadBound {
    maxKeys = 0;
    resolve = () => null;
  }
  class BadFallback {
    fallback = { algo: 'gcra', rate: 0, interval: '1s' };
    resolve = () => null;
  }
  it.each<[unknown, string]>([
    [
      Without,
      'Without.resolve: expected a class that implements LimitResolver: it has a method resolve, received undefined',
    ],
    [Wrong, 'Wrong.resolve: expected a class that implements LimitResolver: it has a method resolve, received 5'],
    [BadKey, "BadKey.keyOf: expected a function of the context, received 'tenant'"],
    [BadTtl, "BadTtl.ttl: expected a duration such as '1m', more than 0, received 'soon'"],
    [BadBound, 'BadBound.maxKeys: expected a whole number >= 1, received 0'],
    [BadFallback, 'BadFallback.fallback.rate: expected a whole number >= 1, received 0'],
  ])('is refused at start-up: %p', async (type, message) => {
    await expect(startUp({ limits: [type as Type<LimitResolver>] })).rejects.toThrow(message);
    await expect(startUp({}, [controllerWith(type as LimitSpec)])).rejects.toThrow(message);
  });

  it('by a key that is none fails its request', async () => {
    @Injectable()
    class Odd extends PlanLimits {
      override keyOf(): never {
        return { tenant: 1 } as never;
      }
    }
    await start(Odd);
    expect(await quotaOf('acme')).toBe(500);
  });
});
