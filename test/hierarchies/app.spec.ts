import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext, Get } from '@nestjs/common';
import { defineLimits } from '../../lib/config/define-limit.js';
import type { LimitDefinition } from '../../lib/config/limit-definition.js';
import { RateLimitConfigError } from '../../lib/errors/errors.js';
import { RateLimitDecision } from '../../lib/nest/decorators/rate-limit-decision.decorator.js';
import { RateLimit } from '../../lib/nest/decorators/rate-limit.decorator.js';
import { LimiterService } from '../../lib/nest/limiter.service.js';
import type { RequestDecision } from '../../lib/request/request-decision.js';
import { HttpApp, startUp } from '../e2e/http-app.js';

type Asked = { headers: Record<string, string>; user?: { id: string } };

const header = (name: string) => (context: ExecutionContext) =>
  context.switchToHttp().getRequest<Asked>().headers[name]!;

const define = defineLimits({
  user: { algo: 'fixed-window', rate: 2, interval: '1m', key: header('x-user'), within: 'team' },
  team: { algo: 'sliding-window', rate: 3, interval: '1m', key: header('x-team'), within: 'org' },
  org: { algo: 'gcra', rate: 5, interval: '1m', key: async (context) => Promise.resolve(header('x-org')(context)) },
  costly: { algo: 'fixed-window', rate: 10, interval: '1m', key: header('x-user'), cost: 3, within: 'org' },
  late: { algo: 'fixed-window', rate: 9, interval: '1m', key: 'user', onMissingKey: 'skip', within: 'org' },
  picky: {
    algo: 'fixed-window',
    rate: 9,
    interval: '1m',
    key: header('x-user'),
    within: 'org',
    skip: (context) => header('x-user')(context) === 'robot',
  },
  job: { algo: 'concurrency', limit: 1, ttl: '1m', key: header('x-user'), within: 'jobs' },
  jobs: { algo: 'concurrency', limit: 2, ttl: '1m', key: header('x-org') },
});

@Controller()
class Api {
  @Get()
  @RateLimit('user')
  all() {}

  @Get('listed')
  @RateLimit('team', 'user')
  listed() {}

  @Get('teams')
  @RateLimit('team')
  teams() {}

  @Get('two')
  @RateLimit('user', 'costly')
  two() {}

  @Get('costly')
  @RateLimit('costly')
  costly() {}

  @Get('settled')
  @RateLimit('costly')
  async settled(@RateLimitDecision() decision: RequestDecision) {
    await decision.settle(1);
  }

  @Get('late')
  @RateLimit('late', { name: 'beside', algo: 'fixed-window', rate: 100, interval: '1m' })
  late() {}

  @Get('picky')
  @RateLimit('picky')
  picky() {}

  @Get('chosen')
  @RateLimit((context) => header('x-limit')(context))
  chosen() {}

  @Get('job')
  @RateLimit('job')
  job() {}
}

let app: HttpApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

const start = async (framework: 'express' | 'fastify' = 'express', changes: Record<string, LimitDefinition> = {}) => {
  app = await HttpApp.start(framework, {
    controllers: [Api],
    limits: { define: { ...define, ...changes }, headers: 'draft-8' },
  });
  const limiter = app.nest.get(LimiterService);
  const used = async (name: string, key: string, within?: Record<string, string>) => {
    const { levels, quota, remaining } = await limiter.for(name).peek(key, within && { within });
    const own = levels?.[0] ?? { quota, remaining };
    return own.quota - own.remaining;
  };
  return { app, limiter, used };
};

const as = (user: string, team = 't1', org = 'o1') => ({ 'x-user': user, 'x-team': team, 'x-org': org });

