import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext, Get } from '@nestjs/common';
import { LimiterService, RateLimit, rateLimitMiddleware, type RateLimitModuleOptions, usd } from '../../lib/index.js';
import { HttpApp } from '../e2e/http-app.js';
import { untriedCode } from './rows.js';

const SPEC = 'test/docs/limits-of-guides.spec.ts';

const who = (context: ExecutionContext) =>
  context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-who'];
const isCheckout = (context: ExecutionContext) => who(context) === 'checkout';
const isPayment = isCheckout;
const isExport = (context: ExecutionContext) => who(context) === 'export';

@Controller()
class Routes {
  @Get('kept')
  @RateLimit({
    algo: 'sliding-window',
    rate: 1_000,
    interval: '1m',
    key: 'global',
    reserveFor: { critical: 0.2 },
    priority: (context) => (isCheckout(context) ? 'critical' : 'default'),
  })
  kept() {}

  @Get('warm')
  @RateLimit({ algo: 'token-bucket', rate: 100, interval: '1s', key: 'global', warmUp: { for: '5m', from: 0.3 } })
  warm() {}
}

/** Gives what a guide gives to the module. */
const RateLimitModule = { forRoot: (options: RateLimitModuleOptions) => options };

const adaptive = RateLimitModule.forRoot({
  limits: [
    {
      name: 'overload',
      algo: 'adaptive',
      scope: 'instance',
      phase: 'middleware',
      priority: (context) => (isPayment(context) ? 'critical' : isExport(context) ? 'sheddable' : 'default'),
    },
  ],
});

/** What is left to somebody, as the header says it. */
async function remainingOf(app: HttpApp, name: string): Promise<number> {
  const fields = (await app.get('/none', { 'x-who': name })).headers.get('ratelimit')!;
  return Number(/r=(\d+)/.exec(fields)![1]);
}

describe('limits that guides show', () => {
  let app: HttpApp;
  afterEach(() => app.close());

  const start = async (limits: RateLimitModuleOptions = {}) => {
    app = await HttpApp.start('express', {
      controllers: [Routes],
      limits,
      configure: (nest) => nest.use(rateLimitMiddleware(nest)),
    });
    return app.nest.get(LimiterService);
  };
  const headers = async (path: string, name: string) =>
    (await app.get(path, { 'x-who': name })).headers.get('ratelimit-policy');

  it('keep a share of the quota', async () => {
    await start();
    expect(await headers('/kept', 'anybody')).toContain('q=800');
    expect(await headers('/kept', 'checkout')).toContain('q=1000');
  });

  it('warm up', async () => {
    await start();
    expect((await app.get('/warm')).headers.get('ratelimit')).toContain('r=96');
  });

  it('adapt, by priority', async () => {
    const limiters = await start(adaptive);
    const remaining = [];
    for (const name of ['export', 'anybody', 'checkout']) remaining.push(await remainingOf(app, name));
    expect(remaining).toEqual([11, 17, 19]);
    const [asked, sql]: [string[], string] = [[], 'select 1'];
    const query = async (text: string) => Promise.resolve(asked.push(text));
    const database = limiters.for({ name: 'database', algo: 'adaptive', scope: 'instance', key: 'global' });
    await database.hold('primary', () => query(sql));
    expect(asked).toEqual([sql]);
  });

  it('spend a budget', async () => {
    const limiters = await start();
    const money = limiters.for({
      name: 'money',
      algo: 'budget',
      limit: usd(50),
      period: 'month',
      timezone: 'Europe/Berlin',
      hold: '5m',
      onLapse: 'charge',
    });
    const call = await money.reserve('org:1', { cost: usd('0.40') });
    expect(await money.peek('org:1')).toMatchObject({ remaining: usd('49.60') });
    await call.settle(usd('0.12'));
    expect(await money.peek('org:1')).toMatchObject({ remaining: usd('49.88') });
  });
});

it.each([
  ['guides/priorities', 'started'],
  ['guides/warm-up', 'started'],
  ['algorithms/adaptive', 'tried'],
  ['algorithms/budget', 'tried'],
] as const)('%s has no other code', (page, first) => expect(untriedCode(`docs/${page}.md`, SPEC, first)).toEqual([]));
