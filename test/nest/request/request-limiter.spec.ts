import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type CallHandler, Controller, HttpException } from '@nestjs/common';
import { firstValueFrom, of, Subject } from 'rxjs';
import { type LimitDefinition, RateLimit, type RequestReader, SkipRateLimit } from '../../../lib/index.js';
import { AppCalls, type AppLimits, callOf } from './app-calls.js';
import { Connection } from './connections.js';
import { SharedStore } from '../../support/redis/shared-store.js';

const one = { algo: 'fixed-window', rate: 1, interval: '1m', key: 'global' } as const;
const define = {
  one,
  late: { ...one, phase: 'authenticated' },
  places: { algo: 'concurrency', limit: 1, ttl: '1m', key: 'global' },
  slow: { ...one, key: async () => Promise.resolve('slow') },
  wrong: { ...one, key: async () => Promise.reject(new Error('no key')) },
  shaped: { algo: 'leaky-bucket', rate: 1, interval: '1m', queue: 1, key: 'global' },
} satisfies Record<string, LimitDefinition>;
const flood: LimitDefinition = { ...one, name: 'flood', phase: 'middleware' };

@Controller()
class Routes {
  @RateLimit('one')
  one() {}

  @RateLimit('late')
  late() {}

  @RateLimit('one', 'late')
  both() {}

  @RateLimit('places')
  places() {}

  @RateLimit('slow')
  slow() {}

  @RateLimit('wrong')
  wrong() {}

  @RateLimit('shaped')
  shaped() {}

  @RateLimit(() => null)
  chosen() {}

  free() {}

  @SkipRateLimit()
  skipping() {}
}

const address = '203.0.113.1';
const next: CallHandler = { handle: () => of('handled') };

/** The responses that hold something as long as their connection is open. */
let replies: Connection[] = [];

