import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import fc from 'fast-check';
import { type LimitDefinition, MemoryStore, RateLimit } from '../../../lib/index.js';
import { HttpApp } from '../../e2e/http-app.js';
import { optionsOf } from '../../support/limits/arbitraries.js';
import { propertyRuns } from '../../support/limits/property-runs.js';
import { ask, compile, ManualClock } from '../../support/limits/stores.js';

/** A client knows no more than what the header says. */
interface Policy {
  readonly quota: number;
  readonly windowMs: number;
}

function policyOf(response: Response): Policy {
  const [, q, w] = /;q=(\d+);w=(\d+)$/.exec(response.headers.get('ratelimit-policy')!)!;
  return { quota: Number(q), windowMs: Number(w) * 1000 };
}

const limits: Record<string, LimitDefinition> = {
  'gcra with a burst': { algo: 'gcra', rate: 20, interval: '1s', burst: 40 },
  'token-bucket with a burst': { algo: 'token-bucket', rate: 20, interval: '1s', burst: 40 },
  'token-bucket that refills at once': {
    algo: 'token-bucket',
    rate: 20,
    interval: '1s',
    burst: 30,
    refill: 'intervally',
  },
  'token-bucket with a small burst': { algo: 'token-bucket', rate: 60, interval: '1m', burst: 10 },
  'sliding-window': { algo: 'sliding-window', rate: 10, interval: '10s' },
  'sliding-window of few slices': { algo: 'sliding-window', rate: 10, interval: '10s', slices: 2 },
  'sliding-log': { algo: 'sliding-log', rate: 10, interval: '10s' },
  'fixed-window': { algo: 'fixed-window', rate: 10, interval: '10s' },
};

describe('a client that paces itself by RateLimit-Policy', () => {
  let app: HttpApp | undefined;
  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  it.each(Object.entries(limits))('is never refused: %s', async (_, limit) => {
    @Controller()
    class PacedController {
      @Get()
      @RateLimit(limit)
      list() {
        return 'ok';
      }
    }
    app = await HttpApp.start('fastify', { controllers: [PacedController] });
    const { clock } = app;
    const policy = policyOf(await app.get('/'));
    clock.advance(policy.windowMs);
    const even = policy.windowMs / policy.quota;
    for (let sent = 0; sent < 3 * policy.quota; sent++) {
      expect((await app.get('/')).status).toBe(200);
      clock.advance(even);
    }
    for (let round = 0; round < 3; round++) {
      clock.advance(policy.windowMs);
      expect(await app.statuses(policy.quota, '/')).not.toContain(429);
    }
  });
});

it.each(['gcra', 'token-bucket', 'leaky-bucket', 'sliding-window', 'sliding-log', 'fixed-window'] as const)(
  '%s allows its quota in every stretch of its pace, however requests are spread',
  async (algo) => {
    const steps = fc.array(
      fc.record({
        pause: fc.double({ min: 0, max: 1, noNaN: true }),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
      {
        maxLength: 20,
      },
    );
    await fc.assert(
      fc.asyncProperty(optionsOf[algo], steps, async (options, history) => {
        const clock = new ManualClock();
        const store = new MemoryStore({ clock: clock.now, slackMs: Infinity });
        const limit = compile(options);
        const pace = limit.paceMs(0) * 1000;
        const sent: { at: number; units: number }[] = [];
        for (const { pause, share } of history) {
          clock.advanceMs((pause * pace) / 1000);
          const now = clock.now();
          const recent = sent.filter(({ at }) => at > now - pace).reduce((sum, { units }) => sum + units, 0);
          const units = Math.floor(share * (limit.quota - recent));
          if (units < 1) continue;
          expect(await ask(store, limit, { cost: units })).toMatchObject({ allowed: true });
          sent.push({ at: now, units });
        }
        await store.close();
      }),
      { numRuns: propertyRuns(60) },
    );
  },
);