describe('a limit within others', () => {
  it.each(['express', 'fastify'] as const)('is charged with all of them, or with none, on %s', async (framework) => {
    const { app, used } = await start(framework);
    expect(await app.statuses(3, '/', as('u1'))).toEqual([200, 200, 429]);
    expect(await app.statuses(2, '/', as('u2'))).toEqual([200, 429]);
    // The team has none left, and nobody else was charged for the refused ones.
    expect(await used('user', 'u2', { team: 't1', org: 'o1' })).toBe(1);
    expect(await used('team', 't1', { org: 'o1' })).toBe(3);
    expect(await used('org', 'o1')).toBe(3);
    // Another team of the organization has what is left of this.
    expect(await app.statuses(3, '/', as('u3', 't2'))).toEqual([200, 200, 429]);
    expect(await app.statuses(1, '/', as('u4', 't3'))).toEqual([429]);
    expect(await app.statuses(1, '/', as('u4', 't3', 'o2'))).toEqual([200]);
  });

  it('tells all levels in the headers, and who refused', async () => {
    const { app } = await start();
    const { headers } = await app.get('/', as('u1'));
    expect(headers.get('ratelimit-policy')).toMatch(/"user";q=2.*"team";q=3.*"org";q=5/);
    await app.statuses(1, '/', as('u1'));
    const refused = await app.get('/', as('u1'));
    expect(await refused.json()).toMatchObject({ limits: ['user'] });
    expect(refused.headers.get('retry-after')).toBe('60');
  });

  it('counts an identity within each parent for itself', async () => {
    const { app, used } = await start();
    expect(await app.statuses(3, '/', as('u1', 't1'))).toEqual([200, 200, 429]);
    expect(await app.statuses(1, '/', as('u1', 't2'))).toEqual([200]);
    expect(await app.statuses(1, '/', as('u1', 't1', 'o2'))).toEqual([200]);
    expect(await used('user', 'u1', { team: 't1', org: 'o2' })).toBe(1);
    expect(await used('user', 'u1', { team: 't1/o1', org: 'o1' })).toBe(0);
  });

  it('charges a level once that is listed, too', async () => {
    const { app, used } = await start();
    expect(await app.statuses(1, '/listed', as('u1'))).toEqual([200]);
    expect(await used('team', 't1', { org: 'o1' })).toBe(1);
    expect(await app.statuses(1, '/teams', as('u1'))).toEqual([200]);
    expect(await used('user', 'u1', { team: 't1', org: 'o1' })).toBe(1);
    expect(await used('team', 't1', { org: 'o1' })).toBe(2);
    expect(await used('org', 'o1')).toBe(2);
  });

  it('is charged what it costs at each level without a cost of its own, and settled there', async () => {
    const { app, used } = await start();
    expect(await app.statuses(1, '/costly', as('u1'))).toEqual([200]);
    expect([await used('costly', 'u1', { org: 'o1' }), await used('org', 'o1')]).toEqual([3, 3]);
    expect(await app.statuses(1, '/settled', as('u1', 't1', 'o2'))).toEqual([200]);
    expect([await used('costly', 'u1', { org: 'o2' }), await used('org', 'o2')]).toEqual([1, 1]);
    expect(await app.statuses(1, '/two', as('u1', 't1', 'o3'))).toEqual([200]);
    expect([await used('team', 't1', { org: 'o3' }), await used('org', 'o3')]).toEqual([1, 3]);
  });

  it('is checked with all levels after the guards, if one is', async () => {
    const { app, used } = await start();
    expect((await app.get('/late', as('u1'))).status).toBe(200);
    // Nobody is logged in, so that the limit does not apply; the others do.
    expect(await used('org', 'o1')).toBe(1);
  });

  it('lets each level say which requests it counts', async () => {
    const { app, used } = await start();
    expect((await app.get('/picky', as('robot'))).status).toBe(200);
    expect([await used('picky', 'robot', { org: 'o1' }), await used('org', 'o1')]).toEqual([0, 1]);
    expect((await app.get('/picky', as('u1'))).status).toBe(200);
    expect([await used('picky', 'u1', { org: 'o1' }), await used('org', 'o1')]).toEqual([1, 2]);
  });

  it('counts whom nobody is known to be above of for themselves', async () => {
    const { app } = await start('express', { org: { ...define.org, key: 'header:x-none', onMissingKey: 'skip' } });
    expect(await app.statuses(3, '/', as('u1'))).toEqual([200, 200, 429]);
    expect(await app.statuses(2, '/', as('u2', 't2'))).toEqual([200, 200]);
  });

  it('is what a function of the request may choose', async () => {
    const { app, used } = await start();
    expect((await app.get('/chosen', { ...as('u1'), 'x-limit': 'user' })).status).toBe(200);
    expect(await used('org', 'o1')).toBe(1);
  });

  it('holds units at all levels until the request ends', async () => {
    const { app, used } = await start();
    expect(await app.statuses(3, '/job', as('u1'))).toEqual([200, 200, 200]);
    expect([await used('job', 'u1', { jobs: 'o1' }), await used('jobs', 'o1')]).toEqual([0, 0]);
  });

  it('follows changed rates and modes of each level, and overrides of a key', async () => {
    const { app, limiter, used } = await start();
    await limiter.setRate('team', { rate: 1, interval: '1m' });
    expect(await app.statuses(2, '/', as('u1'))).toEqual([200, 429]);
    await limiter.clearRate('team');
    await limiter.setRate('user', { rate: 1, interval: '1m' }, { key: 'u1' });
    expect(await app.statuses(1, '/', as('u1'))).toEqual([429]);
    expect(await app.statuses(2, '/', as('u2'))).toEqual([200, 200]);
    await limiter.setMode('team', 'off');
    await limiter.setMode('user', 'shadow');
    expect(await app.statuses(2, '/', as('u1'))).toEqual([200, 200]);
    expect(await app.statuses(1, '/', as('u1'))).toEqual([429]);
    expect(await used('org', 'o1')).toBe(5);
  });

  it('heeds lists of its own identities and of those above', async () => {
    const { app, limiter, used } = await start();
    await limiter.deny({ identity: 'o1' }, { limit: 'org' });
    expect(await app.statuses(1, '/', as('u1'))).toEqual([403]);
    await limiter.unlist({ identity: 'o1' }, { limit: 'org' });
    await limiter.allow({ identity: 'u1' }, { limit: 'user' });
    expect(await app.statuses(4, '/', as('u1'))).toEqual([200, 200, 200, 429]);
    expect([await used('user', 'u1', { team: 't1', org: 'o1' }), await used('org', 'o1')]).toEqual([0, 3]);
  });
});

