import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext, Get } from '@nestjs/common';
import {
  defineLimits,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitConfigError,
  RateLimitDecision,
  type RequestDecision,
  SkipRateLimit,
} from '../../../../lib/index.js';
import { HttpApp, startUp } from '../../../e2e/http-app.js';
import { variants } from '../../../support/tier.js';

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
  it.each(variants(['express', 'fastify'] as const))(
    'is charged with all of them, or with none, on %s',
    async (framework) => {
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
    },
  );

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

  it('cannot be skipped for what is within it', async () => {
    @Controller()
    class Skipping {
      @Get()
      @SkipRateLimit('org')
      skips() {}
    }
    @Controller()
    class SkippingBoth {
      @Get()
      @SkipRateLimit('org', 'near')
      skips() {}
    }
    const near = { name: 'near', algo: 'fixed-window', rate: 9, interval: '1m', key: header('x-user'), within: 'org' };
    const limits = { define, limits: [near as LimitDefinition] };
    await expect(startUp(limits, [Skipping])).rejects.toThrow(
      "@SkipRateLimit on Skipping.skips: limit 'near' applies there and is within 'org'. Also skip 'near': each charge of it is charged to both",
    );
    await startUp(limits, [SkippingBoth]);
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

describe('a limit that borrows', () => {
  const borrowing = defineLimits({
    branch: { algo: 'sliding-window', rate: 2, interval: '1m', ceiling: 4, key: header('x-team'), within: 'firm' },
    firm: { algo: 'sliding-window', rate: 6, interval: '1m', lends: 0.5, key: header('x-org') },
    monthly: { algo: 'calendar-window', rate: 6, period: 'month', key: header('x-team'), within: 'year' },
    year: { algo: 'calendar-window', rate: 60, period: 'year', key: header('x-org') },
  });

  @Controller()
  class Branches {
    @Get()
    @RateLimit('branch')
    ask() {}
  }

  const startBranches = async () => {
    app = await HttpApp.start('express', { controllers: [Branches], limits: { define: borrowing } });
    return { app, limiter: app.nest.get(LimiterService) };
  };

  it('uses what its parent lends, which keeps the rest for others within their rates', async () => {
    const { app } = await startBranches();
    // Beyond its rate of 2 the first branch gets the third unit, since half of 6 is left then.
    expect(await app.statuses(4, '/', as('u1', 'b1'))).toEqual([200, 200, 200, 429]);
    expect(await app.statuses(3, '/', as('u1', 'b2'))).toEqual([200, 200, 429]);
    expect(await app.statuses(2, '/', as('u1', 'b3'))).toEqual([200, 429]);
    app.clock.advanceMs(72_000);
    expect(await app.statuses(1, '/', as('u1', 'b1'))).toEqual([200]);
  });

  it('follows changes of its ceiling and of what is lent', async () => {
    const { app, limiter } = await startBranches();
    await limiter.setRate('firm', { lends: 1 });
    expect(await app.statuses(5, '/', as('u1', 'b1'))).toEqual([200, 200, 200, 200, 429]);
    await limiter.setRate('branch', { ceiling: 5 });
    expect(await app.statuses(2, '/', as('u1', 'b1'))).toEqual([200, 429]);
    await expect(limiter.setRate('branch', { rate: 9 })).rejects.toThrow(
      "expected a whole number >= 9, the 'rate', received 4",
    );
    await limiter.setRate('branch', { rate: 6, ceiling: 6 }, { key: 'b1' });
    expect(await app.statuses(2, '/', as('u1', 'b1'))).toEqual([200, 429]);
  });

  it('takes no rate of a plan', async () => {
    const { limiter } = await startBranches();
    for (const patch of [{ rollover: 0.5 }, { credits: true }] as const) {
      const option = Object.keys(patch)[0];
      await expect(limiter.setRate('monthly', patch)).rejects.toThrow(`'within' and '${option}' exclude each other`);
    }
  });

  it('makes no plan of a limit that others are within', async () => {
    const { limiter } = await startBranches();
    await expect(limiter.setRate('year', { credits: true })).rejects.toThrow(
      "other limits are within 'year', so it cannot have the option 'credits'. Use it on a limit that no other is within",
    );
  });

  it('is explained as it is decided', async () => {
    const { app, limiter } = await startBranches();
    const explain = () => limiter.explain({ limit: 'branch', key: 'b1', within: { firm: 'f' } });
    const ask = async () => (await app.get('/', as('u1', 'b1', 'f'))).status;
    for (const status of [200, 200, 200, 429]) {
      const { outcome, limits } = await explain();
      expect(limits.map(({ name, key }) => [name, key.identity])).toEqual([
        ['branch', 'f/b1'],
        ['firm', 'f'],
      ]);
      expect(outcome.verdict).toBe(status === 200 ? 'allowed' : 'refused');
      const ofRoute = await limiter.explain({
        controller: Branches,
        handler: 'ask',
        key: { branch: 'b1', firm: 'f' },
      });
      expect([ofRoute.outcome.verdict, ofRoute.limits.length]).toEqual([outcome.verdict, 2]);
      expect(await ask()).toBe(status);
    }
    await expect(limiter.explain({ limit: 'branch', key: 'b1' })).rejects.toThrow("the key of 'firm' is missing");
    const unknown = await limiter.explain({ controller: Branches, handler: 'ask', key: { branch: 'b1' } });
    expect(unknown.limits[0]).toMatchObject({
      status: 'depends on the request',
      reason: expect.stringContaining("'firm'"),
    });
  });
});

describe('what makes no sense', () => {
  const plain = { algo: 'fixed-window', rate: 1, interval: '1m' } as const;
  const refused: [string, Record<string, LimitDefinition>, string][] = [
    [
      'an unknown parent',
      { a: { ...plain, within: 'b' } },
      "define.a.within: unknown limit 'b', expected the name of another limit of 'define'",
    ],
    [
      'a misspelt parent',
      { a: { ...plain, within: 'taem' }, team: plain },
      "define.a.within: unknown limit 'taem'. Did you mean 'team'?",
    ],
    [
      'a wrong name',
      { a: { ...plain, within: 5 as never } },
      "define.a.within: expected the name of a limit of 'define' or forFeature, such as 'org', received 5",
    ],
    ['itself', { a: { ...plain, within: 'a' } }, "'a' within 'a'"],
    [
      'a circle',
      { a: { ...plain, within: 'b' }, b: { ...plain, within: 'c' }, c: { ...plain, within: 'b' } },
      "'b' within 'c' within 'b'",
    ],
    [
      'a parent that adapts',
      { a: { ...plain, scope: 'instance', within: 'b' }, b: { algo: 'adaptive', scope: 'instance' } },
      "'b' has algo 'adaptive', which learns its quota. Use a limit of another algorithm",
    ],
    [
      'a usage that the outermost limit records',
      { a: { ...plain, within: 'b', usage: '40d' }, b: plain },
      "expected 'usage' on the outermost limit",
    ],
    [
      'money that is borrowed',
      { a: { algo: 'budget', limit: 5, period: 'month', ceiling: 9, within: 'b' } as never, b: plain },
      "option 'ceiling' is not for 'budget': use it with fixed-window, calendar-window, sliding-window or sliding-log",
    ],
    [
      'another scope',
      { a: { ...plain, within: 'b' }, b: { ...plain, scope: 'instance' } },
      "'b' has scope 'instance', and this limit has scope 'cluster'. Give both the same scope: they are charged together",
    ],
    [
      'a parent whose units are taken in advance',
      { a: { ...plain, within: 'b' }, b: { ...plain, prefetch: { units: 5, ttl: 100 } } },
      "'b' has the option 'prefetch'. Use a limit without it",
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
      "'b' has the option 'share'. Use a limit without it",
    ],
    ['a ceiling over nothing', { a: { ...plain, ceiling: 3 } as never }, "option 'ceiling' needs 'within'"],
    [
      'a ceiling below the rate',
      { a: { ...plain, within: 'b', rate: 5, ceiling: 3 }, b: plain },
      "expected a whole number >= 5, the 'rate', received 3",
    ],
    [
      'a ceiling that is no number',
      { a: { ...plain, within: 'b', ceiling: 1.5 }, b: plain },
      'expected a whole number >= 1, received 1.5',
    ],
    [
      'a ceiling of an algorithm that cannot',
      { a: { algo: 'gcra', rate: 1, interval: '1m', within: 'b', ceiling: 3 } as never, b: plain },
      "option 'ceiling' is not for 'gcra': use it with fixed-window, calendar-window, sliding-window or sliding-log",
    ],
    [
      'blocks of what borrows',
      { a: { ...plain, within: 'b', ceiling: 3, blockFor: '1m' }, b: plain },
      "'ceiling' and 'blockFor'",
    ],
    [
      'a wrong share',
      { a: { ...plain, lends: 1.5 } },
      'expected a number >= 0 and <= 1, the share of the quota that borrowers may use, received 1.5',
    ],
    ['two ways to keep', { a: { ...plain, lends: 0.5, reserveFor: { critical: 0.5 } } }, "'lends' and 'reserveFor'"],
    ['an option for all', { a: plain, b: { algo: 'adaptive', scope: 'instance', lends: 1 } as never }, "'lends'"],
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
    await expect(startUp({ limits: [{ ...plain, within: 'x' }] })).rejects.toThrow(
      "limits[0].within: unknown limit 'x', expected the name of another limit of 'define'",
    );
    await expect(
      startUp({ limits: [{ ...plain, within: 'b', phase: 'middleware' }], define: { b: plain } }),
    ).rejects.toThrow("nothing in phase 'middleware'");
    await expect(startUp({ defaults: { within: 'b' } as never })).rejects.toThrow('within');
  });
});
