import { afterEach, describe, expect, it } from '@jest/globals';
import { type CanActivate, Controller, type ExecutionContext, Post, UseGuards } from '@nestjs/common';
import {
  headerIdentity,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { HttpApp } from '../e2e/http-app.js';
import { untriedCode } from './rows.js';

const tenantOf = (context: ExecutionContext) => context.switchToHttp().getRequest<Caller>().user?.tenant;

interface Caller {
  user?: { id: string; tenant: string };
}

/** The options of the guide. */
const { define } = ((RateLimitModule: { forRoot: (given: RateLimitModuleOptions) => RateLimitModuleOptions }) =>
  RateLimitModule.forRoot({
    redis: 'redis://localhost:6379',
    define: {
      gpu: {
        algo: 'token-bucket',
        rate: 1000,
        interval: '1m',
        key: 'global',
        phase: 'authenticated', // after the guard that sets request.user
        share: { by: (context) => tenantOf(context), weight: { acme: 3 }, floor: 0.05 },
      },
    },
  }))({ forRoot: (given) => given });

const byHeader: LimitDefinition[] = [
  {
    name: 'gpu',
    algo: 'token-bucket',
    rate: 1000,
    interval: '1m',
    key: 'global',
    share: { by: 'header:x-tenant', weight: { acme: 3, globex: 1 }, unlisted: 'together' },
  },
];

/** Stands for an app's own guard of users. */
class CallerGuard implements CanActivate {
  canActivate(context: ExecutionContext) {
    const request = context.switchToHttp().getRequest<Caller & { headers: Record<string, string> }>();
    request.user = { id: '1', tenant: request.headers['x-tenant']! };
    return true;
  }
}

@Controller()
@UseGuards(CallerGuard)
class Renders {
  @Post('renders')
  @RateLimit('gpu')
  render() {}
}

const SECOND = 1_000_000;

describe('the guide of fair shares', () => {
  let app: HttpApp;
  afterEach(() => app.close());

  const post = async (tenant: string) => {
    const response = await fetch(`${app.url}/renders`, { method: 'POST', headers: { 'x-tenant': tenant } });
    return response.status;
  };

  it('divides by the tenant that a guard of the route finds', async () => {
    app = await HttpApp.start('express', { controllers: [Renders], limits: { define: define! } });
    const limiters = app.nest.get(LimiterService);
    const gpu = limiters.for('gpu');
    // acme takes all, and globex asks for the half, as code names them.
    await gpu.consume('global', { share: 'acme', cost: 1000 });
    expect(await gpu.consume('global', { share: 'globex', cost: 500 })).toMatchObject({ allowed: false });
    app.clock.micros += 60 * SECOND;
    expect(await gpu.consume('global', { share: 'acme', cost: 750 })).toMatchObject({ allowed: true });
    // The same tenants by their requests: nothing is left of acme's part, and the rest is for globex.
    expect(await post('acme')).toBe(429);
    expect(await post('globex')).toBe(201);
  });

  it('has calls from code', async () => {
    app = await HttpApp.start('express', { controllers: [Renders], limits: { define: define! } });
    const limiters = app.nest.get(LimiterService);
    const gpu = limiters.for('gpu');
    await gpu.consume('global', { share: 'acme', cost: 4 });
    await limiters.check([{ limit: 'gpu', key: 'global', share: 'acme' }]);
    await gpu.refund('global', 4, { share: 'acme' });
    expect(await gpu.peek('global', { share: 'acme' })).toMatchObject({ remaining: 999 });
  });

  it('names tenants of a header by their hash', async () => {
    app = await HttpApp.start('express', { limits: { define: { gpu: byHeader[0]! } } });
    const gpu = app.nest.get(LimiterService).for('gpu');
    const acme = headerIdentity('x-tenant', 'acme');
    await gpu.consume('global', { share: acme, cost: 1000 });
    await gpu.consume('global', { share: 'acme', cost: 500 });
    app.clock.micros += 60 * SECOND;
    expect(await gpu.consume('global', { share: acme, cost: 750 })).toMatchObject({ allowed: true });
    // A quarter is kept for the tenants that nobody names, of which 'acme' is one.
    expect(await gpu.consume('global', { share: acme })).toMatchObject({ allowed: false });
    expect(await gpu.consume('global', { share: 'acme' })).toMatchObject({ allowed: true });
  });
});

it('guides/fair-shares has no other code', () =>
  expect(untriedCode('docs/guides/fair-shares.md', 'test/docs/fair-shares.long.spec.ts', 'started')).toEqual([]));
