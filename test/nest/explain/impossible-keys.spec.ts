import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  headerIdentity,
  type Limiter,
  LimiterService,
  RateLimit,
  RateLimitArgumentError,
  RateLimitConfigError,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';

const RATE = { algo: 'sliding-window', rate: 10, interval: '1h' } as const;
const SECRET = 'sk_live_4711';
const HASH = headerIdentity('X-Api-Key', SECRET);

@Controller('reports')
class ReportsController {
  @Get()
  @RateLimit('onRoute', 'byUser', 'byHeader')
  list() {
    return [];
  }
}

const WRONG: [limit: string, key: string, wants: string][] = [
  ['hourly', '203.0.113.7', "expected 'ip:203.0.113.7'"],
  ['onRoute', '203.0.113.7', "expected 'ip:203.0.113.7'"],
  ['onRoute', 'ip:2001:db8:1:2:3::4', "expected 'ip:2001:db8:1:2::'"],
  ['onRoute', 'ip:203.0.113.7:4711', "expected 'ip:203.0.113.7'"],
  ['byAddress', '::ffff:203.0.113.7', "expected 'ip:203.0.113.7'"],
  ['byAddress', 'user:42', "expected 'ip:' and an address"],
  ['byUser', '42', "'user:' and the id, such as 'user:42'"],
  ['byUser', 'user:', "'user:' and the id, such as 'user:42'"],
  ['byUser', '203.0.113.7', "expected 'ip:203.0.113.7'"],
  ['onlyUser', 'ip:203.0.113.7', "expected 'user:' and the id"],
  ['byHeader', SECRET, "expected headerIdentity('x-api-key', value)"],
  ['byHeader', `header:x-api-key:${SECRET}`, "expected headerIdentity('x-api-key', value)"],
  ['all', 'ip:203.0.113.7', "expected 'global'"],
];
const RIGHT: [limit: string, key: string][] = [
  ['hourly', 'ip:203.0.113.7'],
  ['onRoute', 'ip:2001:db8:1:2::'],
  ['onRoute', 'user:42'],
  ['byUser', 'user:42'],
  ['byUser', 'ip:203.0.113.7'],
  ['onlyUser', 'user:42'],
  ['byHeader', HASH],
  ['all', 'global'],
  ['byFunction', '203.0.113.7'],
  ['ofCode', '203.0.113.7'],
];

