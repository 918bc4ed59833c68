import { afterEach, describe, expect, it } from '@jest/globals';
import { BadRequestException, Controller, type ExecutionContext } from '@nestjs/common';
import { headerIdentity, type LimitDefinition, RateLimit } from '../../../lib/index.js';
import { AppCalls, type Asking, callOf } from './app-calls.js';

const header = (name: string) => (context: ExecutionContext) =>
  context.switchToHttp().getRequest<Asking>().headers?.[name] as string;
const has = (name: string) => (context: ExecutionContext) => header(name)(context) === 'yes';

/** Which functions of limits were called, one after the other. */
let called: string[] = [];
const noting =
  <T>(name: string, of: (context: ExecutionContext) => T) =>
  (context: ExecutionContext) => {
    called.push(name);
    return of(context);
  };

const hundred = { algo: 'fixed-window', rate: 100, interval: '1m' } as const;

const define = {
  org: {
    ...hundred,
    key: 'header:x-org',
    onMissingKey: 'refuse',
    skip: noting('skip of org', has('x-free')),
    cost: noting('cost of org', () => 2),
  },
  user: { ...hundred, key: header('x-user'), within: 'org' },
  keyless: { ...hundred, key: 'header:x-none', onMissingKey: 'skip', within: 'root' },
  root: { ...hundred, key: header('x-org'), skip: has('x-free') },
  all: { ...hundred, key: 'global', within: 'root' },
  middle: { ...hundred, key: header('x-team'), cost: 2, within: 'root' },
  dear: { ...hundred, key: header('x-user'), cost: 7, within: 'middle' },
  near: { ...hundred, key: header('x-user'), cost: 5, within: 'root' },
  nearer: { ...hundred, key: header('x-user'), cost: 3, within: 'root' },
  top: { ...hundred, key: header('x-org') },
  between: { ...hundred, key: header('x-team'), within: 'top' },
  low: { ...hundred, key: header('x-user'), cost: 4, within: 'between' },
  contract: {
    algo: 'budget',
    limit: 100,
    period: 'month',
    key: 'global',
    anchor: noting('anchor of contract', () => '2030-01-15'),
  },
} satisfies Record<string, LimitDefinition>;

@Controller()
class Routes {
  @RateLimit('org', () => 'user')
  chosen() {}

  @RateLimit('user')
  user() {}

  @RateLimit('all')
  all() {}

  @RateLimit('root', () => 'all')
  chosenAll() {}

  @RateLimit('dear')
  dear() {}

  @RateLimit('near', 'nearer')
  two() {}

  @RateLimit('keyless')
  keyless() {}

  @RateLimit('low')
  low() {}

  @RateLimit('user', 'contract')
  beside() {}
}

const names = { 'x-org': 'o', 'x-team': 't', 'x-user': 'u' };

describe('what a request asks where limits are within others', () => {
  let app: AppCalls | undefined;
  afterEach(async () => {
    called = [];
    await app?.close();
  });

  const start = async () => {
    const started = (app = await AppCalls.start([Routes], { define }));
    const asking = (handler: keyof Routes, headers: Record<string, string>) =>
      callOf(Routes, handler, [{ ip: '203.0.113.1', headers }, {}]);
    const ask = async (handler: keyof Routes, headers: Record<string, string> = names) => {
      const context = asking(handler, headers);
      await started.limiter.beforeGuards(context);
      await started.limiter.afterGuards(context);
      return context;
    };
    const used = async (limit: string, key: string, within?: Record<string, string>) =>
      100 - (await started.left(limit, key, within));
    return { ask, used };
  };

  it('costs each level as much as the dearest limit directly within it, unless it has a cost of its own', async () => {
    const { ask, used } = await start();
    await ask('dear');
    expect(await used('dear', 'u', { root: 'o', middle: 't' })).toBe(7);
    expect(await used('middle', 't', { root: 'o' })).toBe(2);
    expect(await used('root', 'o')).toBe(2);
    await ask('two', { ...names, 'x-org': 'other' });
    expect(await used('near', 'u', { root: 'other' })).toBe(5);
    expect(await used('nearer', 'u', { root: 'other' })).toBe(3);
    expect(await used('root', 'other')).toBe(5);
    await ask('low');
    expect([await used('between', 't', { top: 'o' }), await used('top', 'o')]).toEqual([4, 4]);
  });

  it('costs a level its own cost, which is asked once, and what is within it one unit', async () => {
    const { ask, used } = await start();
    const org = headerIdentity('x-org', 'o');
    await ask('user');
    expect(called).toEqual(['skip of org', 'cost of org']);
    expect([await used('org', org), await used('user', 'u', { org })]).toEqual([2, 1]);
  });

  it('is not asked of a level that skips the request, whose identity is still part of those within it', async () => {
    const { ask, used } = await start();
    const org = headerIdentity('x-org', 'o');
    await ask('user', { ...names, 'x-free': 'yes' });
    expect(called).toEqual(['skip of org']);
    expect([await used('org', org), await used('user', 'u', { org })]).toEqual([0, 1]);
  });

  it('needs the key of a level that counts the request, and of no other', async () => {
    const { ask } = await start();
    await expect(ask('user', { 'x-user': 'u' })).rejects.toThrow(BadRequestException);
    await ask('user', { 'x-user': 'u', 'x-free': 'yes' });
  });

  it('has one counter where the key of a level is missing, whether the level counts the request, skips it, or has before', async () => {
    const { ask } = await start();
    const counted = async (handler: keyof Routes, headers: Record<string, string> = {}) => {
      const { entries = [] } = app!.limitedBy(await ask(handler, headers)) ?? {};
      return entries.find(({ limit }) => limit.name === 'all')?.identity;
    };
    const identity = await counted('all');
    expect(identity).toContain('ip:203.0.113.1');
    expect(await counted('chosenAll')).toBe(identity);
    expect(await counted('all', { 'x-free': 'yes' })).toBe(identity);
  });

  it('is nothing of a level that knows nobody to count, while those above count', async () => {
    const { ask, used } = await start();
    const context = await ask('keyless');
    expect(app!.limitedBy(context)?.entries.map(({ limit }) => limit.name)).toEqual(['root']);
    expect(await used('root', 'o')).toBe(1);
  });

  it('asks a level that was checked before the guards for nothing but its identity', async () => {
    const { ask, used } = await start();
    const org = headerIdentity('x-org', 'o');
    await ask('chosen');
    expect(called).toEqual(['skip of org', 'cost of org']);
    expect([await used('org', org), await used('user', 'u', { org })]).toEqual([2, 1]);
  });

  it('asks limits beside the hierarchy for all that they have', async () => {
    const { ask } = await start();
    await ask('beside');
    expect(called).toContain('anchor of contract');
    const contract = app!.service.for('contract');
    expect(await contract.peek('global', { anchor: '2030-01-15' })).toMatchObject({ remaining: 99 });
  });
});
