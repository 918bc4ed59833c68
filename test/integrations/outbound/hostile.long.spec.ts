import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { HttpService } from '@nestjs/axios';
import axios from 'axios';
import type { TestingModule } from '@nestjs/testing';
import { Agent } from 'undici';
import {
  type OutboundLimiter,
  parseUpstream,
  type UpstreamParser,
  type UpstreamResponse,
  upstreams,
} from '../../../lib/integrations/outbound/index.js';
import { type LimiterService, RateLimitWaitersError } from '../../../lib/index.js';
import { readUpstream } from '../../../lib/integrations/outbound/headers/read-upstream.js';
import { namedHeaders } from '../../../lib/integrations/outbound/clients/requests-and-responses.js';
import { createTestingStore, TestClock } from '../../../lib/testing/index.js';
import { until } from '../../support/time/until.js';
import { outcomeOf } from '../../support/limits/waiting.js';
import { type Answer, startLimiters, Upstream } from './upstream.js';

const MOST_MS = 3_600_000;
const throwing = (name: string) => Object.defineProperty({}, name, { get: () => fail('of the user') });
const fail = (message: string) => {
  throw new Error(message);
};

/** What each parser reads. */
const read = (headers: Record<string, string | string[]>, status = 429) => {
  const response: UpstreamResponse = { status, headers: namedHeaders(headers), receivedAt: Date.now() };
  return [parseUpstream, ...Object.values(upstreams).map(({ parse }) => parse)].map((parse) =>
    readUpstream(parse, response, MOST_MS),
  );
};

describe('an upstream that lies', () => {
  const values = [
    '-1',
    '1e309',
    '1e3',
    'NaN',
    '0x7f',
    '9'.repeat(400),
    '9007199254740993',
    '0.0000001',
    '1_000',
    '٣',
    '\0',
  ];
  const fields = [
    'retry-after',
    'retry-after-ms',
    'x-ratelimit-remaining',
    'x-ratelimit-limit',
    'x-ratelimit-reset',
    'ratelimit-remaining',
    'ratelimit-reset',
    'anthropic-ratelimit-requests-remaining',
    'x-ratelimit-remaining-project-tokens',
    'x-shopify-shop-api-call-limit',
  ];

  it.each(values)('with %j in any of its headers is believed no longer than the longest wait', (value) => {
    for (const field of fields) {
      for (const report of read({ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '5', [field]: value })) {
        for (const ms of [
          report.retryAfterMs,
          ...report.limits.flatMap((each) => [each.resetAfterMs, each.windowMs]),
        ]) {
          expect(ms === undefined || (ms >= 0 && ms <= MOST_MS)).toBe(true);
        }
      }
    }
  });

  it('says nothing by headers that it sends twice, and by thousands of limits', () => {
    for (const { limits, retryAfterMs } of read({ 'retry-after': ['5', '9'], 'x-ratelimit-remaining': ['1', '0'] })) {
      // GitHub wants a minute after a refusal that says nothing.
      expect([limits, retryAfterMs ?? 60_000]).toEqual([[], 60_000]);
    }
    // If what a parser does grew with the square of it, this test would not end.
    const many = Array.from({ length: 300_000 }, (_, index) => `"l${index}";r=0;t=5`).join(', ');
    for (const { limits } of read({ RateLimit: many, 'RateLimit-Policy': many })) expect(limits).toEqual([]);
    for (const { limits } of read({ RateLimit: many.slice(0, many.indexOf(', "l200"')) })) {
      expect(limits.length).toBeLessThanOrEqual(20);
    }
  });

  it.each<[string, unknown]>([
    ['fails later', async () => fail('of the user')],
    ['gives limits that fail', () => ({ limits: [throwing('name')] })],
    ['gives a report that fails', () => throwing('limits')],
    ['gives a text', () => 'nothing'],
  ])('or a parser that %s fails no call', async (_what, parse) => {
    const response: UpstreamResponse = { status: 429, headers: new Headers(), receivedAt: 0 };
    expect(readUpstream(parse as UpstreamParser, response, MOST_MS)).toEqual({ limits: [], refused: true });
    // An error that nobody handles would end the process after this turn.
    await new Promise(setImmediate);
  });
});

