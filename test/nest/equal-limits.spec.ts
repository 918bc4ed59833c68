import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, type INestApplication, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  type AlgorithmOptions,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitModule,
} from '../../lib/index.js';
import { compile } from '../support/limits/stores.js';

const CONTROLLERS = 5;
const ROUTES = 10;

const three = (): LimitDefinition[] => [
  { algo: 'gcra', rate: 2, interval: '1h' },
  { algo: 'sliding-log', rate: 1000, interval: '1h', cost: 2 },
  { algo: 'token-bucket', rate: 100, interval: '1h', key: 'global' },
];

/** Controllers with limits on each of their routes, made anew by a function. */
function controllers(limits: () => LimitDefinition[]): Type[] {
  return Array.from({ length: CONTROLLERS }, (_, index) => {
    class SomeController {}
    for (let route = 0; route < ROUTES; route++) {
      const descriptor = { value: () => 'ok', configurable: true };
      Object.defineProperty(SomeController.prototype, `route${route}`, descriptor);
      Get(`route${route}`)(SomeController.prototype, `route${route}`, descriptor);
      RateLimit(...(limits() as [LimitDefinition]))(SomeController.prototype, `route${route}`, descriptor);
    }
    Controller(`c${index}`)(SomeController);
    return SomeController;
  });
}

describe('equal limits', () => {
  let app: INestApplication | undefined;

  async function start(types: Type[], options = {}): Promise<INestApplication> {
    const module = RateLimitModule.forRoot(options);
    const testing = await Test.createTestingModule({ imports: [module], controllers: types }).compile();
    testing.useLogger(false);
    app = testing.createNestApplication();
    await app.listen(0, '127.0.0.1');
    return app;
  }

  afterEach(async () => {
    jest.restoreAllMocks();
    await app?.close();
    app = undefined;
  });

  it('are read once, on however many routes', async () => {
    const algorithms = three().map((options) => compile(options as AlgorithmOptions).algorithm);
    const reads = algorithms.map((algorithm) => jest.spyOn(algorithm, 'compile'));
    await start(controllers(three));
    for (const read of reads) expect(read).toHaveBeenCalledTimes(1);
  });

  it('count on each route for itself', async () => {
    const url = await (await start(controllers(three))).getUrl();
    const get = async (path: string) => (await fetch(`${url}/${path}`)).status;
    for (const path of ['c0/route0', 'c0/route1', 'c4/route9']) {
      expect([await get(path), await get(path), await get(path)]).toEqual([200, 200, 429]);
    }
  });

  it('are refused where they need a name, although they are right elsewhere', async () => {
    const recorded: LimitDefinition = { algo: 'fixed-window', rate: 5, interval: '1h', usage: { keep: '90d' } };
    const testing = start(
      controllers(() => [{ ...recorded }]),
      { define: { recorded } },
    );
    await expect(testing).rejects.toThrow("@RateLimit on SomeController.route0: option 'usage'");
  });

  it('are not mixed up with limits that the defaults complete', async () => {
    const whole: LimitDefinition = { algo: 'fixed-window', rate: 1, interval: 1, key: 'global' };
    await start([], { defaults: { key: 'global' } });
    const { decisions$ } = app!.get(LimiterService);
    const names: string[] = [];
    decisions$.subscribe(({ limit }) => names.push(limit));
    await app!.get(LimiterService).for(whole).consume('global');
    expect(names).toEqual(['fixed-window:1/1ms']);
  });
});
