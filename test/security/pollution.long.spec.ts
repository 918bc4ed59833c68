import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import {
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitArgumentError,
  RateLimitConfigError,
  rateLimitMiddleware,
  RateLimitModule,
} from '../../lib/index.js';
import { givenOptions } from '../../lib/engine/options/values.js';
import { readSettings } from '../../lib/app/config/settings.js';
import { type OverrideRecord, readRecord } from '../../lib/app/overrides/override-record.js';
import { frameworks, HttpApp, startUp } from '../e2e/http-app.js';
import { RatesApp } from '../app/overrides/overrides-app.js';

const polluted = new Set<string>();

/** What a library somewhere else did when it merged a hostile object. */
function pollute(option: string, value: unknown): void {
  polluted.add(option);
  const everyone: object = Object.prototype;
  Object.defineProperty(everyone, option, { value, configurable: true, writable: true });
}

afterEach(() => {
  for (const option of polluted) delete (Object.prototype as Record<string, unknown>)[option];
  polluted.clear();
});

/** A value for each option that would loosen or break a limit. */
const hostile: [option: string, value: unknown][] = [
  ['mode', 'shadow'],
  ['skip', () => true],
  ['cost', 1_000_000],
  ['count', 'failed'],
  ['blockFor', '1y'],
  ['scope', 'instance'],
  ['phase', 'authenticated'],
  ['onStoreError', 'allow'],
  ['onMissingKey', 'skip'],
  ['key', () => String(Math.random())],
  ['message', 'hacked'],
  ['name', 'hacked'],
  ['burst', 1_000_000],
  ['queue', 1_000_000],
  ['slices', 1],
  ['refill', 'intervally'],
  ['retain', '1y'],
  ['timezone', 'nowhere'],
  ['rate', 1_000_000],
  ['interval', 1],
  ['limit', 1_000_000],
  ['limits', [{ algo: 'gcra', rate: 1, interval: '1y' }]],
  ['define', { hacked: { algo: 'gcra', rate: 1, interval: '1y' } }],
  ['headers', false],
  ['timeout', 1],
  ['ipv6Prefix', 1],
  ['prefix', 'hacked'],
  ['maxKeys', 1],
  ['maxBytes', 1],
  ['refusalCache', false],
  ['redis', 'redis://hacked'],
  ['prefetch', { units: 1000, ttl: '1s' }],
  ['share', { by: 'global' }],
  ['usage', 'hacked'],
  ['within', 'nowhere'],
  ['ceiling', 1_000_000],
  ['lends', 'hacked'],
  ['reserveFor', { critical: 0.9 }],
  ['replicas', 3],
  ['hold', 'hacked'],
  ['credits', true],
  ['rollover', 1],
  ['candidate', { rate: 1 }],
  ['candidate', 'hacked'],
  ['warmUp', { for: '1h', from: 0.9 }],
  ['anchor', 'hacked'],
];

const limits: Record<string, LimitDefinition> = {
  gcra: { algo: 'gcra', rate: 2, interval: '1m' },
  bucket: { algo: 'token-bucket', rate: 2, interval: '1m' },
  sliding: { algo: 'sliding-window', rate: 2, interval: '1m' },
  daily: { algo: 'calendar-window', rate: 2, period: 'day' },
};

describe.each(frameworks)('an `Object.prototype` that was written to, over %s', (framework) => {
  it.each(hostile)('gives no limit an option: %s', async (option, value) => {
    @Controller()
    class ListController {
      @Get()
      @RateLimit(limits['gcra']!)
      list() {}
    }
    pollute(option, value);
    const app = await HttpApp.start(framework, { controllers: [ListController], limits: { define: limits } });
    const service = app.nest.get(LimiterService);
    const code: unknown[] = [];
    for (const name of Object.keys(limits)) {
      for (let count = 0; count < 3; count++) code.push((await service.for(name).consume('user:1')).allowed);
    }
    delete (Object.prototype as Record<string, unknown>)[option];
    const answers = [await app.get('/'), await app.get('/'), await app.get('/')];
    const body = await answers[2]!.json();
    await app.close();
    expect(code).toEqual(Object.keys(limits).flatMap(() => [true, true, false]));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(answers[2]!.headers.get('ratelimit-policy')).toBe('"gcra:2/1m";q=2;w=60');
    expect(body).toMatchObject({ message: 'Too many requests', limits: ['gcra:2/1m'] });
  });
});

