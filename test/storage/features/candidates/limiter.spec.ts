import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import type { Subscription } from 'rxjs';
import { type DecisionEvent, type LimitDefinition, LimiterService, RateLimitModule } from '../../../../lib/index.js';
import {
  connectRedis,
  freshPrefix,
  type ManualClock,
  ManualClock as Clock,
  storeKinds,
} from '../../../support/limits/stores.js';

const api = { name: 'api', algo: 'fixed-window', rate: 3, interval: '1h', candidate: { rate: 2 } } as const;
const other: LimitDefinition = { name: 'other', algo: 'fixed-window', rate: 1, interval: '1h' };
const slots = { name: 'slots', algo: 'concurrency', limit: 3, ttl: '1m', candidate: { limit: 2 } } as const;
const spent = { name: 'spent', algo: 'budget', limit: 10, period: 'year', onLapse: 'release' } as const;
const held = { name: 'held', algo: 'fixed-window', rate: 10, interval: '1h', hold: '5m' } as const;
const bucket = { algo: 'token-bucket', rate: 12, interval: '1h' } as const;

/** What limits and candidates said: `+` if they allowed, `-` if not, and what they had left. */
const told = (events: readonly DecisionEvent[], candidate: boolean) =>
  events
    .filter((event) => (event.candidate === true) === candidate)
    .map(({ outcome, remaining }) => `${outcome === 'allowed' ? '+' : '-'}${remaining}`)
    .join(' ');

