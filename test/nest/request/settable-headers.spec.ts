import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { HttpAdapterHost } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { readSettings } from '../../../lib/app/config/settings.js';
import { ResponseHeaders } from '../../../lib/nest/request/response-headers.js';
import { nodeResponse } from '../../support/http/responses.js';

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
