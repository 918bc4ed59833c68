import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import {
  formatExplanation,
  LimiterService,
  type ListEntry,
  RateLimit,
  RateLimitModule,
  SkipRateLimit,
} from '../../../lib/index.js';
import { TriedApp } from '../../docs/tried-app.js';
import { RatesApp } from '../../app/overrides/overrides-app.js';
import { PROPERTY_TIMEOUT_MS, propertyRuns } from '../../support/limits/property-runs.js';
import { connectRedis, freshPrefix, ManualClock, storeKinds } from '../../support/limits/stores.js';
import { explained, explainFirst, lastExplained } from './explaining-guard.js';

const HERE = '127.0.0.1';
const hour = { algo: 'fixed-window', interval: '1h' } as const;
const define = {
  api: { ...hour, rate: 2, key: () => 'tenant:acme' },
  address: { ...hour, rate: 3 },
  tried: { ...hour, rate: 1, mode: 'shadow' },
} as const;

@Controller()
class RoutesController {
  @Get('both')
  @RateLimit('api', 'address')
  both() {
    return 'ok';
  }

  @Get('shadow')
  @RateLimit('tried', 'address')
  shadow() {
    return 'ok';
  }

  @Get('late')
  @RateLimit('address', { name: 'late', ...hour, rate: 2, phase: 'authenticated', key: () => 'tenant:acme' })
  late() {
    return 'ok';
  }

  @Get('free')
  free() {
    return 'ok';
  }

  @Get('bare')
  @SkipRateLimit()
  bare() {
    return 'ok';
  }
}

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.quit());

const entry = fc.constantFrom<ListEntry>(
  { ip: HERE },
  { ip: '127.0.0.0/8' },
  { ip: '10.0.0.0/8' },
  { identity: 'tenant:acme' },
  { pattern: 'tenant:*' },
  { pattern: 'ip:*' },
);
const change = fc.record({
  entry,
  what: fc.constantFrom('allow', 'deny', 'deny', 'unlist'),
  limit: fc.constantFrom(undefined, undefined, 'api', 'address', 'tried'),
});
const path = fc.constantFrom('both', 'both', 'shadow', 'late', 'free', 'bare');

describe.each(Object.entries(storeKinds))(
  'what is explained under lists is what follows, on a %s',
  (_, make) => {
    it('for requests and for code', async () => {
      const steps = fc.array(fc.oneof({ weight: 1, arbitrary: change }, { weight: 2, arbitrary: path }), {
        minLength: 1,
        maxLength: 10,
      });
      const history = fc.asyncProperty(steps, async (all) => {
        const store = make(new ManualClock(), redis);
        const app = await TriedApp.start(
          {
            imports: [RateLimitModule.forRoot({ store, define, timeout: '10s', guard: 'custom' })],
            controllers: [RoutesController],
            providers: explainFirst,
          },
          { ownStore: true },
        );
        try {
          const service = app.limiters;
          for (const step of all) {
            if (typeof step === 'object') {
              const { what, entry: listed, limit } = step;
              const options = limit === undefined ? {} : { limit };
              if (what === 'unlist') await service.unlist(listed, options);
              else await service[what](listed, options);
              continue;
            }
            const key = ['tenant:acme', `ip:${HERE}`];
            const route = await service.explain({ controller: 'RoutesController', handler: step, key });
            const count = explained.length;
            const { status, headers } = await app.get(`/${step}`);
            expect(explained).toHaveLength(count + 1);
            const { outcome } = lastExplained();
            expect([step, outcome.verdict]).toEqual([
              step,
              status === 200 ? 'allowed' : status === 403 ? 'denied' : 'refused',
            ]);
            expect(route.outcome).toEqual(outcome);
            if (status === 429)
              expect(outcome.retryAfterMs).toBeLessThanOrEqual(1000 * Number(headers.get('retry-after')));
            const code = await service.explain({ limit: 'api', key: 'tenant:acme' });
            const got = await service.for('api').consume('tenant:acme');
            const refusal = got.source === 'list' ? 'denied' : 'refused';
            expect(code.outcome.verdict).toBe(got.allowed ? 'allowed' : refusal);
            expect(code.limits[0]!.status).toBe(got.source === 'list' ? 'listed' : 'asked');
          }
        } finally {
          await app.close();
          await store.close();
        }
      });
      await fc.assert(history, { numRuns: propertyRuns(30) });
    });
  },
  PROPERTY_TIMEOUT_MS,
);

