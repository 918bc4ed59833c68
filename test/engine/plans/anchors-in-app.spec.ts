import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import {
  defineLimits,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitArgumentError,
} from '../../../lib/index.js';
import { HttpApp, startUp } from '../../e2e/http-app.js';

type Asked = { headers: Record<string, string | undefined> };

/** The app's clock begins on 21 September 2026. */
const other = '2026-01-07';
const nextMs = Date.UTC(2026, 9, 7) - 1_790_000_123_456;

const plan = {
  algo: 'calendar-window',
  rate: 3,
  period: 'month',
  key: 'global',
  anchor: async (context) => context.switchToHttp().getRequest<Asked>().headers['x-since'] ?? null,
} satisfies LimitDefinition;

@Controller()
class PlanController {
  @Get()
  @RateLimit('plan')
  run() {}
}

let app: HttpApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

const start = async () => {
  app = await HttpApp.start('express', {
    controllers: [PlanController],
    limits: { define: defineLimits({ plan, fixed: { algo: 'budget', limit: 5, period: 'month', anchor: other } }) },
  });
  return { app, limiter: app.nest.get(LimiterService) };
};

describe('a limit whose windows begin where requests say', () => {
  it('counts by the window of each request', async () => {
    const { app, limiter } = await start();
    expect((await app.get('/', { 'x-since': other })).status).toBe(200);
    expect(await limiter.for('plan').peek('global')).toMatchObject({ remaining: 2, resetAfterMs: nextMs });
    expect((await app.get('/')).status).toBe(200);
    expect((await app.get('/', { 'x-since': 'some day' })).status).toBe(500);
    expect((await app.get('/')).status).toBe(200);
    expect((await app.get('/', { 'x-since': other })).status).toBe(429);
  });

  it('takes the dates of calls while a changed rate has a fixed one, and no function with a rate', async () => {
    const { app, limiter } = await start();
    await limiter.setRate('plan', { anchor: other, rate: 4 });
    expect(await limiter.for('plan').consume('global', { anchor: '2026-01-09' })).toMatchObject({
      remaining: 3,
      resetAfterMs: nextMs,
    });
    expect(await limiter.for('plan').consume('global')).toMatchObject({ remaining: 2 });
    expect((await app.get('/', { 'x-since': '2026-01-09' })).status).toBe(200);
    await expect(limiter.setRate('plan', { anchor: () => null })).rejects.toThrow(
      "anchor: expected a fixed date: an ISO 8601 date such as '2026-01-31', or milliseconds since the epoch, of the years 1900 to 2199, received [Function: anchor]",
    );
    await limiter.clearRate('plan');
    expect(await limiter.for('plan').consume('global', { anchor: other })).toMatchObject({ remaining: 0 });
  });

  it('is asked from code with a date', async () => {
    const { limiter } = await start();
    const limit = limiter.for('plan');
    expect(await limit.consume('k', { anchor: new Date(other), cost: 2 })).toMatchObject({ remaining: 1 });
    expect(await limit.peek('k')).toMatchObject({ remaining: 1 });
    expect(await limit.peek('k', { anchor: null })).toMatchObject({ remaining: 1 });
    expect(await limit.acquire('k', { anchor: other })).toMatchObject({ allowed: true });
    const both = await limiter.check([
      { limit: 'plan', key: 'k', anchor: other },
      { limit: 'fixed', key: 'k' },
    ]);
    expect(both.decisions.map(({ allowed }) => allowed)).toEqual([false, true]);
    await limit.refund('k', 2);
    expect(await limit.peek('k')).toMatchObject({ remaining: 2 });
    await limit.reset('k');
    expect(await limit.peek('k')).toMatchObject({ remaining: 3, resetAfterMs: 0 });
  });

  it('says what it wants of code', async () => {
    const { limiter } = await start();
    const wants =
      "limit 'plan' has an anchor by request: expected { anchor: date }, or { anchor: null } for the calendar's own window";
    for (const call of [
      () => limiter.for('plan').consume('k'),
      () => limiter.for('plan').acquire('k'),
      () => limiter.check([{ limit: 'plan', key: 'k' }]),
    ]) {
      await expect(call()).rejects.toThrow(RateLimitArgumentError);
      await expect(call()).rejects.toThrow(wants);
    }
    await expect(limiter.for('plan').consume('k', { anchor: 'soon' })).rejects.toThrow(
      "anchor for limit 'plan': expected a Date, an ISO 8601 date such as '2026-01-31', milliseconds since the epoch, or " +
        "null for the calendar's own window, of the years 1900 to 2199, received 'soon'",
    );
    await expect(limiter.for('fixed').consume('k', { anchor: other })).rejects.toThrow(
      "limit 'fixed' takes no anchor: its option 'anchor' is not a function of the request",
    );
  });

  it.each<[object, string | RegExp]>([
    [{ prefetch: { units: 10, ttl: '1s' } }, "options 'prefetch' and 'anchor', a function, exclude each other"],
    [{ period: 'hour' }, "option 'anchor' does not work with period 'hour'. Use day, week, month, quarter or year"],
    [
      { candidate: { anchor: () => null } },
      'expected a fixed date, received a function: a candidate uses the anchor that the function of the limit returns',
    ],
    [{ anchor: 'soon' }, /anchor: expected a Date, an ISO 8601 date such as '2026-01-31'.+, received 'soon'/],
  ])('is refused at start-up with %j', async (wrong, message) => {
    await expect(startUp({ define: { plan: { ...plan, ...wrong } } })).rejects.toThrow(message);
  });
});
