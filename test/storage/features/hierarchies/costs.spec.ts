import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext, Get } from '@nestjs/common';
import {
  defineLimits,
  LimiterService,
  RateLimit,
  RateLimitDecision,
  type RequestDecision,
} from '../../../../lib/index.js';
import { HttpApp } from '../../../e2e/http-app.js';
import { explainFirst, lastExplained } from '../../../nest/explain/explaining-guard.js';

type Asked = { headers: Record<string, string> };
const header = (name: string) => (context: ExecutionContext) =>
  context.switchToHttp().getRequest<Asked>().headers[name]!;

const hundred = { algo: 'fixed-window', rate: 100, interval: '1m' } as const;
const isRobot = (context: ExecutionContext) => header('x-user')(context) === 'robot';

const define = defineLimits({
  org: { ...hundred, key: header('x-org') },
  team: { ...hundred, key: header('x-team'), within: 'org', cost: 3, skip: isRobot },
  user: { ...hundred, key: header('x-user'), within: 'team', cost: 5, skip: isRobot },
  member: { ...hundred, key: header('x-user'), within: 'crew', cost: 5 },
  crew: { ...hundred, key: header('x-team'), within: 'org', skip: isRobot },
  keyed: { ...hundred, key: 'header:x-key', onMissingKey: 'skip', within: 'org', cost: 5 },
  small: { ...hundred, rate: 4, key: header('x-org') },
  robots: { ...hundred, key: header('x-user'), within: 'small', cost: 5, skip: isRobot },
  exempt: { ...hundred, key: header('x-user'), within: 'org', cost: 5 },
});

@Controller()
class Api {
  @Get('user')
  @RateLimit('user')
  user() {}

  @Get('member')
  @RateLimit('member')
  member() {}

  @Get('keyed')
  @RateLimit('keyed')
  keyed() {}

  @Get('robots')
  @RateLimit('robots')
  robots() {}

  @Get('settled')
  @RateLimit('robots')
  async settled(@RateLimitDecision() decision: RequestDecision) {
    await decision.settle(3);
  }

  @Get('exempt')
  @RateLimit('exempt')
  exempt() {}

  @Get('chosen')
  @RateLimit('org', (context) => (header('x-user')(context) === 'none' ? null : 'exempt'))
  chosen() {}
}

let app: HttpApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

/** The cost of each level that is asked, as it was explained just before. */
const costs = () =>
  Object.fromEntries(
    lastExplained().limits.flatMap(({ name, status, cost }) => (status === 'asked' ? [[name, cost]] : [])),
  );

const start = async () => {
  app = await HttpApp.start('express', {
    controllers: [Api],
    limits: { define, guard: 'custom' },
    providers: explainFirst,
  });
  const limiter = app.nest.get(LimiterService);
  const used = async (name: string, key: string, within?: Record<string, string>) => {
    const { levels, quota, remaining } = await limiter.for(name).peek(key, within && { within });
    const own = levels?.[0] ?? { quota, remaining };
    return own.quota - own.remaining;
  };
  return { app, limiter, used };
};

const as = (user: string, org = 'o1') => ({ 'x-user': user, 'x-team': 't1', 'x-org': org });

