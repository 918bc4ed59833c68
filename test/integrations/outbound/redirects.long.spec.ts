import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { IncomingHttpHeaders } from 'node:http';
import axios from 'axios';
import type { TestingModule } from '@nestjs/testing';
import { Agent, interceptors } from 'undici';
import type { OutboundLimiter, AxiosOptions } from '../../../lib/integrations/outbound/index.js';
import type { LimiterService } from '../../../lib/index.js';
import { until } from '../../support/time/until.js';
import { type Answer, startLimiters, Upstream } from './upstream.js';

const endless: Answer = ({ url = '' }, response) =>
  void response.writeHead(302, { location: `/${Number(url.slice(1)) + 1}` }).end('over there');

describe('calls that are redirected', () => {
  let app: TestingModule;
  let limiters: LimiterService;
  let outbound: OutboundLimiter;
  let upstream: Upstream;
  let answer: Answer;

  beforeEach(async () => {
    ({ app, limiters, outbound } = await startLimiters({
      define: {
        api: { algo: 'fixed-window', rate: 1000, interval: '1h' },
        slots: { algo: 'concurrency', limit: 1, ttl: '1m' },
        five: { algo: 'fixed-window', rate: 5, interval: '1h' },
      },
    }));
    upstream = await Upstream.start((...all) => answer(...all));
  });

  afterEach(async () => {
    await upstream.close();
    await app.close();
  });

  const seen = () => upstream.received.map(({ method, url, body }) => `${method} ${url} ${body}`.trim());
  const isFree = () => until(async () => (await limiters.for('slots').peek('global')).remaining === 1);

  it('by fetch are charged for each request, and wait', async () => {
    answer = endless;
    await expect(outbound.fetch('five', { timeout: 0 })(`${upstream.url}/1`)).rejects.toThrow("limit 'five'");
    expect(upstream.received).toHaveLength(5);
    await expect(outbound.fetch(['slots', 'api'])(`${upstream.url}/1`)).rejects.toMatchObject({
      message: 'fetch failed',
      cause: { message: 'redirect count exceeded' },
    });
    expect(upstream.received).toHaveLength(26);
    expect((await limiters.for('api').peek('global')).remaining).toBe(1000 - 21);
    await isFree();
  });

  it('to a response that a stubbed fetch returns again and again', async () => {
    const end = new Response(null, { status: 204 });
    const redirect = () => new Response(null, { status: 302, headers: { location: '/end' } });
    const stub = async (input: unknown) => ((input as Request).url.endsWith('/end') ? end : redirect());
    jest.spyOn(globalThis, 'fetch').mockImplementation(stub);
    const statuses: number[] = [];
    for (let i = 0; i < 2; i++) statuses.push((await outbound.fetch('api')('http://host/start')).status);
    jest.restoreAllMocks();
    expect(statuses).toEqual([204, 204]);
  });

  it.each<[string, number, RequestInit, string[]]>([
    ['a GET', 301, {}, ['GET /from', 'GET /to']],
    ['a POST', 302, { method: 'POST', body: 'text' }, ['POST /from text', 'GET /to']],
    ['a PUT', 303, { method: 'PUT', body: 'text' }, ['PUT /from text', 'GET /to']],
    ['a PUT', 302, { method: 'PUT', body: 'text' }, ['PUT /from text', 'PUT /to text']],
    ['a POST', 307, { method: 'POST', body: 'text' }, ['POST /from text', 'POST /to text']],
    ['a POST of bytes', 308, { method: 'POST', body: Buffer.from('ab') }, ['POST /from ab', 'POST /to ab']],
  ])('by fetch send %s on after a %d', async (_what, status, init, expected) => {
    answer = ({ url }, response) =>
      void (url === '/from' ? response.writeHead(status, { location: '/to' }).end() : response.end('there'));
    for (const call of [outbound.fetch('api'), outbound.fetch('slots', { learn: true })]) {
      const response = await call(new Request(`${upstream.url}/from`, init));
      expect([response.redirected, response.url, await response.clone().text(), await response.text()]).toEqual([
        true,
        `${upstream.url}/to`,
        'there',
        'there',
      ]);
      const given = await call(`${upstream.url}/from`, init);
      expect([given.redirected, given.clone().redirected, await given.text()]).toEqual([true, true, 'there']);
      expect(seen()).toEqual([...expected, ...expected]);
      upstream.received.length = 0;
      await isFree();
    }
  });

  it('to others keep their secrets, ask for their own key, and wait in their place', async () => {
    const headers: IncomingHttpHeaders[] = [];
    const other = await Upstream.start((request, response) => {
      headers.push(request.headers);
      response.end('there');
    });
    answer = (request, response) => {
      headers.push(request.headers);
      response.writeHead(307, { location: `${other.url}/to` }).end();
    };
    const keys: string[] = [];
    const key = (request: Request) => (keys.push(new URL(request.url).pathname), 'global');
    const secrets = { authorization: 'Bearer a', cookie: 'b=c', 'x-own': 'd' };
    const response = await outbound.fetch('api', { key })(`${upstream.url}/from`, { headers: secrets });
    expect(await response.text()).toBe('there');
    expect(headers[0]).toMatchObject(secrets);
    expect([headers[1]!['x-own'], headers[1]!.authorization, headers[1]!.cookie]).toEqual(['d', undefined, undefined]);
    expect([keys, other.received.length]).toEqual([['/from', '/to'], 1]);
    await other.close();
  });

  it('by fetch lead to what is written in UTF-8, and say where they come from', async () => {
    const referers: unknown[] = [];
    answer = ({ url, headers }, response) => {
      referers.push(headers.referer);
      if (url === '/from') response.writeHead(302, { location: Buffer.from('/zürich?é').toString('latin1') });
      response.end();
    };
    const referrer = 'http://shop.example/';
    const { url } = await outbound.fetch('api')(`${upstream.url}/from`, { referrer });
    expect(url).toBe(`${upstream.url}/z%C3%BCrich?%C3%A9`);
    expect(referers).toEqual([referrer, referrer]);
  });

  it.each<[string, RequestInit, string]>([
    ['a stream', { method: 'POST', body: new Blob(['1']).stream(), duplex: 'half' }, '/to'],
    ['what is no URL', {}, 'http://'],
    ['another scheme', {}, 'data:text/plain,a'],
  ])('fail as fetch does with %s', async (_what, init, location) => {
    answer = (_, response) => void response.writeHead(307, { location }).end();
    await expect(outbound.fetch('slots')(upstream.url, init)).rejects.toThrow('fetch failed');
    expect(upstream.received).toHaveLength(1);
    await isFree();
  });

  describe.each(['http', 'fetch'])('by axios (%s)', (adapter) => {
    const attached = (limits: string | string[], options: AxiosOptions = {}, defaults = {}) => {
      const instance = axios.create({ adapter, ...defaults });
      outbound.axios(limits, options).attach(instance);
      return instance;
    };

    it('are charged for each request, and wait', async () => {
      answer = endless;
      await expect(attached('five', { timeout: 0 }).get(`${upstream.url}/1`)).rejects.toThrow("limit 'five'");
      expect(upstream.received).toHaveLength(5);
      const sent = attached(['slots', 'api'], {}, { maxRedirects: 3 }).get(`${upstream.url}/1`);
      await expect(sent).rejects.toMatchObject({
        message: 'Maximum number of redirects exceeded',
        code: 'ERR_FR_TOO_MANY_REDIRECTS',
        config: { maxRedirects: 3, url: `${upstream.url}/1` },
      });
      expect(upstream.received).toHaveLength(9);
      expect((await limiters.for('api').peek('global')).remaining).toBe(1000 - 4);
      await isFree();
    });

    it.each([
      ['get', 301, ['GET /base/from?a=1', 'GET /to?b=2']],
      ['post', 302, ['POST /base/from?a=1 {"c":3}', 'GET /to?b=2']],
      ['put', 307, ['PUT /base/from?a=1 {"c":3}', 'PUT /to?b=2 {"c":3}']],
    ])('send a %s on after a %d', async (method, status, expected) => {
      answer = ({ url = '' }, response) =>
        void (url.includes('/from')
          ? response.writeHead(status, { location: '/to?b=2' }).end()
          : response.end('there'));
      const told: unknown[] = [];
      const instance = attached(['slots', 'api'], {}, { baseURL: `${upstream.url}/base` });
      const response = await instance.request({
        method,
        url: '/from',
        params: { a: 1 },
        ...(method === 'get' ? {} : { data: { c: 3 } }),
        beforeRedirect: (options, { statusCode }) => told.push([options['href'], statusCode]),
      });
      expect([response.status, response.data, response.config.url]).toEqual([200, 'there', '/from']);
      expect([seen(), told]).toEqual([expected, [[`${upstream.url}/to?b=2`, status]]]);
      if (adapter === 'http') expect(response.request.res.responseUrl).toBe(`${upstream.url}/to?b=2`);
      expect((await limiters.for('api').peek('global')).remaining).toBe(998);
      await isFree();
    });

    it('to others keep their secrets', async () => {
      const headers: IncomingHttpHeaders[] = [];
      const other = await Upstream.start((request, response) => {
        headers.push(request.headers);
        response.end('there');
      });
      answer = (_, response) => void response.writeHead(307, { location: `${other.url}/to` }).end();
      const secrets = { authorization: 'Bearer a', cookie: 'b=c', 'x-key': 'k', 'x-own': 'd' };
      const { data } = await attached('api').get(upstream.url, {
        headers: secrets,
        sensitiveHeaders: ['X-Key'],
      } as never);
      expect([data, headers[0]!['x-own'], headers[0]!['x-key']]).toEqual(['there', 'd', undefined]);
      expect([headers[0]!.authorization, headers[0]!.cookie]).toEqual([undefined, undefined]);
      const withAuth = { auth: { username: 'u', password: 'p' } };
      await attached('api').get(upstream.url, withAuth);
      expect(headers[1]!.authorization).toBeUndefined();
      await other.close();
    });

    it.each([
      ['the request as the app made it, if that which follows fails', '/cut', {}],
      ['a code, if they lead to no URL', 'http://', { code: 'ERR_FR_REDIRECTION_FAILURE' }],
      ['a code, if they lead to another scheme', 'ftp://a/b', { code: 'ERR_FR_REDIRECTION_FAILURE' }],
    ])('fail with %s', async (_what, location, expected) => {
      answer = ({ url, socket }, response) =>
        void (url === '/from' ? response.writeHead(302, { location }).end() : socket.destroy());
      const sent = attached('slots', {}, { maxRedirects: 5 }).get(`${upstream.url}/from`);
      await expect(sent).rejects.toMatchObject({ isAxiosError: true, ...expected });
      await expect(sent).rejects.toMatchObject({ config: { url: `${upstream.url}/from`, maxRedirects: 5 } });
      await isFree();
    });

    it('are one request where none are followed', async () => {
      answer = endless;
      const instance = attached('slots', {}, { maxRedirects: 0, validateStatus: () => true });
      expect([(await instance.get(`${upstream.url}/1`)).status, upstream.received.length]).toEqual([302, 1]);
    });
  });

  it.each([300, 305])('by axios are followed after a %d, too, if it says where', async (status) => {
    answer = ({ url }, response) =>
      void (url === '/from' ? response.writeHead(status, { location: '/to' }).end() : response.end('there'));
    const instance = axios.create();
    outbound.axios('slots').attach(instance);
    const { data } = await instance.post(`${upstream.url}/from`, { c: 3 });
    expect([data, seen()]).toEqual(['there', ['POST /from {"c":3}', 'POST /to {"c":3}']]);
    await isFree();
  });

  it('but not followed, as the caller wants it, are one request', async () => {
    answer = endless;
    const call = outbound.fetch('slots');
    const manual = await call(`${upstream.url}/1`, { redirect: 'manual' });
    expect([manual.status, await manual.text()]).toEqual([302, 'over there']);
    await expect(call(`${upstream.url}/1`, { redirect: 'error' })).rejects.toThrow('fetch failed');
    answer = (_, response) => void response.writeHead(302).end('nowhere');
    expect(await (await call(upstream.url)).text()).toBe('nowhere');
    expect(upstream.received).toHaveLength(3);
  });

  it('by the interceptor of undici that stands in front are charged for each request', async () => {
    answer = endless;
    const limited = outbound.dispatcher('five', { timeout: 0 });
    const dispatcher = new Agent().compose(limited, interceptors.redirect({ maxRedirections: 20 }));
    const sent = dispatcher.request({ origin: upstream.url, path: '/1', method: 'GET' });
    await expect(sent).rejects.toThrow("limit 'five'");
    expect(upstream.received).toHaveLength(5);
    await dispatcher.destroy();
  });
});