describe('what makes no sense', () => {
  const plain = { algo: 'fixed-window', rate: 1, interval: '1m' } as const;
  const refused: [string, Record<string, LimitDefinition>, string][] = [
    ['an unknown parent', { a: { ...plain, within: 'b' } }, "define.a: option 'within' is 'b'"],
    ['a wrong name', { a: { ...plain, within: 5 as never } }, "define.a: option 'within' is 5"],
    ['itself', { a: { ...plain, within: 'a' } }, "'a' within 'a'"],
    [
      'a circle',
      { a: { ...plain, within: 'b' }, b: { ...plain, within: 'c' }, c: { ...plain, within: 'b' } },
      "'b' within 'c' within 'b'",
    ],
    [
      'a parent that adapts',
      { a: { ...plain, scope: 'instance', within: 'b' }, b: { algo: 'adaptive', scope: 'instance' } },
      "'b' of algo 'adaptive'",
    ],
    ['another scope', { a: { ...plain, within: 'b' }, b: { ...plain, scope: 'instance' } }, "of scope 'instance'"],
    [
      'a parent whose units are taken in advance',
      { a: { ...plain, within: 'b' }, b: { ...plain, prefetch: { units: 5, ttl: 100 } } },
      "which has the option 'prefetch'",
    ],
    [
      'units that are taken in advance',
      { a: { ...plain, within: 'b', prefetch: { units: 5, ttl: 100 } }, b: plain },
      "'within' and 'prefetch' exclude",
    ],
    [
      'shares',
      { a: { algo: 'gcra', rate: 1, interval: '1m', within: 'b', share: { by: 'ip' } }, b: plain },
      "'within' and 'share' exclude",
    ],
    [
      'a parent with shares',
      { a: { ...plain, within: 'b' }, b: { algo: 'gcra', rate: 1, interval: '1m', share: { by: 'ip' } } },
      "which has the option 'share'",
    ],
    [
      'too many levels',
      Object.fromEntries(
        Array.from({ length: 9 }, (_, i) => [`l${i}`, { ...plain, ...(i < 8 && { within: `l${i + 1}` }) }]),
      ),
      'at most 8',
    ],
  ];
  it.each(refused)('is refused at start-up: %s', async (_, limits, message) => {
    await expect(startUp({ define: limits })).rejects.toThrow(RateLimitConfigError);
    await expect(startUp({ define: limits })).rejects.toThrow(message);
  });

  it('is refused at start-up on routes and for the whole app', async () => {
    @Controller()
    class Other {
      @Get()
      @RateLimit('a', { ...plain, name: 'b' })
      other() {}
    }
    const limits = { define: { a: { ...plain, within: 'b' }, b: plain } };
    await expect(startUp(limits, [Other])).rejects.toThrow('another limit here has that name');
    await expect(startUp({ limits: [{ ...plain, within: 'x' }] })).rejects.toThrow("limits[0]: option 'within' is 'x'");
    await expect(
      startUp({ limits: [{ ...plain, within: 'b', phase: 'middleware' }], define: { b: plain } }),
    ).rejects.toThrow("nothing in phase 'middleware'");
    await expect(startUp({ defaults: { within: 'b' } as never })).rejects.toThrow('within');
  });
});
