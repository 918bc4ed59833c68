import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  type ExecutionContext,
  GatewayTimeoutException,
  Get,
  InternalServerErrorException,
  Module,
} from '@nestjs/common';
import type { MiddlewareConsumer, NestModule } from '@nestjs/common';
import {
  type LimitDefinition,
  LimiterService,
  type Priority,
  RateLimit,
  RateLimitConfigError,
  RateLimitDecision,
  RateLimitMiddleware,
  type RequestDecision,
  SkipRateLimit,
} from '../../../lib/index.js';
import { adapters, HttpApp, startUp } from '../../e2e/http-app.js';
import { until } from '../../support/time/until.js';

/** Three are let in: two that are not critical, one that may be shed. */
const three: LimitDefinition = {
  name: 'overload',
  algo: 'adaptive',
  scope: 'instance',
  phase: 'middleware',
  min: 1,
  max: 3,
  initial: 3,
  priority: (context: ExecutionContext) =>
    (context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-priority'] ??
      'default') as Priority,
};

const work = { reached: 0, leave: () => {}, gate: Promise.resolve() };

@Controller()
class WorkController {
  @Get('work')
  async work(): Promise<string> {
    work.reached++;
    await work.gate;
    return 'done';
  }

  @RateLimit({ name: 'narrow', algo: 'adaptive', scope: 'instance', min: 1, max: 1, initial: 1, key: 'global' })
  @Get('narrow')
  narrow(): Promise<string> {
    return this.work();
  }

  @SkipRateLimit()
  @RateLimit({ name: 'alone', algo: 'adaptive', scope: 'instance', min: 1, max: 1, initial: 1, key: 'global' })
  @Get('alone')
  alone(): Promise<string> {
    return this.work();
  }

  @Get('decision')
  decision(@RateLimitDecision() decision: RequestDecision) {
    return decision.decisions;
  }

  @Get('late')
  late() {
    throw new GatewayTimeoutException();
  }

  @Get('broken')
  broken() {
    throw new InternalServerErrorException();
  }
}

@Module({})
class EarlyModule implements NestModule {
  configure(consumer: MiddlewareConsumer) {
    consumer.apply(RateLimitMiddleware).exclude('health').forRoutes('{*path}');
  }
}

beforeEach(() => {
  work.reached = 0;
  work.gate = new Promise((resolve) => (work.leave = resolve));
});

describe.each(adapters)('an adaptive limit over %s', (framework) => {
  let app: HttpApp;
  afterEach(async () => {
    work.leave();
    await app.close();
  });

  const start = async (limit: LimitDefinition = three, more: object = {}) => {
    app = await HttpApp.start(framework, {
      controllers: [WorkController],
      imports: [EarlyModule],
      limits: { limits: [limit], ...more },
    });
  };
  const get = (priority: Priority, path = '/work') => app.get(path, { 'x-priority': priority });
  /** Begins a request, and waits until it is in the handler. */
  const begin = async (priority: Priority, path = '/work') => {
    const before = work.reached;
    const answer = get(priority, path);
    await until(() => work.reached > before);
    return answer;
  };

  const quotaAfter = async (path: string) => {
    for (let request = 0; request < 24; request++) {
      app.clock.advanceMs(50);
      await get('critical', path);
    }
    const [decision] = (await (await get('critical', '/decision')).json()) as { quota: number }[];
    return decision!.quota;
  };

  it('sheds by priority with 503, and lets in again what fits', async () => {
    await start();
    const first = begin('sheddable');
    await until(() => work.reached === 1);
    expect((await get('sheddable')).status).toBe(503);
    const second = begin('default');
    await until(() => work.reached === 2);
    const refused = await get('default');
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(await refused.json()).toMatchObject({ statusCode: 503, error: 'Service Unavailable', limits: ['overload'] });
    const third = begin('critical');
    await until(() => work.reached === 3);
    expect((await get('critical')).status).toBe(503);
    work.leave();
    for (const answer of [first, second, third]) expect((await answer).status).toBe(200);
    expect((await get('sheddable', '/decision')).status).toBe(200);
  });

  it('answers with the status of its options, as problem details where they are wanted', async () => {
    await start({ ...three, status: 529, message: 'Later' }, { problem: true });
    const first = begin('sheddable');
    await until(() => work.reached === 1);
    const refused = await get('sheddable');
    expect([refused.status, refused.headers.get('content-type')]).toEqual([
      529,
      expect.stringContaining('application/problem+json'),
    ]);
    expect(await refused.json()).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      status: 529,
      detail: 'Later',
      'violated-policies': ['overload'],
    });
    work.leave();
    await first;
  });

  it('tells its limit and what is in flight', async () => {
    await start();
    const [decision] = (await (await get('critical', '/decision')).json()) as object[];
    expect(decision).toMatchObject({ limit: 'overload', quota: 3, remaining: 2, inFlight: 1, source: 'memory' });
  });

  it('releases what a client held that left', async () => {
    await start();
    const controller = new AbortController();
    const gone = fetch(`${app.url}/work`, { signal: controller.signal }).catch(() => 'left');
    await until(() => work.reached === 1);
    controller.abort();
    expect(await gone).toBe('left');
    work.leave();
    await until(async () => (await get('sheddable', '/decision')).status === 200);
  });

  it('says 500 of a priority that is none', async () => {
    await start();
    expect((await get('urgent' as Priority, '/decision')).status).toBe(500);
  });

  it('falls while requests end by timeouts, and not while they fail', async () => {
    const limit: LimitDefinition = { ...three, max: 40, initial: 40 };
    await start(limit);
    expect(await quotaAfter('/broken')).toBe(40);
    expect(await quotaAfter('/late')).toBeLessThan(40);
  });

  it.each(['/narrow', '/alone'])('does not fall while another limit refuses %s', async (path) => {
    await start({ ...three, max: 40, initial: 40 });
    const first = begin('critical', path);
    await until(() => work.reached === 1);
    expect((await get('critical', path)).status).toBe(503);
    expect(await quotaAfter(path)).toBe(40);
    work.leave();
    await first;
  });

  it('is also a limit of one route, and of code', async () => {
    await start({ name: 'wide', algo: 'fixed-window', rate: 100, interval: '1m' });
    const slots = app.nest.get(LimiterService).for({ ...three, phase: 'guard', priority: 'critical' });
    const held = await Promise.all([1, 2, 3].map(() => slots.consume('db')));
    const refused = await slots.consume('db');
    expect([...held, refused].map(({ allowed }) => allowed)).toEqual([true, true, true, false]);
    await held[0]!.lease!.release('dropped');
    expect(await slots.hold('db', () => 'held')).toBe('held');
    expect(await slots.peek('db')).toMatchObject({ quota: 3, inFlight: 2, remaining: 1 });
  });
});

