import { afterEach, describe, expect, it } from '@jest/globals';
import { type CanActivate, Controller, type ExecutionContext, Get } from '@nestjs/common';
import {
  defineLimits,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { HttpApp } from '../e2e/http-app.js';
import { untriedCode } from './rows.js';

const teamOf = (context: ExecutionContext) => context.switchToHttp().getRequest<Member>().user?.team;
const orgOf = (context: ExecutionContext) => context.switchToHttp().getRequest<Member>().user?.org;

interface Member {
  user?: { id: string; team: string; org: string };
}

/** Stands for an app's own guard of users. */
class MemberGuard implements CanActivate {
  canActivate(context: ExecutionContext) {
    const request = context.switchToHttp().getRequest<Member & { headers: Record<string, string> }>();
    const { 'x-user': id, 'x-team': team, 'x-org': org } = request.headers;
    if (id !== undefined) request.user = { id, team: team!, org: org! };
    return true;
  }
}

const levels = () => {
  const define = defineLimits({
    user: { algo: 'fixed-window', rate: 20, interval: '1m', key: 'user', within: 'team' },
    team: { algo: 'sliding-window', rate: 100, interval: '1m', key: (context) => teamOf(context), within: 'org' },
    org: { algo: 'token-bucket', rate: 1_000, interval: '1m', key: (context) => orgOf(context) },
  });
  return define;
};

const borrowing = () => {
  const define = defineLimits({
    team: {
      algo: 'sliding-log',
      rate: 40,
      ceiling: 80,
      interval: '1m',
      key: (context) => teamOf(context),
      within: 'org',
    },
    org: { algo: 'sliding-log', rate: 100, lends: 0.5, interval: '1m', key: (context) => orgOf(context) },
  });
  return define;
};

@Controller()
class Reports {
  @Get('reports')
  @RateLimit('user')
  list() {}
}

describe('the guide of hierarchies', () => {
  let app: HttpApp;
  afterEach(() => app.close());

  const start = async (define: Record<string, LimitDefinition>, controllers = [Reports]) => {
    const { define: given } = ((RateLimitModule: {
      forRoot: (options: RateLimitModuleOptions) => RateLimitModuleOptions;
    }) => RateLimitModule.forRoot({ redis: 'redis://localhost:6379', define }))({ forRoot: (options) => options });
    app = await HttpApp.start('express', {
      controllers,
      limits: { define: given! },
      configure: (nest) => nest.useGlobalGuards(new MemberGuard()),
    });
    return app.nest.get(LimiterService);
  };

  it('asks all levels', async () => {
    const limiters = await start(levels());
    const answer = await app.get('/reports', { 'x-user': '2', 'x-team': 't1', 'x-org': 'o1' });
    expect(answer.headers.get('ratelimit-policy')).toMatch(/"user";q=20.*"team";q=100.*"org";q=1000/);
    const decision = await limiters.for('user').consume('user:1', { within: { team: 't1', org: 'o1' } });
    expect(decision).toMatchObject({
      limit: 'user',
      levels: [{ remaining: 19 }, { remaining: 98 }, { remaining: 998 }],
    });
    await limiters.for('user').refund('user:1', 5, { within: { team: 't1', org: 'o1' } });
    await limiters.for('org').peek('o1');
    expect(await limiters.for('org').peek('o1')).toMatchObject({ remaining: 1000 });
  });

  it('lends as its table says', async () => {
    const limiters = await start(borrowing(), []);
    const rows = [
      ['A', 40, true, 60],
      ['A', 10, true, 50],
      ['A', 1, false, 50],
      ['B', 40, true, 10],
      ['C', 10, true, 0],
      ['C', 1, false, 0],
    ] as const;
    for (const [team, cost, allowed, left] of rows) {
      expect(await limiters.for('team').consume(team, { cost, within: { org: 'o1' } })).toMatchObject({ allowed });
      expect(await limiters.for('org').peek('o1')).toMatchObject({ remaining: left });
    }
  });
});

it('guides/hierarchies has no other code', () =>
  expect([
    ...untriedCode('docs/guides/hierarchies.md', 'test/docs/hierarchies.long.spec.ts', 'started'),
    ...untriedCode('docs/reference/hierarchies.md', 'test/docs/hierarchies.long.spec.ts', 'started'),
  ]).toEqual([]));