describe.each(Object.keys(storeKinds))('a limit with a candidate in code on %s', (kind) => {
  let redis: Redis;
  let clock: ManualClock;
  let nest: TestingModule;
  let service: LimiterService;
  let events: DecisionEvent[];
  let subscription: Subscription;

  beforeEach(async () => {
    redis = await connectRedis();
    clock = new Clock();
    const store = storeKinds[kind]!(clock, redis, freshPrefix());
    nest = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ store, telemetry: false })],
    }).compile();
    await nest.init();
    service = nest.get(LimiterService);
    events = [];
    subscription = service.decisions$.subscribe((event) => events.push(event));
  });

  afterEach(async () => {
    subscription.unsubscribe();
    await nest.close();
    await redis.quit();
  });

  /** What both said since this was asked last. */
  const both = () => {
    const seen = events.splice(0);
    return [told(seen, false), told(seen, true)];
  };

  it('is decided as without, and the candidate is told of beside it', async () => {
    const limiter = service.for(api);
    const decisions: object[] = [];
    for (let call = 0; call < 4; call++) decisions.push(await limiter.consume('a'));
    expect(events[1]).toEqual({ ...events[0], candidate: true, quota: 2, remaining: 1 });
    expect(both()).toEqual(['+2 +1 +0 -0', '+1 +0 -0 -0']);
    const { candidate: _, ...without } = api;
    const plain = service.for({ ...without, name: 'plain' });
    for (const decision of decisions) expect(decision).toEqual({ ...(await plain.consume('a')), limit: 'api' });
  });

  it('is charged only by what its limit lets through, and what the candidate would', async () => {
    const limiter = service.for({ ...api, candidate: { rate: 9 } });
    for (let call = 0; call < 6; call++) await limiter.consume('a');
    // What the limit refuses costs the candidate nothing, though it would fit.
    expect(both()).toEqual(['+2 +1 +0 -0 -0 -0', '+8 +7 +6 +6 +6 +6']);
    const costly = service.for({ ...api, name: 'costly', rate: 9 });
    for (const cost of [3, 2, 1]) await costly.consume('a', cost);
    expect(both()).toEqual(['+6 +4 +3', '-2 +0 -0']);
    expect(events).toEqual([]);
  });

  it('may have another algorithm', async () => {
    const limiter = service.for({ ...api, candidate: { algo: 'gcra', burst: 1 } });
    for (let call = 0; call < 2; call++) await limiter.consume('a');
    expect(both()).toEqual(['+2 +1', '+0 -0']);
    // Of three an hour the next one comes after twenty minutes.
    clock.advanceMs(1_200_000);
    await limiter.consume('a');
    expect(both()[1]).toEqual('+0');
  });

  it('is one of several limits of a check, of which the caller is told in the order of the call', async () => {
    const checks = [
      { limit: api, key: 'a' },
      { limit: other, key: 'a' },
      { limit: { ...api, name: 'last' }, key: 'b' },
    ];
    const first = await service.check(checks);
    expect(first.decisions.map(({ limit, remaining }) => [limit, remaining])).toEqual([
      ['api', 2],
      ['other', 0],
      ['last', 2],
    ]);
    expect(events.map(({ limit, candidate = false }) => [limit, candidate])).toEqual([
      ['api', false],
      ['other', false],
      ['last', false],
      ['api', true],
      ['last', true],
    ]);
    expect(both()).toEqual(['+2 +0 +2', '+1 +1']);
    // Another limit refuses: nothing is charged.
    expect((await service.check(checks)).allowed).toBe(false);
    expect(both()).toEqual(['+2 -0 +2', '+1 +1']);
    // The candidate refuses: all others are charged.
    const costly = [{ limit: api, key: 'a', cost: 2 }];
    expect(await service.check(costly)).toMatchObject({ allowed: true, tightest: { limit: 'api', remaining: 0 } });
    expect(both()).toEqual(['+0', '-1']);
  });

  it('is not asked by a look', async () => {
    await service.for(api).peek('a');
    expect(events).toEqual([]);
  });

  it('gets back what each was charged', async () => {
    const limiter = service.for(api);
    await limiter.consume('a', 2);
    await limiter.refund('a', 1);
    await limiter.consume('a');
    await limiter.penalize('a', 1);
    expect(both()).toEqual(['+1 +1', '+0 +0']);
    await limiter.consume('a');
    await limiter.reset('a');
    await limiter.consume('a');
    expect(both()).toEqual(['-0 +2', '-0 +1']);
  });

  it('is blocked and unblocked with its candidate', async () => {
    const limiter = service.for(api);
    await limiter.block('a', '1m');
    await limiter.consume('a');
    await limiter.unblock('a');
    await limiter.consume('a');
    expect(both()).toEqual(['-0 +2', '-0 +1']);
    const blocking = service.for({ ...api, name: 'blocking', blockFor: '10m' });
    for (let call = 0; call < 3; call++) await blocking.consume('a');
    clock.advanceMs(599_999);
    await blocking.refund('a', 3);
    await blocking.consume('a');
    clock.advanceMs(1);
    await blocking.consume('a');
    expect(both()).toEqual(['+2 +1 +0 +2 +1', '+1 +0 -0 -0 +1']);
  });

  it('reserves beside its candidate, which waits for none of it', async () => {
    const limiter = service.for({
      name: 'tokens',
      algo: 'token-bucket',
      rate: 60,
      interval: '1h',
      candidate: { burst: 10 },
    });
    await limiter.reserve('a', { cost: 10 });
    const second = await limiter.reserve('a', { cost: 10, maxWait: '5m' });
    const third = await limiter.reserve('a', { cost: 10, maxWait: '20m' });
    expect(third).toMatchObject({ allowed: true, delayMs: 0 });
    expect(both()).toEqual(['+50 +40 +30', '+0 -0 +0']);
    await third.settle(4);
    await second.cancel();
    clock.advanceMs(300_000);
    await limiter.consume('a');
    // 10 + 4 of 60, and 5 came back, as of 10 + 4 - 5 of 10 of the candidate.
    expect(both()).toEqual(['+50', '+0']);
  });

  it('acquires as without', async () => {
    const limiter = service.for(api);
    const { candidate: _, ...without } = api;
    const plain = service.for({ ...without, name: 'plain' });
    const acquired = await limiter.acquire('a', { cost: 3, timeout: 0 });
    expect(acquired).toEqual({ ...(await plain.acquire('a', { cost: 3, timeout: 0 })), limit: 'api' });
    events.pop();
    await expect(limiter.acquire('a', { timeout: 0 })).rejects.toMatchObject({ decision: { remaining: 0 } });
    expect(both()).toEqual(['+0 -0', '-2 +2']);
  });

  it('takes the units of its own queue, and gives the last of them back', async () => {
    const queue = { name: 'queue', algo: 'leaky-bucket', rate: 60, interval: '1h', queue: 20 } as const;
    const limiter = service.for({ ...queue, candidate: { queue: 10 } });
    const reservation = await limiter.reserve('a', { cost: 8 });
    await limiter.reserve('a');
    await reservation.settle(3);
    expect(both()).toEqual(['+13 +12', '+3 +2']);
    // Five departures in the middle are free again, for both.
    await limiter.consume('a', 5);
    expect(both()).toEqual(['+12', '+2']);
  });

  it('holds beside its candidate, and releases both', async () => {
    const limiter = service.for(slots);
    const leases = [await limiter.consume('a'), await limiter.consume('a'), await limiter.consume('a')];
    expect(both()).toEqual(['+2 +1 +0', '+1 +0 -0']);
    for (const { lease } of leases) expect(await lease!.renew()).toBe(true);
    await leases[0]!.lease!.release();
    await leases[2]!.lease!.release();
    await limiter.consume('a');
    expect(both()).toEqual(['+1', '+0']);
    await limiter.hold('b', () => undefined);
    await service.check([{ limit: slots, key: 'b', cost: 2 }]).then(({ decisions }) => decisions[0]!.lease!.release());
    await limiter.consume('b');
    expect(both()).toEqual(['+2 +1 +2', '+1 +0 +1']);
  });

  it('settles what it holds beside its candidate, also by the id alone', async () => {
    const limiter = service.for({ ...spent, candidate: { limit: 8 } });
    const first = await limiter.reserve('a', { cost: 6 });
    await limiter.settle('a', first.id!, 2);
    await limiter.settle('a', first.id!, 1);
    const second = await limiter.reserve('a', { cost: 5 });
    await second.settle(3);
    // The candidate would have let it pass no more.
    const third = await limiter.reserve('a', { cost: 5 });
    await limiter.settle('a', third.id!, 0);
    await limiter.consume('a');
    expect(both()).toEqual(['+4 +3 +0 +4', '+2 +1 -3 +2']);
    clock.advanceMs(300_000);
    await limiter.consume('a');
    expect(both()).toEqual(['+3', '+1']);
  });

  it('settles what its candidate of another algorithm was charged and does not hold', async () => {
    const limiter = service.for({ ...held, candidate: bucket });
    const reserve = () => limiter.reserve('a', { cost: 3 });
    const [fewer, more, elsewhere] = [await reserve(), await reserve(), await reserve()];
    expect(both()).toEqual(['+7 +4 +1', '+9 +6 +3']);
    await fewer.settle(1);
    await more.settle(4);
    await limiter.settle('a', elsewhere.id!, 2);
    await limiter.consume('a');
    expect(both()).toEqual(['+2', '+4']);
  });

  it('in shadow mode, counts for its candidate what that would let through', async () => {
    const limiter = service.for({ ...api, mode: 'shadow', rate: 1 });
    for (let call = 0; call < 3; call++) await limiter.consume('a');
    expect(both()).toEqual(['+0 -0 -0', '+1 +0 -0']);
    // A lease that holds nothing of the limit holds nothing of the candidate.
    const few = service.for({ ...slots, mode: 'shadow', limit: 1 });
    const held = [await few.consume('a'), await few.consume('a')];
    await few.hold('a', () => undefined);
    await held[1]!.lease!.release();
    await few.consume('a');
    expect(both()).toEqual(['+0 -0 -0 -0', '+1 +0 +0 +0']);
    await held[0]!.lease!.release();
    await few.consume('a');
    expect(both()).toEqual(['+0', '+1']);
  });

  it('tells when it comes near, of each by itself', async () => {
    const limiter = service.for({ ...api, rate: 10, candidate: { rate: 5 } });
    for (let call = 0; call < 8; call++) await limiter.consume('a');
    expect(events.filter(({ nearLimit }) => nearLimit).map(({ quota, remaining }) => [quota, remaining])).toEqual([
      [5, 1],
      [10, 2],
    ]);
  });

  it('is told of where it is counted by each instance for itself', async () => {
    const limiter = service.for({ ...api, scope: 'instance' });
    for (let call = 0; call < 3; call++) await limiter.consume('a');
    expect(events.every(({ source }) => source === 'memory')).toBe(true);
    expect(both()).toEqual(['+2 +1 +0', '+1 +0 -0']);
  });

  it('is forgotten where the limit has none', async () => {
    const { candidate: _, ...without } = api;
    const limiter = service.for(without);
    await limiter.consume('a');
    expect(both()).toEqual(['+2', '']);
  });
});
