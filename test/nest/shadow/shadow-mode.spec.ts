import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Logger } from '@nestjs/common';
import type { Redis } from 'ioredis';
import {
  type LimitDefinition,
  LimiterService,
  MemoryStore,
  RateLimit,
  RateLimitConfigError,
  RedisStore,
  type Store,
} from '../../../lib/index.js';
import { adapters, HttpApp, startUp } from '../../e2e/http-app.js';
import { connectRedis, freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';

const VARIABLE = 'RATE_LIMIT_MODE';

/** Lets the handlers of the slow route go on. */
let work: { entered: number; leave: () => void; gate: Promise<void> };

const few: LimitDefinition = { name: 'few', algo: 'fixed-window', rate: 1, interval: '1m', blockFor: '15m' };
const paced: LimitDefinition = { name: 'paced', algo: 'leaky-bucket', rate: 1, interval: '1h', queue: 1 };
const slots: LimitDefinition = { name: 'slots', algo: 'concurrency', limit: 1, ttl: '1m' };

@Controller()
class ReportsController {
  @Get('few')
  @RateLimit(few)
  few() {}

  @Get('later')
  @RateLimit({ ...few, phase: 'authenticated', key: 'user', onMissingKey: 'refuse' })
  later() {}

  @Get('chosen')
  @RateLimit(() => few)
  chosen() {}

  @Get('paced')
  @RateLimit(paced)
  paced() {}

  @Get('slow')
  @RateLimit(slots)
  async slow() {
    work.entered++;
    await work.gate;
  }
}

const apps: HttpApp[] = [];

beforeEach(() => {
  process.env[VARIABLE] = 'shadow';
  let leave!: () => void;
  const gate = new Promise<void>((resolve) => (leave = resolve));
  work = { entered: 0, gate, leave };
});

afterEach(async () => {
  delete process.env[VARIABLE];
  work.leave();
  jest.restoreAllMocks();
  for (const app of apps.splice(0)) await app.close();
});

async function start(framework: (typeof adapters)[number] = 'express'): Promise<HttpApp> {
  const app = await HttpApp.start(framework, { controllers: [ReportsController] });
  apps.push(app);
  return app;
}

describe.each(adapters)('RATE_LIMIT_MODE=shadow over HTTP with %s', (framework) => {
  it.each(['/few', '/later', '/chosen', '/paced'])('refuses and delays nothing at %s', async (path) => {
    const app = await start(framework);
    expect(await app.statuses(4, path)).toEqual([200, 200, 200, 200]);
  });

  it('still counts, and tells in the headers', async () => {
    const app = await start(framework);
    const told = [await app.get('/few'), await app.get('/few')].map(({ headers }) => headers.get('ratelimit'));
    expect(told).toEqual(['"few";r=0;t=60', '"few";r=0;t=900']);
  });

  it('lets all in at once whatever is held, and holds no more than the limit', async () => {
    const app = await start(framework);
    const inside = [app.get('/slow'), app.get('/slow'), app.get('/slow')];
    await until(() => work.entered === 3);
    const limiter = app.nest.get(LimiterService).for(slots);
    expect(await limiter.peek('somebody else')).toMatchObject({ remaining: 1 });
    work.leave();
    expect((await Promise.all(inside)).map(({ status }) => status)).toEqual([200, 200, 200]);
  });
});

const stores: Record<string, (redis: Redis) => Store> = {
  MemoryStore: () => new MemoryStore(),
  RedisStore: (redis) => new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: 5000 }),
};

