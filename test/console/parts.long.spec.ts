import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type LimitDefinition, usd } from '../../lib/index.js';
import { freshPrefix } from '../support/limits/stores.js';
import {
  ConsoleApp,
  type LimitInfo,
  type Lookup,
  type Session,
  type Tenants,
  THINGS,
  type Tree,
} from './console-app.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;

const define: Record<string, LimitDefinition> = {
  things: THINGS,
  org: { algo: 'fixed-window', rate: 100, interval: '1h', lends: 0.9 },
  team: { algo: 'fixed-window', rate: 10, interval: '1h', within: 'org', ceiling: 50 },
  user: { algo: 'fixed-window', rate: 40, interval: '1h', within: 'team' },
  gpu: {
    algo: 'sliding-window',
    rate: 100,
    interval: '1h',
    key: 'global',
    share: { by: 'user', weight: { 'user:acme': 3 }, floor: 0.1 },
  },
  money: { algo: 'budget', limit: usd(50), unit: 'USD', period: 'month', timezone: 'Europe/Berlin' },
  plan: {
    algo: 'calendar-window',
    rate: 1000,
    period: 'month',
    anchor: '2026-01-31',
    rollover: 0.5,
    credits: true,
    unit: 'calls',
  },
};

describe.each([
  ['on Redis', REDIS],
  ['in process', undefined],
])('the parts of limits %s', (_name, redis) => {
  let app: ConsoleApp;

  beforeAll(async () => {
    app = await ConsoleApp.start({
      console: { identities: 'plain' },
      limits: { define, prefix: freshPrefix(), ...(redis !== undefined && { redis }) },
    });
    await app.read('tree?limit=user');
    await app.read('tenants?limit=gpu');
    const { service } = app;
    const user = service.for('user');
    const within = { team: 't1', org: 'acme' };
    for (let call = 0; call < 15; call++) await user.consume('u1', { within });
    for (let call = 0; call < 4; call++) await user.consume('u2', { within: { team: 't2', org: 'acme' } });
    for (let call = 0; call < 6; call++) await service.for('gpu').consume('global', { share: 'user:acme' });
    for (let call = 0; call < 2; call++) await service.for('gpu').consume('global', { share: 'user:other' });
    await service.for('money').consume('acme', usd('0.5'));
    await service.for('plan').credit('acme', 200);
    await service.for('plan').consume('acme', 30);
  });
  afterAll(() => app.close());

  it('of a hierarchy are a tree, with what each level used and who borrows', async () => {
    const { nodes, more, since, limit } = await app.read<Tree>('tree?limit=team');
    const rows = nodes.map(({ limit: of, key, used, quota, borrowed, parent }) => {
      return [of, key, used, quota, borrowed, nodes.find(({ id }) => id === parent)?.key];
    });
    expect(rows).toEqual([
      ['org', 'acme', 19, 100, 0, undefined],
      ['team', 't1', 15, 50, 5, 'acme'],
      ['user', 'u1', 15, 40, 0, 't1'],
      ['team', 't2', 4, 50, 0, 'acme'],
      ['user', 'u2', 4, 40, 0, 't2'],
    ]);
    expect([limit, more, since]).toEqual(['team', false, expect.any(Number)]);
  });

  it('of tenants are those that they use, may use, and always may use', async () => {
    const { counters } = await app.read<Tenants>('tenants?limit=gpu');
    if (redis === undefined) expect(counters).toEqual([]);
    else {
      expect(counters).toMatchObject([
        {
          key: 'global',
          units: 100,
          floor: 10,
          weights: 4,
          tenants: [
            { name: 'user:acme', weight: 3, part: 75, used: 6 },
            { name: 'user:other', weight: 1, part: 25, used: 2 },
          ],
        },
      ]);
    }
  });

  it('are described: levels, tenants, money, and plans', async () => {
    const { limits } = await app.read<Session>('session');
    const info = (name: string) => limits.find((each) => each.name === name) as LimitInfo;
    expect(info('org')).toMatchObject({ kept: 10 });
    expect(info('team')).toMatchObject({ within: 'org', own: 10, quota: 50 });
    expect(info('user')).toMatchObject({ within: 'team' });
    expect(info('user')).not.toHaveProperty('own');
    expect(info('gpu').share).toEqual({ by: 'user', floor: 10 });
    expect(info('money')).toMatchObject({ unit: 'USD', plan: { period: 'month', timezone: 'Europe/Berlin' } });
    expect(info('plan')).toMatchObject({
      unit: 'calls',
      plan: { anchor: Date.UTC(2026, 0, 31), rollover: 0.5, credits: true, timezone: 'UTC' },
    });
  });

  it('of a plan include credits', async () => {
    const response = await app.post('lookup', { identity: 'acme' });
    const { limits } = (await response.json()) as Lookup;
    expect(limits.find(({ limit }) => limit === 'plan')).toMatchObject({ used: 30, quota: 1200, credits: 200 });
    expect(limits.find(({ limit }) => limit === 'money')).toMatchObject({ used: 500_000 });
  });

  it('of limits in no hierarchy are their own counters', async () => {
    const { nodes } = await app.read<Tree>('tree?limit=plan');
    expect(nodes.every(({ parent }) => parent === undefined)).toBe(true);
  });
});