describe('an `Object.prototype` that was written to', () => {
  it('gives the module no option', () => {
    const before = readSettings({});
    for (const [option, value] of hostile) pollute(option, value);
    const after = readSettings({});
    expect(JSON.stringify(after)).toBe(JSON.stringify(before));
    expect(Object.keys(after.options)).toEqual([]);
  });

  it('makes no key one of a user', async () => {
    @Controller()
    class ListController {
      @Get()
      @RateLimit({ ...limits['gcra']!, key: 'header:x-api-key', onMissingKey: 'refuse' })
      list() {}
    }
    pollute('needsUser', true);
    const app = await HttpApp.start('express', { controllers: [ListController] });
    const { status } = await app.get('/');
    await app.close();
    expect(status).toBe(400);
  });

  it.each([
    ['middleware', '/none', 404],
    ['guard', '/', 200],
    ['authenticated', '/', 200],
  ] as const)('replaces no check of a request: %s', async (phase, path, allowed) => {
    @Controller()
    class ListController {
      @Get()
      list() {}
    }
    const app = await HttpApp.start('express', {
      controllers: [ListController],
      limits: { limits: [{ ...limits['gcra']!, phase }] },
      configure: (nest) => void nest.use(rateLimitMiddleware(nest)),
    });
    pollute(phase, Promise.resolve());
    const statuses = await app.statuses(3, path);
    await app.close();
    expect(statuses).toEqual([allowed, allowed, 429]);
  });

  it.each<[part: string, value: unknown]>([
    ['required', true],
    ['default', 1],
    ['excludes', ['rate']],
    ['needs', { nothing: 'something' }],
    ['needsName', true],
    ['live', 'rate'],
    ['read', () => 1_000_000],
    ['options', {}],
    ['ofOptions', true],
    ['variant', {}],
    ['versions', {}],
    ['byPriority', true],
    ['notReservable', () => 'hacked'],
    ['notListed', () => 'hacked'],
    ['ofAll', {}],
    ['isPart', true],
    ['together', {}],
    ['estimates', {}],
    ['withholds', 1_000_000],
    ['parameters', () => ({ quota: 1_000_000 })],
    ['onlyWithRedis', true],
    ['of', () => ({ name: 'hacked', withholds: 1_000_000 })],
    ['terms', () => ({})],
    ['trait', () => ({})],
    ['childless', 'rate'],
  ])('makes no option or feature of a limit another one: %s', async (part, value) => {
    const featured: LimitDefinition = {
      algo: 'fixed-window',
      rate: 10,
      interval: '1m',
      hold: '1s',
      usage: '5d',
      reserveFor: { critical: 0.2 },
    };
    pollute(part, value);
    const app = await RatesApp.start({ define: { featured, ...limits } });
    const { service } = app;
    const reserved = await service.for('featured').reserve('user:1', { cost: 3 });
    const settled = await reserved.settle(2).then(() => service.for('featured').peek('user:1'));
    const code = await service.for({ ...featured, name: 'code' }).consume('user:1');
    const rates = await service.setRate('gcra', { rate: 7 }).then(() => service.getRate('gcra'));
    const failure = await service.setRate('featured', { usage: '6d' } as never).catch((error: unknown) => error);
    await app.close();
    delete (Object.prototype as Record<string, unknown>)[part];
    expect(reserved).toMatchObject({ allowed: true, quota: 8, remaining: 5 });
    expect(settled).toMatchObject({ quota: 8, remaining: 6 });
    expect(code).toMatchObject({ allowed: true, quota: 8, remaining: 7 });
    expect(rates.options).toMatchObject({ algo: 'gcra', rate: 7 });
    expect(String(failure)).toContain('usage: cannot be changed while the app runs');
  });

  it('leaves what a class of options has, and what equals it', () => {
    class Options {
      get prefix() {
        return 'mine';
      }
      readonly maxKeys = 7;
    }
    pollute('maxKeys', 7);
    pollute('timeout', 1);
    const given = givenOptions<{ prefix?: string; maxKeys?: number; timeout?: number }>(new Options(), [
      'prefix',
      'maxKeys',
      'timeout',
    ]);
    expect({ ...given }).toEqual({ prefix: 'mine', maxKeys: 7 });
  });
});

