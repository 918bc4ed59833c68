import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { rateLimited } from '../../../../lib/integrations/bullmq/index.js';
import {
  defineLimit,
  defineLimits,
  headerIdentity,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitArgumentError,
  RateLimitConfigError,
} from '../../../../lib/index.js';
import { OutboundLimiter } from '../../../../lib/integrations/outbound/index.js';
import { exhaust } from '../../../../lib/testing/index.js';
import { HttpApp, startUp } from '../../../e2e/http-app.js';

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

  @Get('named')
  @RateLimit({
    ...gpu,
    name: 'named',
    share: {
      by: 'header:x-tenant',
      weight: { acme: 2, [headerIdentity('X-Tenant', 'globex')]: 1 },
      unlisted: 'together',
    },
  })
  named() {}

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
    limits: {
      define: defineLimits({ gpu, rated: { ...gpu, rate: 10 }, plain: { algo: 'gcra', rate: 5, interval: '1m' } }),
    },
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

  it('fails for the promise of a weight, whatever becomes of it', async () => {
    const { limiter } = await start();
    const weight = (() => Promise.reject(new Error('no plan'))) as never;
    const limit = limiter.for({ ...gpu, name: 'promised', share: { by: 'user', weight } });
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    try {
      await expect(limit.consume('k', { share: 'user:1' })).rejects.toThrow(
        "weight of tenant 'user:1' for limit 'promised': expected a whole number >= 1 and <= 1000000, received Promise",
      );
      await new Promise((resolve) => setImmediate(resolve));
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', note);
    }
  });

  it('names the tenants of a header by its values, and counts all others together', async () => {
    const { app } = await start();
    const ask = async (tenant: string) => (await app.get('/named', { 'x-tenant': tenant })).status;
    // All four are known, and ask for more than there is.
    for (const tenant of ['acme', 'acme', 'acme', 'globex', 'acme', 'globex', 'made up', 'also']) await ask(tenant);
    app.clock.advanceMs(66_000);
    const got = [];
    for (const tenant of ['one', 'two', 'three', 'globex', 'globex', 'acme', 'acme', 'acme'])
      got.push(await ask(tenant));
    expect(got).toEqual([200, 429, 429, 200, 429, 200, 200, 429]);
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

  it('gives back and charges units of a tenant from code', async () => {
    const { app, limiter } = await start();
    const limit = limiter.for({ ...gpu, name: 'ten', rate: 10 });
    const left = async (share: string) => (await limit.peek('k', { share })).remaining;
    // Both ask for more than there is: 5 are the part of each.
    await limit.consume('k', { share: 'a', cost: 10 });
    await limit.consume('k', { share: 'b', cost: 10 });
    app.clock.advanceMs(66_000);
    await limit.consume('k', { share: 'a', cost: 5 });
    expect([await left('a'), await left('b')]).toEqual([0, 5]);
    await limit.refund('k', 2, { share: 'a' });
    expect([await left('a'), await left('b')]).toEqual([2, 7]);
    await limit.penalize('k', 1, { share: 'a' });
    expect([await left('a'), await left('b')]).toEqual([1, 6]);
    await limit.penalize('k', 1);
    expect([await left('a'), await left('b')]).toEqual([1, 5]);
    await exhaust(limit, 'k', { share: 'a' });
    expect(await left('a')).toBe(0);
  });

  it.each<[string, unknown, string]>([
    ['gpu', 'a', "options: expected { share }, { within } or nothing, received 'a'"],
    ['gpu', null, 'options: expected { share }, { within } or nothing, received null'],
    ['gpu', { tenant: 'a' }, "unknown option 'tenant', expected one of share"],
    ['gpu', { share: '' }, "share: expected the tenant, a string that is not empty, received ''"],
    ['plain', { share: 'a' }, "limit 'plain' has no option 'share'. Remove 'share' from the call"],
  ])('of %s gives back nothing of %j', async (name, of, reason) => {
    const { limiter } = await start();
    const limit = limiter.for(name);
    for (const changed of [limit.refund('k', 1, of as never), limit.penalize('k', 1, of as never)]) {
      await expect(changed).rejects.toThrow(RateLimitArgumentError);
      await expect(changed).rejects.toThrow(reason);
    }
  });

  it.each<[string, unknown, string]>([
    ['gpu', undefined, "limit 'gpu' shares its units among tenants: expected { share: 'the tenant' }"],
    ['gpu', 2, "limit 'gpu' shares its units among tenants: expected { share: 'the tenant' }"],
    ['gpu', { share: '' }, "share: expected the tenant, a string that is not empty, received ''"],
    ['gpu', { share: 7 }, 'share: expected the tenant, a string that is not empty, received 7'],
    ['gpu', { tenant: 'a' }, "unknown option 'tenant', expected one of cost, priority, share, anchor, within, upTo"],
    ['plain', { share: 'a' }, "limit 'plain' has no option 'share'. Remove 'share' from the call"],
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
    await expect(shared.reserve('k', { share: 'a' })).rejects.toThrow(
      "has the option 'share', so its units cannot be reserved",
    );
  });

  it('is not for calls to others and jobs, which say no tenant', async () => {
    const { app, limiter } = await start();
    expect(() => rateLimited(async () => undefined, { limiter: limiter.for('gpu'), key: () => 'global' })).toThrow(
      "rateLimited: limit 'gpu' shares its units among tenants, and the tenant is unknown here. Use a limit without 'share'",
    );
    expect(() => app.nest.get(OutboundLimiter).fetch('gpu')).toThrow(
      "limit 'gpu' shares its units among tenants, and the tenant is unknown here. Use a limit without 'share'",
    );
  });
});

