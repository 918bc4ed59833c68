import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { OutgoingHttpHeaders } from 'node:http';
import type { TestingModule } from '@nestjs/testing';
import type { OutboundLimiter, FetchOptions } from '../../../lib/integrations/outbound/index.js';
import type { LimitDefinition, LimiterService } from '../../../lib/index.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { variants } from '../../support/tier.js';
import { until } from '../../support/time/until.js';
import { startLimiters, Upstream } from './upstream.js';

const day = { rate: 1000, interval: '1d' } as const;
const DEFINE = {
  'fixed-window': { algo: 'fixed-window', ...day },
  'sliding-window': { algo: 'sliding-window', ...day },
  'sliding-log': { algo: 'sliding-log', ...day },
  'calendar-window': { algo: 'calendar-window', rate: 1000, period: 'year' },
  'token-bucket': { algo: 'token-bucket', ...day },
  gcra: { algo: 'gcra', ...day, burst: 1000 },
} satisfies Record<string, LimitDefinition>;
const LIMITS = variants(Object.keys(DEFINE) as (keyof typeof DEFINE)[]);

describe.each(['in process', 'on Redis'])('an upstream that reports no usable reset, learnt %s', (place) => {
  let app: TestingModule;
  let limiters: LimiterService;
  let outbound: OutboundLimiter;
  let upstream: Upstream;
  let headers: OutgoingHttpHeaders;

  beforeEach(async () => {
    const redis = place === 'in process' ? {} : { redis: process.env['TEST_REDIS_URL']!, prefix: freshPrefix() };
    ({ app, limiters, outbound } = await startLimiters({
      define: DEFINE,
      onStoreError: 'deny',
      timeout: '5s',
      ...redis,
    }));
    upstream = await Upstream.start((_, response) => void response.writeHead(200, headers).end('ok'));
  });

  afterEach(async () => {
    await upstream.close();
    await app.close();
  });

  const peek = (limit: string) => limiters.for(limit as never).peek('global');
  async function call(limit: string, reported: OutgoingHttpHeaders, options: FetchOptions = {}) {
    headers = reported;
    await (await outbound.fetch(limit, { learn: true, timeout: '1h', ...options })(upstream.url)).text();
  }
  const none = { 'x-ratelimit-limit': '1000', 'x-ratelimit-remaining': '0' };

  it.each(LIMITS)('keeps a %s from sending for `maxLearnedWait` at most', async (limit) => {
    const options: FetchOptions = { maxLearnedWait: '200ms' };
    for (const reported of [none, { ...none, 'x-ratelimit-reset': 'soon' }, { ...none, 'x-ratelimit-reset': '-5' }]) {
      await call(limit, reported, options);
      // The next one waits for it.
      await call(limit, {}, options);
    }
    // Nothing of what was reported is charged for longer.
    expect((await peek(limit)).remaining).toBeGreaterThan(990);
  });

  it.each(LIMITS)('keeps a %s as empty as the upstream until then', async (limit) => {
    const options: FetchOptions = { maxLearnedWait: '80s' };
    await call(limit, { ...none, 'x-ratelimit-remaining': '5' }, options);
    await until(async () => (await peek(limit)).remaining === 5);
    await call(limit, none, options);
    await until(async () => !(await peek(limit)).allowed);
    const { retryAfterMs } = await peek(limit);
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(retryAfterMs).toBeLessThanOrEqual(80_000);
  });

  it.each(LIMITS)('keeps a %s no longer if its units come back gradually', async (limit) => {
    const parser: FetchOptions['parser'] = () => ({
      limits: [{ name: '', quota: 1000, remaining: 0, resetAfterMs: 86_400_000, refill: 'gradual' }],
    });
    for (let i = 0; i < 3; i++) await call(limit, {}, { maxLearnedWait: '200ms', parser });
  });
});

it('waits for a steady limit as before, if its next units come back in time', async () => {
  const { app, limiters, outbound } = await startLimiters({ define: DEFINE });
  const headers = { 'x-ratelimit-limit': '1000', 'x-ratelimit-remaining': '0' };
  const upstream = await Upstream.start((_, response) => void response.writeHead(200, headers).end('ok'));
  await (await outbound.fetch('gcra', { learn: true })(upstream.url)).text();
  await until(async () => !(await limiters.for('gcra').peek('global')).allowed);
  const { retryAfterMs } = await limiters.for('gcra').peek('global');
  expect(retryAfterMs).toBeLessThanOrEqual(86_400);
  await upstream.close();
  await app.close();
});
