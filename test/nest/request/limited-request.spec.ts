import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type ExecutionContext, HttpException } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { Lease, MemoryStore } from '../../../lib/index.js';
import type { StoreCheck } from '../../../lib/nest/request/charges.js';
import { type GuardContinuation, LimitedRequest } from '../../../lib/nest/request/limited-request.js';
import { RouteRules } from '../../../lib/app/rules/route-rules.js';
import type { Rule } from '../../../lib/app/rules/rule.js';
import { createTestingStore } from '../../../lib/testing/index.js';
import { httpReader } from '../../../lib/app/transports/read-request.js';
import { ruleOf } from '../../support/limits/rules.js';
import { Connection } from './connections.js';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { inspect } from 'node:util';
import { keepRequest, requestOfCall } from '../../../lib/nest/request/requests.js';
import { lastValueFrom, type Observable, Subject } from 'rxjs';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { WaitQueues } from '../../../lib/app/waiting/wait-queues.js';
import { clientClosedRequest } from '../../../lib/nest/request/call-run.js';
import { RequestCompletion } from '../../../lib/nest/request/request-completion.js';
import { watchHandler } from '../../../lib/nest/request/handler-run.js';
import { layerOf } from '../../../lib/storage/stores/layers/store-layer.js';
import { nodeResponse } from '../../support/http/responses.js';

