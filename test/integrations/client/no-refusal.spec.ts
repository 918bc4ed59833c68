import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import express from 'express';
import { rateLimit } from 'express-rate-limit';
import { type LimitDefinition, RateLimit, type RateLimitModuleOptions } from '../../../lib/index.js';
import { paced } from '../../../lib/integrations/client/index.js';
import { HttpApp } from '../../e2e/http-app.js';
import { variants } from '../../support/tier.js';
import { callers, MovedCalls } from './moved-calls.js';

const CALLERS = 50;
const RATE = 10;

/** What is left of 100 % of the limit after the time that responses take. */
const LEAST_SHARE = 0.95;

async function expectAllUsed(calls: MovedCalls, url: (call: number) => string, count: number): Promise<void> {
  const fetch = paced(calls.fetch);
  let call = 0;
  const ms = await calls.during(callers(CALLERS, count, async () => fetch(url(call++))));
  expect(calls.statuses.filter((status) => status !== 200)).toEqual([]);
  expect(calls.statuses).toHaveLength(count);
  // Without the burst at the start, which takes no time.
  expect((count - RATE) / (RATE * (ms / 1000))).toBeGreaterThanOrEqual(LEAST_SHARE);
}

describe('paced, with 50 callers at a limit of 10 calls a second', () => {
  let close: () => Promise<unknown>;
  afterEach(async () => {
    jest.useRealTimers();
    await close();
  });

  async function startOurs(
    limit: LimitDefinition,
    headers: RateLimitModuleOptions['headers'],
  ): Promise<MovedCalls & { url: string }> {
    @Controller()
    class Items {
      @Get('items/:id')
      @RateLimit(limit)
      get() {
        return 'ok';
      }
    }
    const app = await HttpApp.start('express', { controllers: [Items], limits: { headers } });
    close = () => app.close();
    return Object.assign(new MovedCalls(fetch, (ms) => app.clock.advance(ms)), { url: app.url });
  }

  // A sliding window is empty a slice later than the others: 1.1 s, which the header reports as 2 s.
  const algorithms = ['gcra', 'fixed-window', 'token-bucket', 'sliding-log'] as const;
  it.each(variants(algorithms))('uses a limit of ours with %s, and is never refused', async (algo) => {
    const calls = await startOurs({ name: 'items', algo, rate: RATE, interval: '1s' } as LimitDefinition, 'draft-8');
    await expectAllUsed(calls, () => `${calls.url}/items/1`, 150);
  });

  it.each(variants(['draft-6', 'legacy'] as const))('reads %s headers', async (headers) => {
    const calls = await startOurs({ name: 'items', algo: 'fixed-window', rate: RATE, interval: '1s' }, headers);
    await expectAllUsed(calls, () => `${calls.url}/items/1`, 100);
  });

  it('counts calls of different paths together', async () => {
    const calls = await startOurs({ name: 'items', algo: 'gcra', rate: RATE, interval: '1s' }, 'draft-8');
    await expectAllUsed(calls, (call) => `${calls.url}/items/${call}`, 100);
  });

  const drafts = ['draft-8', 'draft-7', 'draft-6'] as const;
  it.each(variants(drafts))(
    'uses a limit of express-rate-limit with %s, and is never refused',
    async (standardHeaders) => {
      const calls = new MovedCalls(fetch);
      const app = express();
      app.use(rateLimit({ windowMs: 1000, limit: RATE, standardHeaders, legacyHeaders: false }));
      app.get('/', (_request, response) => void response.send('ok'));
      const server = await listening(app as RequestListener);
      close = async () => {
        server.closeAllConnections();
        server.close();
      };
      await expectAllUsed(calls, () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, 150);
    },
  );
});

function listening(listener: RequestListener): Promise<Server> {
  return new Promise((resolve) => {
    const server = createServer(listener).listen(0, '127.0.0.1', () => resolve(server));
  });
}
