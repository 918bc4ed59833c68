import { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { HttpException } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { lastValueFrom, type Observable, Subject } from 'rxjs';
import { Lease, MemoryStore } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { WaitQueues } from '../../../lib/app/waiting/wait-queues.js';
import { clientClosedRequest } from '../../../lib/nest/request/client-closed-request.js';
import type { GuardContinuation } from '../../../lib/nest/request/limited-request.js';
import { LimitedRequest } from '../../../lib/nest/request/limited-request.js';
import { RequestCompletion } from '../../../lib/nest/request/request-completion.js';
import { watchHandler } from '../../../lib/nest/request/watch-handler.js';
import type { RouteRules } from '../../../lib/app/rules/route-rules.js';
import { decided } from '../../../lib/storage/stores/decide.js';
import { httpReader } from '../../../lib/app/transports/http.reader.js';
import { nodeResponse } from '../../support/http/responses.js';

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
  const [decision] = await decided(store, { entries: [held] });
  const [renew, refund] = [jest.spyOn(store, 'renew'), jest.spyOn(store, 'refund')];
  const lease = new Lease({ limit, identity: 'id', units: 1, ticket: decision!.ticket! }, store, new WaitQueues(store));
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
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
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
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
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