describe('the request of one call', () => {
  class Routes {
    get() {}
  }
  const handler = Reflect.get(Routes.prototype, 'get');

  const window = { algo: 'fixed-window', rate: 5, interval: '1h' } as const;
  const [one, two, three] = ['one', 'two', 'three'].map((name) => ruleOf(window, { name })) as [Rule, Rule, Rule];

  const later: GuardContinuation = {
    afterGuards: () => true,
    intercept: (_, next) => next.handle(),
  };

  const functions = { ask: () => undefined, rules: () => [] };

  function requestOf(given: object = {}, response: object = {}, hasFunctions = false): LimitedRequest {
    const context = new ExecutionContextHost([given, response], Routes, handler) as ExecutionContext;
    const specs = hasFunctions ? [functions as never] : [one, two, three];
    const plan = new RouteRules([{ location: 'test', skips: [], specs }], false);
    return new LimitedRequest(context, Routes, handler, httpReader, plan, later);
  }

  const names = (rules: readonly { readonly name: string }[]) => rules.map(({ name }) => name);
  const charged = ({ charges }: LimitedRequest) => charges.map(({ rule, units }) => [rule.name, units]);
  const decided = ({ decisions }: LimitedRequest) => decisions.map(({ limit, remaining }) => [limit, remaining]);

  describe('a request', () => {
    let store: MemoryStore;
    beforeEach(() => {
      store = createTestingStore();
    });
    afterEach(() => store.close());

    async function check(rules: readonly Rule[], cost = 1): Promise<StoreCheck> {
      const entries = rules.map((rule) => ({ rule, limit: rule.limit, identity: 'global', cost }));
      const [decisions] = await store.check([{ entries }]);
      return { entries, decisions: decisions!, store, refundable: true };
    }

    /** Checks a request against some rules, as a phase does. */
    async function checked(request: LimitedRequest, rules: readonly Rule[], cost?: number): Promise<void> {
      request.apply(rules);
      const made = await check(rules, cost);
      request.record(made);
      request.charge(made);
    }

    it('has nothing before it is checked', () => {
      const request = requestOf();
      expect(request.result).toBeUndefined();
      expect([request.applicable, request.entries, request.decisions, request.leases]).toEqual([[], [], [], []]);
      expect([request.charges, request.limits]).toEqual([[], []]);
    });

    it('sums up the decisions of all checks', async () => {
      const request = requestOf();
      const first = request.record(await check([one]));
      expect(request.result).toBe(first);
      expect(first).toMatchObject({ allowed: true, tightest: { limit: 'one', remaining: 4 } });
      const both = request.record(await check([two], 3));
      expect(both).toMatchObject({ decisions: [{ limit: 'one' }, { limit: 'two' }], tightest: { limit: 'two' } });
      expect(request.result).toBe(both);
      expect(names(request.limits)).toEqual(['one', 'two']);
    });

    it('has the lists of its only check as they are, and makes none', async () => {
      const request = requestOf();
      const rules = [one, two];
      const only = await check(rules);
      request.apply(rules);
      request.record(only);
      expect(request.applicable).toBe(rules);
      expect(request.entries).toBe(only.entries);
      expect(request.decisions).toBe(only.decisions);
    });

    it('has the charges of all checks in their order, also of those that nobody asked for at first', async () => {
      const request = requestOf();
      const charges = request.charge(await check([one]));
      expect(charges).toMatchObject([{ rule: one }]);
      request.deferCharge(await check([two]));
      request.deferCharge(await check([three], 2));
      const all = [
        ['one', 1],
        ['two', 1],
        ['three', 2],
      ];
      expect(charged(request)).toEqual(all);
      expect(charged(request)).toEqual(all);
      // It is one list: what is settled of it stays so.
      expect(request.charges[0]).toBe(charges[0]);
    });

    it('has all that is held for it', () => {
      const request = requestOf();
      const [first, second] = ['first', 'second'].map((id) => ({ id })) as never[];
      request.hold([first!]);
      request.hold([second!]);
      request.hold([]);
      expect(request.leases).toMatchObject([{ id: 'first' }, { id: 'second' }]);
    });

    it('is read anew with each phase, which may know more of it', () => {
      const given: Record<string, unknown> = {};
      const request = requestOf(given);
      const { parts, context } = request;
      expect(request.parts).toBe(parts);
      const next = new ExecutionContextHost([{ ...given, user: 'ann' }, {}], Routes, handler) as ExecutionContext;
      expect(request.begin(next)).toBe(request);
      expect(request.context).toBe(next);
      expect(request.context).not.toBe(context);
      expect(request.parts.request).toEqual({ user: 'ann' });
    });

    it('is closed once its client has left, or its address is lost', () => {
      const open = { remoteAddress: '203.0.113.7', localAddress: '203.0.113.1' };
      expect(requestOf({ socket: open }, new Connection()).isClosed).toBe(false);
      const left = new Connection();
      left.leave();
      expect(requestOf({ socket: open }, left).isClosed).toBe(true);
      expect(requestOf({ socket: { localAddress: '203.0.113.1' } }, new Connection()).isClosed).toBe(true);
      expect(requestOf(undefined, undefined).isClosed).toBe(false);
    });

    it('of which nobody knows is not closed', () => {
      const context = new ExecutionContextHost([], Routes, handler) as ExecutionContext;
      const request = new LimitedRequest(context, Routes, handler, httpReader, requestOf().routeRules, later);
      expect(request.isClosed).toBe(false);
      expect(request.connection).toBeUndefined();
    });

    it('may be given other limits until the functions of its route have been asked', () => {
      const request = requestOf({}, {}, true);
      expect(request.mayReplaceLimits).toBe(true);
      request.rules = [];
      expect(request.mayReplaceLimits).toBe(false);
      expect(requestOf().mayReplaceLimits).toBe(false);
    });

    describe('takes over of a middleware', () => {
      it('the rules that hold for it, with their decisions and charges', async () => {
        const early = requestOf();
        await checked(early, [one, two], 2);
        const request = requestOf();
        expect(request.adopt(early, [two, three])).toEqual([three]);
        expect(request.earlier).toBe(early);
        expect(names(request.applicable)).toEqual(['two']);
        expect(names(request.limits)).toEqual(['two']);
        expect(decided(request)).toEqual([['two', 3]]);
        expect(charged(request)).toEqual([['two', 2]]);
        expect(request.result).toMatchObject({ decisions: [{ limit: 'two' }], tightest: { limit: 'two' } });
        // A charge is one, whoever settles it.
        expect(request.charges[0]).toBe(early.charges[1]);
      });

      it('no rule twice, also one that did not apply to it', async () => {
        const early = requestOf();
        early.apply([three]);
        const request = requestOf();
        expect(request.adopt(early, [one, three])).toEqual([one]);
        expect(request.limits).toEqual([]);
        expect(request.result).toBeUndefined();
      });

      it('what it adds to what was checked', async () => {
        const early = requestOf();
        await checked(early, [two]);
        const request = requestOf();
        await checked(request, [one]);
        expect(request.result!.decisions).toHaveLength(1);
        request.adopt(early, [two]);
        expect(names(request.applicable)).toEqual(['one', 'two']);
        expect(names(request.limits)).toEqual(['one', 'two']);
        expect(request.result).toMatchObject({ decisions: [{ limit: 'one' }, { limit: 'two' }] });
      });
    });

    describe('whose functions give other limits', () => {
      it('keeps what was checked of these, and gives the charges of the others back', async () => {
        const request = requestOf();
        await checked(request, [one, two, three], 2);
        expect(request.result!.decisions).toHaveLength(3);
        const dropped = request.keepOnly([two]);
        expect(names(dropped.map(({ rule }) => rule))).toEqual(['one', 'three']);
        expect(names(request.limits)).toEqual(['two']);
        expect(decided(request)).toEqual([['two', 3]]);
        expect(request.result).toMatchObject({ decisions: [{ limit: 'two' }] });
      });

      it('keeps the charges of a middleware, whose limits hold for every route', async () => {
        const early = requestOf();
        await checked(early, [one]);
        const request = requestOf();
        request.adopt(early, [one, two]);
        await checked(request, [two, three]);
        expect(names(request.keepOnly([three]).map(({ rule }) => rule))).toEqual(['two']);
        expect(names(request.limits)).toEqual(['three']);
      });
    });
  });
});

