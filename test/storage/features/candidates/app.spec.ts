import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, HttpException, type INestApplication, Param } from '@nestjs/common';
import {
  type DecisionEvent,
  LimiterService,
  RateLimit,
  RateLimitDecision,
  rateLimitMiddleware,
  type RequestDecision,
} from '../../../../lib/index.js';
import { adapters, HttpApp } from '../../../e2e/http-app.js';
import { connectRedis, freshPrefix } from '../../../support/limits/stores.js';
import { until } from '../../../support/time/until.js';
import { PATIENCE } from '../../../support/redis/patience.mjs';

const window = { algo: 'fixed-window', rate: 3, interval: '1h' } as const;
const candidate = { rate: 1 };

/** Lets the handlers of the slow route go on. */
let leave: () => void;
let gate: Promise<void>;
let entered = 0;

@Controller()
class ReportsController {
  @Get('reports')
  @RateLimit({ ...window, name: 'reports', candidate })
  list(@RateLimitDecision() decision: RequestDecision) {
    return decision;
  }

  @Get('logins/:status')
  @RateLimit({ ...window, name: 'logins', count: 'failed', candidate })
  login(@Param('status') status: string) {
    if (status !== '200') throw new HttpException('no', Number(status));
  }

  @Get('slow')
  @RateLimit({ name: 'slots', algo: 'concurrency', limit: 3, ttl: '1m', candidate: { limit: 1 } })
  async slow() {
    entered++;
    await gate;
  }

  @Get('metered')
  @RateLimit({ ...window, name: 'metered', rate: 30, cost: 10, candidate: { rate: 12 } })
  async metered(@RateLimitDecision() decision: RequestDecision) {
    await decision.settle(4);
  }

  @Get('named')
  @RateLimit({ ...window, name: 'named', candidate })
  async named(@RateLimitDecision() decision: RequestDecision) {
    await decision.settle(0, 'named');
  }
}

const apps: HttpApp[] = [];

afterEach(async () => {
  leave?.();
  for (const app of apps.splice(0)) await app.close();
});

type Options = Parameters<typeof HttpApp.start>[1];

async function start(framework: (typeof adapters)[number], options: Options = {}) {
  entered = 0;
  gate = new Promise<void>((resolve) => (leave = resolve));
  const app = await HttpApp.start(framework, {
    controllers: [ReportsController],
    ...options,
    limits: { telemetry: false, ...options.limits },
  });
  apps.push(app);
  const events: DecisionEvent[] = [];
  app.nest.get(LimiterService).decisions$.subscribe((event) => events.push(event));
  const told = () => {
    const seen = events.splice(0);
    const outcomes = (isCandidate: boolean) =>
      seen.filter((event) => (event.candidate === true) === isCandidate).map(({ outcome }) => outcome);
    return { limits: outcomes(false), candidates: outcomes(true) };
  };
  return { app, told };
}

const withMiddleware = (app: INestApplication) => app.use(rateLimitMiddleware(app));

const ALLOWED = 'allowed' as const;
const WOULD = 'shadow-refused' as const;