describe('calls that name a key', () => {
  let app: TestingModule;
  let service: LimiterService;

  beforeAll(async () => {
    const module = RateLimitModule.forRoot({
      limits: [{ name: 'hourly', ...RATE }],
      define: {
        onRoute: RATE,
        ofCode: RATE,
        byAddress: { ...RATE, key: 'ip' },
        byUser: { ...RATE, key: 'user' },
        onlyUser: { ...RATE, key: 'user', onMissingKey: 'refuse' },
        byHeader: { ...RATE, key: 'header:x-api-key' },
        byFunction: { ...RATE, key: () => '203.0.113.7' },
        all: { ...RATE, key: 'global' },
        counted: { algo: 'calendar-window', rate: 10, period: 'day', key: 'user', usage: '40d', credits: true },
      },
    });
    app = await Test.createTestingModule({ imports: [module], controllers: [ReportsController] }).compile();
    await app.createNestApplication().init();
    service = app.get(LimiterService);
  });
  afterAll(() => app.close());

  const explainRoute = (key: string | string[] | Record<string, string>) =>
    service.explain({ controller: 'ReportsController', handler: 'list', key });

  const CALLS: [string, (limiter: Limiter, key: string) => Promise<unknown>][] = [
    ['block', (limiter, key) => limiter.block(key, '1m')],
    ['unblock', (limiter, key) => limiter.unblock(key)],
    ['reset', (limiter, key) => limiter.reset(key)],
    ['refund of an operator', (limiter, key) => limiter.refund(key, 1, { strict: true })],
    ['penalize', (limiter, key) => limiter.penalize(key, 1)],
    ['history', (limiter, key) => limiter.history(key)],
  ];

  it.each(WRONG.filter(([limit]) => limit !== 'hourly'))(
    'on %s refuse %s, and say the right form',
    async (limit, key, wants) => {
      for (const [, call] of CALLS) {
        const error: unknown = await call(service.for(limit), key).catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(RateLimitArgumentError);
        expect((error as Error).message).toContain(wants);
        expect((error as Error).message).not.toContain(SECRET);
      }
    },
  );

  it('gives back what code took under a key of its own', async () => {
    const limiter = service.for('byUser');
    await limiter.consume('42', 3);
    await limiter.refund('42', 2);
    expect(await limiter.peek('42')).toMatchObject({ remaining: 9 });
  });

  it.each(WRONG)('changes and explanations of %s refuse %s', async (limit, key, wants) => {
    for (const call of [
      () => service.explain({ limit, key }),
      () => service.setRate(limit, { rate: 5 }, { key }),
      () => service.trySetRate(limit, { rate: 5 }, { key }),
      () => service.setMode(limit, 'off', { key }),
      () => service.deny({ identity: key }, { limit }),
      () => service.allow({ identity: key }, { limit }),
    ]) {
      const error: unknown = await call().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(RateLimitConfigError);
      expect((error as Error).message).toContain(wants);
      expect((error as Error).message).not.toContain(SECRET);
    }
    expect(await service.changes()).toEqual([]);
  });

  it.each(RIGHT)('of %s take %s', async (limit, key) => {
    if (limit !== 'hourly') for (const [, call] of CALLS) await call(service.for(limit), key);
    expect((await service.explain({ limit, key })).limits[0]).toMatchObject({ key: { identity: key } });
    await service.setMode(limit, 'shadow', { key });
    await service.deny({ identity: key }, { limit });
    await service.rollback(0);
    expect(await service.listRates(limit)).toMatchObject({ overrides: [] });
  });

  it('take beginnings that keys of the limit can have', async () => {
    for (const [limit, key] of [
      ['byUser', 'user:4*'],
      ['byUser', 'u*'],
      ['byHeader', 'header:x-api-key:*'],
      ['all', 'job:*'],
    ] as const) {
      await service.setMode(limit, 'shadow', { key });
    }
    for (const [limit, key] of [
      ['onlyUser', 'tenant:*'],
      ['byHeader', 'sk_live*'],
      ['all', 'ip:*'],
    ] as const) {
      await expect(service.setMode(limit, 'shadow', { key })).rejects.toThrow('expected a beginning of its keys');
    }
  });

  it('end what was changed for a key before it was refused', async () => {
    await expect(service.clearRate('byUser', { key: '42' })).resolves.toBe(false);
    await expect(service.unlist({ identity: SECRET }, { limit: 'byHeader' })).resolves.toBe(false);
  });

  it('read usage and change credits of keys that there can be', async () => {
    const counted = service.for('counted');
    for (const call of [() => counted.usage('42'), () => counted.credit('42', 5), () => counted.withdraw('42')]) {
      await expect(call()).rejects.toThrow("'user:' and the id, such as 'user:42'");
    }
    await counted.credit('user:42', 5);
    expect(await counted.withdraw('user:42')).toBe(0);
  });

  it('explain no route for a key that no request has', async () => {
    for (const key of ['203.0.113.7', ['user:42', '203.0.113.7'], { onRoute: '203.0.113.7' }, { byUser: '42' }]) {
      await expect(explainRoute(key)).rejects.toThrow(RateLimitConfigError);
    }
    const { limits } = await explainRoute(['ip:2001:db8::1', HASH, 'user:42']);
    expect(limits.map(({ key }) => key.identity)).toEqual(['ip:2001:db8::', 'ip:2001:db8::', HASH, 'user:42']);
  });

  it('of lists for all limits refuse what no limit counts by', async () => {
    await expect(service.deny({ identity: 'ip:2001:db8::1' })).rejects.toThrow("expected 'ip:2001:db8::'");
    await expect(service.deny({ identity: `header:x-api-key:${SECRET}` })).rejects.toThrow('headerIdentity');
    await service.deny({ identity: HASH });
    await service.unlist({ identity: HASH });
  });
});

