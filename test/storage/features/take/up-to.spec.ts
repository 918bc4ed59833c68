import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import {
  type ConsumeOptions,
  type DecisionEvent,
  type LimitDefinition,
  LimiterService,
  RateLimitArgumentError,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../../lib/index.js';
import { createTestingStore, TestClock } from '../../../../lib/testing/index.js';
import { freshPrefix } from '../../../support/limits/stores.js';
import { until } from '../../../support/time/until.js';
import { PATIENCE } from '../../../support/redis/patience.mjs';

const opened: { close(): Promise<unknown> }[] = [];
afterEach(() => Promise.all(opened.splice(0).map((app) => app.close())));
afterAll(() => expect(opened).toEqual([]));

async function serviceOf(options: RateLimitModuleOptions): Promise<LimiterService> {
  const app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot(options)] }).compile();
  opened.push(app);
  await app.init();
  return app.get(LimiterService);
}

const url = process.env['TEST_REDIS_URL']!;
const places: Record<string, () => Partial<RateLimitModuleOptions>> = {
  'in process': () => ({ store: createTestingStore({ clock: new TestClock() }) }),
  'on Redis': () => ({ redis: url, prefix: freshPrefix(), timeout: PATIENCE }),
};

const hour = (rate: number) => ({ algo: 'fixed-window', rate, interval: '1h', onStoreError: 'deny' }) as const;
const define: Record<string, LimitDefinition> = {
  jobs: hour(10),
  few: hour(4),
  shadow: { ...hour(3), mode: 'shadow' },
  off: hour(3),
  org: hour(6),
  user: { ...hour(4), within: 'org' },
  lent: { ...hour(2), within: 'org', ceiling: 5 },
  tokens: { algo: 'budget', limit: 100, period: 'month', hold: '1h' },
  queue: { algo: 'leaky-bucket', rate: 1, interval: '1h', queue: 4 },
  blocked: { ...hour(2), blockFor: '2h' },
  slots: { algo: 'concurrency', limit: 3, ttl: '1m' },
};

/** Expects an argument to be refused. */
async function bad(work: Promise<unknown>, message: string): Promise<void> {
  await expect(work).rejects.toThrow(new RateLimitArgumentError(message));
}

