import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type CanActivate, Controller, type ExecutionContext, Get } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import {
  type Explanation,
  formatExplanation,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitConfigError,
  rateLimitMiddleware,
  SkipRateLimit,
} from '../../../lib/index.js';
import { frameworks, HttpApp } from '../../e2e/http-app.js';
import { explainFirst, lastExplained } from './explaining-guard.js';

interface Sent {
  readonly headers: Record<string, string | undefined>;
  user?: object;
}
const sent = (context: ExecutionContext) => context.switchToHttp().getRequest<Sent>();
const minute = { algo: 'fixed-window', interval: '1m' } as const;

const limits = [
  { name: 'hourly', algo: 'sliding-window', rate: 100, interval: '1h' },
  { name: 'burst', ...minute, rate: 50 },
  { ...minute, rate: 40, perRoute: true, name: 'each' },
] as const satisfies LimitDefinition[];

const define = {
  login: { ...minute, rate: 2 },
  tenant: { ...minute, rate: 5, key: (context) => sent(context).headers['x-tenant'] },
  person: { ...minute, rate: 3, key: 'user', onMissingKey: 'refuse' },
  partner: { ...minute, rate: 3, key: 'header:x-partner', onMissingKey: 'skip' },
  all: { ...minute, rate: 9, key: 'global' },
  internal: { ...minute, rate: 1, skip: (context) => sent(context).headers['x-internal'] !== undefined },
  sized: { ...minute, rate: 5, cost: (context) => Number(sent(context).headers['x-size'] ?? 1) },
  broken: {
    ...minute,
    rate: 1,
    key: () => {
      throw new Error('no database');
    },
  },
} as const satisfies Record<string, LimitDefinition>;

@RateLimit({ name: 'burst', ...minute, rate: 30 })
class BaseController {}

@Controller('reports')
@RateLimit({ name: 'burst', ...minute, rate: 20 }, 'all')
class ReportsController extends BaseController {
  @Get('list')
  @RateLimit('login', { name: 'burst', ...minute, rate: 10 })
  @SkipRateLimit('hourly')
  list() {
    return [];
  }

  @Get('bare')
  @SkipRateLimit()
  @RateLimit('login')
  bare() {
    return [];
  }

  @Get('keys')
  @SkipRateLimit()
  @RateLimit('tenant', 'partner', 'all')
  keys() {
    return [];
  }

  @Get('person')
  @SkipRateLimit()
  @RateLimit('person')
  person() {
    return [];
  }

  @Get('functions')
  @SkipRateLimit()
  @RateLimit('internal', 'sized')
  functions() {
    return [];
  }

  @Get('broken')
  @SkipRateLimit()
  @RateLimit('broken')
  broken() {
    return [];
  }

  @Get('chosen')
  @SkipRateLimit('hourly', 'each')
  @RateLimit((context) => {
    if (sent(context).headers['x-plan'] === 'none') throw new Error('no such plan');
    return sent(context).headers['x-plan'] === 'pro' ? null : { name: 'burst', ...minute, rate: 1 };
  })
  chosen() {
    return [];
  }

  @Get('free')
  @SkipRateLimit()
  free() {
    return [];
  }

  helper() {
    return 'no route';
  }
}

/** Finds the user before anything is explained. */
class UserGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const id = sent(context).headers['x-user'];
    if (id !== undefined) sent(context).user = { id };
    return true;
  }
}

@Controller()
class FreeController {
  @Get()
  @SkipRateLimit('flood')
  get() {
    return 'ok';
  }
}

const named = ({ limits: all }: Explanation) => all.map(({ name }) => name);
const places = ({ leftOut }: Explanation) =>
  leftOut.map(({ name, origin, because, by }) => [name, origin.location, because, by]);