describe('what each level of a hierarchy costs', () => {
  it('is not what a level costs that skips the request, neither charged nor explained', async () => {
    const { app, used } = await start();
    expect((await app.get('/robots', as('robot'))).status).toBe(200);
    expect(costs()).toEqual({ small: 1 });
    expect(lastExplained().outcome.verdict).toBe('allowed');
    expect(await used('small', 'o1')).toBe(1);
    expect((await app.get('/robots', as('u1'))).status).toBe(429);
    expect(lastExplained().outcome).toMatchObject({ verdict: 'refused', refusedBy: ['small'] });
  });

  it('is not what a level costs that knows nobody to count', async () => {
    const { app, used } = await start();
    await app.get('/keyed', as('u1'));
    expect([await used('org', 'o1'), costs()]).toEqual([1, { org: 1 }]);
    await app.get('/keyed', { ...as('u1', 'o2'), 'x-key': 'k' });
    expect([await used('org', 'o2'), costs()]).toEqual([5, { keyed: 5, org: 5 }]);
  });

  it('is settled where it was passed on, and nowhere else', async () => {
    const { app, limiter, used } = await start();
    await limiter.setRate('small', { rate: 9 });
    await app.get('/settled', as('robot'));
    expect(await used('small', 'o1')).toBe(1);
    await app.get('/settled', as('u1', 'o2'));
    expect(await used('small', 'o2')).toBe(3);
  });

  it('is passed on by a level that skips the request', async () => {
    const { app, used } = await start();
    await app.get('/member', as('robot'));
    expect(await used('member', 'robot', { crew: 't1', org: 'o1' })).toBe(5);
    expect(await used('crew', 't1', { org: 'o1' })).toBe(0);
    expect([await used('org', 'o1'), costs()]).toEqual([5, { member: 5, org: 5 }]);
    await app.get('/user', as('robot', 'o2'));
    expect([await used('org', 'o2'), costs()]).toEqual([1, { org: 1 }]);
    await app.get('/user', as('u1', 'o3'));
    expect([await used('org', 'o3'), costs()]).toEqual([3, { user: 5, team: 3, org: 3 }]);
  });

  it('stays the same above a level that is switched off, or that a list leaves out', async () => {
    const { app, limiter, used } = await start();
    await limiter.setMode('exempt', 'off');
    await app.get('/exempt', as('u1'));
    expect([await used('org', 'o1'), costs()]).toEqual([5, { org: 5 }]);
    await limiter.for('exempt').consume('u1', { within: { org: 'o4' } });
    expect(await used('org', 'o4')).toBe(5);
    await limiter.clearMode('exempt');
    await limiter.allow({ identity: 'u1' }, { limit: 'exempt' });
    await app.get('/exempt', as('u1', 'o2'));
    expect([await used('org', 'o2'), costs()]).toEqual([5, { org: 5 }]);
    await limiter.for('exempt').consume('u1', { within: { org: 'o3' } });
    expect(await used('org', 'o3')).toBe(5);
  });

  it('is explained for code as code is charged', async () => {
    const { limiter, used } = await start();
    const within = { team: 't1', org: 'o1' };
    for (const [cost, expected] of [
      [undefined, [5, 3, 3]],
      [2, [2, 2, 2]],
    ] as const) {
      const { limits } = await limiter.explain({ limit: 'user', key: 'u1', within, ...(cost && { cost }) });
      expect(limits.map((limit) => limit.cost)).toEqual(expected);
      const before = await used('org', 'o1');
      await limiter.for('user').consume('u1', { within, ...(cost && { cost }) });
      expect((await used('org', 'o1')) - before).toBe(expected[2]);
    }
  });

  it('is explained for a route as far as it does not depend on the request', async () => {
    const { limiter } = await start();
    const explain = async (handler: keyof Api, key: Record<string, string>) => {
      const { limits, outcome } = await limiter.explain({ controller: Api, handler, key });
      return [outcome.verdict, limits.map(({ name, status, cost }) => [name, status, cost])];
    };
    expect(await explain('robots', { robots: 'u1', small: 'o1' })).toEqual([
      'unknown',
      [
        ['robots', 'depends on the request', 5],
        ['small', 'depends on the request', undefined],
      ],
    ]);
    expect(await explain('exempt', { exempt: 'u1', org: 'o1' })).toEqual([
      'allowed',
      [
        ['exempt', 'asked', 5],
        ['org', 'asked', 5],
      ],
    ]);
    // A crew that is left out passes on the same.
    const crew = await explain('member', { member: 'u1', crew: 't1', org: 'o1' });
    expect(crew[1]).toEqual([
      ['member', 'asked', 5],
      ['crew', 'depends on the request', 5],
      ['org', 'asked', 5],
    ]);
  });

  it('is not what a limit costs that is checked later', async () => {
    const { app, used } = await start();
    await app.get('/chosen', as('u1'));
    expect(costs()).toEqual({ org: 1, exempt: 5 });
    expect(await used('org', 'o1')).toBe(1);
  });
});