describe.each(Object.entries(places))('upTo, %s', (_, place) => {
  async function start(): Promise<LimiterService> {
    const limiters = await serviceOf({ ...place(), define });
    await limiters.setMode('off', 'off');
    return limiters;
  }

  it('takes as many units as are there, and says how many', async () => {
    const jobs = (await start()).for('jobs');
    expect(await jobs.consume('a', { upTo: 7 })).toMatchObject({ allowed: true, taken: 7, remaining: 3 });
    expect(await jobs.peek('a', { upTo: 7 })).toMatchObject({ allowed: true, taken: 3, remaining: 3 });
    expect(await jobs.consume('a', { upTo: 7 })).toMatchObject({ allowed: true, taken: 3, remaining: 0 });
    const refused = await jobs.consume('a', { upTo: 7 });
    expect(refused).toMatchObject({ allowed: false, taken: 0, remaining: 0 });
    expect(refused.retryAfterMs).toBeGreaterThan(0);
    expect(refused.retryAfterMs).toBeLessThanOrEqual(3_600_000);
    expect((await jobs.consume('a', 1)).taken).toBeUndefined();
  });

  it('takes at most the quota, however many are wanted, and gives back what was taken', async () => {
    const jobs = (await start()).for('jobs');
    const { taken } = await jobs.consume('a', { upTo: 1_000_000 });
    expect(taken).toBe(10);
    await jobs.refund('a', taken!);
    expect(await jobs.peek('a')).toMatchObject({ remaining: 10 });
  });

  it('gives the same number at all levels, that of the level with the least left', async () => {
    const user = (await start()).for('user');
    const of = (key: string, options: ConsumeOptions) => user.consume(key, { within: { org: 'o' }, ...options });
    const first = await of('u', { upTo: 9 });
    expect(first).toMatchObject({ allowed: true, taken: 4 });
    expect(first.levels).toMatchObject([
      { limit: 'user', remaining: 0, taken: 4 },
      { limit: 'org', remaining: 2, taken: 4 },
    ]);
    expect(await of('v', { upTo: 9 })).toMatchObject({ allowed: true, taken: 2 });
    expect(await of('w', { upTo: 9 })).toMatchObject({ allowed: false, taken: 0, limit: 'org' });
  });

  it('borrows what its ceiling lets it', async () => {
    const lent = (await start()).for('lent');
    const within = { org: 'o' };
    expect(await lent.consume('u', { within, upTo: 9 })).toMatchObject({ allowed: true, taken: 5 });
    expect(await lent.consume('v', { within, upTo: 9 })).toMatchObject({ allowed: true, taken: 1 });
  });

  it('takes the same number of all limits of a check', async () => {
    const limiters = await start();
    const check = (upTo: number, other = upTo) =>
      limiters.check([
        { limit: 'jobs', key: 'a', upTo },
        { limit: 'few', key: 'a', upTo: other },
        { limit: 'off', key: 'a', upTo },
      ]);
    const first = await check(9, 3);
    expect(first).toMatchObject({ allowed: true, taken: 3 });
    expect(first.decisions).toMatchObject([
      { limit: 'jobs', remaining: 7, taken: 3 },
      { limit: 'few', remaining: 1, taken: 3 },
      { limit: 'off', remaining: 3, taken: 3 },
    ]);
    expect(await check(9)).toMatchObject({ allowed: true, taken: 1 });
    expect(await check(9)).toMatchObject({ allowed: false, taken: 0, tightest: { limit: 'few' } });
    expect(await limiters.for('jobs').peek('a')).toMatchObject({ remaining: 6 });
  });

  it('is not reduced by a limit that never refuses', async () => {
    const limiters = await start();
    expect(await limiters.for('shadow').consume('a', { upTo: 9 })).toMatchObject({ allowed: true, taken: 9 });
    expect(await limiters.for('off').consume('a', { upTo: 9 })).toMatchObject({ allowed: true, taken: 9 });
    const both = await limiters.check([
      { limit: 'few', key: 'a', upTo: 9 },
      { limit: 'shadow', key: 'b', upTo: 9 },
    ]);
    expect(both).toMatchObject({ allowed: true, taken: 4 });
  });

  it('takes of budgets with a hold, and of queues', async () => {
    const limiters = await start();
    const tokens = limiters.for('tokens');
    await tokens.reserve('a', { cost: 60 });
    expect(await tokens.consume('a', { upTo: 50 })).toMatchObject({ taken: 40 });
    const queue = limiters.for('queue');
    expect(await queue.consume('a', { upTo: 3 })).toMatchObject({ taken: 3, delayMs: 7_200_000 });
    expect(await queue.consume('a', { upTo: 3 })).toMatchObject({ taken: 2 });
  });

  it('takes of shares and of parts that are kept for others', async () => {
    const limiters = await serviceOf({
      ...place(),
      define: {
        shared: { algo: 'sliding-window', rate: 10, interval: '1h', share: { by: 'header:x-tenant' } },
        kept: { ...hour(10), reserveFor: { critical: 0.3 } },
      },
    });
    const shared = await limiters.for('shared').consume('k', { share: 'a', upTo: 50 });
    expect(shared).toMatchObject({ allowed: true, taken: 10 });
    const kept = limiters.for('kept');
    expect(await kept.consume('k', { upTo: 50 })).toMatchObject({ allowed: true, taken: 7 });
    expect(await kept.consume('k', { upTo: 50, priority: 'critical' })).toMatchObject({ taken: 3 });
  });

  it('begins a block only if not one unit is there', async () => {
    const blocked = (await start()).for('blocked');
    expect(await blocked.consume('a', { upTo: 9 })).toMatchObject({ allowed: true, taken: 2 });
    expect(await blocked.consume('a', { upTo: 9 })).toMatchObject({ taken: 0, retryAfterMs: 7_200_000 });
  });

  it('respects lists', async () => {
    const limiters = await start();
    await limiters.allow({ identity: 'vip' }, { limit: 'jobs' });
    await limiters.deny({ identity: 'bad' }, { limit: 'jobs' });
    const jobs = limiters.for('jobs');
    expect(await jobs.consume('vip', { upTo: 50 })).toMatchObject({ allowed: true, taken: 50, source: 'list' });
    expect(await jobs.consume('bad', { upTo: 50 })).toMatchObject({ allowed: false, taken: 0, source: 'list' });
    const both = await limiters.check([
      { limit: 'jobs', key: 'vip', upTo: 9 },
      { limit: 'few', key: 'a', upTo: 9 },
    ]);
    expect(both).toMatchObject({ allowed: true, taken: 4 });
  });

  it('reports the units that it took', async () => {
    const limiters = await start();
    const events: DecisionEvent[] = [];
    limiters.decisions$.subscribe((event) => events.push(event));
    await limiters.for('few').consume('a', { upTo: 9 });
    await limiters.for('few').consume('a', { upTo: 9 });
    expect(events).toMatchObject([
      { outcome: 'allowed', cost: 4, nearLimit: true },
      { outcome: 'refused', cost: 1 },
    ]);
  });

  it('refuses what it cannot take, before anything is sent', async () => {
    const limiters = await start();
    const jobs = limiters.for('jobs');
    for (const upTo of [0, -1, 1.5, NaN, Infinity, '3', null] as never[]) {
      await expect(jobs.consume('a', { upTo })).rejects.toThrow(/^upTo: expected a whole number >= 1, received /);
    }
    await bad(
      jobs.consume('a', { upTo: 2, cost: 1 }),
      "options: expected either 'cost' or 'upTo', received cost 1 and upTo 2; upTo takes as many units as there are",
    );
    await bad(
      limiters.for('slots').consume('a', { upTo: 2 }),
      "limit 'slots' of algo 'concurrency' holds units until they are released, so it does not support 'upTo'. Use 'cost'",
    );
    await bad(
      limiters.check([
        { limit: 'jobs', key: 'a', upTo: 2 },
        { limit: 'few', key: 'a' },
      ]),
      "LimiterService.check: limit 'few' has no 'upTo'. Give it to all limits of the check or to none: each gives the same number",
    );
    await bad(
      limiters.check([
        { limit: 'user', key: 'a', within: { org: 'o' }, upTo: 2 },
        { limit: 'user', key: 'b', within: { org: 'o' }, upTo: 2 },
      ]),
      "LimiterService.check: several limits of the check are within limit 'org', so 'upTo' would take a different number from it. " +
        'Use a separate check for each',
    );
    await bad(
      limiters.reserve([{ limit: 'jobs', key: 'a', upTo: 2 }]),
      "LimiterService.reserve: 'upTo' is not supported. Use 'cost': only consume, peek and check accept 'upTo'",
    );
    await expect(jobs.acquire('a', { upTo: 2 } as never)).rejects.toThrow(/^unknown option 'upTo'/);
    await expect(jobs.reserve('a', { upTo: 2 } as never)).rejects.toThrow(/^unknown option 'upTo'/);
    expect(await jobs.peek('a')).toMatchObject({ remaining: 10 });
  });
});

