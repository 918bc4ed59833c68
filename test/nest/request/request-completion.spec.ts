import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  BadGatewayException,
  type ExecutionContext,
  GatewayTimeoutException,
  InternalServerErrorException,
  RequestTimeoutException,
  ServiceUnavailableException,
} from '@nestjs/common';
import type { Outcome } from '../../../lib/index.js';
import { CallRun } from '../../../lib/nest/request/call-run.js';
import { RequestCompletion } from '../../../lib/nest/request/request-completion.js';
import { Connection } from './connections.js';
import { TimeoutError } from 'rxjs';
import { leaseEndOf } from '../../../lib/nest/request/outcome.js';

describe('the completion of a request', () => {
  const contextOf = (type: string) => ({ getType: () => type }) as unknown as ExecutionContext;
  const failure = new Error('failed');
  const http = contextOf('http');
  const rpc = contextOf('rpc');
  const graphql = contextOf('graphql');

  /** What listeners were told, in its order. */
  let told: [event: 'end' | 'over', outcome: Outcome][];
  beforeEach(() => {
    told = [];
  });
  const events = () => told.map(([event]) => event);

  function completionOf(context: ExecutionContext, connection?: Connection): RequestCompletion {
    const completion = new RequestCompletion(context, connection);
    listen(completion);
    return completion;
  }

  function listen(completion: RequestCompletion): void {
    completion.onEnd((outcome) => told.push(['end', outcome]));
    completion.onOver((outcome) => told.push(['over', outcome]));
  }

  /** What is told of a request whose response ends so. */
  function outcomeOf(context: ExecutionContext, end: (connection: Connection, completion: RequestCompletion) => void) {
    const connection = new Connection();
    const completion = completionOf(context, connection);
    end(connection, completion);
    return told[0]![1];
  }

  describe('the end of a response', () => {
    it.each([
      [200, false],
      [399, false],
      [400, true],
      [500, true],
    ])('%d over HTTP: failed is %s', (statusCode, failed) => {
      const outcome = outcomeOf(http, (connection) => connection.answer(statusCode));
      expect(outcome).toEqual({ failed, statusCode, error: undefined, aborted: false, context: http });
    });

    it('has the error of the handler, and the status of the response', () => {
      const error = new Error('a bug');
      const outcome = outcomeOf(http, (connection, completion) => {
        completion.handlerEnded({ failed: true, error });
        completion.handlerEnded({ failed: true, error: new Error('another') });
        connection.answer(200);
      });
      expect(outcome).toMatchObject({ failed: false, statusCode: 200 });
      expect(outcome.error).toBe(error);
    });

    it.each([
      ['a handler that succeeded', { failed: false }, false],
      ['a handler that failed', { failed: true }, true],
      ['no handler, as a guard refused', undefined, true],
    ] as const)('is that of %s over GraphQL, where each answer is 200', (_, end, failed) => {
      const outcome = outcomeOf(graphql, (connection, completion) => {
        if (end !== undefined) completion.handlerEnded(end);
        connection.answer(200);
      });
      expect(outcome).toMatchObject({ failed, aborted: false });
    });

    it('is a failure over HTTP if its status is not known', () => {
      const outcome = outcomeOf(http, (connection) => {
        connection.leave({ statusCode: undefined, writableFinished: true, writableEnded: true });
      });
      expect(outcome).toMatchObject({ failed: true, aborted: false, statusCode: undefined });
    });
  });

  describe('a client that leaves', () => {
    it.each([
      ['before there is an answer', {}],
      ['in the midst of a good answer', { headersSent: true }],
      ['before a bad answer is on its way', { statusCode: 404 }],
      ['while the last of the answer is on its way', { headersSent: true, writableEnded: true }],
      ['by a reset of its stream of HTTP/2', { headersSent: true, writableFinished: true }],
    ])('%s aborts the request, which fails', (_, state) => {
      const outcome = outcomeOf(http, (connection) => connection.leave(state));
      expect(outcome).toMatchObject({ failed: true, aborted: true });
    });

    it('in the midst of a bad answer aborts nothing: the request had failed', () => {
      for (const statusCode of [400, 404, undefined]) {
        told = [];
        const outcome = outcomeOf(http, (connection) => connection.leave({ statusCode, headersSent: true }));
        expect(outcome).toMatchObject({ failed: true, aborted: false });
      }
    });

    it('aborts a call of GraphQL, whatever the status of its response', () => {
      const outcome = outcomeOf(graphql, (connection) => connection.leave({ statusCode: 500, headersSent: true }));
      expect(outcome).toMatchObject({ failed: true, aborted: true });
    });

    it('aborts nothing where a response does not say that it was cut off', () => {
      const outcome = outcomeOf(http, (connection) => {
        connection.leave({ writableFinished: undefined, writableEnded: undefined });
      });
      expect(outcome).toMatchObject({ failed: false, aborted: false });
    });

    it('has ended a request that begins later', async () => {
      const connection = new Connection();
      connection.leave();
      const completion = completionOf(http, connection);
      expect(events()).toEqual([]);
      await turn();
      expect(events()).toEqual(['end', 'over']);
      expect(told[0]![1]).toMatchObject({ aborted: true });
      expect(completion.wasClosed).toBe(true);
    });
  });

  describe('the end of a handler', () => {
    it.each([{ failed: false }, { failed: true, error: new Error('a bug') }, { failed: true, aborted: true }])(
      'is that of a request without a connection: %j',
      (end) => {
        completionOf(rpc).handlerStarted()(end);
        expect(told).toEqual([
          ['end', { aborted: false, ...end, context: rpc }],
          ['over', { aborted: false, ...end, context: rpc }],
        ]);
      },
    );

    it('is told once', () => {
      const completion = completionOf(rpc);
      completion.handlerEnded({ failed: true });
      completion.handlerEnded({ failed: false });
      expect(events()).toEqual(['end', 'over']);
      expect(told[1]![1].failed).toBe(true);
    });

    it('counts once: a second report of one handler ends no other', () => {
      const connection = new Connection();
      const completion = completionOf(http, connection);
      const first = completion.handlerStarted();
      const second = completion.handlerStarted();
      connection.answer();
      first({ failed: false });
      first({ failed: false });
      expect(events()).toEqual(['end']);
      second({ failed: false });
      expect(events()).toEqual(['end', 'over']);
    });

    it('is waited for by a request whose client has left', () => {
      const connection = new Connection();
      const completion = completionOf(http, connection);
      const end = completion.handlerStarted();
      connection.leave();
      expect(events()).toEqual(['end']);
      end({ failed: false });
      expect(events()).toEqual(['end', 'over']);
      // It is told how the request ended, not the handler.
      expect(told[1]![1]).toBe(told[0]![1]);
    });

    it('is no end of the request while its answer is on its way', () => {
      const connection = new Connection();
      const completion = completionOf(http, connection);
      completion.handlerStarted()({ failed: false });
      expect(events()).toEqual([]);
      connection.answer();
      expect(events()).toEqual(['end', 'over']);
    });
  });

  describe('what is at work of a call', () => {
    it('is waited for by a request whose client has left', () => {
      const connection = new Connection();
      const completion = completionOf(http, connection);
      const run = new CallRun();
      completion.follow(run);
      completion.follow(run);
      const end = run.begin();
      connection.leave();
      expect(events()).toEqual(['end']);
      end();
      expect(events()).toEqual(['end', 'over']);
    });

    it('ends a call without a connection once a guard refuses it', async () => {
      const completion = completionOf(rpc);
      const run = new CallRun();
      completion.follow(run);
      run.guards(Promise.reject(failure));
      await turn();
      expect(events()).toEqual(['end', 'over']);
      expect(told[0]![1]).toMatchObject({ failed: true, aborted: false, error: failure });
    });

    it('is told of once only that is left which may never end', () => {
      const connection = new Connection();
      const completion = completionOf(http, connection);
      const run = new CallRun();
      const listener = jest.fn();
      completion.follow(run);
      completion.onLingering(listener);
      const [part, lingering] = [run.begin(), run.linger()];
      part();
      expect(listener).not.toHaveBeenCalled();
      connection.leave();
      expect(listener).toHaveBeenCalledTimes(1);
      expect(events()).toEqual(['end']);
      lingering();
      expect(events()).toEqual(['end', 'over']);
    });

    it.each<[string, (run: CallRun, completion: RequestCompletion) => void]>([
      ['a guard', (run) => void run.begin()],
      ['a handler', (_, completion) => void completion.handlerStarted()],
    ])('lingers once %s has been at work for ten minutes without a client', (_, begin) => {
      jest.useFakeTimers();
      const connection = new Connection();
      const completion = completionOf(http, connection);
      const run = new CallRun();
      const listener = jest.fn();
      completion.follow(run);
      completion.onLingering(listener);
      begin(run, completion);
      connection.leave();
      jest.advanceTimersByTime(599_999);
      expect(listener).not.toHaveBeenCalled();
      jest.advanceTimersByTime(1);
      expect(listener).toHaveBeenCalledTimes(1);
    });

    it('leaves no timer once it is over', () => {
      jest.useFakeTimers();
      const connection = new Connection();
      const completion = completionOf(http, connection);
      const end = completion.handlerStarted();
      connection.leave();
      expect(jest.getTimerCount()).toBe(1);
      end({ failed: false });
      expect(jest.getTimerCount()).toBe(0);
    });
  });

  describe('a listener', () => {
    it('is told at once of a request that is over', () => {
      const connection = new Connection();
      const completion = new RequestCompletion(http, connection);
      connection.answer(404);
      listen(completion);
      expect(told).toMatchObject([
        ['end', { statusCode: 404 }],
        ['over', { statusCode: 404 }],
      ]);
      expect(told[1]![1]).toBe(told[0]![1]);
    });

    it('is told of the end at once, and that it is over once no handler runs', () => {
      const connection = new Connection();
      const completion = new RequestCompletion(http, connection);
      const end = completion.handlerStarted();
      connection.leave();
      listen(completion);
      expect(events()).toEqual(['end']);
      end({ failed: false });
      expect(events()).toEqual(['end', 'over']);
    });
  });

  describe('a response', () => {
    it('was closed once it has ended', () => {
      const connection = new Connection();
      const completion = completionOf(http, connection);
      completion.handlerEnded({ failed: false });
      expect(completion.wasClosed).toBe(false);
      connection.answer();
      expect(completion.wasClosed).toBe(true);
    });

    it('was not closed where there is none', () => {
      const completion = completionOf(rpc);
      completion.handlerEnded({ failed: false });
      expect(completion.wasClosed).toBe(false);
    });

    it('refuses nothing by itself', () => {
      expect(completionOf(rpc).wasRefused).toBe(false);
    });
  });
});

