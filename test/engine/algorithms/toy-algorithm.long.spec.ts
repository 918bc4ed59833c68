/**
 * An algorithm from outside, in TypeScript and Lua, that the registry is given. It is the only one that meets it:
 * @library own
 */
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import type { Algorithm } from '../../../lib/engine/algorithms/algorithm.js';
import { algorithms } from '../../../lib/engine/algorithms/index.js';
import {
  type AlgorithmOptions,
  type LimitDefinition,
  LimiterService,
  MemoryStore,
  RateLimit,
  RedisStore,
  type Store,
} from '../../../lib/index.js';
import { type Check, CompiledLimit, type Refund } from '../../../lib/testing/store/index.js';
import type { CarryOver } from '../../../lib/engine/limits/limit-settings.js';
import { composeScript } from '../../../lua/compose.mjs';
import { HttpApp, startUp } from '../../e2e/http-app.js';
import { clockStep, costOf, costShare } from '../../support/limits/arbitraries.js';
import { comparable, connectRedis, freshPrefix, ManualClock } from '../../support/limits/stores.js';
import { coolDown, type CoolDownOptions } from './toy.js';
import { propertyRuns } from '../../support/limits/property-runs.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const RUNS = propertyRuns(60);

const ownNames = algorithms.names;
algorithms.add(coolDown as unknown as Algorithm);
const script = composeScript({ 'cool-down': readFileSync('test/engine/algorithms/toy.lua', 'utf8') });

/** The types of the package know its own algorithms only. */
const definitionOf = (options: Omit<CoolDownOptions, 'algo'> & object): LimitDefinition =>
  ({ algo: 'cool-down', ...options }) as unknown as LimitDefinition;

const twice = definitionOf({ limit: 2, rest: '10s' });

@Controller()
class Routes {
  @RateLimit(twice)
  @Get()
  get(): string {
    return 'ok';
  }
}

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

const redisStore = (clock: ManualClock, client = redis) =>
  new RedisStore(client, { clock, script, prefix: freshPrefix(), timeoutMs: PATIENCE_MS });

const kinds: Record<string, (clock: ManualClock) => Store> = {
  MemoryStore: (clock) => new MemoryStore({ clock: clock.now }),
  RedisStore: (clock) => redisStore(clock),
};

describe('the algorithms of the package', () => {
  it('have a name and keys of their own', () => {
    expect(new Set(ownNames).size).toBe(10);
    expect(new Set(ownNames.map((name) => algorithms.get(name)!.code)).size).toBe(10);
  });

  it.each([
    ['lib/engine/algorithms', '.ts'],
    ['lua/algorithms', '.lua'],
    ['docs/algorithms', '.md'],
  ])('have a file each in %s', (folder, end) => {
    // What learns in one process has no twin.
    const hasNone = (name: string) => folder === 'lua/algorithms' && algorithms.get(name)!.adapting !== undefined;
    const names = ownNames.filter((name) => !hasNone(name));
    expect(readdirSync(folder)).toEqual(expect.arrayContaining(names.map((name) => name + end)));
  });
});