describe('upTo in process', () => {
  it('is decided at once', async () => {
    const few = (await serviceOf({ define })).for('few');
    expect(few.consumeSync('a', { upTo: 3 })).toMatchObject({ allowed: true, taken: 3, remaining: 1 });
    expect(few.consumeSync('a', { upTo: 3 })).toMatchObject({ allowed: true, taken: 1, remaining: 0 });
    expect(few.consumeSync('a', { upTo: 3 })).toMatchObject({ allowed: false, taken: 0 });
    expect(() => few.consumeSync('a', { upTo: 0 })).toThrow(RateLimitArgumentError);
  });

  it('charges the candidate of a limit the same', async () => {
    const { onStoreError: _, ...candidate } = hour(5);
    const limiters = await serviceOf({
      store: createTestingStore({ clock: new TestClock() }),
      define: { both: { ...hour(10), candidate } },
    });
    const events: DecisionEvent[] = [];
    limiters.decisions$.subscribe((event) => events.push(event));
    const both = limiters.for('both');
    expect(await both.consume('a', { upTo: 4 })).toMatchObject({ taken: 4 });
    expect(await both.consume('a', { upTo: 4 })).toMatchObject({ taken: 4 });
    expect(events.filter((event) => event.candidate)).toMatchObject([
      { outcome: 'allowed', cost: 4, remaining: 1 },
      { outcome: 'shadow-refused', cost: 4, remaining: 1 },
    ]);
  });
});

