import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import type { INestApplication } from '@nestjs/common';
import type { Redis } from 'ioredis';
import {
  defineLimits,
  LimiterService,
  RateLimitArgumentError,
  RateLimitConfigError,
  RateLimitModule,
  RateLimitTimeoutError,
} from '../../../../lib/index.js';
import { OutboundLimiter } from '../../../../lib/integrations/outbound/index.js';
import { connectRedis, freshPrefix, ManualClock, storeKinds } from '../../../support/limits/stores.js';

const define = defineLimits({
  user: { algo: 'fixed-window', rate: 2, interval: '1m', within: 'team' },
  team: { algo: 'sliding-log', rate: 3, interval: '1m', within: 'org' },
  org: { algo: 'token-bucket', rate: 5, interval: '1m' },
  tried: { algo: 'gcra', rate: 4, interval: '1m', candidate: { rate: 1 }, within: 'org' },
  job: { algo: 'concurrency', limit: 1, ttl: '1m', within: 'jobs' },
  jobs: { algo: 'concurrency', limit: 2, ttl: '1m' },
  step: { algo: 'gcra', rate: 5, interval: '1s', within: 'jobs' },
  tokens: { algo: 'fixed-window', rate: 10, interval: '1m', hold: '5m', within: 'budget' },
  budget: { algo: 'budget', limit: 15, period: 'year', hold: '5m' },
  paced: { algo: 'leaky-bucket', rate: 1, interval: '1m', queue: 5, within: 'crew' },
  crew: { algo: 'fixed-window', rate: 9, interval: '1h' },
  fast: { algo: 'fixed-window', rate: 1, interval: '40s', within: 'slow' },
  slow: { algo: 'fixed-window', rate: 1, interval: '1m' },
  call: { algo: 'fixed-window', rate: 90, interval: '1m', within: 'account' },
  account: { algo: 'fixed-window', rate: 100, interval: '1m', cost: 10, reserveFor: { critical: 0.1 } },
});

const within = { team: 't1', org: 'o1' };

const rejects = async (promise: Promise<unknown>, message: string) => {
  await expect(promise).rejects.toThrow(RateLimitArgumentError);
  await expect(promise).rejects.toThrow(message);
};

let redis: Redis;
let app: INestApplication | undefined;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());
afterEach(async () => {
  await app?.close();
  app = undefined;
});