describe.each(adapters)('a candidate over HTTP with %s', (framework) => {
  it('is told of to those who watch, and not to clients or handlers', async () => {
    const { app, told } = await start(framework);
    const answers = [await app.get('/reports'), await app.get('/reports')];
    for (const { status } of answers) expect(status).toBe(200);
    const headers = answers.map((answer) => [...answer.headers].filter(([name]) => /limit|retry/i.test(name)));
    expect(headers[1]).toEqual([
      ['ratelimit', '"reports";r=1;t=3600'],
      ['ratelimit-policy', '"reports";q=3;w=3600'],
    ]);
    const decision = (await answers[1]!.json()) as RequestDecision;
    expect(decision.decisions).toEqual([decision.tightest]);
    expect(Object.keys(decision.tightest).toSorted()).toEqual(
      ['allowed', 'delayMs', 'limit', 'quota', 'remaining', 'resetAfterMs', 'retryAfterMs', 'source'].toSorted(),
    );
    expect(told()).toEqual({ limits: [ALLOWED, ALLOWED], candidates: [ALLOWED, WOULD] });
    expect(await app.statuses(2, '/reports')).toEqual([200, 429]);
    expect(told()).toEqual({ limits: [ALLOWED, 'refused'], candidates: [WOULD, WOULD] });
  });

  it('gets back with its limit what does not count in the end', async () => {
    const { app, told } = await start(framework);
    await app.statuses(2, '/logins/200');
    expect(told()).toEqual({ limits: [ALLOWED, ALLOWED], candidates: [ALLOWED, ALLOWED] });
    await app.statuses(4, '/logins/400');
    expect(told()).toEqual({
      limits: [ALLOWED, ALLOWED, ALLOWED, 'refused'],
      candidates: [ALLOWED, WOULD, WOULD, WOULD],
    });
  });

  it('gives its unit back when the response ends', async () => {
    const { app, told } = await start(framework);
    const inside = [app.get('/slow'), app.get('/slow')];
    await until(() => entered === 2);
    expect(told()).toEqual({ limits: [ALLOWED, ALLOWED], candidates: [ALLOWED, WOULD] });
    leave();
    await Promise.all(inside);
    await until(async () => {
      await app.get('/slow');
      return told().candidates[0] === ALLOWED;
    });
  });

  it('is settled with its limit', async () => {
    const { app, told } = await start(framework);
    // 10 of 12, of which 6 come back; then 10 do not fit.
    expect(await app.statuses(2, '/metered')).toEqual([200, 200]);
    expect(told().candidates).toEqual([ALLOWED, WOULD]);
    // A limit without a cost is settled by its name.
    await app.statuses(2, '/named');
    expect(told().candidates).toEqual([ALLOWED, ALLOWED]);
  });

  it('is counted before the route is known', async () => {
    const limits = [{ ...window, name: 'all', phase: 'middleware', candidate } as const];
    const { app, told } = await start(framework, { limits: { limits }, configure: withMiddleware });
    expect(await app.statuses(2, '/unknown')).toEqual([404, 404]);
    expect(told()).toEqual({ limits: [ALLOWED, ALLOWED], candidates: [ALLOWED, WOULD] });
  });

  it('has a counter for each route, where its limit has', async () => {
    const limits = [{ ...window, name: 'each', perRoute: true, candidate } as const];
    const { app, told } = await start(framework, { limits: { limits } });
    await app.get('/logins/200');
    await app.get('/reports');
    expect(told().candidates).toEqual([ALLOWED, ALLOWED, ALLOWED, ALLOWED]);
  });
});

describe('a candidate on Redis', () => {
  it('is counted by all instances together, also where the limit refuses from memory', async () => {
    const redis = await connectRedis();
    const limits = {
      store: undefined,
      redis,
      prefix: freshPrefix(),
      timeout: PATIENCE,
    } as unknown as Options['limits'];
    const [one, two] = [await start('express', { limits: limits! }), await start('fastify', { limits: limits! })];
    for (const { app } of [one, two, one]) expect((await app.get('/reports')).status).toBe(200);
    expect([one.told().candidates, two.told().candidates]).toEqual([[ALLOWED, WOULD], [WOULD]]);
    expect(await two.app.statuses(2, '/reports')).toEqual([429, 429]);
    expect(two.told()).toEqual({ limits: ['refused', 'refused'], candidates: [WOULD, WOULD] });
    const keys = await redis.keys(`${limits!.prefix}:{ip:127.0.0.1}*`);
    expect(keys.map((key) => key.slice(key.lastIndexOf(':'))).toSorted()).toEqual([':fw', ':fwc']);
    for (const each of apps.splice(0)) await each.close();
    await redis.quit();
  });
});