describe('upTo on Redis', () => {
  it('never takes more than there are, whoever asks at once', async () => {
    const prefix = freshPrefix();
    const limits = { pool: hour(1000), part: { ...hour(300), within: 'pool' } } as const;
    const instances = await Promise.all(
      Array.from({ length: 3 }, () => serviceOf({ redis: url, prefix, define: limits })),
    );
    const made = await Promise.all(
      Array.from({ length: 300 }, (_, index) =>
        instances[index % 3]!.for('part').consume(`k${index % 5}`, { within: { pool: 'all' }, upTo: 7 }),
      ),
    );
    expect(made.reduce((sum, { taken }) => sum + taken!, 0)).toBe(1000);
    for (const { allowed, taken } of made) expect(allowed).toBe(taken! > 0);
  });

  it('is refused from memory while the refusal holds, whatever it wants', async () => {
    const limiters = await serviceOf({ redis: url, prefix: freshPrefix(), define });
    const few = limiters.for('few');
    await few.consume('a', { upTo: 4 });
    // An instance remembers refusals once it hears the others.
    await until(async () => (await few.consume('a', { upTo: 2 })).source === 'cache');
    expect(await few.consume('a', { upTo: 3 })).toMatchObject({ allowed: false, taken: 0, source: 'cache' });
    await few.refund('a', 2);
    expect(await few.consume('a', { upTo: 3 })).toMatchObject({ allowed: true, taken: 2, source: 'redis' });
  });

  it('takes what this instance holds in advance, too', async () => {
    const limiters = await serviceOf({
      redis: url,
      prefix: freshPrefix(),
      define: { ahead: { ...hour(1000), prefetch: { units: 100, ttl: '1m' } } },
    });
    const ahead = limiters.for('ahead');
    for (let times = 0; times < 40; times++) await ahead.consume('a');
    expect(await ahead.consume('a', { upTo: 5 })).toMatchObject({ allowed: true, taken: 5 });
    expect(await ahead.consume('a', { upTo: 2000 })).toMatchObject({ allowed: true, taken: 955 });
    expect(await ahead.consume('a', { upTo: 2000 })).toMatchObject({ allowed: false, taken: 0 });
  });

  it('takes the same number where limits are counted in several places', async () => {
    const limiters = await serviceOf({
      redis: url,
      prefix: freshPrefix(),
      define: { here: { ...hour(5), scope: 'instance' }, there: hour(3), full: hour(1) },
    });
    const both = (there: string) =>
      limiters.check([
        { limit: there, key: 'a', upTo: 9 },
        { limit: 'here', key: 'a', upTo: 9 },
      ]);
    expect(await both('there')).toMatchObject({ allowed: true, taken: 3, decisions: [{ taken: 3 }, { taken: 3 }] });
    expect(await limiters.for('here').peek('a')).toMatchObject({ remaining: 2 });
    expect(await both('there')).toMatchObject({ allowed: false, taken: 0 });
    expect(await both('full')).toMatchObject({ allowed: true, taken: 1 });
    expect(await limiters.for('here').peek('a')).toMatchObject({ remaining: 1 });
  });
});

describe('upTo while Redis fails', () => {
  it.each([
    ['local', { allowed: true, taken: 4 }],
    ['allow', { allowed: true, taken: 9 }],
  ] as const)('onStoreError: %s', async (onStoreError, expected) => {
    const limiters = await serviceOf({
      redis: { host: '127.0.0.1', port: 1 },
      define: { few: { ...hour(4), onStoreError } },
    });
    expect(await limiters.for('few').consume('a', { upTo: 9 })).toMatchObject({ ...expected, source: 'fallback' });
  });
});
