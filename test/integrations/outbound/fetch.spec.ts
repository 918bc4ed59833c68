import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Test, type TestingModule } from '@nestjs/testing';
import { type FetchOptions, OutboundLimiter } from '../../../lib/integrations/outbound/index.js';
import {
  LimiterService,
  RateLimitArgumentError,
  RateLimitConfigError,
  RateLimitModule,
  RateLimitStoreError,
  RateLimitTimeoutError,
} from '../../../lib/index.js';
import { collectGarbage } from '../../support/garbage.js';
import { outcomeOf } from '../../support/limits/waiting.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { startLimiters, Upstream } from './upstream.js';
import { variants } from '../../support/tier.js';

const DEFINE = {
  few: { algo: 'fixed-window', rate: 2, interval: '1h' },
  quick: { algo: 'gcra', rate: 1, interval: '30ms', burst: 1 },
  paced: { algo: 'leaky-bucket', rate: 1, interval: '20ms', queue: 10 },
  hourly: { algo: 'leaky-bucket', rate: 1, interval: '1h', queue: 10 },
  slots: { algo: 'concurrency', limit: 1, ttl: '1m' },
  tokens: { algo: 'token-bucket', rate: 100, interval: '1h' },
} as const;

const bodies = async (responses: Promise<Response>[]) =>
  Promise.all(responses.map(async (response) => (await response).text()));

