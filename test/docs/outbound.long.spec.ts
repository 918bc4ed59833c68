import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { HttpService } from '@nestjs/axios';
import axios from 'axios';
import { readFileSync } from 'node:fs';
import type { TestingModule } from '@nestjs/testing';
import { Agent, fetch as fetchOfUndici, getGlobalDispatcher, setGlobalDispatcher } from 'undici';
import type { LimiterService } from '../../lib/index.js';
import { type OutboundLimiter, upstreams } from '../../lib/integrations/outbound/index.js';
import { startLimiters, Upstream } from '../integrations/outbound/upstream.js';
import { until } from '../support/time/until.js';
import { untriedCode } from './rows.js';

const GUIDE = 'docs/guides/outbound.md';
const REFERENCE = 'docs/reference/outbound.md';
const SPEC = 'test/docs/outbound.long.spec.ts';

const accountOf = (request: Request) => request.headers.get('account') ?? 'none';
const tokensOf = async (request: Request) => (await request.text()).length;
const tokensUsed = async (response: Response) => Number(await response.text());

describe('the guide of calls to others', () => {
  let limiters: LimiterService;
  let outbound: OutboundLimiter;
  let app: TestingModule;
  let upstream: Upstream;
  let headers: Record<string, string>;
  let api: string;

  beforeEach(async () => {
    ({ app, limiters, outbound } = await startLimiters({
      define: Object.fromEntries(
        ['openai', 'shopify', 'github', 'shop', 'supplier', 'calls', 'tokens'].map((name) => [
          name,
          { algo: 'fixed-window', rate: 1000, interval: '1h' } as const,
        ]),
      ),
    }));
    headers = {};
    upstream = await Upstream.start((_, response) => void response.writeHead(200, headers).end('7'));
    api = upstream.url;
  });

  afterEach(async () => {
    await upstream.close();
    await app.close();
  });

  const left = async (limit: string, key = 'global') => (await limiters.for(limit).peek(key)).remaining;

  it('limits fetch, and settles what a call cost', async () => {
    const [body, { signal }] = ['x'.repeat(20), new AbortController()];
    const openai = outbound.fetch('openai', {
      key: (request) => accountOf(request),
      cost: (request) => tokensOf(request),
      timeout: '30s',
      learn: true,
      retry: { attempts: 3 },
      settle: (response) => tokensUsed(response),
    });
    const answer = await openai(`${api}/v1/chat`, { method: 'POST', body, signal });
    expect(await answer.text()).toBe('7');
    await until(async () => (await left('openai', 'none')) === 993);
  });

  it('finds out a rate that nobody knows', async () => {
    const partner = outbound.fetch({ algo: 'learned', name: 'partner' }, { learn: true, retry: { attempts: 3 } });
    expect((await partner(api)).status).toBe(200);
  });

  it('holds a configured rate that may be too high', async () => {
    const supplier = outbound.fetch(['supplier', { algo: 'learned', name: 'supplier-learnt' }], { learn: true });
    expect([(await supplier(api)).status, await left('supplier')]).toEqual([200, 999]);
  });

  it('limits axios and undici', async () => {
    const httpService = new HttpService(axios.create());
    const [options] = [{}];
    outbound.axios('shopify', options).attach(httpService.axiosRef);
    await httpService.axiosRef.get(api);
    const agent = new Agent();
    const composed = agent.compose(outbound.dispatcher('github', options));
    await (await fetchOfUndici(api, { dispatcher: composed })).text();
    await (await outbound.fetch('openai', options)(api)).text();
    expect([await left('shopify'), await left('github'), await left('openai')]).toEqual([999, 999, 999]);
    await agent.close();
  });

  it('takes units of several limits', async () => {
    const before = getGlobalDispatcher();
    const github = outbound.dispatcher(['github', { name: 'parallel', algo: 'concurrency', limit: 20, ttl: '1m' }]);
    setGlobalDispatcher(new Agent().compose(github));
    await (await fetchOfUndici(api)).text();
    await getGlobalDispatcher().close();
    setGlobalDispatcher(before);
    expect(await left('github')).toBe(999);
  });

  it('orders calls', async () => {
    const shop = outbound.fetch('shop', {
      priority: (request) => (request.headers.has('x-user') ? 1 : 0),
      ageing: '10m',
    });
    expect((await shop(api, { headers: { 'x-user': '1' } })).status).toBe(200);
  });

  it("learns by a parser of the user's, and of limits by their names", async () => {
    const supplier = outbound.fetch('supplier', {
      learn: true,
      parser: ({ headers }) => ({ limits: [{ name: '', remaining: Number(headers.get('x-calls-left')) }] }),
    });
    headers = { 'x-calls-left': '5' };
    await supplier(api);
    await until(async () => (await left('supplier')) === 5);
    const models = outbound.fetch(['calls', 'tokens'], { learn: { calls: 'requests', tokens: 'input-tokens' } });
    headers = { 'anthropic-ratelimit-requests-remaining': '50', 'anthropic-ratelimit-input-tokens-remaining': '400' };
    await models(api);
    await until(async () => (await left('calls')) === 50 && (await left('tokens')) === 400);
  });

  it('names every upstream of the table', () => {
    const rows = readFileSync(REFERENCE, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('| `'));
    for (const name of Object.keys(upstreams)) {
      expect([name, rows.some((row) => row.includes(`\`${name}\``))]).toEqual([name, true]);
    }
  });

  it('has no other code', () => {
    expect(untriedCode(GUIDE, SPEC, 'started')).toEqual([]);
    expect(untriedCode(REFERENCE, SPEC, 'started')).toEqual([]);
  });
});