describe.each(Object.entries(kinds))('an algorithm that a test adds, on a %s', (_, makeStore) => {
  let clock: ManualClock;
  let store: Store;
  let app: HttpApp;
  let limits: LimiterService;

  beforeEach(async () => {
    clock = new ManualClock();
    store = makeStore(clock);
    const named = definitionOf({ limit: 3, rest: '1m' });
    const options = { store, define: { named }, headers: ['draft-8' as const, 'draft-6' as const] };
    app = await HttpApp.start('express', { controllers: [Routes], limits: options });
    limits = app.nest.get(LimiterService);
  });
  afterEach(async () => {
    await app.close();
    await store.close();
  });

  it('limits a route and tells so in the headers', async () => {
    const first = await app.get('/');
    expect(first.headers.get('ratelimit-policy')).toBe('2;w=10');
    expect(await app.statuses(2, '/')).toEqual([200, 429]);
    clock.advanceMs(9999);
    const refused = await app.get('/');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect(refused.headers.get('ratelimit')).toBe('"cool-down:2/10s";r=0;t=1');
    clock.advanceMs(1);
    expect(await app.statuses(3, '/')).toEqual([200, 200, 429]);
  });

  it('obeys code', async () => {
    const limiter = limits.for('named');
    expect(await limiter.peek('a')).toMatchObject({ allowed: true, remaining: 3, resetAfterMs: 0 });
    expect(await limiter.consume('a', 2)).toMatchObject({
      allowed: true,
      quota: 3,
      remaining: 1,
      resetAfterMs: 60_000,
    });
    clock.advanceMs(15_000);
    expect(await limiter.consume('a', 2)).toMatchObject({ allowed: false, remaining: 1, retryAfterMs: 45_000 });
    const start = Math.floor(clock.now() / 1000) - 15_000;
    expect(await limiter.history('a')).toEqual([{ start, end: start + 60_000, count: 2 }]);
    await limiter.refund('a', 1);
    expect(await limiter.consume('a', 2)).toMatchObject({ allowed: true, remaining: 0, resetAfterMs: 60_000 });
    await limiter.penalize('a', 2);
    expect(await limiter.peek('a')).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 60_000 });
    await limiter.refund('a', 3);
    expect(await limiter.peek('a')).toMatchObject({ allowed: true, remaining: 1 });
    await limiter.block('a', '2m');
    expect(await limiter.consume('a')).toMatchObject({ allowed: false, retryAfterMs: 120_000 });
    await limiter.reset('a');
    expect(await limiter.peek('a')).toMatchObject({ allowed: true, remaining: 3 });
    expect(await limiter.consume('a', 4)).toMatchObject({ allowed: false, retryAfterMs: Infinity });
  });

  it('changes its rate while the app runs', async () => {
    const limiter = limits.for('named');
    await limiter.consume('a', 3);
    await limits.setRate('named', { limit: 5 });
    expect(await limiter.consume('a', 2)).toMatchObject({ allowed: true, quota: 5, remaining: 0 });
    await expect(limits.setRate('named', { rate: 5 })).rejects.toThrow(
      "option 'rate' is not an option of 'cool-down': it belongs to fixed-window",
    );
  });

  it('takes the place of others in a check of several limits', async () => {
    const gcra: LimitDefinition = { algo: 'gcra', rate: 1, interval: '1s', name: 'even' };
    const both = [
      { limit: twice, key: 'a' },
      { limit: gcra, key: 'a' },
    ];
    expect(await limits.check(both)).toMatchObject({ allowed: true, decisions: [{ remaining: 1 }, { remaining: 0 }] });
    expect(await limits.check(both)).toMatchObject({ allowed: false, decisions: [{ remaining: 1 }, { remaining: 0 }] });
  });

  it('cannot do what it says nothing of', async () => {
    const limiter = limits.for('named');
    await expect(limiter.reserve('a')).rejects.toThrow(
      "limit 'named' of algo 'cool-down' does not support reservations. Use fixed-window, calendar-window, budget, sliding-window, sliding-log, token-bucket, gcra or leaky-bucket",
    );
    await expect(limiter.hold('a', () => 1)).rejects.toThrow(
      "of algo 'cool-down' gives no lease to hold. Use algo 'concurrency'",
    );
    const other = limits.for({ name: 'other', algo: 'gcra', rate: 1, interval: '1s' });
    await expect(other.history('a')).rejects.toThrow(
      "keeps no history. Use algo 'calendar-window', 'budget', 'sliding-window' or 'cool-down'",
    );
  });
});

describe('the options of an algorithm that a test adds', () => {
  it.each<[object, string]>([
    [{ limit: 0, rest: '1s' }, 'limits[0].limit: expected a whole number >= 1, received 0'],
    [{ limit: 2 }, 'limits[0].rest: missing'],
    [
      { limit: 2, rest: '1s', burst: 3 },
      "option 'burst' is not an option of 'cool-down': it belongs to token-bucket and gcra",
    ],
    [{ limit: 2, rest: '1s', rests: 3 }, "limits[0]: unknown option 'rests'. Did you mean 'rest'?"],
    [{ limit: 2, rest: '1s', prefetch: { units: 2, ttl: '1s' } }, "not for 'cool-down'"],
  ])('are checked: %j', async (options, message) => {
    await expect(startUp({ limits: [definitionOf(options as never)] })).rejects.toThrow(message);
  });

  it('are named where a limit has another algorithm', async () => {
    const gcra = { algo: 'gcra', rate: 1, interval: '1s' } as const;
    await expect(startUp({ limits: [{ ...gcra, rest: '1s' } as never] })).rejects.toThrow('it belongs to cool-down');
    await expect(startUp({ limits: [{ ...gcra, algo: 'hot-up' } as never] })).rejects.toThrow(
      /expected one of .*, cool-down, received 'hot-up'$/,
    );
  });
});

