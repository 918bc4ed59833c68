import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext } from '@nestjs/common';
import { type LimitDefinition, RateLimit } from '../../../lib/index.js';
import { findEarly, Requests, searchRequest } from '../../../lib/nest/request/requests.js';
import { AppCalls, callOf } from './app-calls.js';

const ten = { algo: 'fixed-window', rate: 10, interval: '1m', key: 'global' } as const;
const define = { ten, late: { ...ten, phase: 'authenticated' } } satisfies Record<string, LimitDefinition>;

@Controller('base')
class Base {
  @RateLimit('ten')
  first() {}

  @RateLimit('ten')
  second() {}

  @RateLimit('ten')
  third() {}

  @RateLimit('late')
  late() {}
}

/** Has the same handlers. */
@Controller('derived')
class Derived extends Base {}

/** Requests that stand for a call, in the forms of both frameworks. */
const forms: [string, () => object][] = [
  ['Express', () => Object.assign(new IncomingMessage(new Socket()), { ip: '203.0.113.1' })],
  ['Fastify', () => ({ raw: new IncomingMessage(new Socket()), ip: '203.0.113.1', headers: {} })],
];

describe('the request of a call', () => {
  let app: AppCalls | undefined;
  afterEach(() => app?.close());

  const start = async (limits: LimitDefinition[] = []) => {
    const { limiter, module } = (app = await AppCalls.start([Base, Derived], { define, limits }));
    const requests = module.get(Requests, { strict: false });
    const left = () => app!.left('ten', 'global');
    const seen = async (context: ExecutionContext) => {
      await limiter.beforeGuards(context);
      return context;
    };
    return { limiter, requests, left, seen };
  };

  it.each(forms)('is one for each handler and each class that %s hands it to', async (_, make) => {
    const { requests, left, seen } = await start();
    const args = [make(), {}];
    const ways: [typeof Base, keyof Base][] = [
      [Base, 'first'],
      [Base, 'second'],
      [Derived, 'first'],
      [Base, 'third'],
    ];
    const contexts = () => ways.map(([type, handler]) => callOf(type, handler, args));
    for (const context of [...contexts(), ...contexts()]) await seen(context);
    // The second time all are known.
    expect(await left()).toBe(6);
    for (const context of contexts()) {
      const found = requests.find(context);
      expect([found?.type, found?.handler]).toEqual([context.getClass(), context.getHandler()]);
      expect(searchRequest(context)).toBe(found);
    }
    expect(requests.find(callOf(Derived, 'second', args))).toBeUndefined();
    expect(searchRequest(callOf(Derived, 'second', args))).toBeUndefined();
    expect(requests.find(callOf(Base, 'first', [make(), {}]))).toBeUndefined();
  });

  it('is found by the context of a message, where parameters are given another list of the arguments', async () => {
    const { requests, seen } = await start();
    const shared = {};
    const message = await seen(callOf(Base, 'first', ['data', shared], 'rpc'));
    const made = requests.find(message);
    expect(made?.handler).toBe(message.getHandler());
    expect(searchRequest(callOf(Base, 'first', ['data', shared], 'rpc'))).toBe(made);
    const others = [
      callOf(Base, 'second', ['data', shared], 'rpc'),
      callOf(Derived, 'first', ['data', shared], 'rpc'),
      callOf(Base, 'first', ['data', {}], 'rpc'),
    ];
    for (const other of others) expect(searchRequest(other)).toBeUndefined();
  });

  it('is that of the last message that came with a context', async () => {
    const { requests, seen } = await start();
    const shared = {};
    await seen(callOf(Base, 'first', ['one', shared], 'rpc'));
    const last = await seen(callOf(Base, 'first', ['other', shared], 'rpc'));
    expect(searchRequest(callOf(Base, 'first', ['other', shared], 'rpc'))).toBe(requests.find(last));
  });

  it.each([[['data']], [['data', null]], [['data', 'text']], [[null, undefined]], [[]]])(
    'is none for other arguments than those of a call: %j',
    async (args) => {
      const { seen } = await start();
      await seen(callOf(Base, 'first', args, 'rpc'));
      expect(searchRequest(callOf(Base, 'first', args, 'rpc'))).toBeUndefined();
    },
  );

  it('is found after the guards where a guard has replaced the raw headers', async () => {
    const { limiter } = await start();
    const request = Object.assign(new IncomingMessage(new Socket()), { ip: '203.0.113.1' });
    const context = callOf(Base, 'late', [request, {}]);
    expect(limiter.beforeGuards(context)).toBe(true);
    request.rawHeaders = [];
    await limiter.afterGuards(context);
    expect(await app?.left('late', 'global')).toBe(9);
  });

  it.each(forms)('of a middleware over %s is one, which guards find', async (_, make) => {
    const { limiter, requests, left } = await start([{ ...ten, name: 'flood', phase: 'middleware' }]);
    const request = make();
    const raw = (request as { raw?: object }).raw ?? request;
    const response = {};
    expect([limiter.beforeRoute(raw, response), limiter.beforeRoute(raw, response)]).toEqual([true, true]);
    const early = requests.findEarly(callOf(Base, 'first', [request, response]));
    expect([early?.routeRules.middleware.length, early?.decisions]).toMatchObject([1, [{ remaining: 9 }]]);
    expect(findEarly(request)).toBe(early);
    for (const other of [undefined, make()]) expect(findEarly(other)).toBeUndefined();
    expect(requests.findEarly(callOf(Base, 'first', ['data', {}], 'rpc'))).toBeUndefined();
    await limiter.beforeGuards(callOf(Base, 'first', [request, response]));
    const found = requests.find(callOf(Base, 'first', [request, response]));
    expect(found?.result?.decisions.map(({ limit, remaining }) => [limit, remaining])).toEqual([
      ['flood', 9],
      ['ten', 9],
    ]);
    expect(await left()).toBe(9);
  });
});
