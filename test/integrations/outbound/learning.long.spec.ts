import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { OutgoingHttpHeaders } from 'node:http';
import type { TestingModule } from '@nestjs/testing';
import type { OutboundLimiter, FetchOptions } from '../../../lib/integrations/outbound/index.js';
import { type LimiterService, RateLimitTimeoutError } from '../../../lib/index.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { startLimiters, Upstream } from './upstream.js';
import { atPlace } from '../../support/limits/at-place.js';

const DEFINE = {
  api: { algo: 'fixed-window', rate: 1000, interval: '1h' },
  calls: { algo: 'fixed-window', rate: 100, interval: '1h' },
  slots: { algo: 'concurrency', limit: 5, ttl: '1m' },
} as const;

const failing = () => {
  throw new Error('of the user');
};
const ofUser: FetchOptions['parser'] = ({ headers }) => ({
  limits: [{ name: '', remaining: Number(headers.get('x-left')) }],
});

describe.each(['in process', 'on Redis'])('what an upstream says, learnt %s', (place) => {
  let prefix: string;
  let app: TestingModule;
  let limiters: LimiterService;
  let outbound: OutboundLimiter;
  let upstream: Upstream;
  let headers: OutgoingHttpHeaders;
  let status: number;
  let body: string;

  const start = () => {
    const redis = place === 'in process' ? {} : { redis: process.env['TEST_REDIS_URL']!, prefix };
    return startLimiters({ define: DEFINE, onStoreError: 'deny', ...redis });
  };

  beforeEach(async () => {
    prefix = freshPrefix();
    ({ app, limiters, outbound } = await start());
    [headers, status, body] = [{}, 200, 'ok'];
    upstream = await Upstream.start((_, response) => void response.writeHead(status, headers).end(body));
  });

  afterEach(async () => {
    await upstream.close();
    await app.close();
  });

  const peek = (limit: string, of = limiters) => of.for(limit).peek('global');
  /** Makes a call that an upstream answers so. */
  async function call(options: FetchOptions, told: OutgoingHttpHeaders, limits: string | string[] = 'api') {
    headers = told;
    const response = await outbound.fetch(limits, { learn: true, ...options })(upstream.url, {
      method: 'POST',
      body: '1',
    });
    await response.text();
  }

  it('leaves no more than the upstream has', async () => {
    await call({}, { RateLimit: '"default";r=50;t=30' });
    await until(async () => (await peek('api')).remaining === 50);
    await call({}, { RateLimit: '"default";r=700;t=30' });
    expect((await peek('api')).remaining).toBe(50);
  });

  it('takes off what is in flight', async () => {
    const waiting = await Upstream.start((request, response) => {
      if (request.url === '/now') response.writeHead(200, { RateLimit: '"default";r=50;t=30' }).end();
      else waiting.held.push(response);
    });
    const send = outbound.fetch('api', { learn: true });
    const slow = [send(`${waiting.url}/slow`), send(`${waiting.url}/slow`)];
    await until(() => waiting.held.length === 2);
    await send(`${waiting.url}/now`);
    // Two more than are in flight, and one in fifty.
    await until(async () => (await peek('api')).remaining === 45);
    for (const response of waiting.held) response.end();
    await Promise.all(slow);
    await send(`${waiting.url}/now`);
    await until(async () => (await peek('api')).remaining === 50);
    await waiting.close();
  });

  it('blocks until the reset where nothing is left', async () => {
    await call({}, { 'X-RateLimit-Limit': '60', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '20' });
    await until(async () => !(await peek('api')).allowed);
    const { retryAfterMs } = await peek('api');
    expect(retryAfterMs).toBeGreaterThan(15_000);
    expect(retryAfterMs).toBeLessThanOrEqual(20_000);
    await expect(call({ timeout: '1s' }, {})).rejects.toThrow(RateLimitTimeoutError);
  });

  it.each([429, 503])('blocks until Retry-After of a %d is over', async (refusal) => {
    status = refusal;
    await call({}, { 'Retry-After': '20' }, ['api', 'slots']);
    await until(async () => !(await peek('api')).allowed);
    for (const limit of ['api', 'slots']) {
      const { retryAfterMs, allowed } = await peek(limit);
      expect([limit, allowed, retryAfterMs > 15_000 && retryAfterMs <= 20_000]).toEqual([limit, false, true]);
    }
  });

  it('believes no longer wait than the longest one', async () => {
    status = 429;
    await call({ maxLearnedWait: '5s' }, { 'Retry-After': '99999999' });
    await until(async () => !(await peek('api')).allowed);
    expect((await peek('api')).retryAfterMs).toBeLessThanOrEqual(5000);
    await limiters.for('api').unblock('global');
    await call({}, { 'Retry-After': '99999999' });
    await until(async () => !(await peek('api')).allowed);
    expect((await peek('api')).retryAfterMs).toBeLessThanOrEqual(3_600_000);
  });

  it.each<[string, OutgoingHttpHeaders]>([
    ['nothing', {}],
    ['garbage', { RateLimit: '???', 'X-RateLimit-Remaining': 'many', 'Retry-After': 'x' }],
    ['negative numbers', { 'X-RateLimit-Remaining': '-5', 'X-RateLimit-Reset': '-1', 'Retry-After': '-9' }],
    ['more than there is', { 'X-RateLimit-Remaining': '999999999999999999' }],
    ['a Retry-After with a 200', { 'Retry-After': '50' }],
  ])('learns nothing where the upstream says %s', async (_what, told) => {
    await call({}, told);
    expect(await peek('api')).toMatchObject({ allowed: true, remaining: 999 });
  });

  it('learns nothing unless it is told to, or where a parser fails', async () => {
    const told = { RateLimit: '"default";r=5;t=30' };
    await call({ learn: false }, told);
    await call({ parser: failing }, told);
    expect(await peek('api')).toMatchObject({ remaining: 998 });
  });

  const openai = {
    'x-ratelimit-remaining-requests': '40',
    'x-ratelimit-reset-requests': '1s',
    'x-ratelimit-remaining-tokens': '600',
    'x-ratelimit-reset-tokens': '6m0s',
  };

  it('learns of requests, or of what calls cost', async () => {
    await call({ cost: 10, parser: 'openai' }, openai);
    await until(async () => (await peek('api')).remaining === 600);
    await call({}, openai, 'calls');
    await until(async () => (await peek('calls')).remaining === 40);
  });

  it('learns of the limits that it is told to follow', async () => {
    await call({ learn: { api: 'tokens', calls: 'requests' } }, openai, ['api', 'calls', 'slots']);
    await until(async () => (await peek('api')).remaining === 600);
    expect((await peek('calls')).remaining).toBe(40);
    expect((await peek('slots')).remaining).toBe(5);
  });

  it("learns by a parser of the user's", async () => {
    await call({ parser: ofUser }, { 'X-Left': '17' });
    await until(async () => (await peek('api')).remaining === 17);
  });

  it('learns from the body, which is there for the caller, too', async () => {
    body = JSON.stringify({
      extensions: { cost: { throttleStatus: { maximumAvailable: 1000, currentlyAvailable: 300, restoreRate: 50 } } },
    });
    headers = { 'content-type': 'application/json; charset=utf-8' };
    const send = outbound.fetch('api', { learn: true, parser: 'shopify-graphql', cost: 10 });
    expect(await (await send(upstream.url)).text()).toBe(body);
    await until(async () => (await peek('api')).remaining === 300);
    body = 'no JSON at all';
    expect(await (await send(upstream.url)).text()).toBe(body);
  });

  it('forgets what was in flight when a call fails', async () => {
    const send = outbound.fetch('api', { learn: true });
    const dead = await Upstream.start();
    const { url } = dead;
    await dead.close();
    await expect(send(url)).rejects.toThrow('fetch failed');
    await call({}, { RateLimit: '"default";r=50;t=30' });
    await until(async () => (await peek('api')).remaining === 50);
  });

  if (place === 'on Redis') {
    it('holds for all instances', async () => {
      const other = await start();
      try {
        await call({}, { RateLimit: '"default";r=50;t=30' });
        await until(async () => (await peek('api', other.limiters)).remaining === 50);
        status = 429;
        await call({}, { 'Retry-After': '20' });
        await until(async () => !(await peek('api', other.limiters)).allowed);
        const waiting = other.outbound.fetch('api', { timeout: '1s' })(upstream.url);
        await expect(waiting).rejects.toMatchObject({ decision: { allowed: false, remaining: 0 } });
      } finally {
        await other.app.close();
      }
    });
  }

  it.each<[string, unknown, string]>([
    [
      'learn',
      5,
      "learn: expected true, false, or the names of the upstream's limits by those of ours, such as { openai: 'tokens' }, received 5",
    ],
    [
      'learn',
      { api: 1 },
      "learn: expected true, false, or the names of the upstream's limits by those of ours, such as { openai: 'tokens' }, received { api: 1 }",
    ],
    ['learn', { apy: 'tokens' }, "learn: expected names of the limits of the calls, 'api', received 'apy'"],
    [
      'parser',
      'nobody',
      "parser: expected one of rate-limit, x-rate-limit, github, openai, anthropic, shopify, shopify-graphql, stripe, slack, discord, a function, or { parse, readsBody }, received 'nobody'",
    ],
    [
      'parser',
      'toString',
      "parser: expected one of rate-limit, x-rate-limit, github, openai, anthropic, shopify, shopify-graphql, stripe, slack, discord, a function, or { parse, readsBody }, received 'toString'",
    ],
    [
      'parser',
      { parse: 5 },
      'parser: expected one of rate-limit, x-rate-limit, github, openai, anthropic, shopify, shopify-graphql, stripe, slack, discord, a function, or { parse, readsBody }, received { parse: 5 }',
    ],
    [
      'maxLearnedWait',
      'long',
      "maxLearnedWait: expected milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), at most 1 year, received 'long'",
    ],
    ['retry', 3, 'retry: expected an object such as { attempts: 3 }, received 3'],
  ])('refuses a wrong %s (%p)', (option, value, message) => {
    expect(() => outbound.fetch('api', { [option]: value })).toThrow(atPlace('OutboundLimiter.fetch', message));
  });

  it.each<[unknown, string]>([
    [{}, 'attempts: missing, expected a whole number >= 1'],
    [{ attempts: 0 }, 'attempts: expected a whole number >= 1, received 0'],
    [{ attempts: 2, wait: 5 }, "unknown option 'wait', expected one of attempts"],
  ])('refuses a wrong retry (%p)', (retry, message) => {
    const make = () => outbound.fetch('api', { retry } as FetchOptions);
    expect(make).toThrow(atPlace('OutboundLimiter.fetch.retry', message));
  });
});