describe('the request of a call, by what stands for the call', () => {
  const known = (name: string) => ({ name }) as unknown as LimitedRequest;
  const message = () => new IncomingMessage(new Socket());

  const calls: [string, () => object][] = [
    ['a request of Node or Express', message],
    ['a request of Fastify', () => ({ raw: message() })],
    ['a frozen request', () => Object.freeze(message())],
    [
      'a request with frozen headers',
      () => Object.assign(message(), { rawHeaders: Object.freeze(['host', 'a.test']) }),
    ],
    ['a request without raw headers', () => Object.assign(message(), { rawHeaders: undefined })],
    ['an object that only looks like a request', () => ({ rawHeaders: Object.freeze([]) })],
    ['a list of arguments', () => [{}, {}]],
    ['any other object', () => ({ info: true })],
  ];

  describe('what is known of a call', () => {
    it.each(calls)('is found by %s, and by no other', (_, make) => {
      const [one, other] = [make(), make()];
      keepRequest(one, known('one'));
      expect(requestOfCall(one)).toMatchObject({ name: 'one' });
      expect(requestOfCall(other)).toBeUndefined();
      keepRequest(other, known('other'));
      expect([requestOfCall(one), requestOfCall(other)]).toMatchObject([{ name: 'one' }, { name: 'other' }]);
    });

    it.each(calls)('is neither shown nor copied with %s', (_, make) => {
      const call = make();
      const shown = inspect(call, { showHidden: false });
      keepRequest(call, known('secret'));
      expect(inspect(call)).toBe(shown);
      expect(requestOfCall({ ...call })).toBeUndefined();
    });

    const wrapped: [string, (request: object) => object][] = [
      ['an object that inherits from the request', (request) => Object.create(request) as object],
      ['a proxy of the request', (request) => new Proxy(request, {})],
    ];
    it.each(wrapped)('is kept apart from that of %s', (_, wrap) => {
      for (const make of [message, () => ({ raw: message() })]) {
        const request = make();
        const [early, late] = [wrap(request), wrap(request)];
        keepRequest(early, known('early'));
        expect(requestOfCall(request)).toBeUndefined();
        keepRequest(request, known('request'));
        expect(requestOfCall(late)).toBeUndefined();
        keepRequest(late, known('late'));
        expect([early, request, late].map((call) => requestOfCall(call))).toMatchObject([
          { name: 'early' },
          { name: 'request' },
          { name: 'late' },
        ]);
      }
    });

    it.each([
      ['Node or Express', message, (call: object) => call],
      ['Fastify', () => ({ raw: message() }), (call: object) => (call as { raw: object }).raw],
    ])('is found, where it has to be, after the raw headers of a request of %s were replaced', (_, make, rawOf) => {
      const call = make();
      keepRequest(call, known('one'), true);
      Object.assign(rawOf(call), { rawHeaders: ['host', 'a.test'] });
      expect(requestOfCall(call)).toMatchObject({ name: 'one' });
    });

    it.each([
      ['Node or Express', message, (call: object) => call],
      ['Fastify', () => ({ raw: message() }), (call: object) => (call as { raw: object }).raw],
    ])('goes with the raw headers of a request of %s, where it need not be found', (_, make, rawOf) => {
      const call = make();
      keepRequest(call, known('one'));
      Object.assign(rawOf(call), { rawHeaders: [] });
      expect(requestOfCall(call)).toBeUndefined();
    });

    it('is found after the request was frozen', () => {
      const request = message();
      keepRequest(request, known('one'));
      expect(requestOfCall(Object.freeze(request))).toMatchObject({ name: 'one' });
    });
  });
});