/** An option named `__proto__`, as `JSON.parse` makes it. */
const withProto = (json: string): never => JSON.parse(json.replace('{', '{"__proto__": {"polluted": true}, ')) as never;

describe('an option named __proto__', () => {
  afterEach(() => {
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it.each<[string, () => unknown]>([
    ['the module', () => readSettings(withProto('{"prefix": "x"}'))],
    ['a limit', () => startUp({ limits: [withProto('{"algo": "gcra", "rate": 1, "interval": 1}')] })],
    ['a defined limit', () => startUp({ define: { x: withProto('{"algo": "gcra", "rate": 1, "interval": 1}') } })],
    ['the definitions', () => startUp({ define: withProto('{"x": {"algo": "gcra", "rate": 1, "interval": 1}}') })],
  ])('of %s is refused', async (_, act) => {
    const failure = await Promise.resolve()
      .then(act)
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RateLimitConfigError);
  });

  it.each<[string, () => unknown]>([
    ['forRoot', () => RateLimitModule.forRoot(JSON.parse('{"__proto__": {"limits": [], "polluted": true}}') as object)],
    ['forRoot, beside others', () => RateLimitModule.forRoot(withProto('{"prefix": "x"}'))],
    ['forRootAsync', () => RateLimitModule.forRootAsync(withProto('{"inject": []}'))],
    ['forFeature', () => startUp({}, [], { imports: [RateLimitModule.forFeature(withProto('{"x": {}}'))] })],
    ['lists', () => startUp({ lists: withProto('{"deny": []}') })],
    ['defaults', () => startUp({ defaults: withProto('{"mode": "shadow"}') })],
    ['a policy', () => startUp({ policy: { source: () => withProto('{"limits": {}}') } })],
    ['an override of a policy', () => startUp({ policy: { source: () => ({ overrides: withProto('{"x": {}}') }) } })],
  ])('given to %s is refused', async (_, act) => {
    const failure = await Promise.resolve()
      .then(act)
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RateLimitConfigError);
    expect((failure as Error).message).toContain('__proto__');
  });

  it('is a name like any other where names are', async () => {
    const one = '{"__proto__": {"algo": "gcra", "rate": 1, "interval": "1m"}}';
    const defined = await RatesApp.start({ define: JSON.parse(one) as Record<string, LimitDefinition> });
    const limiter = defined.service.for('__proto__');
    expect([await limiter.consume('user:1'), await limiter.consume('user:1')]).toMatchObject([
      { allowed: true, limit: '__proto__' },
      { allowed: false },
    ]);
    await defined.close();
  });

  it('of a change of a rate is refused, or is none', async () => {
    const app = await RatesApp.start();
    await expect(app.service.setRate('login', withProto('{"rate": 5}'))).rejects.toThrow(RateLimitConfigError);
    await expect(app.service.setRate('login', { rate: 5 }, withProto('{"inherit": "keep"}'))).rejects.toThrow(
      RateLimitConfigError,
    );
    const record =
      '{"patch": {"__proto__": {"rate": 9}}, "version": 1, "generation": 0, "inherit": "keep", "expiresAt": null';
    const read = readRecord(`${record}, "quota": 1, "previousQuota": 1}`) as OverrideRecord;
    expect(Object.keys(read.patch!)).toEqual(['__proto__']);
    expect(await app.quota()).toBe(10);
    await app.close();
  });

  it('of a check is refused', async () => {
    const app = await RatesApp.start();
    const check = withProto('{"limit": "login", "key": "user:1", "cost": 3}');
    await expect(app.service.check([check])).rejects.toThrow("unknown option '__proto__'");
    expect(await app.service.for('login').peek('user:1')).toMatchObject({ remaining: 10 });
    await expect(app.service.check(withProto('{"length": 1}'))).rejects.toThrow(RateLimitArgumentError);
    await app.close();
  });
});