describe.each(Object.entries(storeKinds))('limits within others, from code, on %s', (_, make) => {
  const start = async (options: { onRealClock?: boolean } = {}) => {
    const clock = new ManualClock();
    if (options.onRealClock === true) clock.micros = Date.now() * 1000;
    const store = make(clock, redis, freshPrefix());
    const testing = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ store, define })] }).compile();
    app = testing.createNestApplication();
    await app.init();
    const limiter = app.get(LimiterService);
    const used = async (name: string, key: string, parents?: Record<string, string>) => {
      const decision = await limiter.for(name).peek(key, parents && { within: parents });
      const own = decision.levels?.[0] ?? decision;
      return own.quota - own.remaining;
    };
    const usage = async () => [
      await used('user', 'u1', within),
      await used('team', 't1', { org: 'o1' }),
      await used('org', 'o1'),
    ];
    return { clock, limiter, used, usage };
  };

  it('give nothing back to a level that was switched off when they waited', async () => {
    const { limiter, used } = await start();
    const crew = limiter.for('crew');
    await crew.consume('c1', { cost: 3 });
    const paced = limiter.for('paced');
    const options = { within: { crew: 'c1' } };
    await limiter.setMode('crew', 'off');
    await paced.consume('p1', options);
    const aborter = new AbortController();
    const waits = paced.acquire('p1', { ...options, signal: aborter.signal });
    const isAborted = expect(waits).rejects.toThrow('enough');
    // It has its place in the queue.
    while ((await used('paced', 'p1', options.within)) < 2) await turn();
    aborter.abort(new Error('enough'));
    await isAborted;
    while ((await used('paced', 'p1', options.within)) > 1) await turn();
    await limiter.setMode('crew', 'enforce');
    expect(await used('crew', 'c1')).toBe(3);
  });

  it('are charged at all levels or at none, and say which level binds', async () => {
    const { limiter, usage } = await start();
    const user = limiter.for('user');
    const first = await user.consume('u1', { within });
    expect(first).toMatchObject({ allowed: true, limit: 'user', remaining: 1 });
    expect(first.levels).toMatchObject([
      { limit: 'user', quota: 2 },
      { limit: 'team', quota: 3 },
      { limit: 'org', quota: 5 },
    ]);
    expect(await user.consume('u2', { within, cost: 2 })).toMatchObject({ allowed: true });
    const refused = await user.consume('u1', { within });
    expect(refused).toMatchObject({ allowed: false, limit: 'team' });
    expect(refused.levels).toMatchObject([{ allowed: true }, { allowed: false }, { allowed: true }]);
    expect(await usage()).toEqual([1, 3, 3]);
    expect(await user.peek('u9', { within: { team: 't2', org: 'o1' } })).toMatchObject({ allowed: true });
    expect(await limiter.for('team').consume('t2', { within: { org: 'o1' }, cost: 2 })).toMatchObject({
      allowed: true,
    });
    expect(await user.peek('u9', { within: { team: 't2', org: 'o1' } })).toMatchObject({
      allowed: false,
      limit: 'org',
    });
  });

  it('give back and take beyond the limit at all levels, and block and forget at their own', async () => {
    const { limiter, usage } = await start();
    const user = limiter.for('user');
    await user.consume('u1', { within, cost: 2 });
    await user.refund('u1', 1, { within });
    expect(await usage()).toEqual([1, 1, 1]);
    await user.penalize('u1', 2, { within });
    expect(await usage()).toEqual([2, 3, 3]);
    await user.reset('u1', { within });
    expect(await usage()).toEqual([0, 3, 3]);
    await limiter.for('team').reset('t1', { within: { org: 'o1' } });
    expect(await usage()).toEqual([0, 0, 3]);
    await user.block('u1', '1m', { within });
    expect(await user.consume('u1', { within })).toMatchObject({ allowed: false, limit: 'user' });
    expect(await user.consume('u2', { within })).toMatchObject({ allowed: true });
    await user.unblock('u1', { within });
    expect(await user.consume('u1', { within })).toMatchObject({ allowed: true });
  });

  it('are charged once in a check of several limits, with what is asked of all within them', async () => {
    const { limiter, usage } = await start();
    const result = await limiter.check([
      { limit: 'user', key: 'u1', within },
      { limit: 'user', key: 'u2', within },
    ]);
    expect(result).toMatchObject({ allowed: true });
    expect(result.decisions.map(({ limit }) => limit)).toEqual(['user', 'user', 'team', 'org']);
    expect(await usage()).toEqual([1, 2, 2]);
    await limiter.check([
      { limit: 'team', key: 't1', within: { org: 'o1' } },
      { limit: 'user', key: 'u1', within },
    ]);
    expect(await usage()).toEqual([2, 3, 3]);
    const refused = await limiter.check([
      { limit: 'org', key: 'o1' },
      { limit: 'user', key: 'u2', within },
    ]);
    expect(refused).toMatchObject({ allowed: false, tightest: { limit: 'team' } });
    expect(await usage()).toEqual([2, 3, 3]);
    await expect(
      limiter.check([
        { limit: 'user', key: 'u2', within },
        { limit: 'user', key: 'u2', within },
      ]),
    ).rejects.toThrow(RateLimitArgumentError);
  });

  it('are charged the same by a check whatever its order, with costs of their own and of the calls', async () => {
    const { limiter, used } = await start();
    const own = { limit: 'call', key: 'c1', within: { account: 'a1' } };
    const other = { limit: 'call', key: 'c2', within: { account: 'a1' } };
    const set = { limit: 'call', key: 'c3', cost: 5, within: { account: 'a1' } };
    const orders = [
      [own, other, set],
      [set, own, other],
      [other, set, own],
    ];
    for (const checks of orders) {
      await limiter.check(checks);
      // Its own cost for the calls that set none, and what the other one sets.
      expect(await used('account', 'a1')).toBe(15);
      await limiter.for('account').reset('a1');
    }
  });

  it('are met by a check with the least important priority that its calls give, whatever its order', async () => {
    const { limiter, used } = await start();
    const checks = [
      { limit: 'call', key: 'c1', cost: 5, priority: 'critical', within: { account: 'a1' } },
      { limit: 'call', key: 'c2', cost: 5, within: { account: 'a1' } },
      { limit: 'call', key: 'c3', cost: 5, priority: 'sheddable', within: { account: 'a1' } },
    ] as const;
    await limiter.for('account').consume('a1', { cost: 82, priority: 'critical' });
    for (const order of [checks, checks.toReversed()]) {
      expect(await limiter.check(order)).toMatchObject({ allowed: false, tightest: { limit: 'account' } });
    }
    expect(await used('account', 'a1')).toBe(82);
    const important = checks.map((check) => ({ ...check, priority: 'critical' as const }));
    expect(await limiter.check(important)).toMatchObject({ allowed: true });
  });

  it('hold units of all levels by one lease', async () => {
    const { limiter, used } = await start();
    const job = limiter.for('job');
    const parents = { jobs: 'o1' };
    const { lease } = await job.consume('u1', { within: parents });
    expect([await used('job', 'u1', parents), await used('jobs', 'o1')]).toEqual([1, 1]);
    expect(await job.consume('u1', { within: parents })).toMatchObject({ allowed: false, limit: 'job' });
    expect(await lease!.renew()).toBe(true);
    await lease!.release();
    expect([await used('job', 'u1', parents), await used('jobs', 'o1')]).toEqual([0, 0]);
    const during = await job.hold('u2', () => used('jobs', 'o1'), { within: parents });
    expect([during, await used('jobs', 'o1')]).toEqual([1, 0]);
    await job.consume('u3', { within: parents });
    await job.consume('u4', { within: parents });
    await expect(job.hold('u5', () => 1, { within: parents })).rejects.toThrow(RateLimitTimeoutError);
    const waits = job.acquire('u5', { within: parents });
    await limiter.for('jobs').reset('o1');
    expect((await waits).lease).toBeDefined();
  });

  it('name the level whose units are only released', async () => {
    const { limiter } = await start();
    const step = limiter.for('step');
    const jobs = { within: { jobs: 'j1' } };
    await rejects(step.refund('s1', 1, jobs), "limit 'jobs' of algo 'concurrency' cannot be refunded");
    await rejects(step.penalize('s1', 1, jobs), "limit 'jobs' of algo 'concurrency' cannot be penalized");
    await rejects(step.reserve('s1', jobs), "limit 'jobs' of algo 'concurrency' cannot be reserved");
  });

  it('reserve at an estimate at all levels, and settle all of them', async () => {
    const { limiter, used } = await start();
    const parents = { budget: 'o1' };
    const usage = async () => [await used('tokens', 'u1', parents), await used('budget', 'o1')];
    const reservation = await limiter.for('tokens').reserve('u1', { cost: 6, within: parents });
    expect(reservation.levels).toHaveLength(2);
    expect(await usage()).toEqual([6, 6]);
    await reservation.settle(2);
    expect(await usage()).toEqual([2, 2]);
    const other = await limiter.for('tokens').reserve('u1', { cost: 6, within: parents });
    await other.cancel();
    expect(await usage()).toEqual([2, 2]);
    const both = await limiter.reserve([{ limit: 'tokens', key: 'u1', cost: 4, within: parents }]);
    expect(both.decisions.map(({ limit }) => limit)).toEqual(['tokens', 'budget']);
    await limiter.for('tokens').settle('u1', both.decisions[0]!.id!, 1, { within: parents });
    await limiter.for('budget').settle('o1', both.decisions[1]!.id!, 1);
    expect(await usage()).toEqual([3, 3]);
    expect(await limiter.for('tokens').reserve('u1', { cost: 8, within: parents })).toMatchObject({ allowed: false });
    await expect(limiter.for('tokens').reserve('u1', { maxWait: '1s', within: parents })).rejects.toThrow(
      "limit 'tokens' is within another one, so its units cannot be reserved for the future. Remove 'maxWait': only units that fit now can be taken",
    );
  });

  it('wait for their turn at all levels', async () => {
    const { limiter, clock } = await start();
    const fast = limiter.for('fast');
    const parents = { slow: 's' };
    await fast.consume('a', { within: parents });
    await expect(fast.acquire('b', { within: parents, timeout: '10s' })).rejects.toThrow("limit 'slow'");
    await expect(fast.acquire('b', { within: parents, cost: 2 })).rejects.toThrow(RateLimitTimeoutError);
    const order: string[] = [];
    const waits = ['first', 'second'].map(async (name) => {
      await fast.acquire('b', { within: parents });
      order.push(name);
      clock.advanceMs(60_000);
      await limiter.for('slow').unblock('s');
    });
    clock.advanceMs(60_000);
    await limiter.for('slow').unblock('s');
    await Promise.all(waits);
    expect(order).toEqual(['first', 'second']);
    const controller = new AbortController();
    const aborted = fast.acquire('b', { within: parents, signal: controller.signal });
    controller.abort(new Error('gone'));
    await expect(aborted).rejects.toThrow('gone');
  });

  it('count candidates of levels within others, too', async () => {
    const { limiter } = await start();
    const told: string[] = [];
    limiter.decisions$.subscribe(({ limit, outcome, candidate = false }) => {
      if (candidate) told.push(`${limit} ${outcome}`);
    });
    const tried = limiter.for('tried');
    for (const org of ['o1', 'o1', 'o2']) await tried.consume('u1', { within: { org } });
    expect(told).toEqual(['tried allowed', 'tried shadow-refused', 'tried allowed']);
    await tried.refund('u1', 1, { within: { org: 'o1' } });
    await tried.reset('u1', { within: { org: 'o1' } });
    await tried.consume('u1', { within: { org: 'o1' } });
    expect(told.at(-1)).toBe('tried allowed');
  });

  it('say what they want to know', async () => {
    const { limiter } = await start();
    const user = limiter.for('user');
    await rejects(user.consume('u1'), "expected { within: { team: '…', org: '…' } }");
    await rejects(user.peek('u1', { within: { team: 't1' } }), "the key of 'org' is missing");
    await rejects(user.acquire('u1', { within: { ...within, planet: 'p' } }), "not within 'planet'");
    await rejects(
      user.reserve('u1', { within: 't1' as never }),
      "expected the keys of the limits that 'user' is within: { within: { team: '…', org: '…' } }, received 't1'",
    );
    await rejects(user.reset('u1', { within: { team: '', org: 'o1' } }), "the key of 'team'");
    await rejects(user.refund('u1', 1, 5 as never), 'expected { share }, { within } or nothing, received 5');
    await rejects(user.penalize('u1', 1, { cost: 1 } as never), "unknown option 'cost'");
    await rejects(limiter.for('org').consume('o1', { within: { team: 't1' } }), "limit 'org' is within no other limit");
    await rejects(limiter.check([{ limit: 'user', key: 'u1' }]), "limit 'user' is within 'team' and 'org'");
    await rejects(limiter.check([{ limit: 'org', key: 'o1', within: {} }]), "limit 'org' is within no other limit");
    expect(() => limiter.for({ algo: 'gcra', rate: 1, interval: 1, within: 'nobody' })).toThrow(RateLimitConfigError);
    expect(() => app!.get(OutboundLimiter).fetch('user', { key: 'k' })).toThrow("limit 'user' is within another one");
  });
});