describe('the handler of a request', () => {
  class Controller {}
  const handler = () => {};
  const context = new ExecutionContextHost([], Controller, handler);
  const failure = new Error('failed');

  /** A request that has been checked, and whether its end matters: then all that is reported of it comes into a list. */
  function requestOf(connection?: ServerResponse | 'none') {
    const request = new LimitedRequest(
      context,
      Controller,
      handler,
      httpReader,
      {} as RouteRules,
      {} as GuardContinuation,
    );
    const ends: unknown[] = [];
    if (connection !== undefined) {
      request.completion = new RequestCompletion(context, connection === 'none' ? undefined : connection);
      request.completion.onOver(({ failed, aborted, error }) => ends.push({ failed, aborted, error }));
    }
    return { request, ends };
  }

  /** A handler that gives what comes of a subject, and counts how often it is called for. */
  function handling() {
    const handled = new Subject<unknown>();
    const next = { calls: 0, handle: (): Observable<unknown> => (next.calls++, handled) };
    return { handled, next };
  }

  describe('a handler that is watched', () => {
    it('tells all of its requests of its end once, that of guards and that of a middleware', () => {
      const [one, other] = [requestOf('none'), requestOf('none')];
      const { handled, next } = handling();
      watchHandler([one.request, other.request], context, next).subscribe();
      handled.next('answer');
      expect([one.ends, other.ends]).toEqual([[], []]);
      handled.complete();
      const ended = { failed: false, aborted: false, error: undefined };
      expect([one.ends, other.ends]).toEqual([[ended], [ended]]);
      expect(next.calls).toBe(1);
    });

    it('tells of its error, which is handed on', async () => {
      const { request, ends } = requestOf('none');
      const { handled, next } = handling();
      const answer = lastValueFrom(watchHandler([request], context, next));
      handled.error(failure);
      await expect(answer).rejects.toBe(failure);
      expect(ends).toEqual([{ failed: true, aborted: false, error: failure }]);
    });

    it('tells those requests alone whose end matters', () => {
      const [free, held] = [requestOf(), requestOf('none')];
      const { handled, next } = handling();
      watchHandler([free.request, held.request], context, next).subscribe();
      handled.complete();
      expect(held.ends).toHaveLength(1);
      expect(free.request.completion).toBeUndefined();
    });

    it('keeps a request whose client has left until it is done', () => {
      const response = nodeResponse();
      const { request, ends } = requestOf(response);
      const { handled, next } = handling();
      watchHandler([request], context, next).subscribe();
      response.emit('close');
      expect(ends).toEqual([]);
      handled.complete();
      expect(ends).toHaveLength(1);
    });

    it('is not watched where the end of no request matters', () => {
      const { handled, next } = handling();
      for (const requests of [[], [requestOf().request]]) expect(watchHandler(requests, context, next)).toBe(handled);
      expect(next.calls).toBe(2);
    });
  });

  describe('a request whose client has left', () => {
    it('is refused with 499', () => {
      const error = clientClosedRequest();
      expect(error).toBeInstanceOf(HttpException);
      expect([error.getStatus(), error.message]).toEqual([499, 'Client Closed Request']);
    });

    it.each([[['closed']], [['open', 'closed']], [['closed', 'open']]])(
      'does not reach its handler: %p',
      async (states) => {
        const responses = states.map(nodeResponse);
        const requests = responses.map((response) => requestOf(response).request);
        const { handled, next } = handling();
        const subscribed = jest.spyOn(handled, 'subscribe');
        const answer = watchHandler(requests, context, next);
        for (const [index, state] of states.entries()) if (state === 'closed') responses[index]?.emit('close');
        await expect(lastValueFrom(answer)).rejects.toMatchObject({ status: 499, message: 'Client Closed Request' });
        expect(subscribed).not.toHaveBeenCalled();
      },
    );
  });

  /** A lease of 30 seconds, and how often it has been renewed. */
  async function leaseIn(request: LimitedRequest) {
    const store = new MemoryStore();
    const limit = new CompiledLimit({ algo: 'concurrency', limit: 1, ttl: '30s' }, { location: 'test' });
    const held = { limit, identity: 'id', cost: 1 };
    const [decision] = await layerOf(store).decided({ entries: [held] });
    const [renew, refund] = [jest.spyOn(store, 'renew'), jest.spyOn(store, 'refund')];
    const lease = new Lease(
      { limit, identity: 'id', units: 1, ticket: decision!.ticket! },
      store,
      new WaitQueues(layerOf(store)),
    );
    request.hold([lease]);
    const close = async () => {
      await lease.release();
      await store.close();
    };
    return { renewals: () => renew.mock.calls.length, released: () => refund.mock.calls.length, close };
  }

  describe('what is held for a request', () => {
    afterEach(() => void jest.useRealTimers());

    it('is renewed while the handler runs, and not before it begins', async () => {
      jest.useFakeTimers();
      const { request } = requestOf('none');
      const lease = await leaseIn(request);
      const { next } = handling();
      const answer = watchHandler([request], context, next);
      await jest.advanceTimersByTimeAsync(30_000);
      expect(lease.renewals()).toBe(0);
      const listener = answer.subscribe();
      await jest.advanceTimersByTimeAsync(30_000);
      expect(lease.renewals()).toBe(3);
      listener.unsubscribe();
      await lease.close();
    });

    it('is renewed no more once it rests, and released when ttl is over', async () => {
      jest.useFakeTimers();
      const { request } = requestOf('none');
      const { renewals, released, close } = await leaseIn(request);
      const [lease] = request.leases;
      lease!.keepAlive().rest();
      lease!.keepAlive().rest();
      await jest.advanceTimersByTimeAsync(29_999);
      expect([renewals(), released()]).toEqual([0, 0]);
      await jest.advanceTimersByTimeAsync(1);
      expect([renewals(), released(), jest.getTimerCount()]).toEqual([0, 1, 0]);
      lease!.rest();
      expect(jest.getTimerCount()).toBe(0);
      await close();
    });
  });
});