describe('an address as an identity for all limits', () => {
  @Controller('files')
  class FilesController {
    @Get()
    @RateLimit({ ...RATE, name: 'files' })
    list() {
      return [];
    }

    @Get('named')
    @RateLimit('named')
    named() {
      return [];
    }
  }
  const ADDRESSES = [
    '203.0.113.7',
    '2001:db8::1',
    '::ffff:203.0.113.7',
    '203.0.113.7:4711',
    '10.0.0.0/8',
    '2001:db8::/32',
  ];
  const start = async (options: RateLimitModuleOptions, controllers: Type[] = []) => {
    const module = RateLimitModule.forRoot({ define: { named: RATE, ofCode: RATE }, ...options });
    const app = (await Test.createTestingModule({ imports: [module], controllers }).compile()).createNestApplication();
    await app.init();
    return app;
  };

  it.each<[string, RateLimitModuleOptions, Type[]]>([
    ['a route has a limit with the default key', {}, [FilesController]],
    ['the module has a limit with the default key', { limits: [{ name: 'hourly', ...RATE }] }, []],
    ['a limit counts requests without a user by address', { limits: [{ name: 'u', ...RATE, key: 'user' }] }, []],
  ])('is refused if %s', async (_, options, controllers) => {
    const app = await start(options, controllers);
    const service = app.get(LimiterService);
    for (const identity of ADDRESSES) {
      await expect(service.deny({ identity })).rejects.toThrow(`expected { ip: '${identity}' }`);
      await expect(service.allow({ identity })).rejects.toThrow(`expected { ip: '${identity}' }`);
    }
    for (const pattern of ['10.*', '10.0.*', '192.168.1*', '192.168.1.*']) {
      await expect(service.deny({ pattern })).rejects.toThrow(`expected 'ip:${pattern}'`);
    }
    for (const pattern of ['10*', 'v1.2-*', '1.2.3.4.*', 'ip:10.0.*']) await service.deny({ pattern });
    // What code counts by addresses is named.
    await service.deny({ identity: '203.0.113.7' }, { limit: 'ofCode' });
    expect(await service.for('ofCode').consume('203.0.113.7')).toMatchObject({ source: 'list' });
    await app.close();
  });

  it('is right if nothing but code counts', async () => {
    const app = await start({});
    const service = app.get(LimiterService);
    await service.deny({ identity: '203.0.113.7' });
    expect(await service.for('ofCode').consume('203.0.113.7')).toMatchObject({ source: 'list' });
    await app.close();
  });

  it('is refused for the limit of a route', async () => {
    const app = await start({}, [FilesController]);
    const service = app.get(LimiterService);
    for (const method of ['deny', 'allow'] as const) {
      const call = service[method]({ identity: '203.0.113.7' }, { limit: 'named' });
      await expect(call).rejects.toThrow("expected 'ip:203.0.113.7'");
    }
    await app.close();
  });

  it.each<[string, RateLimitModuleOptions, string]>([
    ["the module's lists", { lists: { deny: [{ identity: '203.0.113.7' }] } }, 'lists.deny[0]'],
    ['them for a limit', { lists: { allow: [{ identity: '203.0.113.7', limit: 'named' }] } }, 'lists.allow[0]'],
    ['a policy', { policy: { source: () => ({ lists: { deny: [{ identity: '203.0.113.7' }] } }) } }, 'lists.deny[0]'],
    [
      'a policy for a limit',
      { policy: { source: () => ({ lists: { deny: [{ identity: '203.0.113.7', limit: 'named' }] } }) } },
      'lists.deny[0]',
    ],
    [
      "a policy's overrides",
      { policy: { source: () => ({ overrides: { named: { '203.0.113.7': { rate: 3 } } } }) } },
      'overrides.named',
    ],
  ])('is refused at the start in %s', async (_, options, place) => {
    const started = start(options, [FilesController]);
    await expect(started).rejects.toThrow(RateLimitConfigError);
    await expect(started).rejects.toThrow(place);
    await expect(started).rejects.toThrow(/ip: ?'?203\.0\.113\.7'/);
  });
});

it('an address is no identity where all keys are known', async () => {
  const module = RateLimitModule.forRoot({ limits: [{ name: 'hourly', ...RATE }] });
  const app = await Test.createTestingModule({ imports: [module] }).compile();
  await app.init();
  const service = app.get(LimiterService);
  await expect(service.deny({ identity: '203.0.113.7' })).rejects.toThrow("expected { ip: '203.0.113.7' }");
  await app.close();
});
