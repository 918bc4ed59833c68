import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import {
  type Explanation,
  formatExplanation,
  headerIdentity,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitConfigError,
} from '../../../lib/index.js';
import { HttpApp } from '../../e2e/http-app.js';
import { explainFirst, lastExplained } from './explaining-guard.js';

const share = { by: 'header:x-tenant', weight: { acme: 3 } } as const;
const gpu = { algo: 'sliding-window', rate: 8, interval: '1m', key: 'global' } as const;
const define = {
  gpu: { ...gpu, share },
  plain: { algo: 'gcra', rate: 5, interval: '1m', key: 'global' },
  failing: {
    ...gpu,
    share: {
      by: 'header:x-tenant',
      weight: () => {
        throw new Error('no plan');
      },
    },
  },
} as const satisfies Record<string, LimitDefinition>;

@Controller('renders')
class RendersController {
  @Get()
  @RateLimit('gpu')
  render() {}

  @Get('strict')
  @RateLimit({ ...gpu, name: 'strict', share, onMissingKey: 'refuse' })
  strict() {}
}

const acme = headerIdentity('x-tenant', 'acme');
const other = headerIdentity('x-tenant', 'other');

const ofLimit = (explanation: Explanation) => explanation.limits[0]!;

describe('of a limit whose units tenants share', () => {
  let app: HttpApp;
  let limiters: LimiterService;

  beforeEach(async () => {
    app = await HttpApp.start('express', {
      controllers: [RendersController],
      providers: explainFirst,
      limits: { define, guard: 'custom' },
    });
    limiters = app.nest.get(LimiterService);
    // All of it is asked for twice, so acme has 6 and the other one 2 of what comes back.
    for (const tenant of [acme, other]) await limiters.for('gpu').consume('global', { share: tenant, cost: 8 });
    app.clock.advanceMs(66_000);
    for (const tenant of [acme, other]) await limiters.for('gpu').consume('global', { share: tenant });
  });
  afterEach(() => app.close());

  it('tells what a tenant is left, if it is named', async () => {
    const { limits, outcome } = await limiters.explain({ limit: 'gpu', key: 'global', share: other, cost: 2 });
    expect(limits[0]).toMatchObject({
      status: 'asked',
      share: { by: 'header:x-tenant', tenant: other, weight: 1 },
      state: { remaining: 1 },
      decision: { allowed: false },
    });
    expect(outcome.verdict).toBe('refused');
    expect(ofLimit(await limiters.explain({ limit: 'gpu', key: 'global', share: acme }))).toMatchObject({
      share: { tenant: acme, weight: 3 },
      state: { remaining: 5 },
    });
  });

  it('says that it is of all together, if none is named', async () => {
    const explanation = await limiters.explain({ limit: 'gpu', key: 'global' });
    expect(ofLimit(explanation).share).toEqual({ by: 'header:x-tenant' });
    expect(ofLimit(explanation)).toMatchObject({ state: { remaining: 6 } });
    expect(formatExplanation(explanation)).toContain(
      'shared among tenants by header:x-tenant; what is left is that of all tenants together',
    );
    expect(formatExplanation(await limiters.explain({ limit: 'gpu', key: 'global', share: 'x' }))).toContain(
      "what is left is that of tenant 'x', weight 1",
    );
  });

  it('depends on the request of a route, until a tenant is named', async () => {
    const route = { controller: RendersController, handler: 'render' };
    expect(ofLimit(await limiters.explain(route))).toMatchObject({
      status: 'depends on the request',
      reason: "no header 'x-tenant' is given, which names the tenant",
      state: { remaining: 6 },
    });
    expect(ofLimit(await limiters.explain({ ...route, share: other }))).toMatchObject({
      status: 'asked',
      share: { tenant: other },
      state: { remaining: 1 },
    });
  });

  it('finds the tenant of a request', async () => {
    await app.get('/renders', { 'x-tenant': 'acme' });
    expect(ofLimit(lastExplained())).toMatchObject({ share: { tenant: acme, weight: 3 }, state: { remaining: 5 } });
    await app.get('/renders/strict');
    expect(ofLimit(lastExplained())).toMatchObject({
      status: 'no key',
      reason: "the request has no header 'x-tenant', and is answered with 400",
    });
  });

  it('fails where the weight does', async () => {
    const explanation = await limiters.explain({ limit: 'failing', key: 'global', share: 'a' });
    expect(ofLimit(explanation)).toMatchObject({
      status: 'fails',
      reason: "the function 'share.weight' failed: no plan",
    });
  });

  it.each([
    [
      { limit: 'plain', key: 'global', share: 'a' },
      "limit 'plain' has no option 'share'. Remove 'share' from the call",
    ],
    [{ limit: 'gpu', key: 'global', share: '' }, "share: expected a string that is not empty, received ''"],
    [
      { controller: 'RendersController', handler: 'render', share: 5 },
      'expected a string that is not empty, received 5',
    ],
  ])('%j is refused', async (question, reason) => {
    await expect(limiters.explain(question as never)).rejects.toThrow(RateLimitConfigError);
    await expect(limiters.explain(question as never)).rejects.toThrow(reason);
  });
});
