import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  HttpException,
  Logger,
  SetMetadata,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { EventPattern, RpcException } from '@nestjs/microservices';
import { Test, type TestingModule } from '@nestjs/testing';
import { firstValueFrom, of } from 'rxjs';
import {
  type LimitDefinition,
  LimiterService,
  MemoryStore,
  RateLimit,
  RateLimitExceededException,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitModuleOptions,
  rateLimitOf,
  RateLimitStoreError,
  type Store,
} from '../../lib/index.js';
import { interceptorOf } from '../support/nest/app-parts.js';

const byAddress: LimitDefinition = { name: 'address', algo: 'fixed-window', rate: 2, interval: '1m' };
const byAll: LimitDefinition = { name: 'all', algo: 'fixed-window', rate: 5, interval: '1m', key: 'global' };
const late: LimitDefinition = { ...byAll, name: 'late', phase: 'authenticated' };

/** As packages mark the methods that they call. */
const Tool = () => SetMetadata('a-package:tool', true);

@Controller()
class Handlers {
  @Tool()
  @RateLimit(byAddress, byAll, late)
  handle() {}

  @Tool()
  @RateLimit(byAll)
  other() {}

  @EventPattern('event')
  @RateLimit(byAll)
  event(_data: unknown) {}
}

/** A call as Nest hands it to guards and interceptors; each gets a context of its own. */
function contextOf(type: string, args: unknown[], handler: 'handle' | 'other' | 'event' = 'handle'): ExecutionContext {
  const context = {
    getType: () => type,
    getArgs: () => args,
    getArgByIndex: (index: number) => args[index],
    getClass: () => Handlers,
    getHandler: () => Handlers.prototype[handler],
  };
  return context as unknown as ExecutionContext;
}

const next: CallHandler = { handle: () => of('handled') };

function failing(reason: Error): Store {
  const store = new MemoryStore();
  store.check = () => Promise.reject(reason);
  return store;
}

