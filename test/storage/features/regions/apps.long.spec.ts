import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, HttpException, Param } from '@nestjs/common';
import { type LimitDefinition, RateLimit, type WindowCount } from '../../../../lib/index.js';
import { freshPrefix } from '../../../support/limits/stores.js';
import { until } from '../../../support/time/until.js';
import { type AppInRegion, World } from './world.js';

const window = { algo: 'fixed-window', rate: 10, interval: '1h', scope: 'world', key: 'global' } as const;

@Controller()
class ReportsController {
  @Get('reports')
  @RateLimit('shared')
  list(): void {}

  @Get('both')
  @RateLimit('shared', 'narrow')
  both(): void {}

  @Get('logins/:status')
  @RateLimit('logins')
  login(@Param('status') status: string): void {
    if (status !== '200') throw new HttpException('no', Number(status));
  }
}

const define: Record<string, LimitDefinition> = {
  shared: window,
  narrow: { algo: 'fixed-window', rate: 2, interval: '1h', key: 'global' },
  logins: { ...window, rate: 4, count: 'failed' },
  quiet: { ...window, rate: 3, mode: 'shadow' },
  budget: { algo: 'budget', limit: 100, period: 'year', scope: 'world' },
  sliding: { algo: 'sliding-window', rate: 10, interval: '1h', scope: 'world' },
  bucket: { algo: 'token-bucket', rate: 3600, interval: '1h', burst: 30, scope: 'world' },
  org: { ...window, rate: 6, key: 'header:x-org' },
  user: { algo: 'fixed-window', rate: 2, interval: '1h', key: 'header:x-user', within: 'org' },
  log: { algo: 'sliding-log', rate: 10, interval: '1h', scope: 'world' },
  gcra: { algo: 'gcra', rate: 3600, interval: '1h', burst: 30, scope: 'world' },
} as never;

/** A call of that cost, which two limits count. */
const requests = (cost: number) => [
  { limit: 'budget', key: 'corp', cost },
  { limit: 'narrow', key: 'corp', cost: 1 },
];