it('follows its rate while it runs, for all keys and for one', async () => {
  const { app, limiter } = await start();
  const rated = limiter.for('rated');
  const of = async (share: string, cost: number, key = 'global') => (await rated.consume(key, { share, cost })).allowed;
  for (const key of ['global', 'other']) {
    expect([await of('a', 10, key), await of('b', 10, key)]).toEqual([true, false]);
  }
  app.clock.advanceMs(66_000);
  await limiter.setRate('rated', { rate: 4 });
  await limiter.setRate('rated', { rate: 20 }, { key: 'other' });
  // Half of it is kept for each.
  expect([await of('a', 2), await of('a', 1), await of('b', 2), await of('b', 1)]).toEqual([true, false, true, false]);
  expect([await of('a', 10, 'other'), await of('b', 10, 'other')]).toEqual([true, true]);
  expect([await of('a', 1, 'other'), await of('b', 1, 'other')]).toEqual([false, false]);
  await expect(limiter.setRate('rated', { algo: 'fixed-window', rate: 4, interval: '1m' } as never)).rejects.toThrow();
  await limiter.clearRate('rated');
  expect((await rated.peek('global', { share: 'c' })).quota).toBe(10);
});

it('is defined by a policy, tenants of a header by its values', async () => {
  const share = { by: 'header:x-tenant', weight: { acme: 3 }, floor: 0.1 };
  const source = () => ({ limits: { gpu: { algo: 'gcra', rate: 8, interval: '1m', key: 'global', share } } });
  app = await HttpApp.start('express', { limits: { policy: { source }, define: { gpu } } });
  const limit = app.nest.get(LimiterService).for('gpu');
  const acme = headerIdentity('x-tenant', 'acme');
  await limit.consume('global', { share: acme, cost: 8 });
  await limit.consume('global', { share: 'other', cost: 8 });
  app.clock.advanceMs(60_000);
  // Three quarters of it, and what is left of that.
  await limit.consume('global', { share: acme });
  expect(await limit.peek('global', { share: acme })).toMatchObject({ quota: 8, remaining: 5 });
});

