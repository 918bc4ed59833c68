import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { LimitDefinition, RateLimitModuleOptions } from '../../../lib/index.js';
import { RatesApp, until } from '../overrides/overrides-app.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { outcomeOf } from '../../support/limits/waiting.js';

const KEY = 'user:1';

const kinds: Record<string, () => RateLimitModuleOptions> = {
  'in process': () => ({}),
  'on Redis, by another instance': () => ({
    redis: process.env['TEST_REDIS_URL'],
    prefix: freshPrefix(),
  }),
};

const algos = ['gcra', 'token-bucket', 'leaky-bucket', 'sliding-log', 'sliding-window', 'fixed-window'];

/** Options of a limit; a leaky bucket gets a long queue. */
const optionsOf = (algo: string, options: object) =>
  ({ algo, ...(algo === 'leaky-bucket' ? { queue: 100 } : {}), ...options }) as LimitDefinition;

describe.each(Object.entries(kinds))('setRate under waiting calls, %s', (kind, options) => {
  const apps: RatesApp[] = [];
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
  });

  /** An app with the waiting calls, and one that changes the rate. */
  async function start(login: LimitDefinition): Promise<[waiting: RatesApp, changing: RatesApp]> {
    const common = { ...options(), define: { login } };
    apps.push(await RatesApp.start(common));
    if (kind !== 'in process') apps.push(await RatesApp.start(common));
    return [apps[0]!, apps.at(-1)!];
  }

  it.each(algos)('%s: releases them sooner', async (algo) => {
    const [waiting, changing] = await start(optionsOf(algo, { rate: 1, interval: '1h' }));
    const limiter = waiting.service.for('login');
    await limiter.consume(KEY);
    const patient = [limiter.acquire(KEY), limiter.acquire(KEY)];
    await changing.service.setRate('login', { rate: 100, interval: '1s' });
    expect(await Promise.all(patient)).toMatchObject([{ allowed: true }, { allowed: true }]);
  });

  it.each(algos)('%s: delays them', async (algo) => {
    const [waiting, changing] = await start(optionsOf(algo, { rate: 20, interval: '1s' }));
    const limiter = waiting.service.for('login');
    await limiter.consume(KEY, algo === 'leaky-bucket' ? 1 : 20);
    const outcomes = Array.from({ length: 300 }, () => outcomeOf(limiter.acquire(KEY)));
    const gone = () => outcomes.filter(({ at }) => at !== undefined).length;
    await changing.service.setRate('login', { rate: 1, interval: '1h' });
    await until(async () => waiting.service.for('login').rule.limit.windowMs(0), 3_600_000);
    const before = gone();
    // Calls that came before the change may all have gone by now, on a slow machine.
    outcomes.push(...Array.from({ length: 10 }, () => outcomeOf(limiter.acquire(KEY))));
    // Three units at the rate before.
    await sleep(150);
    expect(gone() - before).toBeLessThanOrEqual(1);
  });
});
