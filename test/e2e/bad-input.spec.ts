import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import {
  type LimitDefinition,
  LimiterService,
  RateLimitArgumentError,
  RateLimitConfigError,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { freshPrefix } from '../support/limits/stores.js';
import { PATIENCE } from '../support/redis/patience.mjs';
import { startUp } from './http-app.js';
import { settingsOf } from '../support/nest/settings.js';

const gcra: LimitDefinition = { algo: 'gcra', rate: 2, interval: '1m' };

async function reasonOf(act: () => unknown): Promise<Error> {
  try {
    await act();
  } catch (error) {
    return error as Error;
  }
  throw new Error('it was accepted');
}

afterEach(() => {
  jest.restoreAllMocks();
});

describe("option 'redis'", () => {
  it.each<[unknown]>([
    [''],
    [null],
    [42],
    [true],
    [{}],
    [[]],
    ['http://x'],
    ['localhost:6379'],
    ['not a url'],
    [{ nodes: 'x' }],
    [{ nodes: [] }],
    [{ host: 'localhost', sendCommand: () => undefined, get: () => undefined }],
  ])('is not %p', async (redis) => {
    const reason = await reasonOf(() => settingsOf({ redis: redis as never }));
    expect(reason).toBeInstanceOf(RateLimitConfigError);
    expect(reason.message).toMatch(
      /^RateLimitModule\.redis: expected a URL such as 'redis:\/\/localhost:6379'.+, received/,
    );
  });

  it('keeps a password to itself', async () => {
    const { message } = await reasonOf(() => settingsOf({ redis: 'redi://user:s3cret@host:6379' }));
    expect(message).toContain('//***@host:6379');
    expect(message).not.toContain('s3cret');
  });

  it.each([
    [
      'cache.example.net:6380,password=s3cret,ssl=True,abortConnect=False',
      'rediss://:<password>@cache.example.net:6380',
    ],
    ['cache.example.net:6379,user=app,password=s3cret', 'redis://app:<password>@cache.example.net:6379'],
    ['redis://cache.example.net:6380,password=s3cret,ssl=True', 'rediss://:<password>@cache.example.net:6380'],
    ['cache.example.net,password=s3cret', 'redis://:<password>@cache.example.net:6379'],
  ])('that is %s is refused without its password, and the form is named', async (redis, form) => {
    const { message } = await reasonOf(() => settingsOf({ redis }));
    expect(message).toContain(`expected the URL '${form}'`);
    expect(message).not.toContain('s3cret');
    const home = await reasonOf(() => settingsOf({ redis: 'redis://x', regions: { name: 'eu', home: redis } }));
    expect(home.message).toContain(`expected the URL '${form}'`);
    expect(home.message).not.toContain('s3cret');
  });

  it.each<[RateLimitModuleOptions['redis']]>([
    [undefined],
    ['redis://localhost'],
    ['rediss://user:p%40ss@host:6380/2'],
    [{ host: 'x' }],
    [{ path: '/run/redis.sock' }],
    [{ sentinels: [{ host: 'x', port: 1 }], name: 'mymaster' }],
    [{ nodes: [{ host: 'x', port: 1 }] }],
  ])('may be %p', (redis) => {
    expect(() => settingsOf({ redis })).not.toThrow();
  });
});

describe('other options', () => {
  it.each<[string, RateLimitModuleOptions, string]>([
    ['a timeout that no timer can wait for', { timeout: '30d' }, "timeout: expected at most 1 hour, received '30d'"],
    [
      'no timeout',
      { timeout: null as never },
      "expected milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), more than 0 and at most 1 year, received null",
    ],
    [
      'headers that are nothing',
      { headers: {} as never },
      'expected one of draft-8, draft-6, legacy, a function, a list of these, or false, received {}',
    ],
    [
      'no headers',
      { headers: null as never },
      'expected one of draft-8, draft-6, legacy, a function, a list of these, or false, received null',
    ],
    ['no ipv6Prefix', { ipv6Prefix: null as never }, 'expected a whole number >= 1 and <= 128, received null'],
    [
      'no onStoreError',
      { onStoreError: null as never },
      'expected one of local, allow, deny, or a function that returns one, received null',
    ],
    [
      'a limit without slices',
      { limits: [{ algo: 'sliding-window', rate: 1, interval: 1, slices: null as never }] },
      'limits[0].slices: expected a whole number >= 1 and <= 1000, received null',
    ],
    [
      'a limit without a queue',
      { limits: [{ algo: 'leaky-bucket', rate: 1, interval: 1, queue: null as never }] },
      'limits[0].queue: expected a whole number >= 0 and <= 9007199254740990, received null',
    ],
    [
      'a limit without a cost',
      { limits: [{ ...gcra, cost: null as never }] },
      "limits[0].cost: expected a whole number >= 0, a function of the context, or { by, per, estimate? } such as { by: 'bytes', per: '1kB' }, received null",
    ],
    [
      'two limits of one name',
      { limits: [gcra, gcra] },
      "limits: two limits have the name 'gcra:2/1m'. Give each limit of one place its own 'name'",
    ],
  ])('%s', async (_, options, message) => {
    const reason = await reasonOf(() => startUp(options));
    expect(reason).toBeInstanceOf(RateLimitConfigError);
    expect(reason.message).toContain(message);
  });

  it.each<[string, () => unknown, string]>([
    [
      'forRoot(null)',
      () => RateLimitModule.forRoot(null as never),
      'RateLimitModule: expected an object of options, received null',
    ],
    [
      'forRootAsync([])',
      () => RateLimitModule.forRootAsync([] as never),
      'RateLimitModule.forRootAsync: expected an object of options, received []',
    ],
    [
      'forFeature(null)',
      () => RateLimitModule.forFeature(null as never),
      'forFeature: expected an object of options, received null',
    ],
    [
      'forFeature([])',
      () => RateLimitModule.forFeature([] as never),
      'forFeature: expected an object of options, received []',
    ],
    [
      "guard: 'no'",
      () => RateLimitModule.forRoot({ guard: 'no' as never }),
      "guard: expected true, false or 'custom', received 'no'",
    ],
  ])('%s', async (_, call, message) => {
    const reason = await reasonOf(call);
    expect(reason).toBeInstanceOf(RateLimitConfigError);
    expect(reason.message).toContain(message);
  });

  it('from a prototype are read as little as those of another limit', async () => {
    const inherited = Object.create({ rate: 5, interval: '1m' }) as LimitDefinition;
    inherited.algo = 'gcra';
    expect((await reasonOf(() => startUp({ limits: [inherited] }))).message).toContain('rate: missing');
    const polluting = JSON.parse('{"__proto__": {"polluted": 1}, "algo": "gcra", "rate": 1, "interval": 1}') as never;
    expect(await reasonOf(() => startUp({ limits: [polluting] }))).toBeInstanceOf(RateLimitConfigError);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

const open = async (options: RateLimitModuleOptions, ...imports: Parameters<typeof RateLimitModule.forFeature>[]) => {
  const features = imports.map((definitions) => RateLimitModule.forFeature(...definitions));
  const testing = Test.createTestingModule({ imports: [RateLimitModule.forRoot(options), ...features] });
  const app = await testing.compile({ moduleIdGeneratorAlgorithm: 'deep-hash' } as never);
  await app.init();
  return app;
};

describe('a running app', () => {
  it('knows all features, however Nest tells modules apart', async () => {
    const app = await open({}, [{ a: gcra }], [{ b: gcra }]);
    const service = app.get(LimiterService);
    for (const name of ['a', 'b']) expect(await service.for(name).consume('x')).toMatchObject({ limit: name });
    await app.close();
  });

  it.each<[string, unknown, string]>([
    ['null', null, 'expected a list of { limit, key }, received null'],
    ['a string', 'x', "expected a list of { limit, key }, received 'x'"],
    ['a list of null', [null], 'expected a list of { limit, key }, received null'],
    ['a cost of null', [{ limit: gcra, key: 'a', cost: null }], 'cost: expected a whole number >= 0, received null'],
    [
      'too many limits',
      Array.from({ length: 1001 }, (_, i) => ({ limit: gcra, key: `${i}` })),
      'expected at most 1000 limits, received 1001',
    ],
  ])('refuses a check of %s', async (_, checks, message) => {
    const app = await open({});
    const reason = await reasonOf(() => app.get(LimiterService).check(checks as never));
    await app.close();
    expect(reason).toBeInstanceOf(RateLimitArgumentError);
    expect(reason.message).toContain(message);
  });

  it('reads a connection that gives numbers as text', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const redis = new Redis(process.env['TEST_REDIS_URL']!, { lazyConnect: true, stringNumbers: true });
    await redis.connect();
    const app = await open({ redis, prefix: freshPrefix(), timeout: PATIENCE });
    const limiter = app.get(LimiterService).for(gcra);
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, remaining: 1, source: 'redis' });
    await app.close();
    expect(redis.status).toBe('ready');
    redis.disconnect();
    expect(warn).not.toHaveBeenCalled();
  });
});
