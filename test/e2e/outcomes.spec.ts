import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  type ArgumentsHost,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  HttpException,
  Injectable,
  Logger,
  Param,
  Res,
  UnauthorizedException,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import type { Redis } from 'ioredis';
import {
  type Count,
  type LimitDefinition,
  LimiterService,
  type Outcome,
  RateLimit,
  RateLimitArgumentError,
  RateLimitDecision,
  type RequestDecision,
} from '../../lib/index.js';
import { connectRedis, ManualClock, storeKinds } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';
import { everyAppKind, HttpApp, nodeResponse, sendText } from './http-app.js';
import { variants } from '../support/tier.js';

/** Stands for a login that fails before the handler is reached. */
@Injectable()
class ClosedGuard implements CanActivate {
  canActivate(): boolean {
    throw new UnauthorizedException();
  }
}

/** Answers with the status that the error's message names, whatever the error's own. */
@Catch()
class StatusFilter implements ExceptionFilter {
  catch(error: Error, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<{ status(code: number): { send(body: string): void } }>();
    sendText(response, 'filtered', Number(error.message));
  }
}

/** How many requests are in the slow handler, and what lets them go. */
const slow = { entered: 0, most: 0, running: 0, leave: () => {}, gate: Promise.resolve() };
function closeGate(): void {
  Object.assign(slow, { entered: 0, most: 0, running: 0 });
  slow.gate = new Promise((resolve) => (slow.leave = resolve));
}

@Controller()
class AnswersController {
  @Get('answer/:status')
  @RateLimit('counted')
  answer(@Param('status') status: string) {
    if (status !== '200') throw new HttpException('an answer', Number(status));
    return 'welcome';
  }

  @Get('guarded')
  @UseGuards(ClosedGuard)
  @RateLimit('counted')
  guarded() {}

  @Get('broken')
  @RateLimit('counted')
  broken() {
    throw new TypeError('a bug');
  }

  @Get('filtered/:status')
  @UseFilters(StatusFilter)
  @RateLimit('counted')
  filtered(@Param('status') status: string) {
    throw new Error(status);
  }

  @Get('settled/:actual')
  @RateLimit('counted')
  settled(@Param('actual') actual: string, @RateLimitDecision() decision: RequestDecision) {
    return decision.settle(Number(actual), 'counted');
  }

  @Get('slow')
  @RateLimit('counted')
  async slow() {
    slow.entered++;
    slow.most = Math.max(slow.most, ++slow.running);
    await slow.gate;
    slow.running--;
    return 'done';
  }

  @Get('refused-slowly')
  @RateLimit('counted')
  async refusedSlowly(@Res() reply: ServerResponse & { raw?: ServerResponse }) {
    const response = reply.raw ?? reply;
    response.writeHead(404).write('no');
    await slow.gate;
    response.end();
  }

  @Get('two')
  @RateLimit('counted', { name: 'late', algo: 'fixed-window', rate: 1, interval: '1h', phase: 'authenticated' })
  two() {}
}

const settled = jest.fn<(decision: RequestDecision) => unknown>();

@Controller()
class ModelController {
  @Get('model')
  @RateLimit(
    { name: 'tokens', algo: 'token-bucket', rate: 100, interval: '1h', cost: 40 },
    { name: 'requests', algo: 'fixed-window', rate: 10, interval: '1h' },
  )
  async model(@RateLimitDecision() decision: RequestDecision) {
    await settled(decision);
    return decision;
  }

  @Get('plain')
  @RateLimit({ name: 'requests', algo: 'fixed-window', rate: 10, interval: '1h' })
  async plain(@RateLimitDecision() decision: RequestDecision) {
    await settled(decision);
    return decision;
  }

  @Get('watched')
  @RateLimit({ name: 'watched', algo: 'fixed-window', rate: 50, interval: '1h', cost: 40, mode: 'shadow' })
  async watched(@RateLimitDecision() decision: RequestDecision) {
    await settled(decision);
    return decision;
  }

  @Get('free')
  free(@RateLimitDecision() decision: RequestDecision | undefined) {
    return decision === undefined ? 'no limit' : 'a limit';
  }
}