describe('the way of a request through its limits', () => {
  let app: AppCalls | undefined;
  afterEach(async () => {
    // What is held for an open connection is renewed.
    for (const reply of replies) reply.emit('close');
    replies = [];
    await app?.close();
  });

  const start = async (limits: AppLimits = {}) => (app = await AppCalls.start([Routes], { define, ...limits }));
  const call = (handler: keyof Routes, response: object = {}) =>
    callOf(Routes, handler, [{ ip: address, headers: {} }, response]);

  it('is no promise while nothing has to be waited for', async () => {
    const { limiter } = await start({ limits: [flood] });
    const [request, response] = [{ ip: address, headers: {} }, {}];
    expect(limiter.beforeRoute(request, response)).toBe(true);
    const context = callOf(Routes, 'both', [request, response]);
    expect([limiter.beforeGuards(context), limiter.afterGuards(context)]).toEqual([true, true]);
  });

  it.each(['one', 'slow'] as const)('rejects what limit %s refuses, and never throws it', async (handler) => {
    const { limiter } = await start();
    expect(await limiter.beforeGuards(call(handler))).toBe(true);
    const refused = limiter.beforeGuards(call(handler));
    await expect(refused).rejects.toMatchObject({ status: 429 });
  });

  it('rejects what a function of a limit rejects with', async () => {
    const { limiter } = await start();
    await expect(limiter.beforeGuards(call('wrong'))).rejects.toThrow('no key');
  });

  it('waits for a store that answers later, in each phase, and asks it once', async () => {
    const store = new SharedStore();
    const { limiter } = await start({ store, limits: [flood] });
    const [request, response] = [{ ip: address }, {}];
    const early = limiter.beforeRoute(request, response);
    expect(limiter.beforeRoute(request, response)).toBe(early);
    expect([early instanceof Promise, await early]).toEqual([true, true]);
    const context = callOf(Routes, 'both', [request, response]);
    const guard = limiter.beforeGuards(context);
    expect(limiter.beforeGuards(context)).toBe(guard);
    expect([guard instanceof Promise, await guard]).toEqual([true, true]);
    const last = limiter.afterGuards(context);
    expect(limiter.afterGuards(context)).toBe(last);
    expect([last instanceof Promise, await last]).toEqual([true, true]);
    const names = store.checks.map(({ entries }) => entries.map(({ limit }) => limit.name));
    expect(names).toEqual([['flood'], ['one'], ['late']]);
    await expect(limiter.beforeRoute({ ip: address }, {})).rejects.toMatchObject({ status: 429 });
  });

  it('leads no request where nothing is limited, and none after the guards that no guard has led before', async () => {
    const { limiter } = await start();
    const [request, response] = [{ ip: address, headers: {} }, {}];
    expect(limiter.beforeRoute(request, response)).toBe(true);
    const context = callOf(Routes, 'free', [request, response]);
    expect(limiter.beforeGuards(context)).toBe(true);
    expect(app?.limitedBy(context)).toBeUndefined();
    for (const handler of ['free', 'late'] as const) expect(limiter.afterGuards(call(handler))).toBe(true);
    expect(await app?.left('late', 'global')).toBe(1);
  });

  it('ends at once for denied addresses, in front of any route that does not skip all limits', async () => {
    const { limiter, service } = await start();
    await service.deny({ ip: address });
    for (const handler of ['one', 'free'] as const) {
      await expect(limiter.beforeGuards(call(handler))).rejects.toMatchObject({ status: 403 });
    }
    expect(limiter.beforeGuards(call('skipping'))).toBe(true);
    expect(limiter.beforeRoute({ ip: address }, {})).toBe(true);
    expect(await app?.left('one', 'global')).toBe(1);
  });

  it('ends at once for denied addresses in a middleware that has limits', async () => {
    const { limiter, service } = await start({ limits: [flood] });
    await service.deny({ ip: address });
    await expect(limiter.beforeRoute({ ip: address }, {})).rejects.toMatchObject({ status: 403 });
  });

  it('asks for denied addresses before the guards alone', async () => {
    const { limiter, service } = await start();
    const context = call('chosen');
    expect(limiter.beforeGuards(context)).toBe(true);
    await service.deny({ ip: address });
    expect(await limiter.afterGuards(context)).toBe(true);
  });

  it('hands on to the handler once the check after the guards allows it, at once where that is known', async () => {
    const { limiter } = await start();
    const context = call('late');
    await limiter.beforeGuards(context);
    const answer = limiter.intercept(context, next);
    expect(answer).not.toBeInstanceOf(Promise);
    expect(await firstValueFrom(await answer)).toBe('handled');
    const refused = call('late');
    await limiter.beforeGuards(refused);
    await expect(limiter.intercept(refused, next)).rejects.toMatchObject({ status: 429 });
    // No guard has seen this one.
    expect(await firstValueFrom(await limiter.intercept(call('places'), next))).toBe('handled');
  });

  it.each([
    ['a guard', [], 'places'],
    ['a middleware', [{ ...define.places, name: 'early', phase: 'middleware' }], 'free'],
  ] as [string, LimitDefinition[], keyof Routes][])(
    'holds the place that %s took until the response has ended and the handler is done',
    async (_, limits, handler) => {
      const { limiter } = await start({ limits });
      const take = async (reply: Connection) => {
        replies.push(reply);
        const request = { ip: address, headers: {} };
        await limiter.beforeRoute(request, reply);
        const context = callOf(Routes, handler, [request, reply]);
        await limiter.beforeGuards(context);
        return context;
      };
      const [reply, answer] = [new Connection(), new Subject<string>()];
      const handled = await limiter.intercept(await take(reply), { handle: () => answer });
      const running = firstValueFrom(handled);
      reply.emit('close');
      await expect(take(new Connection())).rejects.toMatchObject({ status: 429 });
      answer.next('done');
      answer.complete();
      expect(await running).toBe('done');
      expect((await take(new Connection())).getHandler()).toBe(Reflect.get(Routes.prototype, handler));
    },
  );

  it('refuses as its transport does where the reader fails, also if a middleware may hold something for the call', async () => {
    const unread = new Error('nobody is read');
    const reader: RequestReader = {
      transport: 'chat',
      read() {
        throw new HttpException('nobody is read', 400);
      },
      refuse: () => unread,
    };
    const early: LimitDefinition = { ...define.places, name: 'early', phase: 'middleware' };
    const { limiter } = await start({ limits: [early], readers: [reader] });
    const context = callOf(Routes, 'one', [{}], 'chat');
    await expect(limiter.beforeGuards(context)).rejects.toBe(unread);
  });

  it('goes on for a request that is held back once it may leave', async () => {
    const { limiter } = await start();
    expect(limiter.beforeGuards(call('shaped'))).toBe(true);
    jest.useFakeTimers();
    try {
      const held = limiter.beforeGuards(call('shaped'));
      await jest.advanceTimersByTimeAsync(60_000);
      expect(await held).toBe(true);
    } finally {
      jest.useRealTimers();
    }
  });

  it('ends for a request whose client leaves while it is held back, which gives its place back', async () => {
    const { limiter } = await start();
    expect(limiter.beforeGuards(call('shaped', new Connection()))).toBe(true);
    const reply = new Connection();
    const held = limiter.beforeGuards(call('shaped', reply));
    expect(held).toBeInstanceOf(Promise);
    await expect(limiter.beforeGuards(call('shaped', new Connection()))).rejects.toMatchObject({ status: 429 });
    reply.emit('close');
    await expect(held).rejects.toMatchObject({ status: 499 });
    const again = new Connection();
    const other = limiter.beforeGuards(call('shaped', again));
    again.emit('close');
    await expect(other).rejects.toMatchObject({ status: 499 });
  });
});
