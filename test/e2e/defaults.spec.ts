import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Injectable,
  UseGuards,
} from '@nestjs/common';
import type { CorsOptions } from '@nestjs/common/interfaces/external/cors-options.interface.js';
import {
  type LimitDefaults,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitConfigError,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { type AppOptions, adapters, HttpApp, startUp } from './http-app.js';
import { leftOf } from '../support/http/responses.js';
import { limitInForce } from '../support/nest/app-parts.js';

const five = { algo: 'fixed-window', rate: 5, interval: '1h' } as const;

@Injectable()
class HeaderGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ headers: Record<string, string>; user?: unknown }>();
    request.user = { id: request.headers['x-user'] };
    return true;
  }
}

function routeWith(...specs: Parameters<typeof RateLimit>) {
  @Controller()
  class RouteController {
    @Get()
    @UseGuards(HeaderGuard)
    @RateLimit(...specs)
    list() {}
  }
  return RouteController;
}

const all = () => 'all';

const userOf = (context: ExecutionContext) =>
  context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-user'];

const exposed = (response: Response) => response.headers.get('access-control-expose-headers');

const cors = (options?: CorsOptions) => ({ configure: (nest: INestApplication) => nest.enableCors(options) });

describe.each(adapters)('over %s', (framework) => {
  let app: HttpApp | undefined;
  const start = async (options: AppOptions) => (app = await HttpApp.start(framework, options));

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  describe('default names', () => {
    it.each<[string, Partial<LimitDefinition>, string]>([
      ['a user', { key: 'user' }, 'fixed-window:5/1h:user'],
      ['all together', { key: 'global' }, 'fixed-window:5/1h:global'],
      ['a header', { key: 'header:x-user' }, 'fixed-window:5/1h:header:x-user'],
      ['a function', { key: () => 'all' }, 'fixed-window:5/1h:custom'],
      ['what fails', { count: 'failed' }, 'fixed-window:5/1h:failed'],
      ['what a function says', { count: () => true }, 'fixed-window:5/1h:custom'],
      ['a user, what succeeds', { key: 'user', count: 'succeeded' }, 'fixed-window:5/1h:user:succeeded'],
    ])('tell limits by %s from those of one rate by address, which go on to hold', async (_, more, name) => {
      const controllers = [routeWith({ ...five, ...more } as LimitDefinition)];
      const { get } = bound(await start({ controllers, limits: { limits: [five] } }));
      expect(leftOf(await get('/', { 'x-user': '1' }))).toEqual({ 'fixed-window:5/1h': 4, [name]: 4 });
    });

    it('are those of the nearer limit, if both count alike', async () => {
      const controllers = [routeWith({ ...five, key: all })];
      const { get } = bound(await start({ controllers, limits: { limits: [{ ...five, key: all }] } }));
      expect(leftOf(await get('/'))).toEqual({ 'fixed-window:5/1h:custom': 4 });
    });

    it('leave out the usual key of the app', async () => {
      const controllers = [routeWith(five, { ...five, key: 'ip' })];
      const { get } = bound(await start({ controllers, limits: { defaults: { key: 'user' } } }));
      expect(leftOf(await get('/', { 'x-user': '1' }))).toEqual({ 'fixed-window:5/1h': 4, 'fixed-window:5/1h:ip': 4 });
    });

    it('are no reason to drop a limit by another function: that is an error', async () => {
      const controllers = [routeWith({ ...five, key: () => 'one' })];
      const limits: RateLimitModuleOptions = { limits: [{ ...five, key: () => 'other' }] };
      const starting = startUp(limits, controllers);
      await expect(starting).rejects.toThrow(RateLimitConfigError);
      await expect(starting).rejects.toThrow(
        "@RateLimit on RouteController.list: a limit without a name would replace one of another place ('fixed-window:5/1h:custom') " +
          "that counts by another function. Give each a 'name'",
      );
    });
  });

  it('give the time to forget to limits whose blocks have steps, and to no others', async () => {
    const { nest } = await start({ limits: { defaults: { blockFor: ['1m', '1h'], forgetAfter: '1d' } } });
    const limiters = nest.get(LimiterService);
    const refusedBy = (more: Partial<LimitDefinition>) =>
      limiters.for({ ...five, ...more } as LimitDefinition).consume('user:1', 6);
    expect(await refusedBy({ name: 'all' })).toMatchObject({ offences: 1, resetAfterMs: 60_000 });
    expect(await refusedBy({ name: 'steps', blockFor: ['5m'] })).toMatchObject({ offences: 1, resetAfterMs: 300_000 });
    const single = await refusedBy({ name: 'single', blockFor: '5m' });
    expect(single).toMatchObject({ allowed: false, resetAfterMs: 300_000 });
    expect(single).not.toHaveProperty('offences');
    await expect(startUp({ defaults: { forgetAfter: '1d' } })).rejects.toThrow(
      "defaults.forgetAfter: expected nothing, unless 'blockFor' is a list of durations, received '1d'",
    );
  });

  it('refuses a request whose function gives undefined, and takes null for none on purpose', async () => {
    const plans: Record<string, LimitDefinition | null> = { free: five, staff: null };
    const controllers = [routeWith((context) => plans[userOf(context) ?? '']!)];
    const { get } = bound(await start({ controllers }));
    const statusOf = async (name: string) => (await get('/', { 'x-user': name })).status;
    expect([await statusOf('free'), await statusOf('staff'), await statusOf('unknown')]).toEqual([200, 200, 500]);
  });

  describe('defaults', () => {
    it('hold for limits of all places that say nothing else', async () => {
      const defaults: LimitDefaults = {
        key: 'header:x-user',
        cost: 2,
        message: 'Slow down',
        onMissingKey: 'refuse',
        skip: (context) => context.switchToHttp().getRequest<{ url: string }>().url === '/?skip',
      };
      const limits: RateLimitModuleOptions = { defaults, limits: [{ ...five, name: 'all' }], define: { login: five } };
      const controllers = [routeWith('login', { ...five, name: 'own', cost: 1 })];
      const { get, nest } = bound(await start({ controllers, limits }));
      expect(leftOf(await get('/', { 'x-user': '1' }))).toEqual({ all: 3, login: 3, own: 4 });
      await get('/', { 'x-user': '1' });
      const refused = await get('/', { 'x-user': '1' });
      expect([refused.status, await refused.json()]).toMatchObject([429, { message: 'Slow down' }]);
      expect((await get('/')).status).toBe(400);
      expect(leftOf(await get('/?skip', { 'x-user': '2' }))).toEqual({});
      expect(await nest.get(LimiterService).for('login').consume('x')).toMatchObject({ remaining: 3 });
      expect(await nest.get(LimiterService).for(five).consume('x')).toMatchObject({ remaining: 3 });
    });

    it('hold the option count', async () => {
      const controllers = [routeWith({ ...five, name: 'own' })];
      const { get } = bound(await start({ controllers, limits: { defaults: { count: 'failed' } } }));
      for (let request = 0; request < 7; request++) expect((await get('/')).status).toBe(200);
    });

    it('say what happens while the store fails, before what the module says', async () => {
      const limits: RateLimitModuleOptions = { defaults: { onStoreError: 'deny' }, onStoreError: 'allow' };
      const { nest } = bound(
        await start({ limits: { ...limits, define: { all: five, own: { ...five, onStoreError: 'local' } } } }),
      );
      const policyOf = (name: string) => limitInForce(nest, name, 'x').onStoreError;
      expect([policyOf('all'), policyOf('own')]).toEqual(['deny', 'local']);
    });
  });

  describe('headers for scripts of other origins', () => {
    const origin = { origin: 'https://app.example', 'x-user': '1' };
    const two: LimitDefinition = { ...five, rate: 1 };

    it('are named where the app enables CORS, also in a refusal', async () => {
      const { get } = bound(await start({ controllers: [routeWith(two)], ...cors() }));
      expect(exposed(await get('/', origin))).toBe('RateLimit-Policy, RateLimit');
      const refused = await get('/', origin);
      expect([refused.status, exposed(refused)]).toEqual([429, 'RateLimit-Policy, RateLimit, Retry-After']);
    });

    it('are added to what the app exposes, once', async () => {
      const allowed = cors({ origin: true, credentials: true, exposedHeaders: ['X-Total', 'ratelimit'] });
      const controllers = [routeWith(two, { ...two, key: 'user' })];
      const { get } = bound(await start({ controllers, ...allowed, limits: { headers: ['draft-8', 'legacy'] } }));
      const response = await get('/', origin);
      expect(exposed(response)?.replaceAll(/,\s*/g, ', ')).toBe(
        'X-Total, ratelimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset',
      );
      expect(response.headers.get('access-control-allow-origin')).toBe('https://app.example');
    });

    it.each<[string, AppOptions]>([
      ['no CORS', {}],
      ['an origin that is not allowed', cors({ origin: [/never/] })],
      ['exposeHeaders: false', { ...cors(), limits: { exposeHeaders: false } }],
      ['headers: false', { ...cors(), limits: { headers: false } }],
    ])('are not named with %s', async (_, options) => {
      const { get } = bound(await start(Object.assign({ controllers: [routeWith(two)] }, options)));
      expect(exposed(await get('/', origin))).toBe(null);
    });
  });
});

describe('wrong defaults', () => {
  it.each<[LimitDefaults | object, string | RegExp]>([
    [{ key: 7 }, /defaults\.key: expected 'ip', 'user'.+, received 7/],
    [
      { count: 'some' },
      "defaults.count: expected one of all, failed, succeeded, or a function of the outcome, received 'some'",
    ],
    [
      { cost: -1 },
      "defaults.cost: expected a whole number >= 0, a function of the context, or { by, per, estimate? } such as { by: 'bytes', per: '1kB' }, received -1",
    ],
    [{ name: 'x' }, "defaults: unknown option 'name'. It is an option of a limit: move it there"],
    [{ naem: 'x' }, "defaults: unknown option 'naem'"],
    [{ phase: 'guard' }, "defaults: unknown option 'phase'"],
    [{ rate: 5 }, "defaults: unknown option 'rate'"],
  ])('are told of at start-up: %p', async (defaults, message) => {
    await expect(startUp({ defaults })).rejects.toThrow(message);
  });
});

function bound(app: HttpApp) {
  return { get: app.get.bind(app), nest: app.nest };
}