describe.each(frameworks)('over %s', (framework) => {
  let app: HttpApp;
  let limiters: LimiterService;
  beforeEach(async () => {
    app = await HttpApp.start(framework, {
      limits: { limits, define, guard: 'custom' },
      controllers: [ReportsController],
      providers: [{ provide: APP_GUARD, useClass: UserGuard }, ...explainFirst],
    });
    limiters = app.nest.get(LimiterService);
  });
  afterEach(() => app.close());

  /** Explains a request, and sends it. Whatever is explained holds. */
  async function request(path: string, headers: Record<string, string> = {}) {
    const { status } = await app.get(`/reports/${path}`, headers);
    const explanation = lastExplained();
    expect(JSON.parse(JSON.stringify(explanation))).toStrictEqual(explanation);
    expect(formatExplanation(explanation)).toContain(`ReportsController.${explanation.subject.handler} (http): `);
    return { status, explanation, outcome: explanation.outcome };
  }

  it('a request is explained: what holds, from where, and what replaced what', async () => {
    const { status, explanation } = await request('list');
    expect([status, explanation.outcome.verdict]).toEqual([200, 'allowed']);
    expect(explanation.subject).toEqual({
      kind: 'request',
      controller: 'ReportsController',
      handler: 'list',
      transport: 'http',
    });
    expect(explanation.limits.map(({ name, origin, phase, quota }) => [name, origin, phase, quota])).toEqual([
      ['burst', { level: 'handler', location: '@RateLimit on ReportsController.list' }, 'guard', 10],
      ['each', { level: 'module', location: 'limits[2]' }, 'guard', 40],
      [
        'all',
        { level: 'controller', location: '@RateLimit on ReportsController', definition: 'define.all' },
        'guard',
        9,
      ],
      [
        'login',
        { level: 'handler', location: '@RateLimit on ReportsController.list', definition: 'define.login' },
        'guard',
        2,
      ],
    ]);
    expect(explanation.limits[0]!.replaces.map(({ location }) => location)).toEqual([
      'limits[1]',
      '@RateLimit on BaseController',
      '@RateLimit on ReportsController',
    ]);
    expect(places(explanation)).toEqual([
      ['burst', 'limits[1]', 'replaced', '@RateLimit on BaseController'],
      ['burst', '@RateLimit on BaseController', 'replaced', '@RateLimit on ReportsController'],
      ['hourly', 'limits[0]', 'skipped', "@SkipRateLimit('hourly') on ReportsController.list"],
      ['burst', '@RateLimit on ReportsController', 'replaced', '@RateLimit on ReportsController.list'],
    ]);
    expect(explanation.limits.map(({ key }) => key.identity)).toEqual([
      'ip:127.0.0.1',
      'ip:127.0.0.1',
      'global',
      'ip:127.0.0.1',
    ]);
    expect(explanation.limits[1]!.key.counter).toMatch(
      /:@module GET %2Freports%2Flist:each:|:@module GET \/reports\/list:each:/,
    );
  });

  it('a request is explained again, by what those before it used', async () => {
    expect((await request('list')).explanation.limits[3]).toMatchObject({ state: { remaining: 2 } });
    expect((await request('list')).explanation.limits[3]).toMatchObject({ state: { remaining: 1 } });
    const { status, outcome, explanation } = await request('list');
    expect(status).toBe(429);
    expect(outcome).toEqual({ verdict: 'refused', refusedBy: ['login'], retryAfterMs: 60_000, delayMs: 0 });
    expect(explanation.limits[0]).toMatchObject({
      state: { remaining: 8, source: 'memory' },
      decision: { allowed: true },
    });
    app.clock.advanceMs(15_000);
    expect((await request('list')).outcome.retryAfterMs).toBe(45_000);
  });

  it('@SkipRateLimit() leaves all out, and an empty route has none', async () => {
    const { explanation } = await request('bare');
    expect(named(explanation)).toEqual(['login']);
    expect(
      places(explanation)
        .map(([name, , because, by]) => [name, because, by])
        .slice(-4),
    ).toEqual(
      ['hourly', 'burst', 'each', 'all'].map((name) => [name, 'skipped', '@SkipRateLimit() on ReportsController.bare']),
    );
    const free = await request('free');
    expect(free).toMatchObject({ status: 200, outcome: { verdict: 'allowed' }, explanation: { limits: [] } });
    expect(formatExplanation(free.explanation)).toContain('no limit holds');
  });

  it('the keys of a request are resolved, and what it lacks is told', async () => {
    const first = await request('keys', { 'x-tenant': 'acme', 'x-partner': 'secret' });
    expect(first.explanation.limits.map(({ key, status }) => [key.by, key.identity, status])).toEqual([
      ['a function', 'acme', 'asked'],
      ['header:x-partner', expect.stringMatching(/^header:x-partner:[\w-]{43}$/), 'asked'],
      ['global', 'global', 'asked'],
    ]);
    expect(JSON.stringify(first.explanation)).not.toContain('secret');
    const lacking = await request('keys');
    expect(lacking).toMatchObject({ status: 200, outcome: { verdict: 'allowed' } });
    expect(
      lacking.explanation.limits.map(({ key, status, reason }) => [key.identity, key.note, status, reason]),
    ).toEqual([
      ['ip:127.0.0.1', 'no key, so the address counts', 'asked', undefined],
      [undefined, undefined, 'no key', "the request has no header 'x-partner', so the limit does not apply"],
      ['global', undefined, 'asked', undefined],
    ]);
    const person = await request('person');
    expect(person).toMatchObject({
      status: 401,
      outcome: {
        verdict: 'refused',
        refusedBy: ['person'],
        retryAfterMs: null,
        reason: "'person': the request has no user, and is answered with 401",
      },
    });
    expect(await request('person', { 'x-user': '42' })).toMatchObject({
      status: 200,
      explanation: { limits: [{ phase: 'authenticated', key: { by: 'user', identity: 'user:42' } }] },
    });
  });

  it("the functions of limits are asked: 'skip', 'cost', and one that fails", async () => {
    const skipped = await request('functions', { 'x-internal': 'yes', 'x-size': '4' });
    expect(skipped.explanation.limits).toMatchObject([
      { name: 'internal', status: 'skip', reason: "its 'skip' leaves the request out" },
      { name: 'sized', status: 'asked', cost: 4, decision: { allowed: true } },
    ]);
    expect(await request('functions', { 'x-internal': 'yes', 'x-size': '2' })).toMatchObject({
      status: 429,
      outcome: { verdict: 'refused', refusedBy: ['sized'], retryAfterMs: 60_000 },
    });
    expect(await request('functions', { 'x-size': 'huge' })).toMatchObject({
      status: 500,
      outcome: {
        verdict: 'fails',
        reason: expect.stringContaining(
          "'sized': the function 'cost' failed: cost: expected a whole number >= 0, received NaN",
        ),
      },
    });
    expect(await request('broken')).toMatchObject({
      status: 500,
      outcome: { verdict: 'fails', reason: "'broken': the function 'key' failed: no database" },
      explanation: { limits: [{ status: 'fails' }] },
    });
  });

  it('the functions that give limits are asked', async () => {
    const { explanation } = await request('chosen');
    expect(explanation.functions).toEqual([
      {
        origin: { level: 'handler', location: '@RateLimit on ReportsController.chosen' },
        asked: true,
        gave: ['burst'],
      },
    ]);
    const later = { level: 'handler', location: '@RateLimit on ReportsController.chosen', byFunction: true };
    expect(explanation.limits.map(({ name, origin, quota }) => [name, origin.location, quota])).toEqual([
      ['burst', '@RateLimit on ReportsController', 20],
      ['all', '@RateLimit on ReportsController', 9],
      ['burst', later.location, 1],
    ]);
    expect(explanation.limits[2]!.origin).toEqual(later);
    expect(explanation.leftOut.at(-1)).toMatchObject({
      name: 'burst',
      because: 'replaced',
      note: 'the guard charges it before it calls the function, and then refunds it',
    });
    expect(await request('chosen')).toMatchObject({
      status: 429,
      outcome: { verdict: 'refused', refusedBy: ['burst'] },
    });
    const known = await request('chosen', { 'x-user': '42' });
    expect(named(known.explanation)).toEqual(['burst', 'all']);
    expect(known).toMatchObject({ status: 429, outcome: { verdict: 'refused' } });
    const pro = await request('chosen', { 'x-plan': 'pro' });
    expect(pro).toMatchObject({ status: 200, explanation: { functions: [{ gave: [] }] } });
    const none = await request('chosen', { 'x-plan': 'none' });
    expect(none).toMatchObject({ status: 500, outcome: { verdict: 'fails', reason: 'it failed: no such plan' } });
    expect(formatExplanation(none.explanation)).toContain('it failed: no such plan');
  });

  it('a route is explained for identities', async () => {
    for (let count = 0; count < 2; count++) await request('list');
    const route = { controller: ReportsController, handler: 'list' };
    const explanation = await limiters.explain({ ...route, key: 'ip:127.0.0.1' });
    expect(explanation.subject).toEqual({ kind: 'route', controller: 'ReportsController', handler: 'list' });
    expect(explanation.outcome).toEqual({ verdict: 'refused', refusedBy: ['login'], retryAfterMs: 60_000, delayMs: 0 });
    const { limits: ofRequest, leftOut } = (await request('list')).explanation;
    expect([explanation.limits, explanation.leftOut]).toEqual([ofRequest, leftOut]);
    const byName = await limiters.explain({ controller: 'ReportsController', handler: 'list', key: ['ip:127.0.0.1'] });
    expect(byName.limits).toEqual(ofRequest);
    const someone = await limiters.explain(route);
    expect(someone.outcome).toMatchObject({ verdict: 'unknown', reason: "'burst': no address is given" });
    expect(someone.limits.map(({ name, status }) => [name, status])).toEqual([
      ['burst', 'depends on the request'],
      ['each', 'depends on the request'],
      ['all', 'asked'],
      ['login', 'depends on the request'],
    ]);
    expect(someone.limits[2]).toMatchObject({ state: { remaining: 7 } });
  });

  it('a route takes identities by the forms of keys, and by the names of limits', async () => {
    const keys = { controller: ReportsController, handler: 'keys' };
    const identities = async (key: string | string[] | Record<string, string>) =>
      (await limiters.explain({ ...keys, key })).limits.map((limit) => limit.key.identity);
    expect(await identities('acme')).toEqual(['acme', undefined, 'global']);
    expect(await identities(['ip:203.0.113.7', 'header:x-partner:abc', 'acme'])).toEqual([
      'acme',
      'header:x-partner:abc',
      'global',
    ]);
    expect(await identities({ tenant: 'acme', partner: 'header:x-partner:abc' })).toEqual([
      'acme',
      'header:x-partner:abc',
      'global',
    ]);
    const bare = await limiters.explain({
      controller: ReportsController,
      handler: 'bare',
      key: 'ip:2001:db8:1:2:3::4',
    });
    expect(bare.limits[0]!.key.identity).toBe('ip:2001:db8:1:2::');
    await expect(identities({ tenants: 'acme' })).rejects.toThrow(
      "unknown option 'key.tenants', expected one of tenant, partner, all",
    );
  });

  it('a route says what only a request can tell', async () => {
    const key = 'ip:203.0.113.7';
    const functions = await limiters.explain({ controller: ReportsController, handler: 'functions', key });
    expect(functions.limits).toMatchObject([
      {
        name: 'internal',
        status: 'depends on the request',
        reason: "its 'skip' is a function, whose result depends on the request",
        decision: { allowed: true },
      },
      {
        name: 'sized',
        status: 'depends on the request',
        reason: "its 'cost' is a function, whose result depends on the request",
        state: { remaining: 5 },
      },
    ]);
    expect(functions.outcome.verdict).toBe('unknown');
    const sized = await limiters.explain({ controller: ReportsController, handler: 'functions', key, cost: 5 });
    expect(sized.outcome.verdict).toBe('allowed');
    const chosen = await limiters.explain({ controller: ReportsController, handler: 'chosen', key });
    expect(chosen).toMatchObject({
      outcome: { verdict: 'unknown', reason: 'functions give further limits by the request' },
      functions: [{ asked: false, reason: 'it gives limits by the request' }],
    });
    expect(named(chosen)).toEqual(['burst', 'all']);
  });

  it.each<[string, object, string]>([
    [
      'class',
      { controller: 'ReportController', handler: 'list' },
      "expected a class with routes (ReportsController), received 'ReportController'",
    ],
    [
      'other class',
      { controller: class Other {}, handler: 'list' },
      "expected a class with routes (ReportsController), received 'Other'",
    ],
    [
      'method',
      { controller: ReportsController, handler: 'lst' },
      "expected a route of ReportsController (list, bare, keys, person, functions, broken, chosen, free), received 'lst'",
    ],
    [
      'helper',
      { controller: ReportsController, handler: 'helper' },
      "expected a route of ReportsController (list, bare, keys, person, functions, broken, chosen, free), received 'helper'",
    ],
  ])('no unknown %s is explained', async (_, question, message) => {
    await expect(limiters.explain(question as never)).rejects.toThrow(RateLimitConfigError);
    await expect(limiters.explain(question as never)).rejects.toThrow(message);
  });

  it('overrides of a key hold for its requests', async () => {
    await limiters.setRate('tenant', { rate: 1 }, { key: 'ac*' });
    await limiters.setMode('all', 'off');
    await request('keys', { 'x-tenant': 'acme' });
    const { status, outcome, explanation } = await request('keys', { 'x-tenant': 'acme' });
    expect([status, outcome.refusedBy]).toEqual([429, ['tenant']]);
    expect(explanation.limits).toMatchObject([
      { quota: 1, rate: { source: 'pattern', configured: { rate: 5 } } },
      { status: 'no key' },
      { status: 'off', mode: { source: 'limit' } },
    ]);
    await limiters.setMode('tenant', 'shadow', { key: 'acme' });
    expect(await request('keys', { 'x-tenant': 'acme' })).toMatchObject({
      status: 200,
      outcome: { verdict: 'allowed' },
    });
    // Of all routes, but counted for each.
    await limiters.setRate('each', { rate: 3 });
    expect((await request('list')).explanation.limits[1]).toMatchObject({ quota: 3, rate: { source: 'limit' } });
  });
});

describe.each(frameworks)('over %s, with a middleware', (framework) => {
  it('what the middleware checks holds, whatever the route leaves out', async () => {
    const app = await HttpApp.start(framework, {
      limits: { limits: [{ name: 'flood', ...minute, rate: 2, phase: 'middleware' }], define, guard: 'custom' },
      controllers: [FreeController],
      providers: explainFirst,
      configure: (nest) => nest.use(rateLimitMiddleware(nest)),
    });
    try {
      expect((await app.get('/')).status).toBe(200);
      const { limits: explainedLimits, leftOut } = lastExplained();
      expect(explainedLimits).toMatchObject([{ name: 'flood', phase: 'middleware', state: { remaining: 1 } }]);
      expect(leftOut).toMatchObject([
        { because: 'skipped', note: 'a middleware has checked it, before the route was known' },
      ]);
    } finally {
      await app.close();
    }
  });
});
