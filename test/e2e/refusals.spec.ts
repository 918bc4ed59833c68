import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Logger, type Type } from '@nestjs/common';
import {
  type LimitDefinition,
  MemoryStore,
  RateLimit,
  type RateLimitModuleOptions,
  RateLimitStoreError,
  type RefusalBody,
  type RefusalMessage,
} from '../../lib/index.js';
import { adapters, HttpApp } from './http-app.js';

const daily: LimitDefinition = { name: 'daily', algo: 'fixed-window', rate: 1, interval: '1d', message: 'Tomorrow' };
const short: LimitDefinition = { name: 'short', algo: 'fixed-window', rate: 1, interval: '10s' };
const late: LimitDefinition = { ...short, name: 'late', phase: 'authenticated' };

function controllerWith(...specs: [LimitDefinition, ...LimitDefinition[]]): Type {
  @Controller()
  class RefusingController {
    @Get('things/:id')
    @RateLimit(...specs)
    thing() {
      return { ok: true };
    }
  }
  return RefusingController;
}

/** A store whose server is gone. */
function broken(): MemoryStore {
  const store = new MemoryStore();
  store.check = () => Promise.reject(new RateLimitStoreError('no answer'));
  return store;
}

const usual = (name: string) => ({
  statusCode: 429,
  message: 'Too many requests',
  error: 'Too Many Requests',
  limits: [name],
});

const pathAndWait: RefusalMessage = (context, { tightest }) =>
  `${context.switchToHttp().getRequest<{ url: string }>().url} in ${tightest.retryAfterMs} ms`;

const wrapped: RefusalBody = (context, { tightest }, given) => ({
  made: context.getHandler().name,
  by: tightest.limit,
  given,
});

const fail = () => {
  throw new Error('broken');
};

describe.each(adapters)('refusals over %s', (framework) => {
  let app: HttpApp | undefined;

  /** The answer to the first request that is refused. */
  const refused = async (limits: RateLimitModuleOptions, ...specs: [LimitDefinition, ...LimitDefinition[]]) => {
    app = await HttpApp.start(framework, { controllers: [controllerWith(...specs)], limits });
    expect((await app.get('/things/7')).status).toBe(200);
    return app.get('/things/7');
  };

  afterEach(async () => {
    jest.restoreAllMocks();
    await app?.close();
    app = undefined;
  });

  describe('problem details', () => {
    it('name the type, and the limits that refused', async () => {
      const response = await refused({ problem: true }, short, daily);
      expect(response.status).toBe(429);
      expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json(; charset=utf-8)?$/);
      expect(response.headers.get('retry-after')).toBe('86400');
      expect(await response.json()).toEqual({
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        title: 'Quota Exceeded',
        status: 429,
        detail: 'Tomorrow',
        'violated-policies': ['short', 'daily'],
      });
    });

    it('come from the check after the guards, too', async () => {
      const response = await refused({ problem: true }, late);
      expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
      expect(await response.json()).toMatchObject({ detail: 'Too many requests', 'violated-policies': ['late'] });
    });

    it('tell of a store that fails', async () => {
      const limits: RateLimitModuleOptions = { problem: true, store: broken(), onStoreError: 'deny' };
      app = await HttpApp.start(framework, { controllers: [controllerWith(short)], limits });
      const response = await app.get('/things/7');
      expect(response.status).toBe(503);
      expect(response.headers.get('retry-after')).toBe('1');
      expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
      expect(await response.json()).toEqual({
        type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
        title: 'Temporary Reduced Capacity',
        status: 503,
        detail: 'Rate limits cannot be checked at the moment',
      });
    });

    it('are not sent unless asked for, and never without a refusal', async () => {
      const response = await refused({}, short);
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
      expect(await response.json()).toEqual(usual('short'));
      await app?.close();
      const limits: RateLimitModuleOptions = { problem: true };
      app = await HttpApp.start(framework, { controllers: [controllerWith(short)], limits });
      expect((await app.get('/things/7')).headers.get('content-type')).toMatch(/^application\/json/);
      expect((await app.get('/nowhere')).headers.get('content-type')).toMatch(/^application\/json/);
    });
  });

  describe('functions', () => {
    it('make the message of the request and of the decisions', async () => {
      const response = await refused({}, { ...short, message: pathAndWait });
      expect(await response.json()).toEqual({ ...usual('short'), message: '/things/7 in 10000 ms' });
    });

    it('make the body: that of the limit, else that of the module', async () => {
      const response = await refused({ body: wrapped }, { ...daily, body: () => ({ try: 'later' }) }, short);
      expect(response.status).toBe(429);
      expect(await response.json()).toEqual({ try: 'later' });
      await app?.close();
      const own = await refused({ body: wrapped }, short);
      expect(await own.json()).toEqual({ made: 'thing', by: 'short', given: usual('short') });
    });

    it('add to problem details', async () => {
      const options: RateLimitModuleOptions = {
        problem: true,
        body: (_, __, problem) => ({ ...problem, instance: '/refusals/1' }),
      };
      const response = await refused(options, short);
      expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
      expect(await response.json()).toMatchObject({ status: 429, instance: '/refusals/1' });
    });

    const failing: [string, Partial<LimitDefinition>][] = [
      ['message', { message: fail }],
      ['body', { body: fail }],
      ['message', { message: (() => 7) as never }],
      ['message', { message: (() => Promise.reject(new Error('late'))) as never }],
      ['body', { body: (() => 'text') as never }],
      ['body', { body: () => Promise.reject(new Error('late')) }],
    ];

    it.each(failing)('that fail leave the refusal a refusal: %s', async (option, functions) => {
      const error = jest.spyOn(Logger.prototype, 'error');
      const response = await refused({}, { ...short, ...functions } as LimitDefinition);
      expect(response.status).toBe(429);
      expect(response.headers.get('retry-after')).toBe('10');
      expect(await response.json()).toEqual(usual('short'));
      expect((await app?.get('/things/7'))?.status).toBe(429);
      expect(error).toHaveBeenCalledTimes(1);
      expect(error.mock.calls[0]?.[0]).toBe(
        `the function '${option}' of limit 'short' failed, so the rejection has its default form`,
      );
    });
  });
});
