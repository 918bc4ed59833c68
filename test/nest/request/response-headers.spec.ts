import { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { ExpressAdapter } from '@nestjs/platform-express';
import type { Decision, HeaderOption, RateLimitModuleOptions } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { readSettings } from '../../../lib/app/config/settings.js';
import { toCheckResult } from '../../../lib/engine/limits/decision.js';
import { ResponseHeaders } from '../../../lib/nest/request/response-headers.js';
import { nodeResponse } from '../../support/http/responses.js';
import { Socket } from 'node:net';
import { FastifyAdapter } from '@nestjs/platform-fastify';

describe('headers of decisions', () => {
  const limit = new CompiledLimit(
    { algo: 'fixed-window', rate: 5, interval: '1m' },
    { location: 'test', name: 'five', blockFor: 0 },
  );
  const allowed: Decision = {
    allowed: true,
    limit: 'five',
    quota: 5,
    remaining: 4,
    retryAfterMs: 0,
    resetAfterMs: 60_000,
    delayMs: 0,
    source: 'memory',
  };
  const refused: Decision = { ...allowed, allowed: false, remaining: 0, retryAfterMs: 30_000 };
  const never: Decision = { ...refused, retryAfterMs: Infinity };

  const EXPOSED = 'access-control-expose-headers';
  const context = new ExecutionContextHost([]);
  const CORS = { 'access-control-allow-origin': '*' };

  /** A server that apps of Express run on, which does not listen. */
  function host(): HttpAdapterHost {
    const made = new HttpAdapterHost();
    made.httpAdapter = new ExpressAdapter();
    return made;
  }

  function headersOf(options: RateLimitModuleOptions, random = () => 0, adapterHost = host()) {
    const headers = new ResponseHeaders(readSettings(options), adapterHost, random);
    return (response: object | undefined, decision: Decision, sharesResponse = false) =>
      headers.describe({ response, sharesResponse }, toCheckResult([decision], [{ limit }]), [{ limit }], context);
  }

  /** A response of Node with some headers. */
  function responseWith(headers: Record<string, string | string[]> = {}): ServerResponse {
    const response = nodeResponse();
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    return response;
  }

  /** The headers of a response of Node that describe a decision. */
  function described(
    options: RateLimitModuleOptions,
    decision: Decision,
    before: Record<string, string | string[]> = {},
  ) {
    const response = responseWith(before);
    headersOf(options)(response, decision);
    return response.getHeaders();
  }

  const spyOnErrors = () => jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
  const says = (index: number) =>
    `the function 'headers[${index}]' failed, so the responses lack the headers that it would have set`;
  const fails = () => {
    throw new Error('broken');
  };

  afterEach(() => void jest.restoreAllMocks());

  describe('the headers of a response', () => {
    const legacy = { 'x-ratelimit-limit': '5', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '30' };

    it('are those of each format, and Retry-After of a refusal', () => {
      const formats: HeaderOption = ['legacy', (_, limits) => ({ 'X-Own': limits.map(({ name }) => name).join() })];
      expect(described({ headers: formats }, refused)).toEqual({ ...legacy, 'x-own': 'five', 'retry-after': '30' });
      expect(described({ headers: false }, refused)).toEqual({ 'retry-after': '30' });
      expect(described({ headers: false }, allowed)).toEqual({});
    });

    it('are for nobody where a call has no response', () => {
      const describeCall = headersOf({});
      for (const shares of [false, true]) expect(() => describeCall(undefined, refused, shares)).not.toThrow();
    });

    it('describe all calls that one response answers', () => {
      const describeCall = headersOf({});
      const response = responseWith();
      describeCall(response, { ...allowed, remaining: 2 }, true);
      describeCall(response, { ...allowed, remaining: 3 }, true);
      expect(response.getHeader('RateLimit')).toBe('"five";r=2;t=60');
      describeCall(response, { ...allowed, remaining: 3 });
      expect(response.getHeader('RateLimit')).toBe('"five";r=3;t=60');
    });

    it('spread the wait of a refusal by one random number, and draw none for anything else', () => {
      const random = jest.fn(() => 0.5);
      const describeSpread = headersOf({ headers: 'legacy', retryJitter: 0.4 }, random);
      const response = responseWith();
      describeSpread(response, allowed);
      headersOf({ headers: 'legacy' }, random)(responseWith(), refused);
      expect(random).not.toHaveBeenCalled();
      describeSpread(response, refused);
      expect(response.getHeaders()).toMatchObject({ 'x-ratelimit-reset': '36', 'retry-after': '36' });
      expect(random).toHaveBeenCalledTimes(1);
    });
  });

  describe('headers that scripts of other origins may read', () => {
    it('are named after those that the app names, in a list as in a text', () => {
      for (const listed of ['X-Total , X-Page,', ['X-Total', 'X-Page']]) {
        const { [EXPOSED]: exposed } = described({}, allowed, { ...CORS, [EXPOSED]: listed });
        expect(exposed).toBe('X-Total, X-Page, RateLimit-Policy, RateLimit');
      }
    });

    it('are named once, however they are spelt', () => {
      const before = { ...CORS, [EXPOSED]: 'RATELIMIT,ratelimit-policy' };
      expect(described({}, allowed, before)[EXPOSED]).toBe('RATELIMIT,ratelimit-policy');
      expect(described({}, refused, before)[EXPOSED]).toBe('RATELIMIT, ratelimit-policy, Retry-After');
    });

    it('are not named where there is none of them, or no other origin', () => {
      expect(described({ headers: false }, never, CORS)).toEqual(CORS);
      expect(described({ exposeHeaders: false }, allowed, CORS)).not.toHaveProperty(EXPOSED);
      expect(described({}, allowed)).not.toHaveProperty(EXPOSED);
    });

    it('are named without those of a format that fails', () => {
      spyOnErrors();
      const { [EXPOSED]: exposed } = described({ headers: [fails, 'legacy'] }, allowed, CORS);
      expect(exposed).toBe('X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset');
    });
  });

  describe('a format that fails', () => {
    it.each([
      ['a number', () => 7, 'expected an object of headers and no promise, received 7'],
      [
        'a promise',
        () => Promise.resolve({ a: 'b' }),
        expect.stringMatching(/^expected an object of headers and no promise, received /),
      ],
      [
        'a promise that rejects',
        () => Promise.reject(new Error('late')),
        expect.stringMatching(/^expected an object of headers and no promise, received Promise /),
      ],
      [
        'nothing',
        () => undefined,
        expect.stringContaining('expected an object of headers and no promise, received undefined'),
      ],
      ['null', () => null, expect.stringContaining('expected an object of headers and no promise, received null')],
      ['a text', () => 'ab', expect.stringMatching(/^expected an object of headers and no promise, received .*ab/)],
      ['a list', () => ['a', 'b'], expect.stringMatching(/^expected an object of headers and no promise, received /s)],
      [
        'a map',
        () => new Map([['x-a', 'b']]),
        expect.stringMatching(/^expected an object of headers and no promise, received /s),
      ],
      [
        'headers of fetch',
        () => new Headers({ 'x-a': 'b' }),
        expect.stringMatching(/^expected an object of headers and no promise, received /s),
      ],
    ])('since it gives %s, is told of once by its place, and the others are set', (_, format, reason) => {
      const error = spyOnErrors();
      const describeBy = headersOf({ headers: ['legacy', format as never] });
      for (let i = 0; i < 2; i++) {
        const response = responseWith();
        describeBy(response, allowed);
        expect(response.getHeaderNames()).toEqual(['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']);
      }
      expect(error.mock.calls).toEqual([[says(1), reason]]);
    });

    it('is no failure of an object of headers', () => {
      const error = spyOnErrors();
      expect(described({ headers: () => ({}) }, allowed)).toEqual({});
      expect(error).not.toHaveBeenCalled();
    });

    it('since the response takes no headers any more, makes no request fail', () => {
      const error = spyOnErrors();
      const closed = {
        setHeader: () => undefined,
        set() {
          throw new Error('The stream has been destroyed');
        },
      };
      headersOf({})(closed, allowed);
      expect(error.mock.calls).toEqual([[says(0), expect.stringContaining('The stream has been destroyed')]]);
    });
  });
});

describe('headers of all kinds', () => {
  const PROBLEM = 'application/problem+json';

  /** The headers of apps with an adapter, or of one that serves no HTTP. */
  function headersOf(adapter?: ExpressAdapter | FastifyAdapter): ResponseHeaders {
    const host = new HttpAdapterHost();
    if (adapter !== undefined) host.httpAdapter = adapter;
    return new ResponseHeaders(readSettings({}), host, Math.random);
  }

  /** A response as Fastify has it, which extends none of Node's: it notes what is set. */
  class OtherResponse {
    readonly status = 200;
    readonly set: Record<string, string> = {};

    constructor(state: object) {
      Object.assign(this, state);
    }

    header(name: string, value: string): void {
      this.set[name] = value;
    }
  }

  const typeOf = (response: ServerResponse) => response.getHeader('content-type');

  interface ExpressResponse extends ServerResponse {
    json(body: unknown): this;
    type(type: string): this;
  }

  /** A response of Express, of which nothing goes over a network. */
  function expressResponse(adapter: ExpressAdapter): ExpressResponse {
    const app = adapter.getInstance<{ response: object }>();
    const request = new IncomingMessage(new Socket());
    return Object.assign(Object.setPrototypeOf(new ServerResponse(request), app.response) as ExpressResponse, {
      req: request,
    });
  }

  describe('a header', () => {
    it('is set on a response of Node, whatever serves it', () => {
      for (const headers of [headersOf(), headersOf(new FastifyAdapter())]) {
        const response = nodeResponse();
        headers.set(response, 'Retry-After', '1');
        expect(response.getHeader('retry-after')).toBe('1');
      }
    });

    it('is set by the adapter on any other response that takes headers', () => {
      const reply = new OtherResponse({});
      headersOf(new FastifyAdapter()).set(reply, 'Retry-After', '1');
      expect(reply.set).toEqual({ 'Retry-After': '1' });
      const told: string[][] = [];
      const response = { setHeader: () => undefined, set: (...header: string[]) => told.push(header) };
      headersOf(new ExpressAdapter()).set(response, 'Retry-After', '1');
      expect(told).toEqual([['Retry-After', '1']]);
    });

    it.each([
      { sent: true },
      { headersSent: true },
      { sent: true, headersSent: false },
      { sent: false, headersSent: true },
    ])('is not set on a response that has been sent: %j', (state) => {
      const reply = new OtherResponse(state);
      headersOf(new FastifyAdapter()).set(reply, 'Retry-After', '1');
      expect(reply.set).toEqual({});
    });

    it('is set on a response that has not been sent', () => {
      const reply = new OtherResponse({ sent: false, headersSent: false });
      headersOf(new FastifyAdapter()).set(reply, 'Retry-After', '1');
      expect(reply.set).toEqual({ 'Retry-After': '1' });
    });

    it('is not set on a response of Node whose headers have been sent', () => {
      const response = nodeResponse();
      response.writeHead(200);
      expect(() => headersOf().set(response, 'Retry-After', '1')).not.toThrow();
      expect(response.hasHeader('retry-after')).toBe(false);
    });

    it('is not set where nothing takes it: no response, one without headers, or an app that serves no HTTP', () => {
      const express = headersOf(new ExpressAdapter());
      for (const response of [undefined, {}, { header: 'text', setHeader: 'text' }]) {
        expect(() => express.set(response, 'Retry-After', '1')).not.toThrow();
      }
      const reply = new OtherResponse({});
      headersOf().set(reply, 'Retry-After', '1');
      expect(reply.set).toEqual({});
    });
  });

  describe('the type of the body of an error', () => {
    it('is a header like any other, where the framework takes it', () => {
      const reply = new OtherResponse({});
      headersOf(new FastifyAdapter()).setType(reply, PROBLEM);
      expect(reply.set).toEqual({ 'Content-Type': PROBLEM });
      expect(() => headersOf().setType(undefined, PROBLEM)).not.toThrow();
    });

    const adapter = new ExpressAdapter();
    const headers = headersOf(adapter);

    it('is set as Express sends JSON, in place of one that was set before', () => {
      const response = expressResponse(adapter).type('text');
      headers.setType(response, PROBLEM);
      // Nest looks at it before it sends the body.
      expect(typeOf(response)).toBeUndefined();
      expect(response.json({ status: 429 })).toBe(response);
      expect(typeOf(response)).toMatch(/^application\/problem\+json/);
      expect(response.getHeader('content-length')).toBe('14');
    });

    it('is left to an exception filter that sets another', () => {
      const response = expressResponse(adapter);
      headers.setType(response, PROBLEM);
      response.type('application/vnd.own+json').json({});
      expect(typeOf(response)).toMatch(/^application\/vnd\.own\+json/);
    });

    it('is not set once Express has sent the headers', () => {
      const response = expressResponse(adapter).type('text');
      response.writeHead(200);
      expect(() => headers.setType(response, PROBLEM)).not.toThrow();
      expect(Object.hasOwn(response, 'json')).toBe(false);
    });
  });
});
