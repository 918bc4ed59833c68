import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { TestingModule } from '@nestjs/testing';
import type { OutboundLimiter, FetchOptions } from '../../../lib/integrations/outbound/index.js';
import type { LimiterService } from '../../../lib/index.js';
import { retryWaitMs } from '../../../lib/integrations/outbound/outbound-call.js';
import { until } from '../../support/time/until.js';
import { startLimiters, Upstream } from './upstream.js';

const DEFINE = {
  api: { algo: 'fixed-window', rate: 100, interval: '1h' },
  slots: { algo: 'concurrency', limit: 1, ttl: '1m' },
} as const;

const report = (retryAfterMs?: number, refused = true) => ({ limits: [], refused, retryAfterMs });

describe('calls that were refused', () => {
  let app: TestingModule;
  let limiters: LimiterService;
  let outbound: OutboundLimiter;
  let upstream: Upstream;
  /** What is answered, one after another; then 200. */
  let refusals: [status: number, headers: Record<string, string>][];

  beforeEach(async () => {
    ({ app, limiters, outbound } = await startLimiters({ define: DEFINE }));
    refusals = [];
    upstream = await Upstream.start((_, response, number) => {
      const [status, headers] = refusals.shift() ?? [200, {}];
      response.writeHead(status, headers).end(String(number));
    });
  });

  afterEach(async () => {
    await upstream.close();
    await app.close();
  });

  const left = async (limit: string) => (await limiters.for(limit).peek('global')).remaining;
  const fetchWith = (options: FetchOptions = {}, limits: string | string[] = 'api') =>
    outbound.fetch(limits, { retry: { attempts: 3 }, ...options });

  it('are sent again after what Retry-After says, with the same body, and charged again', async () => {
    refusals = [
      [429, { 'Retry-After': '0.05' }],
      [503, { 'Retry-After-Ms': '30' }],
    ];
    const start = performance.now();
    const response = await fetchWith()(`${upstream.url}/a`, { method: 'POST', body: 'hello' });
    expect([response.status, await response.text()]).toEqual([200, '3']);
    expect(performance.now() - start).toBeGreaterThanOrEqual(79);
    expect(upstream.received).toEqual(Array.from({ length: 3 }, () => ({ method: 'POST', url: '/a', body: 'hello' })));
    expect(await left('api')).toBe(97);
  });

  it('are sent no more often than they may be, and the last refusal is the response', async () => {
    refusals = Array.from({ length: 5 }, () => [429, { 'Retry-After': '0' }]);
    const response = await fetchWith()(upstream.url);
    expect([response.status, await response.text(), upstream.received.length]).toEqual([429, '3', 3]);
  });

  it('are not sent again unless that is asked for', async () => {
    refusals = [[429, { 'Retry-After': '0' }]];
    expect((await outbound.fetch('api')(upstream.url)).status).toBe(429);
  });

  it('are sent again from a Request, whose body is kept', async () => {
    refusals = [[429, { 'Retry-After': '0' }]];
    await fetchWith()(new Request(upstream.url, { method: 'PUT', body: 'again' }));
    expect(upstream.received.map(({ body }) => body)).toEqual(['again', 'again']);
  });

  it('are not sent again if their body is a stream', async () => {
    refusals = [[429, { 'Retry-After': '0' }]];
    const body = new Blob(['once']).stream();
    const response = await fetchWith()(upstream.url, { method: 'POST', body, duplex: 'half' });
    expect([response.status, upstream.received.map((each) => each.body)]).toEqual([429, ['once']]);
  });

  it('are not sent again where there is no time, and the refusal is the response', async () => {
    refusals = [[429, { 'Retry-After': '30' }]];
    const response = await fetchWith({ timeout: '1s' })(upstream.url);
    expect([response.status, await response.text()]).toEqual([429, '1']);
    refusals = [[429, { 'Retry-After': '0' }]];
    await limiters.for('api').penalize('global', 98);
    const last = await fetchWith({ timeout: '1s' })(upstream.url);
    expect([last.status, await last.text()]).toEqual([429, '2']);
  });

  it('are not sent again once their signal aborts', async () => {
    refusals = [[429, { 'Retry-After': '30' }]];
    const controller = new AbortController();
    const call = expect(fetchWith()(upstream.url, { signal: controller.signal })).rejects.toThrow('enough');
    await until(() => upstream.received.length === 1);
    controller.abort(new Error('enough'));
    await call;
    expect(await left('api')).toBe(99);
  });

  it('hold nothing while they wait, and go before calls that came later', async () => {
    refusals = [[429, { 'Retry-After': '0.05' }]];
    const send = fetchWith({ learn: true }, ['api', 'slots']);
    const order: string[] = [];
    const call = async (name: string) => {
      const response = await send(`${upstream.url}/${name}`);
      order.push(name);
      await response.text();
    };
    const first = call('first');
    await until(() => upstream.received.length === 1);
    await Promise.all([first, call('second'), call('third')]);
    expect(order).toEqual(['first', 'second', 'third']);
    await until(async () => (await left('slots')) === 1);
  });

  it('are settled once, in the end', async () => {
    refusals = [[429, { 'Retry-After': '0' }]];
    const response = await fetchWith({ cost: 10, settle: () => 4 })(upstream.url);
    expect(response.status).toBe(200);
    await until(async () => (await left('api')) === 86);
  });
});

describe('the wait before a call is sent again', () => {
  const get = { method: 'GET', hasKey: false, canRepeat: true };

  it('is never shorter than the upstream says, and a tenth longer at most', () => {
    expect(retryWaitMs(get, report(5000), 429, 1, 0)).toBe(5000);
    expect(retryWaitMs(get, report(5000), 429, 1, 1)).toBe(5500);
    expect(retryWaitMs(get, report(3_600_000), 429, 1, 1)).toBe(3_601_000);
  });

  it('grows where the upstream does not say', () => {
    const waits = [1, 2, 3, 20].map((attempt) =>
      [0, 1].map((random) => retryWaitMs(get, report(), 429, attempt, random)),
    );
    expect(waits).toEqual([
      [250, 500],
      [500, 1000],
      [1000, 2000],
      [15_000, 30_000],
    ]);
  });

  it.each([
    ['not refused', get, report(5, false), 200, false],
    ['a body that is gone', { ...get, canRepeat: false }, report(5), 429, false],
    ['a POST that was refused', { ...get, method: 'POST' }, report(), 429, true],
    ['a POST that may have been begun', { ...get, method: 'post' }, report(), 503, false],
    ['a POST that the upstream wants again', { ...get, method: 'POST' }, report(5), 503, true],
    ['a POST with a key', { ...get, method: 'POST', hasKey: true }, report(), 503, true],
    ['a DELETE', { ...get, method: 'delete' }, report(), 503, true],
  ])('%s', (_what, sent, told, status, repeats) => {
    expect(retryWaitMs(sent, told, status, 1, 0.5) !== undefined).toBe(repeats);
  });
});