describe('transports', () => {
  let app: TestingModule | undefined;

  async function start(options: RateLimitModuleOptions = {}) {
    app = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot(options)],
      controllers: [Handlers],
    }).compile();
    await app.init();
    const guard = app.get(RateLimitGuard);
    const interceptor = interceptorOf(app);
    const service = app.get(LimiterService);
    const call = async (context: ExecutionContext) => {
      expect(await guard.canActivate(context)).toBe(true);
      return firstValueFrom(await interceptor.intercept(context, next));
    };
    return { guard, interceptor, service, call };
  }

  afterEach(async () => {
    jest.restoreAllMocks();
    await app?.close();
  });

  it.each([
    ['rpc', () => ['data', {}]],
    ['rpc', () => [{ some: 'data' }]],
    ['ws', () => [{ id: 'client' }, { some: 'data' }]],
    ['graphql', () => [undefined, {}, {}, {}]],
    ['graphql', () => [undefined, {}, undefined, undefined]],
  ])('%s without a request: a limit by address does not apply, and one warning says so', async (type, args) => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const { call } = await start();
    for (const remaining of [4, 3, 2]) {
      const context = contextOf(type, args());
      expect(await call(context)).toBe('handled');
      const { decisions } = rateLimitOf(context) ?? { decisions: [] };
      expect(decisions.map((decision) => [decision.limit, decision.remaining])).toEqual([
        ['all', remaining],
        ['late', remaining],
      ]);
    }
    expect(warn.mock.calls).toEqual([
      [expect.stringMatching(/^limit 'address' does not apply to requests that have neither its key nor an address/)],
    ]);
  });

  it.each(['res', 'reply', 'req.res'])(
    'GraphQL: sets headers on %s for all fields together and counts every one',
    async (where) => {
      const { call, guard } = await start();
      const headers: Record<string, string> = {};
      const response = { header: () => undefined };
      const req: Record<string, unknown> = { ip: '203.0.113.7', headers: {} };
      const shared: Record<string, unknown> = { req };
      if (where === 'req.res') req['res'] = response;
      else shared[where] = response;
      // No server listens here; this is the part of its adapter that is used.
      const host = app?.get(HttpAdapterHost) as HttpAdapterHost;
      const setHeader = (_: unknown, name: string, value: string) => (headers[name] = value);
      jest.spyOn(host, 'httpAdapter', 'get').mockReturnValue({ setHeader } as never);
      const field = () => contextOf('graphql', [undefined, {}, shared, { path: {} }]);
      await call(field());
      expect(headers['RateLimit']).toBe('"address";r=1;t=60, "all";r=4;t=60, "late";r=4;t=60');
      const twice = field();
      await guard.canActivate(twice);
      await guard.canActivate(twice);
      expect(headers['RateLimit']).toBe('"address";r=0;t=60, "all";r=3;t=60, "late";r=4;t=60');
      await expect(guard.canActivate(field())).rejects.toThrow(RateLimitExceededException);
      expect(headers['Retry-After']).toBe('60');
    },
  );

  it('GraphQL: reads the context of a reference resolver, which gets no arguments', async () => {
    const { guard } = await start();
    const context = contextOf('graphql', [{ id: 1 }, { req: { ip: '203.0.113.7' } }, { path: {} }]);
    await guard.canActivate(context);
    const { decisions } = rateLimitOf(context) ?? { decisions: [] };
    expect(decisions).toContainEqual(expect.objectContaining({ limit: 'address', remaining: 1 }));
  });

  it.each([
    ['references', [{ id: 1 }]],
    ['values whose type is resolved', [{ id: 1 }, { toConfig: () => ({}) }]],
  ])('GraphQL: %s share the info of a field, and each is a call', async (_, [value, ...type]) => {
    const { call, guard } = await start();
    const shared = { req: { ip: '203.0.113.7' } };
    const info = { path: { key: 'things' }, fieldNodes: [] };
    const context = () => contextOf('graphql', [value, shared, info, ...type]);
    for (const remaining of [1, 0]) {
      const one = context();
      await call(one);
      await guard.canActivate(one);
      const { decisions } = rateLimitOf(one) ?? { decisions: [] };
      expect(decisions.map((decision) => [decision.limit, decision.remaining])).toEqual([
        ['address', remaining],
        ['all', 3 + remaining],
        ['late', 3 + remaining],
      ]);
      expect(one.getArgs()[2]).toEqual(info);
    }
    await expect(guard.canActivate(context())).rejects.toThrow(RateLimitExceededException);
  });

  it.each([
    ['an event', {}, RateLimitExceededException],
    ['an event of Kafka, which delivers it again', { getConsumer: () => undefined }, RpcException],
  ])('microservices: what refuses %s', async (_, rpcContext, error) => {
    const { guard } = await start();
    const context = () => contextOf('rpc', ['data', { ...rpcContext }], 'event');
    for (let event = 0; event < 5; event++) await guard.canActivate(context());
    await expect(guard.canActivate(context())).rejects.toThrow(error);
  });

  it('keeps two handlers of one request apart', async () => {
    const { guard, service } = await start();
    const req = { ip: '203.0.113.7', headers: {} };
    await guard.canActivate(contextOf('http', [req, {}]));
    await guard.canActivate(contextOf('http', [req, {}], 'other'));
    await guard.canActivate(contextOf('http', [req, {}]));
    expect(rateLimitOf(contextOf('http', [req, {}]))?.decisions).toHaveLength(2);
    expect(rateLimitOf(contextOf('http', [req, {}], 'other'))?.decisions).toHaveLength(1);
    expect(await service.for(byAll).peek('global')).toMatchObject({ remaining: 5 });
  });

  it('sets no header once the response is on its way', async () => {
    const { guard } = await start();
    const setHeader = jest.fn();
    const host = app?.get(HttpAdapterHost) as HttpAdapterHost;
    jest.spyOn(host, 'httpAdapter', 'get').mockReturnValue({ setHeader } as never);
    for (const gone of [{ headersSent: true }, { sent: true }]) {
      const response = { ...gone, header: () => undefined, setHeader: () => undefined };
      await guard.canActivate(contextOf('http', [{ ip: '203.0.113.7' }, response]));
    }
    expect(setHeader).not.toHaveBeenCalled();
  });

  describe('a store that fails', () => {
    it('is a 503 with Retry-After that keeps the cause', async () => {
      jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
      const cause = new RateLimitStoreError('down');
      const { guard } = await start({ store: failing(cause), onStoreError: 'deny' });
      const setHeader = jest.fn();
      const host = app?.get(HttpAdapterHost) as HttpAdapterHost;
      jest.spyOn(host, 'httpAdapter', 'get').mockReturnValue({ setHeader } as never);
      const response = { header: () => undefined };
      const error: unknown = await Promise.resolve(
        guard.canActivate(contextOf('http', [{ ip: '203.0.113.7' }, response])),
      ).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(HttpException);
      expect(error).toMatchObject({ status: 503, cause });
      expect(setHeader.mock.calls).toEqual([[response, 'Retry-After', '1']]);
    });

    it('lets each limit do what it says', async () => {
      jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
      const { guard } = await start({ store: failing(new RateLimitStoreError('down')), onStoreError: 'local' });
      await expect(guard.canActivate(contextOf('http', [{ ip: '203.0.113.7' }, {}]))).resolves.toBe(true);
    });

    it('any other error is left as it is', async () => {
      const bug = new TypeError('a bug');
      const { guard } = await start({ store: failing(bug) });
      await expect(guard.canActivate(contextOf('http', [{ ip: '203.0.113.7' }, {}]))).rejects.toBe(bug);
    });
  });
});