describe('calls', () => {
  let app: TestingModule;
  let limiters: LimiterService;
  let outbound: OutboundLimiter;
  let clock: TestClock;
  let upstream: Upstream;
  let answer: Answer;

  beforeEach(async () => {
    clock = new TestClock();
    const define = {
      api: { algo: 'fixed-window', rate: 1000, interval: '1h' },
      slots: { algo: 'concurrency', limit: 1, ttl: '1m' },
      one: { algo: 'fixed-window', rate: 1, interval: '1h' },
    } as const;
    ({ app, limiters, outbound } = await startLimiters({ define, store: createTestingStore({ clock }) }));
    answer = (_, response) => void response.end('ok');
    upstream = await Upstream.start((...all) => answer(...all));
  });

  afterEach(async () => {
    await upstream.close();
    await app.close();
  });

  const left = async (limit: string) => (await limiters.for(limit).peek('global')).remaining;
  const isFree = () => until(async () => (await left('slots')) === 1);

  it('hold nothing after answers of each kind', async () => {
    const call = outbound.fetch('slots', { learn: true });
    answer = ({ url = '' }, response) => {
      const status = Number(url.slice(1));
      const headers = { 'set-cookie': ['a=1', 'b=2'], ...(status === 302 && { location: '/200' }) };
      response.writeHead(status, headers).end(status === 204 || status === 304 ? undefined : 'ok');
    };
    for (const [status, expected] of [
      [204, 204],
      [304, 304],
      [302, 200],
      [999, 999],
      [599, 599],
    ] as const) {
      const response = await call(`${upstream.url}/${status}`);
      expect([response.status, response.ok, response.headers.getSetCookie()]).toEqual([
        expected,
        expected < 300,
        ['a=1', 'b=2'],
      ]);
      expect([response.redirected, response.url]).toEqual([status === 302, `${upstream.url}/${expected}`]);
      await response.clone().text();
      await response.text();
      await isFree();
    }
    const head = await call(`${upstream.url}/200`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    await isFree();
    const manual = await call(`${upstream.url}/302`, { redirect: 'manual' });
    expect(manual.status).toBe(302);
    await manual.text();
    await isFree();
  });

  it.each(['http', 'fetch'])('of axios hold nothing once a stream was read (%s)', async (adapter) => {
    const { axiosRef } = new HttpService(axios.create({ adapter }));
    outbound.axios('slots', { retry: { attempts: 2 } }).attach(axiosRef);
    answer = (_, response, number) =>
      void response.writeHead(number === 1 ? 429 : 200, { 'retry-after': '0' }).end('ok'.repeat(50_000));
    const { data } = await axiosRef.get<AsyncIterable<Uint8Array>>(upstream.url, { responseType: 'stream' });
    expect(await left('slots')).toBe(0);
    let length = 0;
    for await (const chunk of data) length += chunk.length;
    expect(length).toBe(100_000);
    await isFree();
  });

  it('hold nothing where the body breaks off that nobody reads', async () => {
    answer = (_, response) => {
      upstream.held.push(response);
      response.writeHead(200).write('some');
    };
    const response = await outbound.fetch('slots')(upstream.url);
    expect(await left('slots')).toBe(0);
    upstream.held[0]!.destroy();
    await isFree();
    await expect(response.text()).rejects.toThrow('terminated');
  });

  it('hold nothing where the body breaks off', async () => {
    answer = (_, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('some');
      setTimeout(() => response.destroy(), 5);
    };
    const response = await outbound.fetch('slots')(upstream.url);
    await expect(response.text()).rejects.toThrow('terminated');
    await isFree();
  });

  describe('whose signal aborts', () => {
    let controller: AbortController;
    beforeEach(() => {
      controller = new AbortController();
    });
    const abort = () => controller.abort(new Error('enough'));
    const send = (limit: string, options = {}) =>
      outbound.fetch(limit, options)(upstream.url, { signal: controller.signal });

    it('before anything, while the key is asked for, or while they wait, take nothing', async () => {
      abort();
      await expect(send('slots')).rejects.toThrow('enough');
      controller = new AbortController();
      const key = async () => {
        abort();
        return 'global';
      };
      await expect(send('slots', { key })).rejects.toThrow('enough');
      await (await outbound.fetch('one')(upstream.url)).text();
      controller = new AbortController();
      const waiting = expect(send('one')).rejects.toThrow('enough');
      abort();
      await waiting;
      expect(upstream.received).toHaveLength(1);
      expect(await left('slots')).toBe(1);
    });

    it('while they are on their way, or while they are read, hold nothing', async () => {
      answer = (_, response) => void upstream.held.push(response);
      const sent = expect(send('slots', { learn: true })).rejects.toThrow('enough');
      await until(() => upstream.held.length === 1);
      abort();
      await sent;
      await isFree();
      controller = new AbortController();
      answer = (_, response) => void response.writeHead(200).write('some');
      const response = await send('slots');
      const text = expect(response.text()).rejects.toThrow('enough');
      abort();
      await text;
      await isFree();
    });

    it.each(['fetch', 'settled', 'learnt'])(
      'after the headers, while nobody reads the body, hold nothing (%s)',
      async (kind) => {
        answer = (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).write('[');
        const options = kind === 'settled' ? { settle: async () => 1 } : { learn: kind === 'learnt' };
        const response = await send('slots', options);
        expect([response.status, await left('slots')]).toEqual([200, 0]);
        abort();
        await isFree();
        await expect(response.text()).rejects.toThrow('enough');
      },
    );

    it('while they wait to be sent again, free the connection of the refusal', async () => {
      answer = (_, response) => void response.writeHead(429, { 'retry-after': '30' }).write('x'.repeat(100_000));
      let isClosed = false;
      const first = answer;
      answer = (request, response, number) => {
        response.on('close', () => (isClosed = true));
        first(request, response, number);
      };
      const sent = expect(send('slots', { retry: { attempts: 2 } })).rejects.toThrow('enough');
      await isFree();
      await until(() => upstream.received.length === 1);
      abort();
      await sent;
      await until(() => isClosed);
    });
  });

  it.each<['fetch' | 'dispatcher', number]>([
    ['fetch', 300],
    ['dispatcher', 1000],
  ])('of %s wait together by the hundred, and all go out (%d)', async (client, count) => {
    await (await outbound.fetch('one')(upstream.url)).text();
    const dispatcher = new Agent({ connections: 50 }).compose(outbound.dispatcher('one'));
    const limited = outbound.fetch('one');
    const { signal } = new AbortController();
    const warnings: Error[] = [];
    const warn = (warning: Error) => warnings.push(warning);
    process.on('warning', warn);
    const started = Array.from({ length: count }, (_, index) => {
      const url = `${upstream.url}/${index}`;
      return client === 'fetch'
        ? limited(url, { signal }).then((response) => response.text())
        : dispatcher
            .request({ origin: upstream.url, path: `/${index}`, method: 'GET' })
            .then(({ body }) => body.text());
    });
    await new Promise(setImmediate);
    expect(upstream.received).toHaveLength(1);
    await limiters.setRate('one', { rate: 5000 });
    expect(new Set(await Promise.all(started))).toEqual(new Set(['ok']));
    process.off('warning', warn);
    expect(warnings).toEqual([]);
    expect(upstream.received).toHaveLength(count + 1);
    await dispatcher.destroy();
  });

  describe('whose JSON never ends', () => {
    let sent: number;
    let isClosed: boolean;
    beforeEach(() => {
      [sent, isClosed] = [0, false];
    });
    /** An array that goes on as fast as it is read. */
    const endless = (response: ServerResponse, status: number) => {
      const chunk = Buffer.alloc(65_536, ' ');
      const more = () => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length;
      };
      response.on('drain', more).on('close', () => (isClosed = true));
      response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '0' }).write('[');
      more();
    };

    it('go on without what a parser would have read of it', async () => {
      answer = (_, response) => endless(response, 200);
      const bodies: unknown[] = [];
      const parse: UpstreamParser = ({ body }) => ({ limits: bodies.splice(0, 1, body) && [] });
      const call = outbound.fetch('slots', { learn: true, timeout: '1s', parser: { parse, readsBody: true } });
      const response = await call(upstream.url);
      expect([response.status, bodies]).toEqual([200, [undefined]]);
      // What the sockets and streams on the way keep comes on top.
      expect(sent).toBeLessThan(40_000_000);
      await response.body!.cancel();
      await isFree();
      await until(() => isClosed);
    });

    it('go on while it comes a byte at a time', async () => {
      answer = (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).write('1');
      const bodies: unknown[] = [];
      const parse: UpstreamParser = ({ body }) => ({ limits: bodies.splice(0, 1, body) && [] });
      const call = outbound.fetch('slots', { learn: true, timeout: 0, parser: { parse, readsBody: true } });
      const response = await call(upstream.url);
      expect([response.status, bodies]).toEqual([200, [undefined]]);
    });

    it.each([1, 2])('are sent again through undici, where the refusal is of that kind (%d refusals)', async (count) => {
      answer = (_, response, number) => {
        if (number > count) response.end('ok');
        else if (number === 1) endless(response, 429);
        else response.writeHead(429, { 'retry-after': '0' }).write('some');
      };
      const dispatcher = new Agent().compose(outbound.dispatcher('slots', { retry: { attempts: 3 } }));
      const { body, statusCode } = await dispatcher.request({ origin: upstream.url, path: '/', method: 'GET' });
      expect([statusCode, await body.text()]).toEqual([200, 'ok']);
      await isFree();
      await dispatcher.destroy();
    });
  });

  it('wait no more of them together than may', async () => {
    const few = await startLimiters({
      define: { one: { algo: 'fixed-window', rate: 1, interval: '1h' } },
      maxWaiters: 2,
    });
    const call = few.outbound.fetch('one');
    const outcomes = Array.from({ length: 5 }, () => outcomeOf(call(upstream.url)));
    await until(() => outcomes.filter(({ reason }) => reason !== undefined).length === 2);
    expect(outcomes.slice(1, 3)).toEqual([{}, {}]);
    const further = call(upstream.url);
    await expect(further).rejects.toThrow(RateLimitWaitersError);
    await expect(further).rejects.toThrow("limit 'one' has 2 calls of this process waiting for one key");
    await few.app.close();
  });

  it('keep no copy of a body that settle does not read', async () => {
    const size = 4_000_000;
    answer = (_, response) => void response.end(Buffer.alloc(size));
    const settled: Response[] = [];
    const call = outbound.fetch('api', { settle: (response) => (settled.push(response), 1) });
    const response = await call(upstream.url);
    await until(() => settled.length === 1);
    await new Promise(setImmediate);
    expect(settled[0]!.bodyUsed).toBe(true);
    expect((await response.arrayBuffer()).byteLength).toBe(size);
  });
});