describe('what a lease is told of it', () => {
  const failed = { failed: true, aborted: false, context: undefined as never };
  const ended = (outcome: Partial<Outcome>) => leaseEndOf({ ...failed, ...outcome });

  function fail(): never {
    throw new Error('nobody can tell');
  }

  function timeoutWithout(member: string): TimeoutError {
    return Object.assign(new TimeoutError(), { [member]: () => fail() });
  }

  describe('the end of a request says', () => {
    it.each([
      [{ failed: false, statusCode: 200 }, 'completed'],
      [{ failed: false, statusCode: 503 }, 'completed'],
      [{ aborted: true }, 'aborted'],
      [{ aborted: true, failed: false }, 'aborted'],
      [{ aborted: true, statusCode: 503 }, 'aborted'],
      [{}, 'ignored'],
      [{ statusCode: 404 }, 'ignored'],
      [{ statusCode: 429 }, 'ignored'],
      [{ statusCode: 500 }, 'ignored'],
      [{ statusCode: 408 }, 'dropped'],
      [{ statusCode: 503 }, 'dropped'],
      [{ statusCode: 504 }, 'dropped'],
    ] as const)('of %j that it was %s', (outcome, said) => expect(ended(outcome)).toBe(said));
  });

  describe('the error of a handler says', () => {
    it.each([
      ['of a bug, nothing', new TypeError('bug'), 'ignored'],
      ['of an answer that is no overload, nothing', new InternalServerErrorException(), 'ignored'],
      ['of what is farther on and broken, nothing', new BadGatewayException(), 'ignored'],
      ['of a time-out of its own that work was dropped', new RequestTimeoutException(), 'dropped'],
      ['of an overload that work was dropped', new ServiceUnavailableException(), 'dropped'],
      ['of a time-out farther on that work was dropped', new GatewayTimeoutException(), 'dropped'],
      ['of a signal that ran out that work was dropped', new DOMException('late', 'TimeoutError'), 'dropped'],
      ['of a time-out of RxJS that work was dropped', new TimeoutError(), 'dropped'],
      ['of a signal that somebody ended, nothing', new DOMException('left', 'AbortError'), 'ignored'],
      ['nothing, if it is no error', { name: 'TimeoutError' }, 'ignored'],
      ['nothing, if it is no object', 'TimeoutError', 'ignored'],
      ['nothing, if it is null', null, 'ignored'],
      ['nothing, if it has no status', { getStatus: undefined }, 'ignored'],
      ['nothing, if its status is no function', { getStatus: 503 }, 'ignored'],
      ['of a time-out whose status cannot be told that work was dropped', timeoutWithout('getStatus'), 'dropped'],
      ['nothing, if its status cannot be told', { getStatus: () => fail() }, 'ignored'],
      [
        'nothing, if its name cannot be told',
        Object.defineProperty(new Error(), 'name', { get: () => fail() }),
        'ignored',
      ],
    ] as const)('%s', (_, error, said) => expect(ended({ error })).toBe(said));

    it('less than the status that was answered', () => {
      expect(ended({ statusCode: 500, error: new GatewayTimeoutException() })).toBe('ignored');
      expect(ended({ statusCode: 504, error: new InternalServerErrorException() })).toBe('dropped');
    });

    it('that work was dropped by a time limit, whatever is answered', () => {
      expect(ended({ statusCode: 500, error: new TimeoutError() })).toBe('dropped');
    });
  });
});