describe.each(Object.keys(stores))('a shadow for code on %s', (kind) => {
  let redis: Redis;
  let app: HttpApp;
  let service: LimiterService;

  beforeEach(async () => {
    redis = await connectRedis();
    const store = stores[kind]!(redis);
    app = await HttpApp.start('express', { limits: { store } });
    apps.push(app);
    service = app.nest.get(LimiterService);
  });

  afterEach(async () => {
    await redis.quit();
  });

  it('consume and peek allow every call, and report the units that remain', async () => {
    const limiter = service.for(few);
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, remaining: 0 });
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, remaining: 0, retryAfterMs: 0, delayMs: 0 });
    expect(await limiter.peek('a')).toMatchObject({ allowed: true, remaining: 0, retryAfterMs: 0 });
    const shaper = service.for(paced);
    const delays: number[] = [];
    for (let call = 0; call < 3; call++) delays.push((await shaper.consume('a')).delayMs);
    expect(delays).toEqual([0, 0, 0]);
  });

  it('check allows every call, and shows the refusal of each limit', async () => {
    const checks = [{ limit: few, key: 'b' }];
    expect(await service.check(checks)).toMatchObject({ allowed: true, decisions: [{ allowed: true }] });
    expect(await service.check(checks)).toMatchObject({ allowed: true, decisions: [{ allowed: false }] });
  });

  it('acquire and reserve wait for nothing', async () => {
    for (const limit of [
      few,
      paced,
      { ...few, name: 'smooth', algo: 'gcra', blockFor: '1s' } as unknown as LimitDefinition,
    ]) {
      const limiter = service.for(limit);
      const answers = [await limiter.acquire('c'), await limiter.acquire('c'), await limiter.acquire('c', { cost: 9 })];
      expect(answers.map(({ allowed, delayMs }) => [allowed, delayMs])).toEqual([
        [true, 0],
        [true, 0],
        [true, 0],
      ]);
    }
    const limiter = service.for({ name: 'tokens', algo: 'token-bucket', rate: 10, interval: '1h' });
    const fits = await limiter.reserve('c', { cost: 10 });
    const waits = await limiter.reserve('c', { cost: 5 });
    const refused = await limiter.reserve('c', { cost: 5, maxWait: '1s' });
    for (const each of [fits, waits, refused]) expect(each).toMatchObject({ allowed: true, delayMs: 0 });
    await refused.cancel();
    await waits.cancel();
    await fits.settle(7);
    expect(await limiter.peek('c')).toMatchObject({ remaining: 3 });
  });

  it('an aborted signal still ends acquire', async () => {
    const reason = new Error('no longer needed');
    await expect(service.for(few).acquire('s', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  it('hold runs the work above the limit, too, and releases its units', async () => {
    const limiter = service.for(slots);
    const seen: boolean[] = [];
    await limiter.hold('d', async (outer) => {
      await limiter.hold('d', async (inner) => {
        seen.push(await outer.renew(), await inner.renew());
      });
      // What held nothing released nothing.
      expect(await limiter.peek('d')).toMatchObject({ remaining: 0 });
    });
    expect(seen).toEqual([true, true]);
    expect(await limiter.peek('d')).toMatchObject({ remaining: 1 });
  });

  it('consume gives a lease in any case, and one that holds nothing frees nothing', async () => {
    const limiter = service.for(slots);
    const held = (await limiter.consume('e')).lease!;
    const empty = (await limiter.consume('e')).lease!;
    empty.keepAlive();
    await empty.release();
    expect(await empty.renew()).toBe(false);
    expect(await limiter.peek('e')).toMatchObject({ remaining: 0 });
    await held.release();
    expect(await limiter.peek('e')).toMatchObject({ remaining: 1 });
  });
});

describe('the variable RATE_LIMIT_MODE', () => {
  it('is told of in one line, when it is on', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    await start();
    expect(warn.mock.calls).toEqual([
      ['RATE_LIMIT_MODE is shadow: every limit counts and reports, but none rejects or delays requests'],
    ]);
  });

  it.each(['', 'enforce', undefined])('set to %p leaves limits as they are, in silence', async (value) => {
    if (value === undefined) delete process.env[VARIABLE];
    else process.env[VARIABLE] = value;
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const app = await start();
    expect(await app.statuses(2, '/few')).toEqual([200, 429]);
    expect(await app.statuses(1, '/later')).toEqual([401]);
    expect(warn).not.toHaveBeenCalled();
  });

  it("enforce does not undo a limit's own shadow", async () => {
    process.env[VARIABLE] = 'enforce';
    const app = await start();
    const limiter = app.nest.get(LimiterService).for({ ...few, name: 'own', mode: 'shadow' });
    await limiter.consume('a');
    expect(await limiter.consume('a')).toMatchObject({ allowed: true });
  });

  it.each(['off', 'Shadow', ' shadow', 'true'])('set to %p is refused at start-up, by name', async (value) => {
    process.env[VARIABLE] = value;
    const starting = startUp({});
    await expect(starting).rejects.toThrow(RateLimitConfigError);
    await expect(starting).rejects.toThrow(
      `environment variable RATE_LIMIT_MODE: expected 'shadow', 'enforce' or no value, received '${value}'`,
    );
  });

  it('is read when the module is made, not when it is imported', async () => {
    delete process.env[VARIABLE];
    const enforcing = await start();
    process.env[VARIABLE] = 'shadow';
    const shadowing = await start();
    expect(await enforcing.statuses(2, '/few')).toEqual([200, 429]);
    expect(await shadowing.statuses(2, '/few')).toEqual([200, 200]);
  });
});
