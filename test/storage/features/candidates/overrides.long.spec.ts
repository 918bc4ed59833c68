import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { type DecisionEvent, RateLimitConfigError, type RatePatch } from '../../../../lib/index.js';
import { RatesApp } from '../../../app/overrides/overrides-app.js';
import { connectRedis, freshPrefix } from '../../../support/limits/stores.js';
import { PATIENCE } from '../../../support/redis/patience.mjs';

const api = { algo: 'gcra', rate: 100, interval: '1h', burst: 8, candidate: { burst: 5 } } as const;
const plan = { algo: 'calendar-window', rate: 8, period: 'month', anchor: () => null, candidate: { rate: 5 } } as const;
const plain = { algo: 'gcra', rate: 100, interval: '1h', burst: 8 } as const;

describe.each(['in the process', 'on Redis'])('changes of a limit with a candidate %s', (place) => {
  let redis: Redis;
  let app: RatesApp;
  let events: DecisionEvent[];

  beforeEach(async () => {
    redis = await connectRedis();
    const counting = place === 'on Redis' ? { redis, prefix: freshPrefix(), timeout: PATIENCE } : {};
    app = await RatesApp.start({ define: { api, plain, plan }, telemetry: false, ...counting });
    events = [];
    app.service.decisions$.subscribe((event) => events.push(event));
  });

  afterEach(async () => {
    await app.close();
    await redis.quit();
  });

  /** The quotas by which the limit and its candidate decide for a key. */
  async function quotas(name = 'api', key = 'tenant:acme'): Promise<number[]> {
    await app.service.for(name).consume(key);
    return events.splice(0).map(({ quota }) => quota);
  }

  it('leave the candidate as it is configured', async () => {
    await app.service.setRate('api', { burst: 20 });
    expect(await quotas()).toEqual([20, 5]);
    await app.service.setRate('api', { rate: 1, interval: '1s' }, { key: 'tenant:acme' });
    expect(await quotas()).toEqual([8, 5]);
    expect(await app.service.getRate('api')).toMatchObject({
      options: { ...plain, burst: 20 },
      candidate: { ...plain, burst: 5 },
    });
  });

  it('may bring another candidate, of the limit as it is changed', async () => {
    await app.service.setRate('api', { candidate: { burst: 3 } });
    expect(await quotas()).toEqual([8, 3]);
    await app.service.setRate('api', { burst: 20, candidate: { algo: 'token-bucket', rate: 30 } });
    expect(await quotas()).toEqual([20, 20]);
    await app.service.setRate('api', { candidate: { algo: 'sliding-window', rate: 30 } }, { key: 'tenant:*' });
    expect(await quotas()).toEqual([8, 30]);
    expect(await quotas('api', 'user:1')).toEqual([20, 20]);
    const { candidate } = await app.service.getRate('api', { key: 'tenant:acme' });
    expect(candidate).toEqual({ algo: 'sliding-window', rate: 30, interval: '1h' });
    await app.service.clearRate('api', { key: 'tenant:*' });
    await app.service.clearRate('api');
    expect(await quotas()).toEqual([8, 5]);
  });

  it('leave the candidate the anchor of its limit, also where a function gives it', async () => {
    const counted = async () => {
      await app.service.for('plan').consume('tenant:acme', { anchor: '2026-01-12' });
      return events.splice(0).map(({ quota, remaining }) => [quota, remaining]);
    };
    const { candidate: configured, ...limit } = plan;
    await counted();
    await app.service.setRate('plan', { rate: 20 });
    expect(await counted()).toEqual([
      [20, 18],
      [5, 3],
    ]);
    expect(await app.service.getRate('plan')).toMatchObject({
      options: { ...limit, rate: 20 },
      candidate: { ...limit, ...configured },
    });
    // For a key, as for all.
    await app.service.setRate('plan', { rate: 3 }, { key: 'tenant:*' });
    expect((await counted()).map(([quota]) => quota)).toEqual([3, 5]);
    await app.service.clearRate('plan', { key: 'tenant:*' });
    // A fixed anchor in place of the function holds for both.
    await app.service.setRate('plan', { anchor: '2026-01-20' });
    expect(await app.service.getRate('plan')).toMatchObject({
      options: { ...limit, anchor: '2026-01-20' },
      candidate: { ...limit, ...configured, anchor: '2026-01-20' },
    });
  });

  it('may give a limit a candidate, and take it away', async () => {
    await app.service.setRate('plain', { candidate: { burst: 3 } });
    expect(await quotas('plain')).toEqual([8, 3]);
    const [last] = await app.service.changes({ limit: 'plain' });
    expect(last!.overrides[0]!.after).toMatchObject({ patch: { candidate: { burst: 3 } } });
    await app.service.rollback(last!.version - 1);
    expect(await quotas('plain')).toEqual([8]);
    expect(await app.service.getRate('plain')).not.toHaveProperty('candidate');
    await app.service.setRate('api', { candidate: null });
    expect(await quotas()).toEqual([8]);
  });

  it('of the mode do not change the candidate, but those to off', async () => {
    await app.service.setMode('api', 'shadow');
    expect(await quotas()).toEqual([8, 5]);
    await app.service.setMode('api', 'off');
    expect(await quotas()).toEqual([]);
  });

  it('with a reset start the counters of both anew, and all others keep those of the candidate', async () => {
    const limiter = app.service.for('api');
    const left = async () => {
      await limiter.consume('tenant:acme');
      return events.splice(0).map(({ remaining }) => remaining);
    };
    expect(await left()).toEqual([7, 4]);
    await app.service.setRate('api', { burst: 16 }, { inherit: 'proportional' });
    expect(await left()).toEqual([13, 3]);
    await app.service.setRate('api', { burst: 16 }, { inherit: 'reset' });
    expect(await left()).toEqual([15, 4]);
  });

  it.each<[RatePatch, string]>([
    [
      { candidate: { burst: 0 } },
      "LimiterService.setRate of 'api'.candidate.burst: expected a whole number >= 1, received 0",
    ],
    [
      { candidate: {} },
      "LimiterService.setRate of 'api'.candidate: expected an object of at least one of algo, rate, interval, burst, warmUp, such as { rate: 60 }, received {}",
    ],
    [
      { candidate: { slices: 3 } },
      "LimiterService.setRate of 'api'.candidate: option 'slices' is not an option of 'gcra': it belongs to sliding-window",
    ],
  ])('that are wrong are refused, as %j', async (patch, message) => {
    const changing = app.service.setRate('api', patch);
    await expect(changing).rejects.toThrow(RateLimitConfigError);
    await expect(changing).rejects.toThrow(message);
    expect(await quotas()).toEqual([8, 5]);
  });
});