describe.each(variants(everyAppKind))('outcomes over %s with %s', (framework, kind) => {
  let redis: Redis;
  let app: HttpApp | undefined;
  /** Responses that have not ended yet. */
  let open = 0;

  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(() => redis.disconnect());
  afterEach(async () => {
    slow.leave();
    await app?.close();
    app = undefined;
    jest.restoreAllMocks();
    settled.mockReset();
  });

  async function start(more: Partial<LimitDefinition> = {}) {
    const clock = new ManualClock();
    const store = storeKinds[kind]!(clock, redis);
    open = 0;
    const counted = { algo: 'fixed-window', rate: 5, interval: '15m', ...more } as LimitDefinition;
    const started = await HttpApp.start(framework, {
      controllers: [AnswersController, ModelController],
      limits: { store, define: { counted } },
      configure: (nest) =>
        nest.use((_: unknown, response: ServerResponse, next: () => void) => {
          open++;
          nodeResponse(response).once('close', () => open--);
          next();
        }),
    });
    app = started;
    const limiter = started.nest.get(LimiterService).for('counted');
    const get = async (path: string) => {
      const response = await started.get(path);
      // What does not count is given back once the server has seen the response end.
      await until(() => open === 0);
      return response;
    };
    return {
      clock,
      store,
      get,
      url: started.url,
      remaining: async () => (await limiter.peek('ip:127.0.0.1')).remaining,
      statuses: async (count: number, path: string) => {
        const statuses: number[] = [];
        for (let request = 0; request < count; request++) statuses.push((await get(path)).status);
        return statuses;
      },
    };
  }

  const counting = (count: Count) => start({ count });

  it('five failed logins in 15 minutes; successful ones are free', async () => {
    const { statuses, get, clock, remaining } = await counting('failed');
    for (let failures = 0; failures < 5; failures++) {
      expect(await statuses(3, '/answer/200')).toEqual([200, 200, 200]);
      expect(await statuses(1, '/answer/401')).toEqual([401]);
    }
    const refused = await get('/answer/200');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '900']);
    expect(await statuses(2, '/answer/401')).toEqual([429, 429]);
    clock.advanceMs(900_000);
    expect(await statuses(2, '/answer/200')).toEqual([200, 200]);
    expect(await remaining()).toBe(5);
  });

  it.each([
    ['/answer/200', 200, 'succeeded'],
    ['/answer/404', 404, 'failed'],
    ['/guarded', 401, 'failed'],
    ['/broken', 500, 'failed'],
    ['/filtered/200', 200, 'succeeded'],
    ['/filtered/418', 418, 'failed'],
  ] as const)('%s, answered with %d, %s', async (path, status, how) => {
    for (const count of ['all', 'failed', 'succeeded'] as const) {
      const { statuses, remaining } = await counting(count);
      expect(await statuses(2, path)).toEqual([status, status]);
      expect([count, await remaining()]).toEqual([count, count === 'all' || count === how ? 3 : 5]);
      await app?.close();
    }
  });

  it('a later guard that refuses uses up the attempts, too', async () => {
    const { statuses } = await counting('failed');
    expect(await statuses(6, '/guarded')).toEqual([401, 401, 401, 401, 401, 429]);
  });

  it.each(['failed', 'succeeded'] as const)('%s: a client that goes away before the answer counts', async (count) => {
    const { url, remaining } = await counting(count);
    closeGate();
    const leaving = new AbortController();
    const gone = fetch(`${url}/slow`, { signal: leaving.signal });
    await until(() => slow.entered === 1);
    expect(await remaining()).toBe(4);
    leaving.abort();
    await expect(gone).rejects.toThrow('abort');
    await until(() => open === 0);
    expect(await remaining()).toBe(4);
    // What the handler does afterwards changes nothing.
    slow.leave();
    await until(() => slow.running === 0);
    expect(await remaining()).toBe(4);
  });

  it.each([
    ['failed', 4],
    ['succeeded', 5],
  ] as const)('%s: a request that had failed before its client went away failed', async (count, left) => {
    const { url, remaining } = await counting(count);
    closeGate();
    const leaving = new AbortController();
    const { status } = await fetch(`${url}/refused-slowly`, { signal: leaving.signal });
    expect(status).toBe(404);
    leaving.abort();
    await until(() => open === 0);
    expect(await remaining()).toBe(left);
  });

  it('a burst cannot slip through, whether it succeeds or fails', async () => {
    const { get, remaining } = await counting('failed');
    closeGate();
    const answers: Response[] = [];
    const good = Promise.all(Array.from({ length: 20 }, async () => answers.push(await app!.get('/slow'))));
    await until(() => answers.length === 15 && slow.entered === 5);
    slow.leave();
    await good;
    expect(tally(answers)).toEqual({ 200: 5, 429: 15 });
    expect(slow.most).toBe(5);
    await until(() => open === 0);
    expect(await remaining()).toBe(5);
    const bad = await Promise.all(Array.from({ length: 20 }, () => app!.get('/answer/401')));
    expect(tally(bad)).toEqual({ 401: 5, 429: 15 });
    expect((await get('/answer/200')).status).toBe(429);
  });

  it('a refusal by another limit is an end like any other', async () => {
    for (const [count, left] of [
      ['failed', 4],
      ['succeeded', 4],
    ] as const) {
      const { statuses, remaining } = await counting(count);
      expect(await statuses(2, '/two')).toEqual([200, 429]);
      // One of the two counts: the one that was refused, or the one that was not.
      expect(await remaining()).toBe(left);
      await app?.close();
    }
  });

  it('settled units are given back, too, and none of other requests', async () => {
    const { statuses, remaining } = await counting('failed');
    expect(await statuses(1, '/answer/401')).toEqual([401]);
    for (const actual of [0, 1, 3]) expect(await statuses(1, `/settled/${actual}`)).toEqual([200]);
    expect(await remaining()).toBe(4);
  });

  it('a function of the outcome says what counts', async () => {
    const count = jest.fn(({ statusCode }: Outcome) => statusCode === 404);
    const { statuses, remaining, url } = await counting(count);
    expect(await statuses(1, '/answer/404')).toEqual([404]);
    expect(await statuses(1, '/answer/200')).toEqual([200]);
    expect(await remaining()).toBe(4);
    expect(count.mock.calls.map(([{ failed, statusCode, aborted }]) => [failed, statusCode, aborted])).toEqual([
      [true, 404, false],
      [false, 200, false],
    ]);
    expect(count.mock.calls[0]?.[0].context.getHandler().name).toBe('answer');
    closeGate();
    const leaving = new AbortController();
    const gone = fetch(`${url}/slow`, { signal: leaving.signal });
    await until(() => slow.entered === 1);
    leaving.abort();
    await expect(gone).rejects.toThrow('abort');
    await until(() => count.mock.calls.length === 3);
    expect(count.mock.calls[2]?.[0]).toMatchObject({ failed: true, aborted: true });
    expect(await remaining()).toBe(4);
  });

  it('a function that throws makes no request free, and the log says so once', async () => {
    const logged = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const { statuses, remaining } = await counting(() => {
      throw new Error('out of order');
    });
    expect(await statuses(2, '/answer/200')).toEqual([200, 200]);
    expect(await remaining()).toBe(3);
    expect(logged).toHaveBeenCalledTimes(1);
    expect(logged).toHaveBeenCalledWith(
      "the function 'count' of limit 'counted' failed, so the request counts",
      expect.stringContaining('out of order'),
    );
  });

  it('a function that rejects makes no request free either', async () => {
    const logged = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const { statuses, remaining } = await counting(() => Promise.reject(new Error('out of order')));
    expect(await statuses(2, '/answer/200')).toEqual([200, 200]);
    expect([await remaining(), logged.mock.calls]).toEqual([
      3,
      [["the function 'count' of limit 'counted' failed, so the request counts", expect.stringContaining('out of')]],
    ]);
  });

  it('a promise that a function gives is waited for', async () => {
    const { statuses, remaining } = await counting(({ statusCode }) => Promise.resolve(statusCode === 404));
    expect(await statuses(2, '/answer/200')).toEqual([200, 200]);
    await until(async () => (await remaining()) === 5);
    expect(await statuses(2, '/answer/404')).toEqual([404, 404]);
    expect(await remaining()).toBe(3);
  });

  it('a store that fails as no store should does not end the process', async () => {
    const logged = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const { statuses, store } = await counting('failed');
    jest.spyOn(store, 'refund').mockRejectedValue(new TypeError('a bug'));
    expect(await statuses(1, '/answer/200')).toEqual([200]);
    expect(logged.mock.calls.map(([message]) => message)).toEqual(['the store failed: TypeError: a bug']);
  });

  describe('settle', () => {
    it.each<[string, (decision: RequestDecision) => unknown, number[]]>([
      ['gives back what was too much', (decision) => decision.settle(10), [50, 8]],
      ['gives back everything', (decision) => decision.settle(0), [60, 8]],
      ['charges what was too little', (decision) => decision.settle(55), [5, 8]],
      ['leaves what was right', (decision) => decision.settle(40), [20, 8]],
      ['settles one limit by its name', (decision) => decision.settle(10, 'tokens'), [50, 8]],
      ['settles a limit without a cost by its name', (decision) => decision.settle(3, 'requests'), [20, 6]],
    ])('%s', async (_, settle, left) => {
      const { get } = await start();
      expect(await after(get, settle)).toEqual(left);
    });

    it('once a limit', async () => {
      const { get } = await start();
      const [tokens, requests] = await after(get, async (decision) => {
        await decision.settle(10, 'tokens');
        await Promise.all([decision.settle(90), decision.settle(0), decision.settle(90, 'tokens')]);
      });
      expect([tokens, requests]).toEqual([50, 8]);
    });

    it('up to a quota more than there is, which refuses until it is paid off', async () => {
      const { get, clock } = await start();
      settled.mockImplementationOnce((decision) => decision.settle(100_000));
      expect((await get('/model')).status).toBe(200);
      expect((await get('/model')).status).toBe(429);
      // One quota below none: an hour until nothing is owed, and 40 tokens more.
      clock.advanceMs(3_600_000 * 1.4 - 1000);
      expect((await get('/model')).status).toBe(429);
      clock.advanceMs(1000);
      expect((await get('/model')).status).toBe(200);
    });

    it('refuses a wrong cost, and a limit that the request does not have', async () => {
      const { get } = await start();
      const errors: unknown[] = [];
      const trying = (...args: unknown[]) =>
        settled.mockImplementationOnce((decision) =>
          decision.settle(...(args as [number, string])).catch((error: unknown) => errors.push(error)),
        );
      for (const wrong of [-1, 1.5, '5', undefined]) {
        trying(wrong);
        await get('/plain');
      }
      trying(1);
      await get('/plain');
      trying(1, 'nope');
      await get('/plain');
      for (const error of errors) expect(error).toBeInstanceOf(RateLimitArgumentError);
      expect(errors.map((error) => (error as Error).message)).toEqual([
        'actual cost: expected a whole number >= 0, received -1',
        'actual cost: expected a whole number >= 0, received 1.5',
        "actual cost: expected a whole number >= 0, received '5'",
        'actual cost: expected a whole number >= 0, received undefined',
        "settle: no limit of this request has its own 'cost'. Pass the name of a limit",
        "settle: the limit 'nope' was not charged for this request",
      ]);
    });

    it('does nothing for a limit that only watches and would have refused', async () => {
      const { get } = await start();
      settled.mockImplementation((decision) => decision.settle(41));
      for (let request = 0; request < 3; request++) expect((await get('/watched')).status).toBe(200);
    });

    it('a decision is told to clients as it is', async () => {
      const { get } = await start();
      const told = await (await get('/plain')).json();
      const decision = {
        allowed: true,
        limit: 'requests',
        quota: 10,
        remaining: 9,
        retryAfterMs: 0,
        resetAfterMs: 3_600_000,
        delayMs: 0,
        source: kind === 'MemoryStore' ? 'memory' : 'redis',
      };
      expect(told).toEqual({ allowed: true, decisions: [decision], tightest: decision, delayMs: 0 });
      expect(await (await get('/free')).text()).toBe('no limit');
    });
  });
});

/** What is left of each limit after one more request, which costs 40 tokens and is settled by `settle`. */
async function after(get: (path: string) => Promise<Response>, settle: (decision: RequestDecision) => unknown) {
  settled.mockImplementationOnce(settle);
  expect((await get('/model')).status).toBe(200);
  const { decisions } = (await (await get('/model')).json()) as RequestDecision;
  return decisions.map(({ remaining }) => remaining);
}

function tally(responses: readonly Response[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