it('tells which entry decides, of which limits, by whom and why', async () => {
  const app = await RatesApp.start({
    define,
    redis: process.env['TEST_REDIS_URL'],
    prefix: freshPrefix(),
    lists: { allow: [{ ip: '10.0.0.0/8', reason: 'our network' }] },
  });
  try {
    const { service } = app;
    await service.for('api').consume('tenant:acme', 2);
    await service.allow({ pattern: 'tenant:*' }, { limit: 'api', by: 'eva', reason: 'partner', expiresIn: '1h' });
    const allowed = await service.explain({ limit: 'api', key: 'tenant:acme' });
    expect(JSON.parse(JSON.stringify(allowed))).toStrictEqual(allowed);
    expect(allowed).toMatchObject({
      outcome: { verdict: 'allowed', refusedBy: [], retryAfterMs: 0 },
      limits: [
        {
          status: 'listed',
          list: { entry: { pattern: 'tenant:*' }, list: 'allow', limit: 'api', by: 'eva', reason: 'partner' },
          decision: { allowed: true, retryAfterMs: 0, delayMs: 0 },
        },
      ],
    });
    expect(allowed.limits[0]).not.toHaveProperty('state');
    const text = formatExplanation(allowed);
    expect(text).toMatch(/^limit 'api': allowed\n/);
    expect(text).toMatch(/tenant:acme +- +- +- +1 +exempts +define\.api\n/);
    expect(text).toMatch(
      / {2}'tenant:\*' is on the list 'allow' of 'api' until 20\d\d-\S+, change 1 \(eva: partner\)\n/,
    );
    await service.deny({ ip: '203.0.113.0/24' }, { by: 'eva', reason: 'scraping' });
    // Code has no address.
    expect((await service.explain({ limit: 'api', key: 'tenant:acme' })).outcome.verdict).toBe('allowed');
    const denied = await service.explain({ limit: 'api', key: 'tenant:acme', ip: '203.0.113.7' });
    expect(denied.outcome).toMatchObject({
      verdict: 'denied',
      refusedBy: [],
      retryAfterMs: null,
      list: { entry: { ip: '203.0.113.0/24' }, list: 'deny', source: 'changed', reason: 'scraping' },
    });
    const line = "denied, '203.0.113.0/24' is on the list 'deny' of all limits, change 2 (eva: scraping)";
    expect(formatExplanation(denied)).toContain(`limit 'api': ${line}\n`);
    const configured = await service.explain({ limit: 'address', key: 'user:1', ip: '10.1.2.3' });
    expect(formatExplanation(configured)).toContain(
      "'10.0.0.0/8' is on the list 'allow' of all limits, of the module's options (our network)",
    );
    await service.deny({ identity: 'user:1' }, { limit: 'tried' });
    const shadow = await service.explain({ limit: 'tried', key: 'user:1' });
    expect(shadow).toMatchObject({ outcome: { verdict: 'allowed' }, limits: [{ decision: { allowed: false } }] });
    expect(formatExplanation(shadow)).toContain('would deny (shadow)');
    await expect(service.explain({ limit: 'api', key: 'user:1', ip: '203.0.113.0/24' })).rejects.toThrow(
      "LimiterService.explain.ip: expected an IP address such as '203.0.113.7', received '203.0.113.0/24'",
    );
  } finally {
    await app.close();
  }
});

it('refuses nobody where every limit is a shadow', async () => {
  process.env['RATE_LIMIT_MODE'] = 'shadow';
  const testing = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ define, lists: { deny: [{ ip: '203.0.113.7' }] } })],
  }).compile();
  try {
    await testing.init();
    const asked = testing.get(LimiterService).explain({ limit: 'api', key: 'tenant:acme', ip: '203.0.113.7' });
    expect((await asked).outcome.verdict).toBe('allowed');
  } finally {
    delete process.env['RATE_LIMIT_MODE'];
    await testing.close();
  }
});
