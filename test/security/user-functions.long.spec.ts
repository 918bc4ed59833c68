import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, type ExecutionContext, Get, Injectable, Logger, type Type } from '@nestjs/common';
import {
  type LimitDefinition,
  type LimitFunction,
  MemoryStore,
  RateLimit,
  type RateLimitModuleOptions,
  RateLimitStoreError,
  type RequestReader,
} from '../../lib/index.js';
import { until } from '../support/time/until.js';
import { adapters, type Framework, HttpApp } from '../e2e/http-app.js';

/** It has a `then`, as lazy queries of databases do, which hands nothing on. */
const lookalike = Object.fromEntries([
  // oxlint-disable-next-line no-thenable -- it is what the tests are about
  ['then', (_: unknown, rejected?: (error: unknown) => void) => rejected?.(new TypeError('out of order'))],
]);

/** Every way in which a function can fail. */
const failures: Record<string, () => never> = {
  throws: () => {
    throw new TypeError('out of order');
  },
  rejects: () => Promise.reject(new TypeError('out of order')) as never,
  'gives what only looks like a promise, and rejects': () => Object.create(lookalike) as never,
};

const limit = { name: 'limit', algo: 'fixed-window', rate: 2, interval: '1m' } as const;

function controllerWith(spec: LimitDefinition | LimitFunction): Type {
  @Controller()
  class FunctionsController {
    @Get()
    @RateLimit(spec)
    handle() {
      return 'done';
    }
  }
  return FunctionsController;
}

let app: HttpApp | undefined;
const unhandled = jest.fn();
beforeEach(() => {
  unhandled.mockReset();
  process.on('unhandledRejection', unhandled);
  process.on('uncaughtException', unhandled);
});
afterEach(async () => {
  await app?.close();
  app = undefined;
  // What was rejected without anybody to hear of it is told in the next turn.
  await new Promise((resolve) => setTimeout(resolve, 5));
  process.off('unhandledRejection', unhandled);
  process.off('uncaughtException', unhandled);
  jest.restoreAllMocks();
  expect(unhandled).not.toHaveBeenCalled();
});

const kinds = adapters.flatMap((framework) => Object.keys(failures).map((how) => [framework, how] as const));

describe.each(kinds)("a function of the user's over %s that %s", (framework: Framework, how) => {
  const fails = failures[how]!;

  async function start(spec: LimitDefinition | LimitFunction, limits: RateLimitModuleOptions = {}) {
    const logged = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    app = await HttpApp.start(framework, { controllers: [controllerWith(spec)], limits });
    return { get: app.get.bind(app), statuses: app.statuses.bind(app), logged };
  }

  @Injectable()
  class FailingResolver {
    resolve = fails;
  }

  it.each<[string, LimitDefinition | LimitFunction]>([
    ['key', { ...limit, key: fails }],
    ['key, a class', { ...limit, key: FailingResolver }],
    ['cost', { ...limit, cost: fails }],
    ['skip', { ...limit, skip: fails }],
    ['@RateLimit', fails],
  ])('%s: no request passes unchecked', async (_, spec) => {
    const { statuses } = await start(spec);
    expect(await statuses(3, '/')).toEqual([500, 500, 500]);
  });

  it('count: every request counts, and the log says so once', async () => {
    const { statuses, logged } = await start({ ...limit, count: fails });
    expect(await statuses(3, '/')).toEqual([200, 200, 429]);
    await until(() => logged.mock.calls.length > 0);
    expect(logged).toHaveBeenCalledTimes(1);
  });

  it.each(['message', 'body'] as const)('%s: the refusal says what it would without it', async (option) => {
    const { get, statuses, logged } = await start({ ...limit, [option]: fails });
    expect(await statuses(3, '/')).toEqual([200, 200, 429]);
    expect(await (await get('/')).json()).toMatchObject({ message: 'Too many requests', limits: ['limit'] });
    expect(logged).toHaveBeenCalledTimes(1);
  });

  it('headers: the responses lack them, have the others, and the log says so once', async () => {
    const { get, logged } = await start(limit, { headers: [fails, 'legacy'] });
    const answers = [await get('/'), await get('/'), await get('/')];
    expect(answers.map(({ status, headers }) => [status, headers.get('x-ratelimit-remaining')])).toEqual([
      [200, '1'],
      [200, '0'],
      [429, '0'],
    ]);
    expect(answers[2]?.headers.get('retry-after')).toBe('60');
    expect(logged.mock.calls).toEqual([
      [
        "the function 'headers[0]' failed, so the responses lack the headers that it would have set",
        expect.any(String),
      ],
    ]);
  });

  it('onStoreError: it is counted in process', async () => {
    const store = new MemoryStore();
    jest.spyOn(store, 'check').mockRejectedValue(new RateLimitStoreError('down'));
    const { statuses } = await start({ ...limit, onStoreError: fails }, { store });
    expect(await statuses(3, '/')).toEqual([200, 200, 429]);
    await store.close();
  });

  it.each(['read', 'call'] as const)('%s of a reader: no request passes unchecked', async (part) => {
    const reader: RequestReader = { transport: 'http', read: () => ({}), [part]: fails };
    const { statuses } = await start({ ...limit, key: 'global' }, { readers: [reader] });
    expect(await statuses(3, '/')).toEqual([500, 500, 500]);
  });

  it('refuse of a reader: no request passes unchecked', async () => {
    const reader: RequestReader = {
      transport: 'http',
      read: (context: ExecutionContext) => ({ request: context.switchToHttp().getRequest<object>() }),
      refuse: fails,
    };
    const { statuses } = await start(limit, { readers: [reader] });
    expect(await statuses(3, '/')).toEqual([200, 200, 500]);
  });
});

it.each(adapters)('headers that no response can hold make no request fail over %s', async (framework) => {
  const logged = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
  const wrong = [{ 'X-Wrong': 'a\r\nb' }, { 'X Wrong': 'a' }, { 'X-Wrong': undefined as never }];
  const headers = wrong.map((each) => () => each);
  app = await HttpApp.start(framework, { controllers: [controllerWith(limit)], limits: { headers } });
  expect(await app.statuses(3, '/')).toEqual([200, 200, 429]);
  expect(logged).toHaveBeenCalledTimes(wrong.length);
});