describe('two apps in two regions', () => {
  let world: World;
  let eu: AppInRegion;
  let us: AppInRegion;

  beforeAll(async () => {
    world = await World.start();
  }, 300_000);
  afterAll(() => world.stop());

  beforeEach(async () => {
    const prefix = freshPrefix();
    const app = { limits: { prefix, define }, controllers: [ReportsController] };
    [eu, us] = [await world.app('eu', app), await world.app('us', app)];
  });
  afterEach(() => world.closeApps());

  /** Takes units one by one, in turn in each region, until both refuse. */
  const takeAll = async (name: string, key: string): Promise<number> => {
    let taken = 0;
    for (let misses = 0; misses < 8;) {
      for (const { limiters } of [eu, us]) {
        const { allowed } = await limiters.for(name).consume(key);
        if (allowed) taken++;
        misses = allowed ? 0 : misses + 1;
      }
    }
    return taken;
  };

  it('charge all other limits once, though one in shadow mode waits for units', async () => {
    const budget = us.limiters.for('budget');
    const held = async () => (await budget.regions('firm')).find(({ region }) => region === 'us')!.held;
    let used = 0;
    do {
      await budget.consume('firm');
      used++;
    } while ((await held()) < 2);
    const { allowed, decisions } = await us.limiters.check([
      { limit: 'quiet', key: 'firm' },
      { limit: 'budget', key: 'firm' },
      { limit: 'narrow', key: 'firm' },
    ]);
    expect(allowed).toBe(true);
    expect(decisions.map((decision) => decision.allowed)).toEqual([true, true, true]);
    expect((await us.limiters.for('narrow').peek('firm')).remaining).toBe(1);
    expect((await budget.peek('firm')).remaining).toBe(100 - used - 1);
  });

  it('share one limit, on routes and in code', async () => {
    const first = await eu.get('/reports');
    expect(first.status).toBe(200);
    expect(first.headers.get('ratelimit-policy')).toBe('"shared";q=10;w=3600');
    expect(first.headers.get('ratelimit')).toBe('"shared";r=9;t=3600');
    expect([...(await us.statuses(4, '/reports')), ...(await eu.statuses(1, '/reports'))]).toEqual(
      Array.from({ length: 5 }, () => 200),
    );
    expect(await us.limiters.for('shared').consume('global')).toMatchObject({
      allowed: true,
      quota: 10,
      source: 'redis',
    });
    expect(await takeAll('shared', 'global')).toBe(3);
    const refused = await us.get('/reports');
    expect(refused.status).toBe(429);
    expect(refused.headers.get('ratelimit')).toBe('"shared";r=0;t=3600');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3500);
  });

  it.each([
    ['sliding', 10],
    ['log', 10],
    // A part of the burst flows back while a region may hold units.
    ['bucket', 20],
    ['gcra', 20],
    ['budget', 100],
  ])('allow together what the limit says: %s', async (name, units) => {
    const since = performance.now();
    const taken = await takeAll(name, 'user:1');
    const refilled = ['bucket', 'gcra'].includes(name) ? Math.ceil((performance.now() - since) / 1000) : 0;
    expect(taken).toBeGreaterThanOrEqual(units);
    expect(taken).toBeLessThanOrEqual(units + refilled);
  });

  it('take no unit of a check that another limit refuses', async () => {
    expect(await us.statuses(5, '/both')).toEqual([200, 200, 429, 429, 429]);
    expect(await eu.statuses(4, '/both')).toEqual([200, 200, 429, 429]);
    expect(await takeAll('shared', 'global')).toBe(6);
  });

  it('take as many as there are', async () => {
    const [here, there] = [us.limiters.for('shared'), eu.limiters.for('shared')];
    expect(await here.consume('a', { upTo: 7 })).toMatchObject({ allowed: true, taken: 7, remaining: 3 });
    expect(await there.peek('a')).toMatchObject({ allowed: true, remaining: 3 });
    expect(await there.consume('a', { upTo: 7 })).toMatchObject({ allowed: true, taken: 3, remaining: 0 });
    expect(await there.consume('a', { upTo: 7 })).toMatchObject({ allowed: false, taken: 0 });
  });

  it('wait for units', async () => {
    const limiter = us.limiters.for('gcra');
    expect(await limiter.consume('a', 20)).toMatchObject({ allowed: true });
    expect(await limiter.acquire('a', { timeout: '1m' })).toMatchObject({ allowed: true });
  });

  it('give back what did not count', async () => {
    for (const app of [eu, us]) {
      for (let i = 0; i < 6; i++) await until(async () => (await app.get('/logins/200')).status === 200);
    }
    // What was given back last may still be on its way, and each region may have said a moment ago that nothing is left.
    for (const app of [us, us, us, eu]) await until(async () => (await app.get('/logins/401')).status === 401);
    expect(await eu.statuses(2, '/logins/401')).toEqual([429, 429]);
    expect(await us.statuses(2, '/logins/401')).toEqual([429, 429]);
  });

  it('refund units, which the other region then takes', async () => {
    const [here, there] = [us.limiters.for('shared'), eu.limiters.for('shared')];
    for (let i = 0; i < 10; i++) expect((await here.consume('b')).allowed).toBe(true);
    expect((await there.consume('b')).allowed).toBe(false);
    await here.refund('b', 3);
    await until(async () => (await there.consume('b')).allowed);
    expect(await takeAll('shared', 'b')).toBe(2);
  });

  it('penalize beyond what is there', async () => {
    const [here, there] = [us.limiters.for('shared'), eu.limiters.for('shared')];
    await here.penalize('c', 9);
    await until(async () => (await there.peek('c')).remaining === 1);
    expect(await takeAll('shared', 'c')).toBe(1);
  });

  it('report without refusing', async () => {
    const limiter = us.limiters.for('quiet');
    const remaining: number[] = [];
    for (let i = 0; i < 5; i++) {
      const decision = await limiter.consume('d');
      expect(decision.allowed).toBe(true);
      remaining.push(decision.remaining);
    }
    expect(remaining).toEqual([2, 1, 0, 0, 0]);
  });

  it('reserve an estimate, and settle it', async () => {
    const [here, there] = [us.limiters.for('budget'), eu.limiters.for('budget')];
    const reserved = await here.reserve('org', { cost: 60 });
    expect(reserved).toMatchObject({ allowed: true, id: undefined, remaining: 40 });
    expect(await there.peek('org')).toMatchObject({ remaining: 40 });
    await reserved.settle(10);
    await until(async () => (await there.consume('org', 80)).allowed);
    expect(await here.reserve('org', { cost: 11 })).toMatchObject({ allowed: false });
    // The home counts what a region holds in advance, too.
    const [{ count }] = (await here.history('org', 1)) as [WindowCount];
    expect(count).toBeGreaterThanOrEqual(90);
  });

  it('reserve units of several limits together', async () => {
    const first = await us.limiters.reserve(requests(90));
    expect(first.allowed).toBe(true);
    expect((await eu.limiters.reserve(requests(20))).allowed).toBe(false);
    await first.settle([30, 1]);
    await until(async () => (await eu.limiters.reserve(requests(20))).allowed);
  });

  it('block, unblock and reset in both', async () => {
    const [here, there] = [us.limiters.for('shared'), eu.limiters.for('shared')];
    for (const limiter of [here, there]) expect((await limiter.consume('e')).allowed).toBe(true);
    await here.block('e', '10m');
    const blocked = await here.consume('e');
    expect(blocked).toMatchObject({ allowed: false, remaining: 0 });
    expect(blocked.retryAfterMs).toBeGreaterThan(590_000);
    await until(async () => !(await there.consume('e')).allowed);
    await there.unblock('e');
    for (const limiter of [here, there]) await until(async () => (await limiter.consume('e')).allowed);
    await here.reset('e');
    let taken = 0;
    // Units may still be on their way when both regions refuse.
    await until(async () => (taken += await takeAll('shared', 'e')) >= 10);
    // The other region may have used a unit that it held, before it heard of the reset.
    expect(taken).toBeLessThanOrEqual(12);
  });

  it('keep nothing of what was asked for in advance before a reset', async () => {
    const limiter = us.limiters.for('budget');
    for (let round = 0; round < 10; round++) {
      await limiter.consume('g', 20);
      await limiter.reset('g');
      expect(await limiter.peek('g')).toMatchObject({ remaining: 100 });
    }
  });

  it('refuse a rate of which regions could hold nothing', async () => {
    await expect(us.limiters.setRate('bucket', { burst: 1 })).rejects.toThrow(
      "with scope: 'world', all of the quota would flow back within the 10000 ms for which a region may hold units",
    );
    expect((await eu.limiters.for('bucket').peek('h')).quota).toBe(20);
  });

  it('have limits of their own within one of both', async () => {
    const within = { org: 'acme' };
    const user = (app: AppInRegion, key: string) => app.limiters.for('user').consume(key, { within });
    for (const app of [us, eu]) {
      expect((await user(app, 'a')).allowed).toBe(true);
      expect((await user(app, 'a')).allowed).toBe(true);
      expect((await user(app, 'a')).allowed).toBe(false);
    }
    expect(await takeAll('org', 'acme')).toBe(2);
    expect(await user(us, 'b')).toMatchObject({ allowed: false, limit: 'org' });
  });

  it('change a rate, a mode and a list in both', async () => {
    const [here, there] = [us.limiters.for('shared'), eu.limiters.for('shared')];
    await us.limiters.setRate('shared', { rate: 4 });
    await until(async () => (await there.peek('f')).quota === 4);
    expect(await takeAll('shared', 'f')).toBe(4);
    await eu.limiters.setMode('shared', 'off');
    await until(async () => (await here.consume('f')).allowed);
    await us.limiters.deny({ ip: '127.0.0.1' });
    await until(async () => (await eu.get('/reports')).status === 403);
  });
});
