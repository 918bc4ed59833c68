import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Injectable, Logger, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  type LimitDefinition,
  type LimitResolver,
  LimiterService,
  RateLimit,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';

let warned: string[];
beforeEach(() => {
  warned = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((text: unknown) => void warned.push(String(text)));
});
afterEach(() => {
  jest.restoreAllMocks();
});

async function start(options: RateLimitModuleOptions, ...controllers: Type[]) {
  const app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot(options)], controllers }).compile();
  return app.init();
}

const login: LimitDefinition = { algo: 'fixed-window', rate: 3, interval: 60, name: 'login' };

const textOf = (place: string, option: string, got: number) => {
  const [, location, limit = ''] = /^(.*?)( \(limit '.*'\))?$/.exec(place)!;
  return (
    `${location}.${option}${limit}: received ${got}, which means milliseconds. ` +
    `Write '${got}s' for seconds, or '${got}ms' if you mean milliseconds`
  );
};

describe('a number that is most likely meant as seconds', () => {
  it.each<[string, RateLimitModuleOptions, string]>([
    ['limits', { limits: [login] }, 'limits[0]'],
    ['define', { define: { login } }, 'define.login'],
    ['policy', { policy: { source: () => ({ limits: { login: { ...login, name: undefined } } }) } }, 'login'],
  ])('is reported once for a limit of %s', async (_, options, place) => {
    const app = await start(options);
    expect(warned).toEqual([
      expect.stringContaining(
        ".interval (limit 'login'): received 60, which means milliseconds. Write '60s' for seconds, or '60ms' if you mean milliseconds",
      ),
    ]);
    expect(warned[0]).toContain(place);
    await app.close();
  });

  it.each([1, 60, 999, 1800, 3600, 7200, 86_400, 604_800, 2_592_000, 31_536_000])('may be %d', async (interval) => {
    const app = await start({ define: { login: { ...login, interval } } });
    expect(warned).toEqual([textOf(`define.login (limit 'login')`, 'interval', interval)]);
    await app.close();
  });

  it.each([1000, 1500, 6000, 9000, 60_000, 90_000, 3_600_000, 86_400_000])('is not %d', async (interval) => {
    const app = await start({ define: { login: { ...login, interval } } });
    expect(warned).toEqual([]);
    await app.close();
  });

  it('is reported for each place of routes, with all that it says', async () => {
    @Controller()
    class Reports {
      @Get('a')
      @RateLimit(login)
      a() {}

      @Get('b')
      @RateLimit(login)
      b() {}
    }
    const app = await start({}, Reports);
    expect(warned).toEqual([
      textOf(`@RateLimit on Reports.a (limit 'login')`, 'interval', 60),
      textOf(`@RateLimit on Reports.b (limit 'login')`, 'interval', 60),
    ]);
    await app.close();
  });

  it.each<[LimitDefinition, [option: string, got: number][]]>([
    [{ ...login, interval: '1m', blockFor: 15 }, [['blockFor', 15]]],
    [
      { ...login, interval: '1m', blockFor: [30, '1h'], forgetAfter: 999 },
      [
        ['blockFor[0]', 30],
        ['forgetAfter', 999],
      ],
    ],
    [{ algo: 'concurrency', limit: 3, ttl: 30, name: 'login' }, [['ttl', 30]]],
    [{ algo: 'budget', limit: 3, period: 'day', hold: 300, name: 'login' }, [['hold', 300]]],
    [{ algo: 'calendar-window', rate: 3, period: 'day', retain: 7, name: 'login' }, [['retain', 7]]],
    [{ algo: 'gcra', rate: 300, interval: '1m', warmUp: { from: 0.1, for: 30 }, name: 'login' }, [['warmUp.for', 30]]],
    [{ ...login, interval: '1m', candidate: { interval: 30 } }, [['candidate.interval', 30]]],
  ])('is reported of %j', async (limit, found) => {
    const app = await start({ limits: [limit] });
    expect(warned).toEqual(found.map(([option, got]) => textOf(`limits[0] (limit 'login')`, option, got)));
    await app.close();
  });

  it('is reported of a LimitResolver and of the module', async () => {
    @Injectable()
    class Plans implements LimitResolver {
      readonly ttl = 60;
      resolve = () => null;
    }
    const app = await start({ limits: [Plans], sendTimeout: 30 });
    expect(warned).toEqual([textOf('RateLimitModule', 'sendTimeout', 30), textOf('limits[0]: Plans', 'ttl', 60)]);
    await app.close();
  });

  it('is not a timeout of a few seconds', async () => {
    @Injectable()
    class Plans implements LimitResolver {
      readonly ttl = 3600;
      resolve = () => null;
    }
    const app = await start({ limits: [Plans], sendTimeout: 1800 });
    expect(warned).toEqual([]);
    await app.close();
  });

  it('is reported once of what a function gives', async () => {
    @Controller()
    class Reports {
      @Get()
      @RateLimit(() => ({ algo: 'fixed-window', rate: 1000, interval: 60, name: 'login' }))
      list() {}
    }
    const app = (
      await Test.createTestingModule({
        imports: [RateLimitModule.forRoot()],
        controllers: [Reports],
      }).compile()
    ).createNestApplication();
    await app.listen(0);
    for (const _ of [1, 2, 3]) await fetch(await app.getUrl());
    expect(warned).toEqual([
      expect.stringContaining(
        "@RateLimit on Reports.list.interval (limit 'login'): received 60, which means milliseconds. Write '60s' for seconds, or '60ms' if you mean milliseconds",
      ),
    ]);
    await app.close();
  });

  it.each<LimitDefinition>([
    { ...login, interval: '60ms' },
    { ...login, interval: 1000 },
    { ...login, interval: 999.5 },
    { algo: 'gcra', rate: 3, interval: '1s', prefetch: { units: 2, ttl: 100 } },
    { algo: 'adaptive', scope: 'instance', window: 100 },
  ])('is not seen in %j', async (limit) => {
    const app = await start({ limits: [limit] });
    expect(warned).toEqual([]);
    await app.close();
  });

  it('is not looked for in calls of code, which may compute it', async () => {
    const app = await start({});
    const limiters = app.get(LimiterService);
    await limiters.for(login).consume('a');
    await limiters.check([{ limit: login, key: 'a' }]);
    expect(warned).toEqual([]);
    await app.close();
  });

  it('is reported of the defaults', async () => {
    const app = await start({
      defaults: { blockFor: 15 },
      limits: [
        { ...login, interval: '1m' },
        { ...login, name: 'other', interval: '1m' },
      ],
    });
    expect(warned).toEqual([textOf('defaults', 'blockFor', 15)]);
    await app.close();
  });
});
