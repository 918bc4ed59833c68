import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { RateLimitArgumentError, RateLimitConfigError } from '../../lib/errors/errors.js';
import { defineLimit, defineLimits } from '../../lib/config/define-limit.js';
import type { LimitDefinition } from '../../lib/config/limit-definition.js';
import { RateLimit } from '../../lib/nest/decorators/rate-limit.decorator.js';
import { LimiterService } from '../../lib/nest/limiter.service.js';
import { readSettings } from '../../lib/config/settings.js';
import { HttpApp, startUp } from '../e2e/http-app.js';

type Asked = { headers: Record<string, unknown> };

const gpu = {
  algo: 'sliding-window',
  rate: 4,
  interval: '1m',
  key: 'global',
  share: { by: (context) => context.switchToHttp().getRequest<Asked>().headers['x-tenant'] as string, floor: 0.1 },
} satisfies LimitDefinition;

@Controller()
class GpuController {
  @Get()
  @RateLimit('gpu')
  run() {}

  @Get('strict')
  @RateLimit({ ...gpu, name: 'strict', onMissingKey: 'refuse' })
  strict() {}

  @Get('weighed')
  @RateLimit({ ...gpu, name: 'weighed', share: { by: () => 'acme', weight: () => 0.5 } })
  weighed() {}
}

let app: HttpApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

const start = async () => {
  app = await HttpApp.start('express', {
    controllers: [GpuController],
    limits: { define: defineLimits({ gpu, plain: { algo: 'gcra', rate: 5, interval: '1m' } }) },
  });
  return { app, limiter: app.nest.get(LimiterService) };
};

describe('a limit with shares', () => {
  it('shares a counter among the tenants that requests name', async () => {
    const { app, limiter } = await start();
    const status = async (tenant: string, path = '/') => (await app.get(path, { 'x-tenant': tenant })).status;
    expect([await status('a'), await status('a'), await status('b')]).toEqual([200, 200, 200]);
    expect([await status('a'), await status('b')]).toEqual([200, 429]);
    const identity = 'global';
    expect(await limiter.for('gpu').peek(identity, { share: 'c' })).toMatchObject({ allowed: false, quota: 4 });
  });

  it('does with a request without a tenant what it does with one without a key', async () => {
    const { app } = await start();
    expect((await app.get('/')).status).toBe(200);
    expect((await app.get('/strict')).status).toBe(400);
    expect((await app.get('/strict', { 'x-tenant': 'a' })).status).toBe(200);
  });

  it('fails for a weight that is none', async () => {
    const { app } = await start();
    expect((await app.get('/weighed')).status).toBe(500);
  });

  it('is asked from code for a tenant', async () => {
    const { limiter } = await start();
    const limit = limiter.for('gpu');
    expect(await limit.consume('k', { share: 'a', cost: 3 })).toMatchObject({ allowed: true, remaining: 1 });
    expect(await limit.acquire('k', { share: 'b', timeout: '1s' })).toMatchObject({ allowed: true });
    expect(await limit.consume('k', { share: 'b' })).toMatchObject({ allowed: false });
    await expect(limit.acquire('k', { share: 'b', timeout: 10 })).rejects.toThrow("limit 'gpu'");
    const both = await limiter.check([
      { limit: 'gpu', key: 'other', share: 'a', cost: 4 },
      { limit: 'plain', key: 'other' },
    ]);
    expect(both).toMatchObject({ allowed: true });
    await limit.reset('k');
    expect(await limit.peek('k', { share: 'c', cost: 4 })).toMatchObject({ allowed: true, remaining: 4 });
  });

  it.each<[string, unknown, string]>([
    ['gpu', undefined, "limit 'gpu' shares its units among tenants, wants { share: 'the tenant' }"],
    ['gpu', 2, "limit 'gpu' shares its units among tenants, wants { share: 'the tenant' }"],
    ['gpu', { share: '' }, "share is '', wants the tenant: a string that is not empty"],
    ['gpu', { share: 7 }, 'share is 7, wants the tenant: a string that is not empty'],
    ['gpu', { tenant: 'a' }, "got the option 'tenant', wants only cost, priority, share and anchor"],
    ['plain', { share: 'a' }, "limit 'plain' got a share, wants none: it has no option 'share'"],
  ])('of %s refuses %j from code', async (name, given, reason) => {
    const { limiter } = await start();
    const asked = limiter.for(name).consume('k', given as never);
    await expect(asked).rejects.toThrow(RateLimitArgumentError);
    await expect(asked).rejects.toThrow(reason);
  });

  it('reserves nothing: what a tenant may take later, only then is known', async () => {
    const { limiter } = await start();
    const shared = limiter.for({ ...gpu, name: 'bucket', algo: 'gcra' });
    await expect(shared.reserve('k', { share: 'a' })).rejects.toThrow(RateLimitArgumentError);
  });

  it('is not for calls to others, which say no tenant', async () => {
    const { limiter } = await start();
    expect(() => limiter.fetch('gpu')).toThrow(
      "limit 'gpu' shares its units among tenants, wants a limit without 'share'",
    );
  });
});

