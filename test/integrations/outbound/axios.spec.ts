import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { HttpModule, HttpService } from '@nestjs/axios';
import { Test, type TestingModule } from '@nestjs/testing';
import axios, { AxiosError, type AxiosInstance } from 'axios';
import { Readable } from 'node:stream';
import { lastValueFrom } from 'rxjs';
import { LimiterService, RateLimitConfigError, RateLimitModule, RateLimitTimeoutError } from '../../../lib/index.js';
import { OutboundLimiter } from '../../../lib/integrations/outbound/index.js';
import { collectGarbage } from '../../support/garbage.js';
import { until } from '../../support/time/until.js';
import { Upstream } from './upstream.js';

describe('axios', () => {
  let app: TestingModule;
  let limiters: LimiterService;
  let outbound: OutboundLimiter;
  let upstream: Upstream;
  let http: HttpService;
  let answers: [status: number, headers: Record<string, string>, body?: string][];
  let detach: () => void;

  beforeEach(async () => {
    app = await Test.createTestingModule({
      imports: [
        HttpModule,
        RateLimitModule.forRoot({
          define: {
            shopify: { algo: 'fixed-window', rate: 40, interval: '1h' },
            slots: { algo: 'concurrency', limit: 1, ttl: '1m' },
          },
        }),
      ],
    }).compile();
    app.useLogger(false);
    await app.init();
    limiters = app.get(LimiterService);
    outbound = app.get(OutboundLimiter);
    http = app.get(HttpService);
    detach = () => undefined;
    answers = [];
    upstream = await Upstream.start((_, response, number) => {
      const [status, headers, body = String(number)] = answers.shift() ?? [200, {}];
      response.writeHead(status, headers).end(body);
    });
  });

  afterEach(async () => {
    detach();
    await upstream.close();
    await app.close();
  });

  const left = async (limit: string) => (await limiters.for(limit).peek('global')).remaining;

  it('waits for its turn, as @nestjs/axios sends requests, until it is detached', async () => {
    detach = outbound.axios('shopify').attach(http.axiosRef);
    const { data, status } = await lastValueFrom(http.post(`${upstream.url}/orders`, { id: 1 }));
    expect([status, data, await left('shopify')]).toEqual([200, 1, 39]);
    expect(upstream.received).toEqual([{ method: 'POST', url: '/orders', body: '{"id":1}' }]);
    detach();
    await lastValueFrom(http.get(upstream.url));
    expect(await left('shopify')).toBe(39);
  });

  it('is detached in any order', async () => {
    const instance = axios.create();
    const [first, second] = ['shopify', 'slots'].map((name) => outbound.axios(name).attach(instance));
    first!();
    await instance.get(upstream.url);
    expect(await left('shopify')).toBe(40);
    second!();
    await instance.get(upstream.url);
    expect(upstream.received).toHaveLength(2);
  });

  it('ends waits that are too long, and those that are aborted', async () => {
    detach = outbound.axios('shopify', { timeout: '1s' }).attach(http.axiosRef);
    await limiters.for('shopify').consume('global', 40);
    await expect(http.axiosRef.get(upstream.url)).rejects.toThrow(RateLimitTimeoutError);
    detach();
    detach = outbound.axios('shopify').attach(http.axiosRef);
    const controller = new AbortController();
    const waiting = http.axiosRef.get(upstream.url, { signal: controller.signal }).catch((error: unknown) => error);
    controller.abort();
    expect(axios.isCancel(await waiting)).toBe(true);
    expect(upstream.received).toEqual([]);
  });

  it('counts by what is sent, and settles by what comes back', async () => {
    detach = outbound
      .axios('shopify', {
        key: ({ headers }) => String((headers as Record<string, string>)['shop']),
        cost: ({ data }) => String(data).length,
        settle: ({ data }) => (data as { used: number }).used,
      })
      .attach(http.axiosRef);
    answers = [[200, { 'content-type': 'application/json' }, '{"used":3}']];
    await http.axiosRef.post(upstream.url, '12345', { headers: { shop: 'a' } });
    await until(async () => (await limiters.for('shopify').peek('a')).remaining === 37);
  });

  it('learns, also from refusals, and of the body', async () => {
    detach = outbound.axios('shopify', { learn: true, maxLearnedWait: '5s' }).attach(http.axiosRef);
    answers = [
      [200, { 'X-Shopify-Shop-Api-Call-Limit': '32/40' }],
      [429, { 'Retry-After': '2.0' }],
    ];
    await http.axiosRef.get(upstream.url);
    await until(async () => (await left('shopify')) === 8);
    await expect(http.axiosRef.get(upstream.url)).rejects.toThrow(AxiosError);
    await until(async () => !(await limiters.for('shopify').peek('global')).allowed);
    const graphql = axios.create();
    outbound.axios('shopify', { key: 'graphql', cost: 2, learn: true, parser: 'shopify-graphql' }).attach(graphql);
    const throttleStatus = { maximumAvailable: 1000, currentlyAvailable: 12, restoreRate: 50 };
    answers = [
      [200, { 'content-type': 'application/json' }, JSON.stringify({ extensions: { cost: { throttleStatus } } })],
    ];
    expect((await graphql.post(upstream.url)).data).toMatchObject({ extensions: {} });
    await until(async () => (await limiters.for('shopify').peek('graphql')).remaining === 12);
  });

  describe.each(['http', 'fetch'])('with the adapter %s', (adapter) => {
    let instance: AxiosInstance;
    beforeEach(() => {
      instance = axios.create({ adapter });
    });

    it('sends what was refused again', async () => {
      outbound.axios('shopify', { retry: { attempts: 3 } }).attach(instance);
      answers = [
        [429, { 'Retry-After': '0' }],
        [503, { 'Retry-After': '0' }],
      ];
      const { data } = await instance.put(upstream.url, { a: 1 });
      expect([data, await left('shopify')]).toEqual([3, 37]);
      expect(upstream.received.map(({ body }) => body)).toEqual(['{"a":1}', '{"a":1}', '{"a":1}']);
      answers = Array.from({ length: 3 }, () => [429, { 'Retry-After': '0' }]);
      await expect(instance.get(upstream.url)).rejects.toMatchObject({ response: { status: 429, data: 6 } });
    });

    it('does not send a stream twice', async () => {
      outbound.axios('shopify', { retry: { attempts: 3 } }).attach(instance);
      answers = [[429, { 'Retry-After': '0' }]];
      const data = adapter === 'http' ? Readable.from(['once']) : new Blob(['once']).stream();
      await expect(instance.put(upstream.url, data)).rejects.toMatchObject({ response: { status: 429 } });
      expect(upstream.received.map(({ body }) => body)).toEqual(['once']);
    });

    it('holds units until the body was read', async () => {
      outbound.axios('slots').attach(instance);
      const requests = [instance.get(upstream.url), instance.get(upstream.url), instance.get(upstream.url)];
      // Which of those that go at once the upstream answers first is not said.
      expect(new Set((await Promise.all(requests)).map(({ data }) => data as number))).toEqual(new Set([1, 2, 3]));
      await until(async () => (await left('slots')) === 1);
      await expect(instance.get('http://127.0.0.1:1/')).rejects.toThrow(AxiosError);
      await until(async () => (await left('slots')) === 1);
    });
  });

  it('releases units of a stream of the adapter fetch that is garbage-collected', async () => {
    const instance = axios.create({ adapter: 'fetch', responseType: 'stream' });
    outbound.axios('slots').attach(instance);
    const statuses = [(await instance.get(upstream.url)).status];
    expect([statuses, await left('slots')]).toEqual([[200], 0]);
    await until(async () => {
      collectGarbage();
      return (await left('slots')) === 1;
    }, 2000);
  });

  it('holds units until a stream has ended', async () => {
    detach = outbound.axios('slots').attach(http.axiosRef);
    const { data } = await http.axiosRef.get<NodeJS.ReadableStream>(upstream.url, { responseType: 'stream' });
    expect(await left('slots')).toBe(0);
    data.resume();
    await until(async () => (await left('slots')) === 1);
  });

  it.each([undefined, null, {}, 'axios'])('refuses to be attached to %p', (instance) => {
    const attach = () => outbound.axios('shopify').attach(instance as never);
    expect(attach).toThrow(RateLimitConfigError);
    expect(attach).toThrow('expected an instance of axios such as httpService.axiosRef');
  });

  it('names itself in errors', () => {
    expect(() => outbound.axios('nobody')).toThrow(
      "OutboundLimiter.axios: unknown limit 'nobody', expected a defined limit: 'shopify', 'slots'",
    );
    expect(() => outbound.dispatcher('nobody')).toThrow(
      "OutboundLimiter.dispatcher: unknown limit 'nobody', expected a defined limit: 'shopify', 'slots'",
    );
  });
});