it('allows its share in process while its store fails', async () => {
  const client = await connectRedis();
  client.disconnect();
  const clock = new ManualClock();
  const limits = {
    store: redisStore(clock, client),
    localShare: 0.5,
    define: { slow: definitionOf({ limit: 5, rest: '1h' }) },
  };
  const app = await HttpApp.start('express', { limits });
  try {
    const limiter = app.nest.get(LimiterService).for('slow');
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, quota: 2, remaining: 1, source: 'fallback' });
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, quota: 2, remaining: 0, source: 'fallback' });
    expect(await limiter.consume('a')).toMatchObject({ allowed: false, quota: 2, source: 'fallback' });
  } finally {
    await app.close();
  }
});

const make = (given: CoolDownOptions, blockFor: number, carry?: CarryOver) =>
  new CompiledLimit(given as unknown as AlgorithmOptions, { location: 'test', name: 'toy', blockFor, carry });

describe('an algorithm that a test adds decides alike in process and on Redis', () => {
  const options = fc.record({
    algo: fc.constant('cool-down' as const),
    limit: fc.integer({ min: 1, max: 12 }),
    rest: fc.integer({ min: 1, max: 100_000 }),
  });
  const steps = fc.array(
    fc.record({
      clock: clockStep,
      checks: fc.array(
        fc.record({ identity: fc.nat(1), cost: costShare, peek: fc.boolean(), refundable: fc.boolean() }),
        { maxLength: 4 },
      ),
      operation: fc.constantFrom('none', 'refund', 'penalize', 'block', 'unblock', 'reset', 'history'),
      carry: fc.constantFrom('none', 'keep', 'proportional', 'additive'),
    }),
    { minLength: 1, maxLength: 14 },
  );

  it.each([0, 7_654_321])('on any history, with blockFor %d', async (blockFor) => {
    await fc.assert(
      fc.asyncProperty(options, options, steps, async (first, changed, history) => {
        const clock = new ManualClock();
        const memory = new MemoryStore({ clock: clock.now, slackMs: Infinity });
        const remote = redisStore(clock);
        const both = async (act: (store: Store) => Promise<unknown>) =>
          expect(await act(remote)).toEqual(await act(memory));
        let limit = make(first, blockFor);
        const charged: Refund[] = [];
        try {
          for (const { clock: share, checks, operation, carry } of history) {
            clock.advanceMs(share * limit.windowMs(clock.now() / 1000));
            if (carry !== 'none') {
              const mode = carry === 'keep' ? undefined : { mode: carry, quotaBefore: limit.quota };
              limit = make(limit.quota === first.limit ? changed : first, blockFor, mode);
            }
            const asked = checks.map(({ identity, cost, peek, refundable }): Check => {
              const entry = { limit, identity: `id${identity}`, cost: costOf(cost, limit.quota) };
              return { entries: [entry], peek, refundable };
            });
            const here = await memory.check(asked);
            expect(comparable(await remote.check(asked))).toEqual(comparable(here));
            for (const [index, { entries, peek }] of asked.entries()) {
              const { allowed, chargedAt } = here[index]![0]!;
              const { identity, cost: units } = entries[0]!;
              if (allowed && peek !== true) charged.push({ limit, identity, units, chargedAt });
            }
            const counter = { limit, identity: 'id0' };
            const operations: Record<typeof operation, (store: Store) => Promise<unknown>> = {
              none: () => Promise.resolve(),
              refund: (store) => store.refund(charged.slice(0, 1)),
              penalize: (store) => store.penalize({ ...counter, units: limit.quota }),
              block: (store) => store.block(counter, limit.windowMs(0) * 2),
              unblock: (store) => store.block(counter, 0),
              reset: (store) => store.reset([counter]),
              history: (store) => store.history(counter),
            };
            await both(operations[operation]);
            if (operation === 'refund') charged.shift();
          }
        } finally {
          await memory.close();
        }
      }),
      { numRuns: RUNS },
    );
  });
});