describe('at start-up', () => {
  const bucket = { name: 'x', algo: 'gcra', rate: 10, interval: '1s' };
  const by = 'user';
  it.each<[object, string]>([
    [{ share: null }, "option 'share' is null, wants { by, weight?, floor? }"],
    [{ share: 'user' }, "option 'share' is 'user', wants { by, weight?, floor? }"],
    [{ share: {} }, "option 'by'"],
    [{ share: { by: 'tenant' } }, "option 'by' is 'tenant'"],
    [{ share: { by, weights: {} } }, "'weights'"],
    [{ share: { by, weight: {} } }, "option 'weight' is {}"],
    [{ share: { by, weight: { a: 0 } } }, "option 'weight'"],
    [{ share: { by, weight: { a: 1.5 } } }, "option 'weight'"],
    [{ share: { by, weight: 2 } }, "option 'weight' is 2"],
    [{ share: { by, floor: -0.1 } }, "option 'floor' is -0.1, wants a number >= 0 and <= 1"],
    [{ share: { by, floor: '5%' } }, "option 'floor'"],
    [
      { share: { by, floor: 0.4, weight: { a: 1, b: 1, c: 2 } } },
      "option 'floor' is 0.4, wants a number of which 3 tenants",
    ],
    [{ algo: 'fixed-window', share: { by } }, 'units of fixed-window cannot be shared'],
    [{ algo: 'leaky-bucket', share: { by } }, 'units of leaky-bucket cannot be shared'],
    [
      { algo: 'concurrency', rate: undefined, interval: undefined, limit: 1, ttl: '1s', share: { by } },
      'cannot be shared',
    ],
    [
      { algo: 'token-bucket', refill: 'intervally', share: { by } },
      "options 'share' and 'refill: 'intervally'' exclude",
    ],
    [{ blockFor: '1m', share: { by } }, "options 'share' and 'blockFor' exclude each other"],
    [{ prefetch: { units: 2, ttl: 10 }, share: { by } }, "options 'share' and 'prefetch' exclude each other"],
    [{ candidate: { rate: 5 }, share: { by } }, "options 'share' and 'candidate' exclude each other"],
    [{ reserveFor: { critical: 0.2 }, share: { by } }, "options 'share' and 'reserveFor' exclude each other"],
    [{ warmUp: { for: '1m', from: 0.3 }, share: { by } }, "options 'share' and 'warmUp' exclude each other"],
    [{ algo: 'sliding-window', hold: '1m', share: { by } }, "options 'share' and 'hold' exclude each other"],
    [{ phase: 'middleware', share: { by: 'ip' } }, "option 'share'"],
  ])('%j is refused', async (options, reason) => {
    const started = (async () => {
      const limits = [{ ...bucket, ...options } as LimitDefinition];
      readSettings({ limits });
      await startUp({ limits });
    })();
    await expect(started).rejects.toThrow(RateLimitConfigError);
    await expect(started).rejects.toThrow(reason);
  });

  it('compiles only where units can be shared', () => {
    defineLimit({ algo: 'gcra', rate: 1, interval: '1s', share: { by: (context) => context.getType() } });
    // @ts-expect-error -- concurrency holds units
    defineLimit({ algo: 'concurrency', limit: 1, ttl: '1s', share: { by: 'user' } });
    // @ts-expect-error -- leaky-bucket is a queue
    defineLimit({ algo: 'leaky-bucket', rate: 1, interval: '1s', share: { by: 'user' } });
    // @ts-expect-error -- whose they are is missing
    defineLimit({ algo: 'gcra', rate: 1, interval: '1s', share: { floor: 0.1 } });
    expect(gpu).toMatchObject({ share: { floor: 0.1 } });
  });
});