describe.each(variants(['on Redis', 'in process']))('fetch, counted %s', (place) => {
  let app: TestingModule;
  let limiters: LimiterService;
  let outbound: OutboundLimiter;
  let upstream: Upstream;

  beforeEach(async () => {
    const redis = place === 'in process' ? {} : { redis: process.env['TEST_REDIS_URL']!, prefix: freshPrefix() };
    ({ app, limiters, outbound } = await startLimiters({ define: DEFINE, onStoreError: 'deny', ...redis }));
    upstream = await Upstream.start();
  });

  afterEach(async () => {
    await upstream.close();
    await app.close();
  });

  const left = async (limit: string, key = 'global') => (await limiters.for(limit).peek(key)).remaining;

  it('does as fetch does, within the limit', async () => {
    const call = outbound.fetch('few');
    const response = await call(`${upstream.url}/v1/chat?x=1`, { method: 'POST', body: 'hello', headers: { a: 'b' } });
    expect([response.status, response.url, await response.text()]).toEqual([200, `${upstream.url}/v1/chat?x=1`, '1']);
    expect(upstream.received).toEqual([{ method: 'POST', url: '/v1/chat?x=1', body: 'hello' }]);
    await call(new Request(upstream.url, { method: 'PUT', body: 'again' }));
    expect(upstream.received[1]).toMatchObject({ method: 'PUT', body: 'again' });
    expect(await left('few')).toBe(0);
  });

  it('lets calls go out one after another, in their order', async () => {
    const call = outbound.fetch('slots');
    await Promise.all(Array.from({ length: 6 }, async (_, index) => (await call(`${upstream.url}/${index}`)).text()));
    expect(upstream.received.map(({ url }) => url)).toEqual(['/0', '/1', '/2', '/3', '/4', '/5']);
  });

  it.each(['quick', 'paced'])('spaces calls as the limit %s says', async (limit) => {
    const call = outbound.fetch(limit);
    const start = performance.now();
    await bodies(Array.from({ length: 4 }, () => call(upstream.url)));
    expect(performance.now() - start).toBeGreaterThanOrEqual(55);
  });

  it('ends a wait that is known to be too long, with the decision', async () => {
    const call = outbound.fetch('few', { timeout: '10m' });
    await Promise.all([call(upstream.url), call(upstream.url)]);
    const error = (await call(upstream.url).catch((reason: unknown) => reason)) as RateLimitTimeoutError;
    expect(error).toBeInstanceOf(RateLimitTimeoutError);
    expect(error.message).toBe("limit 'few' allowed nothing within 600000 ms");
    expect(error.decision).toMatchObject({ allowed: false, limit: 'few', quota: 2, remaining: 0 });
    expect(error.decision!.retryAfterMs).toBeGreaterThan(3_500_000);
    expect(upstream.received).toHaveLength(2);
  });

  it.each([0, '10ms'])('ends waits of %p behind others, too', async (timeout) => {
    const patient = outbound.fetch('few');
    const held = outcomeOf(Promise.all([patient(upstream.url), patient(upstream.url), patient(upstream.url)]));
    await until(() => upstream.received.length === 2);
    await expect(outbound.fetch('few', { timeout })(upstream.url)).rejects.toThrow(RateLimitTimeoutError);
    expect(held).toEqual({});
    await limiters.for('few').reset('global');
    await expect(outbound.fetch('few', { timeout: 0 })(upstream.url)).resolves.toMatchObject({ status: 200 });
  });

  it('refuses at once what never fits', async () => {
    const call = outbound.fetch('few', { cost: 3 });
    await expect(call(upstream.url)).rejects.toThrow("limit 'few' never allows 3 units at once, but at most 2");
  });

  it('waits no longer once its signal aborts, and takes nothing', async () => {
    const call = outbound.fetch('few');
    await bodies([call(upstream.url), call(upstream.url)]);
    const controller = new AbortController();
    const waiting = call(upstream.url, { signal: controller.signal });
    const rejected = expect(waiting).rejects.toThrow('enough');
    controller.abort(new Error('enough'));
    await rejected;
    await expect(call(upstream.url, { signal: controller.signal })).rejects.toThrow('enough');
    expect(upstream.received).toHaveLength(2);
    expect(getEventListeners(controller.signal, 'abort').length).toBeLessThanOrEqual(2);
  });

  it('counts by a key and a cost of the request, whose body may be read', async () => {
    const call = outbound.fetch('tokens', {
      key: (request) => `account:${request.headers.get('account')}`,
      cost: async (request) => (await request.text()).length,
    });
    const send = (account: string, body: string) => call(upstream.url, { method: 'POST', body, headers: { account } });
    await Promise.all([send('a', '12345'), send('b', '123')]);
    expect([await left('tokens', 'account:a'), await left('tokens', 'account:b')]).toEqual([95, 97]);
    expect(upstream.received.map(({ body }) => body).toSorted()).toEqual(['123', '12345']);
  });

  it('sends a body that is a stream, once', async () => {
    const call = outbound.fetch('tokens', { cost: async (request) => (await request.text()).length });
    const body = new Blob(['1234', '56']).stream();
    const response = await call(upstream.url, { method: 'POST', body, duplex: 'half' });
    expect([response.status, upstream.received[0]!.body, await left('tokens')]).toEqual([200, '123456', 94]);
  });

  it('takes units of all limits, or of none', async () => {
    const both = outbound.fetch(['few', 'tokens'], { timeout: 0 });
    await bodies([both(upstream.url), both(upstream.url)]);
    await expect(both(upstream.url)).rejects.toMatchObject({ decision: { limit: 'few' } });
    expect([await left('few'), await left('tokens')]).toEqual([0, 98]);
    const other = outbound.fetch(['tokens', { name: 'own', algo: 'fixed-window', rate: 1, interval: '1h' }], {
      cost: 1,
    });
    await other(upstream.url);
    expect([await left('tokens'), await left('few')]).toEqual([97, 0]);
  });

  it('settles what a call cost in the end', async () => {
    const call = outbound.fetch('tokens', {
      cost: 10,
      settle: async (response) => Number(response.headers.get('used') ?? (await response.text()).length),
    });
    await upstream.close();
    upstream = await Upstream.start((_, response, number) =>
      number === 1 ? void response.setHeader('used', '4').end() : void response.end('x'.repeat(30)),
    );
    await call(upstream.url);
    await until(async () => (await left('tokens')) === 96);
    expect(await (await call(upstream.url)).text()).toHaveLength(30);
    await until(async () => (await left('tokens')) === 66);
  });

  it.each([
    ['gives garbage', () => -1],
    ['gives nothing', () => undefined],
    [
      'fails',
      () => {
        throw new Error('of the user');
      },
    ],
  ])('leaves the charge as it is where settle %s', async (_what, settle) => {
    const response = await outbound.fetch('tokens', { cost: 10, settle })(upstream.url);
    expect([await response.text(), await left('tokens')]).toEqual(['1', 90]);
  });

  describe('holds units of concurrency', () => {
    it('until the body was read', async () => {
      const call = outbound.fetch('slots');
      const first = await call(upstream.url);
      expect([first.url, first.status, await left('slots')]).toEqual([`${upstream.url}/`, 200, 0]);
      const second = outcomeOf(call(upstream.url));
      expect(await first.text()).toBe('1');
      await until(() => second.value !== undefined);
      expect(await second.value!.clone().text()).toBe('2');
      await second.value!.text();
      await until(async () => (await left('slots')) === 1);
    });

    it.each([
      ['cancelled', (response: Response) => response.body!.cancel()],
      [
        'read with a buffer of its own',
        async (response: Response) => {
          const reader = response.body!.getReader({ mode: 'byob' });
          while (!(await reader.read(new Uint8Array(8))).done);
        },
      ],
    ])('until the body was %s', async (_how, end) => {
      const response = await outbound.fetch('slots')(upstream.url);
      expect(await left('slots')).toBe(0);
      await end(response);
      await until(async () => (await left('slots')) === 1);
    });

    it.each([
      ['the body', ({ body }: Response) => body!.getReader()],
      ['a clone', (response: Response) => response.clone().body!.getReader()],
    ])('while only %s is left of the response', async (_what, readerOf) => {
      await upstream.close();
      upstream = await Upstream.start((_, response) => {
        upstream.held.push(response);
        response.write('1');
      });
      const reader = readerOf(await outbound.fetch('slots')(upstream.url));
      await reader.read();
      for (let collections = 0; collections < 5; collections++) {
        await sleep(5);
        collectGarbage();
      }
      expect(await left('slots')).toBe(0);
      upstream.held[0]!.end();
      while (!(await reader.read()).done);
      await until(async () => (await left('slots')) === 1);
    });

    it('until the response is garbage-collected, whose connection is closed', async () => {
      await upstream.close();
      upstream = await Upstream.start((_, response) => {
        upstream.held.push(response);
        response.write('1');
      });
      const statuses = [(await outbound.fetch('slots')(upstream.url)).status];
      expect([statuses, await left('slots')]).toEqual([[200], 0]);
      await until(async () => {
        collectGarbage();
        return (await left('slots')) === 1;
      }, 2000);
      await until(() => upstream.held[0]!.destroyed, 2000);
    });

    it('and releases them at once where there is no body, or no response', async () => {
      await upstream.close();
      upstream = await Upstream.start((request, response) =>
        request.url === '/none' ? void response.writeHead(204).end() : void request.socket.destroy(),
      );
      const call = outbound.fetch('slots');
      expect((await call(`${upstream.url}/none`)).status).toBe(204);
      await until(async () => (await left('slots')) === 1);
      await expect(call(`${upstream.url}/broken`)).rejects.toThrow('fetch failed');
      await until(async () => (await left('slots')) === 1);
    });

    it('and asks for one of them, whatever the cost of the call', async () => {
      const response = await outbound.fetch(['slots', 'tokens'], { cost: 20 })(upstream.url);
      expect([await left('slots'), await left('tokens')]).toEqual([0, 80]);
      await response.arrayBuffer();
    });
  });

  /** Has calls wait behind one that goes on until they do. */
  async function order(ageing: string | number, calls: readonly (readonly [string, number])[]) {
    const call = outbound.fetch('slots', {
      priority: (request) => Number(request.headers.get('priority')),
      ageing,
    });
    const first = await call(upstream.url);
    const waiting = calls.map(async ([name, priority]) => {
      const response = await call(`${upstream.url}/${name}`, { headers: { priority: String(priority) } });
      await response.text();
    });
    await first.text();
    await Promise.all(waiting);
    return upstream.received.slice(1).map(({ url }) => url.slice(1));
  }

  describe('lets calls that wait go out', () => {
    it('by their priority, and then as they came', async () => {
      const calls = [
        ['sync', 0],
        ['sync-2', 0],
        ['click', 2],
        ['soon', 1],
        ['click-2', 2],
        ['never', -1],
      ] as const;
      expect(await order('1h', calls)).toEqual(['click', 'click-2', 'soon', 'sync', 'sync-2', 'never']);
    });

    it('as they came, where those that came earlier are old enough', async () => {
      expect(
        await order(0, [
          ['sync', 0],
          ['click', 9],
        ]),
      ).toEqual(['sync', 'click']);
    });
  });

  it.each<[string, unknown, unknown, string | RegExp]>([
    [
      'an unknown name',
      'nobody',
      undefined,
      "OutboundLimiter.fetch: unknown limit 'nobody', expected a defined limit:",
    ],
    [
      'no limit',
      undefined,
      undefined,
      /OutboundLimiter\.fetch: expected the name of a defined limit.+, received undefined/,
    ],
    ['an empty list', [], undefined, /OutboundLimiter\.fetch: expected the name of a defined limit.+, received \[\]/],
    ['one limit twice', ['few', 'few'], undefined, "the limit 'few' is in the list twice. List it once"],
    ['no options', 'few', 5, 'OutboundLimiter.fetch: expected an object of options, received 5'],
    ['an unknown option', 'few', { colour: 1 }, "unknown option 'colour', expected one of key, cost, timeout"],
    ['an empty key', 'few', { key: '' }, "key: expected a string that is not empty, or a function, received ''"],
    [
      'a class as key',
      'few',
      { key: class ByHost {} },
      /key: expected a string that is not empty, or a function, received .*ByHost/,
    ],
    [
      'a class as cost',
      'few',
      { cost: class ByHost {} },
      /cost: expected a whole number >= 0, or a function, received .*ByHost/,
    ],
    ['a cost', 'few', { cost: 0.5 }, 'cost: expected a whole number >= 0, or a function, received 0.5'],
    ['a timeout', 'few', { timeout: 'soon' }, /timeout: expected milliseconds or a duration.+, received 'soon'/],
    ['a settlement', 'few', { settle: 4 }, 'settle: expected a function, received 4'],
    ['a priority', 'few', { priority: NaN }, 'priority: expected a number, or a function, received NaN'],
    ['an ageing', 'few', { ageing: -1 }, /ageing: expected milliseconds or a duration.+, received -1/],
  ])('refuses %s where it is written', (_what, limits, options, message) => {
    const make = () => outbound.fetch(limits as string, options as FetchOptions);
    expect(make).toThrow(RateLimitConfigError);
    expect(make).toThrow(message);
  });

  it.each<[string, FetchOptions, string]>([
    [
      'key',
      { key: () => '' },
      "key for limit 'few': expected the function to return a string that is not empty, received ''",
    ],
    [
      'cost',
      { cost: async () => NaN },
      "cost for limit 'few': expected the function to return a whole number >= 0, received NaN",
    ],
    ['priority', { priority: () => Infinity }, 'priority: expected the function to return a number, received Infinity'],
  ])('refuses a wrong %s of a function before anything is sent', async (_what, options, message) => {
    const call = outbound.fetch('few', options)(upstream.url);
    await expect(call).rejects.toThrow(RateLimitArgumentError);
    await expect(call).rejects.toThrow(`OutboundLimiter.fetch.${message}`);
    await expect(outbound.fetch('few')('no url')).rejects.toThrow('Failed to parse URL');
    expect([upstream.received, await left('few')]).toEqual([[], 2]);
  });

  it('takes over a rate that is changed while calls wait', async () => {
    const call = outbound.fetch('few');
    await bodies([call(upstream.url), call(upstream.url)]);
    const waiting = call(upstream.url);
    await limiters.setRate('few', { rate: 5 });
    expect(await (await waiting).text()).toBe('3');
    await limiters.setMode('few', 'off');
    expect(await bodies(Array.from({ length: 9 }, () => call(upstream.url)))).toHaveLength(9);
  });

  it.each(['few', 'hourly'])('rejects those who wait when the app shuts down: %s', async (limit) => {
    const call = outbound.fetch(limit);
    await bodies([call(upstream.url)]);
    await limiters.for(limit).consume('global');
    const before = await left(limit);
    const waiting = expect(call(upstream.url)).rejects.toThrow(RateLimitStoreError);
    // A place in the queue is taken at once.
    await until(async () => limit === 'few' || (await left(limit)) < before);
    await app.close();
    await waiting;
    await expect(call(upstream.url)).rejects.toThrow('the app is shutting down');
  });
});

describe('OutboundLimiter', () => {
  it('can also be listed in the providers of a module, for one that is loaded later', async () => {
    const imports = [RateLimitModule.forRoot({ define: DEFINE })];
    const app = await Test.createTestingModule({ imports, providers: [OutboundLimiter] }).compile();
    const upstream = await Upstream.start();
    expect(await (await app.get(OutboundLimiter).fetch('few')(upstream.url)).text()).toBe('1');
    await upstream.close();
    await app.close();
  });

  it.each(['fetch', 'axios', 'dispatcher'])('is what the former LimiterService.%s names', async (method) => {
    const app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ define: DEFINE })] }).compile();
    const former = app.get<Record<string, () => void>>(LimiterService);
    const message = `import OutboundLimiter from 'nestjs-sluice/outbound', inject it, and call its ${method}`;
    expect(() => former[method]!()).toThrow(`LimiterService.${method} has moved: ${message}`);
    await app.close();
  });
});