const refusal = (limit: object) =>
  startUp({ limits: [limit as LimitDefinition] }).then(
    () => 'started',
    (error: unknown) => {
      expect(error).toBeInstanceOf(RateLimitConfigError);
      return (error as Error).message;
    },
  );

describe('what makes no sense', () => {
  it.each([
    [
      { scope: 'cluster' },
      "limits[0].scope: expected 'instance', received 'cluster': 'adaptive' learns how much one process can take",
    ],
    [
      { scope: undefined },
      "limits[0].scope: expected 'instance', received 'cluster': 'adaptive' learns how much one process can take",
    ],
    [{ prefetch: { units: 5, ttl: '1s' } }, "'prefetch' is not for 'adaptive'"],
    [{ candidate: { max: 5 } }, "'candidate' is not for 'adaptive'"],
    [{ count: 'failed' }, "'count' is not for 'adaptive'"],
    [{ blockFor: '1m' }, "'blockFor' is not for 'adaptive'"],
    [{ forgetAfter: '1m' }, "'forgetAfter' is not for 'adaptive'"],
    [{ rate: 5 }, "'rate'"],
    [
      { priority: 'urgent' },
      "limits[0].priority: expected one of critical, default, sheddable, or a function of the context, received 'urgent'",
    ],
    [{ min: 0 }, 'limits[0].min: expected a whole number >= 1 and <= 1000000, received 0'],
    [{ min: 30, max: 20 }, 'limits[0].max: expected a whole number >= 30 and <= 1000000, received 20'],
    [{ initial: 4 }, 'limits[0].initial: expected a whole number >= 1 and <= 3, received 4'],
    [{ tolerance: 1 }, 'limits[0].tolerance: expected a number > 1 and <= 10, received 1'],
    [{ smoothing: 0 }, 'limits[0].smoothing: expected a number > 0 and <= 1, received 0'],
    [{ cpu: '0.5' }, "limits[0].cpu: expected a number > 0 and <= 1, received '0.5'"],
    [
      { window: 0 },
      "limits[0].window: expected milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), more than 0 and at most 1 year, received 0",
    ],
    [
      { probeEvery: 'soon' },
      "limits[0].probeEvery: expected milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), more than 0 and at most 1 year, received 'soon'",
    ],
    [
      { ttl: '2y' },
      "limits[0].ttl: expected milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), more than 0 and at most 1 year, received '2y'",
    ],
    [
      { eventLoopDelay: -1 },
      "limits[0].eventLoopDelay: expected milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), more than 0 and at most 1 year, received -1",
    ],
    [{ status: 200 }, 'limits[0].status: expected a whole number >= 400 and <= 599, received 200'],
    [
      { shares: 0.5 },
      'limits[0].shares: expected { sheddable, default } of numbers > 0 and <= 1, such as { sheddable: 0.6, default: 0.9 }, received 0.5',
    ],
    [{ shares: { critical: 1 } }, "'critical'"],
    [
      { shares: { default: 0.5, sheddable: 0.6 } },
      'limits[0].shares.sheddable: expected a number > 0 and <= 0.5, the share of default, received 0.6',
    ],
  ])('%j is refused at start-up', async (wrong, message) => {
    expect(await refusal({ ...three, ...wrong })).toContain(message);
  });

  it('does not compile', () => {
    const limit = { algo: 'adaptive', scope: 'instance' } satisfies LimitDefinition;
    // @ts-expect-error it lives in one process
    const shared: LimitDefinition = { ...limit, scope: 'cluster' };
    // @ts-expect-error how much fits is not known in advance
    const prefetched: LimitDefinition = { ...limit, prefetch: { units: 5, ttl: '1s' } };
    // @ts-expect-error it has no rate
    const rated: LimitDefinition = { ...limit, rate: 5 };
    expect([shared, prefetched, rated]).toHaveLength(3);
  });

  it('leaves defaults alone that are for counters', async () => {
    await startUp({ limits: [three], defaults: { key: 'user', count: 'failed', blockFor: '1m' } });
  });

  it('is a limit of a route like any other', () => {
    class Routes {
      @RateLimit({ algo: 'adaptive', scope: 'instance', priority: 'sheddable' })
      list() {}
    }
    expect(Routes).toBeDefined();
  });
});