describe('at start-up', () => {
  const bucket = { name: 'x', algo: 'gcra', rate: 10, interval: '1s' };
  const by = 'user';
  it.each<[object, string]>([
    [
      { share: null },
      "share: expected { by, weight?, unlisted?, floor? } such as { by: 'header:x-tenant', floor: 0.05 }, received null",
    ],
    [
      { share: 'user' },
      "share: expected { by, weight?, unlisted?, floor? } such as { by: 'header:x-tenant', floor: 0.05 }, received 'user'",
    ],
    [{ share: {} }, "limits[0].share.by: missing, expected 'ip', 'user', 'global' or 'header:<name>'"],
    [{ share: { by: 'tenant' } }, 'share.by: expected '],
    [{ share: { by, weights: {} } }, "'weights'"],
    [
      { share: { by, weight: {} } },
      'limits[0].share.weight: expected an object of whole numbers >= 1 and <= 1000000 by tenant, or a function of the tenant, received {}',
    ],
    [
      { share: { by, weight: { a: 0 } } },
      'limits[0].share.weight: expected an object of whole numbers >= 1 and <= 1000000 by tenant, or a function of the tenant, received { a: 0 }',
    ],
    [
      { share: { by, weight: { a: 1.5 } } },
      'limits[0].share.weight: expected an object of whole numbers >= 1 and <= 1000000 by tenant, or a function of the tenant, received { a: 1.5 }',
    ],
    [
      { share: { by, weight: 2 } },
      'limits[0].share.weight: expected an object of whole numbers >= 1 and <= 1000000 by tenant, or a function of the tenant, received 2',
    ],
    [{ share: { by, weight: { 42: 3 } } }, "expected names of tenants as 'user' finds them, such as 'user:42'"],
    [{ share: { by: 'ip', weight: { 'user:1': 3 } } }, "expected names of tenants as 'ip' finds them"],
    [
      { share: { by, unlisted: 'together' } },
      "unlisted: expected 'each', or 'together' with an object 'weight' that names the other tenants, received 'together'",
    ],
    [
      { share: { by, weight: () => 1, unlisted: 'together' } },
      "limits[0].share.unlisted: expected 'each', or 'together' with an object 'weight' that names the other tenants, received 'together'",
    ],
    [{ share: { by, unlisted: 'none' } }, "limits[0].share.unlisted: expected one of each, together, received 'none'"],
    [
      { share: { by, floor: 0.3, unlisted: 'together', weight: { 'user:a': 1, 'user:b': 1, 'user:c': 2 } } },
      'floor: expected a number of which 4 tenants have at most 1 together, received 0.3',
    ],
    [{ share: { by, floor: -0.1 } }, 'floor: expected a number >= 0 and <= 1, received -0.1'],
    [{ share: { by, floor: '5%' } }, "limits[0].share.floor: expected a number >= 0 and <= 1, received '5%'"],
    [
      { share: { by, floor: 0.4, weight: { 'user:a': 1, 'user:b': 1, 'user:c': 2 } } },
      'floor: expected a number of which 3 tenants have at most 1 together, received 0.4',
    ],
    [{ algo: 'fixed-window', share: { by } }, "option 'share' is not for 'fixed-window'"],
    [{ algo: 'leaky-bucket', share: { by } }, "option 'share' is not for 'leaky-bucket'"],
    [
      { algo: 'concurrency', rate: undefined, interval: undefined, limit: 1, ttl: '1s', share: { by } },
      "option 'share' is not for 'concurrency'",
    ],
    [{ algo: 'token-bucket', refill: 'intervally', share: { by } }, "options 'share' and refill: 'intervally' exclude"],
    [{ blockFor: '1m', share: { by } }, "options 'share' and 'blockFor' exclude each other"],
    [{ prefetch: { units: 2, ttl: 10 }, share: { by } }, "options 'share' and 'prefetch' exclude each other"],
    [{ candidate: { rate: 5 }, share: { by } }, "options 'share' and 'candidate' exclude each other"],
    [{ reserveFor: { critical: 0.2 }, share: { by } }, "options 'share' and 'reserveFor' exclude each other"],
    [{ warmUp: { for: '1m', from: 0.3 }, share: { by } }, "options 'share' and 'warmUp' exclude each other"],
    [{ algo: 'sliding-window', hold: '1m', share: { by } }, "options 'share' and 'hold' exclude each other"],
    [
      { phase: 'middleware', share: { by: 'ip' } },
      "limits[0].share: expected nothing in phase 'middleware', received { by: 'ip' }",
    ],
  ])('%j is refused', async (options, reason) => {
    const started = (async () => {
      const limits = [{ ...bucket, ...options } as LimitDefinition];
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
