import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import {
  type AlgorithmOptions,
  type Limiter,
  LimiterService,
  MemoryStore,
  RateLimitArgumentError,
  RateLimitConfigError,
  RateLimitModule,
  type RateLimitModuleOptions,
  RateLimitStoreError,
  RedisStore,
} from '../../lib/index.js';
import type { Check, StoreDecision } from '../../lib/testing/store/index.js';
import type { OverrideUpdate } from '../../lib/app/overrides/override-store.js';
import { RedisOverrideStore } from '../../lib/app/overrides/redis.override-store.js';
import { anyOptions, steadyOptions } from '../support/limits/arbitraries.js';
import { assertSideBySide, expectHolds, propertyRuns } from '../support/limits/property-runs.js';
import { ask, compile, connectRedis, freshPrefix, ManualClock, storeKinds } from '../support/limits/stores.js';

let redis: Redis;

beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(async () => {
  await redis.quit();
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** Values that people, JSON and YAML come up with. */
const odd = fc.oneof(
  fc.constantFrom<unknown>(
    undefined,
    null,
    true,
    false,
    '',
    ' ',
    'x',
    '0',
    '1',
    '-1',
    '1e3',
    '10',
    'NaN',
    '10s',
    '1y',
    '2y',
  ),
  fc.constantFrom<unknown>(
    0,
    -0,
    1,
    2,
    -1,
    0.5,
    1.5,
    2 ** 31,
    2 ** 53 - 1,
    2 ** 53,
    1e21,
    1e308,
    NaN,
    Infinity,
    -Infinity,
  ),
  fc.constantFrom<unknown>(
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'default',
    'ip',
    'user',
    'global',
    'header:',
  ),
  fc.constantFrom<unknown>(
    'header:x',
    'header:__proto__',
    'gcra',
    'draft-8',
    'local',
    'deny',
    'shadow',
    'UTC',
    'day',
    '{}',
    '[]',
  ),
  fc.constantFrom<unknown>([], {}, [[]], [null], { __proto__: null }, 10n),
  fc.jsonValue({ maxDepth: 2 }),
  fc.integer(),
  fc.double(),
  fc.string({ unit: 'binary', maxLength: 12 }),
);

const INHERITED = '__proto__ constructor toString hasOwnProperty nonsense';
const LIMIT_OPTIONS =
  `algo rate interval burst queue slices refill period timezone retain limit ttl name key cost skip count
  priority reserveFor warmUp blockFor forgetAfter scope mode phase onStoreError onMissingKey message ${INHERITED}`.split(
    /\s+/,
  );
const MODULE_OPTIONS =
  `limits define headers timeout onStoreError onMissingKey ipv6Prefix prefix maxKeys maxBytes refusalCache guard store
  ${INHERITED}`.split(/\s+/);

/** An object with one to three of its options replaced, as JSON would make it: `__proto__` is an option like any other. */
const spoiled = <T extends object>(object: fc.Arbitrary<T>, options: readonly string[]) =>
  fc
    .tuple(object, fc.array(fc.tuple(fc.constantFrom(...options), odd), { minLength: 1, maxLength: 3 }))
    .map(([base, changes]) => withOwn(base, changes));

function withOwn<T extends object>(base: T, changes: readonly (readonly [string, unknown])[]): T {
  const copy = { ...base };
  for (const [option, value] of changes) {
    Object.defineProperty(copy, option, { value, enumerable: true, writable: true, configurable: true });
  }
  return copy;
}

/** What Nest and users get: an app, or the reason why there is none. */
async function started<T>(
  options: RateLimitModuleOptions,
  use: (service: LimiterService) => Promise<T>,
): Promise<T | Error> {
  let imports;
  try {
    imports = [RateLimitModule.forRoot(options)];
  } catch (error) {
    return error as Error;
  }
  let app;
  try {
    app = await Test.createTestingModule({ imports }).compile();
    app.useLogger(false);
    await app.init();
  } catch (error) {
    return error as Error;
  }
  try {
    return await use(app.get(LimiterService));
  } finally {
    await app.close();
  }
}

/** A mistake in a configuration is one kind of error, whose message shows the place, the expected and the received value. */
function expectConfigError(error: Error): void {
  expect(error).toBeInstanceOf(RateLimitConfigError);
  expect(error.message).toMatch(
    /^\S.*?: (expected .*, received |missing, expected |unknown \w+ '|options? '|two limits have the name )|cannot be counted exactly/s,
  );
}

const isWhole = (value: number) => Number.isSafeInteger(value) && value >= 0;

/** What holds of every decision. */
function expectSound(decision: StoreDecision, quota: number, cost: number): void {
  const { allowed, remaining, retryAfterMs, resetAfterMs, delayMs } = decision;
  expectHolds(decision, {
    'has the quota of the limit': decision.quota === quota,
    'leaves something from 0 to the quota': isWhole(remaining) && remaining <= quota,
    'names no time that is over': isWhole(resetAfterMs) && isWhole(delayMs),
    'waits if it is refused, and only then': allowed ? retryAfterMs === 0 : retryAfterMs > 0,
    'never allows more than the quota': cost <= quota || !allowed,
    'waits for ever for more than the quota, and only then': (retryAfterMs === Infinity) === cost > quota,
  });
}

/** Consumes while time stands still: exactly the quota is allowed, or any number by a shadow limit. */
async function expectQuota(limiter: Limiter, { mode }: { mode?: unknown } = {}): Promise<void> {
  const first = await limiter.consume('user:1', 1);
  expectSound(first, first.quota, 1);
  expect(first.allowed).toBe(true);
  if (first.quota > 40) return;
  for (let taken = 1; taken < first.quota; taken++) expect((await limiter.consume('user:1', 1)).allowed).toBe(true);
  const last = await limiter.consume('user:1', 1);
  expectSound(last, first.quota, 1);
  expect(last).toMatchObject({ allowed: mode === 'shadow', remaining: 0 });
}

describe('any configuration either works or is refused with what is wrong', () => {
  it('of a limit', async () => {
    const seen = new Set<boolean>();
    await fc.assert(
      fc.asyncProperty(spoiled(steadyOptions, LIMIT_OPTIONS), async (value) => {
        const store = new MemoryStore({ clock: new ManualClock().now });
        const answer = await started({ define: { spoiled: value }, store }, async (service) => {
          const limiter = service.for('spoiled');
          // A route's cost is its own; code says what it takes.
          await expectQuota(limiter, value as { mode?: unknown });
          return 'works';
        });
        if (answer instanceof Error) expectConfigError(answer);
        seen.add(answer instanceof Error);
        await store.close();
      }),
      {
        numRuns: propertyRuns(150),
        // A key without a prototype has no text. Two work: of 150 by chance none may.
        examples: [
          [withOwn({ algo: 'fixed-window' as const, rate: 1, interval: 1 }, [['key', Object.create(null)]])],
          [withOwn({ algo: 'fixed-window' as const, rate: 1, interval: 1 }, [['cost', 1]])],
          [withOwn({ algo: 'fixed-window' as const, rate: 1, interval: 1 }, [['mode', 'shadow']])],
        ],
      },
    );
    expect(seen.size).toBe(2);
  });

  it('of the module', async () => {
    const seen = new Set<boolean>();
    const base = fc.constant<RateLimitModuleOptions>({ limits: [{ algo: 'gcra', rate: 5, interval: '1m' }] });
    await fc.assert(
      fc.asyncProperty(spoiled(base, MODULE_OPTIONS), async (value) => {
        const answer = await started(value, async (service) => {
          await expectQuota(service.for({ algo: 'fixed-window', rate: 3, interval: '1h' }));
          return 'works';
        });
        if (answer instanceof Error) expectConfigError(answer);
        seen.add(answer instanceof Error);
      }),
      {
        numRuns: propertyRuns(110),
        examples: [[{ limits: [{ algo: 'gcra', rate: 5, interval: '1m' }], maxKeys: 10 }]],
      },
    );
    expect(seen.size).toBe(2);
  });

  it.each<[unknown]>([
    [{ sentinels: [] }],
    [{ sentinels: 's3cret' }],
    [{ sentinels: [{ host: '127.0.0.1', port: 1 }] }],
    [{ Connector: 5, password: 's3cret' }],
    ['redis://%zz:s3cret@127.0.0.1:1'],
    ['redis:s3cret'],
    ['redis://:s3cret@127.0.0.1:1?sentinels=x'],
  ])('of a connection that ioredis does not make: %p', async (connection) => {
    const answer = await started({ redis: connection as never }, () => Promise.resolve('works'));
    expect(answer).toBeInstanceOf(RateLimitConfigError);
    const { message, cause } = answer as RateLimitConfigError;
    expect(message).toMatch(
      /^RateLimitModule\.redis: no connection could be created from this value \((?!.*s3cret).*Expected something that ioredis/,
    );
    expect(cause).toBeUndefined();
  });

  it('of names that objects have of themselves', async () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', 'prototype', 'then'];
    const limit = { algo: 'gcra', rate: 2, interval: '1m' } as const;
    const define = withOwn(
      {},
      names.map((name) => [name, { ...limit }] as const),
    );
    const store = new MemoryStore({ clock: new ManualClock().now });
    const answer = await started({ define, store }, async (service) => {
      for (const name of names) {
        await expectQuota(service.for(name));
        for (const key of names)
          expect(await service.for(name).consume(key)).toMatchObject({ allowed: true, limit: name });
        await service.setRate(name, { rate: 3 });
        expect((await service.getRate(name)).options).toEqual({ ...limit, rate: 3 });
        expect(await service.clearRate(name)).toBe(true);
      }
      expect((await service.listRates()).map((rate) => rate.name)).toEqual(names);
      return 'works';
    });
    expect(answer).toBe('works');
    await store.close();
  });
});

describe.each(Object.keys(storeKinds))('on %s', (kind) => {
  it('any key and any cost is decided soundly', async () => {
    const cost = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constantFrom(2 ** 31, 2 ** 52, Number.MAX_SAFE_INTEGER));
    const identity = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1 }),
      fc.constantFrom('__proto__', 'constructor', '{}', '}{', '\0'),
    );
    const call = fc.tuple(identity, cost, fc.boolean());
    await assertSideBySide(
      fc.asyncProperty(anyOptions, fc.array(call, { minLength: 1, maxLength: 8 }), async (options, calls) => {
        const clock = new ManualClock();
        const store = storeKinds[kind]!(clock, redis);
        const limit = compile(options);
        for (const [whom, units, peek] of calls) {
          const decision = await ask(store, limit, { identity: whom, cost: units, peek });
          expectSound(decision, limit.quota, units);
          expect(decision.source).toBe(kind === 'RedisStore' ? 'redis' : 'memory');
          clock.advanceMs(7);
        }
        await store.close();
      }),
      propertyRuns(200),
    );
  });
});

describe('any argument either works or is refused before anything is sent', () => {
  it('in every call of a limiter', async () => {
    const options = {
      define: { gcra: { algo: 'gcra', rate: 5, interval: '1m' }, held: { algo: 'concurrency', limit: 5, ttl: '1m' } },
    };
    const methods = [
      'consume',
      'peek',
      'refund',
      'penalize',
      'block',
      'unblock',
      'reset',
      'history',
      'reserve',
    ] as const;
    const answer = await started(options as RateLimitModuleOptions, async (service) => {
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(...methods),
          fc.constantFrom('gcra', 'held'),
          odd,
          odd,
          async (method, name, key, more) => {
            const call = service.for(name)[method].bind(service.for(name)) as (...args: unknown[]) => Promise<unknown>;
            const failure = await call(key, more).then(
              () => undefined,
              (error: Error) => error,
            );
            // An object of options that is none is TypeScript's to refuse, or JavaScript's.
            if (failure !== undefined && !(method === 'reserve' && more === null)) {
              expect(failure).toBeInstanceOf(RateLimitArgumentError);
            }
            if (typeof key !== 'string' || key === '') expect(failure).toBeInstanceOf(TypeError);
          },
        ),
        { numRuns: propertyRuns(800) },
      );
      return 'works';
    });
    expect(answer).toBe('works');
  });

  it('in a check of several limits', async () => {
    const answer = await started({}, async (service) => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.record({ limit: odd, key: odd, cost: odd }), { maxLength: 3 }), async (checks) => {
          const failure = await service.check(checks as never).then(
            () => undefined,
            (error: Error) => error,
          );
          expect([RateLimitArgumentError, RateLimitConfigError].some((type) => failure instanceof type)).toBe(true);
        }),
        { numRuns: propertyRuns(500) },
      );
      return 'works';
    });
    expect(answer).toBe('works');
  });
});

function alter(reply: readonly unknown[], { kind, at, value }: { kind: string; at: number; value: unknown }): unknown {
  const index = at % (reply.length + (kind === 'insert' ? 1 : 0));
  if (kind === 'all') return value;
  return reply.toSpliced(index, kind === 'insert' ? 0 : 1, ...(kind === 'remove' ? [] : [value]));
}

/** The reply that a script would have to make for these decisions. */
function replyOf(checks: readonly Check[], answers: readonly StoreDecision[][]): number[] {
  return checks.flatMap(({ refundable, peek }, index) => {
    const decisions = answers[index]!;
    const numbers = decisions.flatMap(({ allowed, remaining, retryAfterMs, resetAfterMs, delayMs, ticket }) => {
      if (!allowed) return [resetAfterMs * 4, remaining, retryAfterMs === Infinity ? -1 : retryAfterMs];
      return ticket === undefined
        ? [resetAfterMs * 4 + 1, remaining]
        : [resetAfterMs * 4 + 2, remaining, delayMs, ticket];
    });
    return refundable === true && peek !== true ? [...numbers, decisions[0]!.chargedAt!] : numbers;
  });
}

describe('a reply of the script that is altered on its way', () => {
  const options: readonly AlgorithmOptions[] = [
    { algo: 'gcra', rate: 3, interval: '1h' },
    { algo: 'leaky-bucket', rate: 3, interval: '1h' },
    { algo: 'sliding-log', rate: 2, interval: '1h' },
    { algo: 'concurrency', limit: 2, ttl: '1h' },
  ];

  const junk = fc.oneof(
    odd,
    fc.constantFrom<unknown>(
      '7',
      '-1',
      '-0',
      '0x1',
      ' 1',
      '1 ',
      '1.0',
      '1e2',
      '９',
      -1,
      -2,
      3,
      7,
      [1],
      ['1'],
      new Date(5),
      Buffer.from('5'),
    ),
  );
  const alteration = fc.oneof(
    fc.record({ kind: fc.constant('replace' as const), at: fc.nat(), value: junk }),
    fc.record({ kind: fc.constant('insert' as const), at: fc.nat(), value: junk }),
    fc.record({ kind: fc.constant('remove' as const), at: fc.nat(), value: fc.constant(null) }),
    fc.record({ kind: fc.constant('all' as const), at: fc.nat(), value: junk }),
  );

  const limits = options.map((each) => compile(each));
  const indexes = fc.subarray([...limits.keys()], { minLength: 1 });
  const asked = fc.record({ indexes, cost: fc.constantFrom(1, 2, 9), peek: fc.boolean(), refundable: fc.boolean() });
  type Asked = typeof asked extends fc.Arbitrary<infer T> ? T : never;
  const checkOf = ({ indexes, cost, ...how }: Asked): Check => ({
    entries: indexes.map((index) => ({ limit: limits[index]!, identity: 'user:1', cost })),
    ...how,
  });

  it('fails all checks of its call, or says to its end what a script can say of them', async () => {
    const real = redis.evalsha.bind(redis) as (...args: unknown[]) => Promise<unknown[]>;
    // Few altered replies are ones that a script can give.
    const runs = Math.max(300, propertyRuns(700));
    let told = 0;
    let failed = 0;
    // The server is given the script once.
    await new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: 5000 }).open();
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 1, maxLength: 4 }), alteration, async (questions, how) => {
        const checks = questions.map(checkOf);
        const store = new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: 5000 });
        let reply: unknown;
        const evalsha = jest
          .spyOn(redis, 'evalsha')
          .mockImplementationOnce(async (...args: unknown[]) => (reply = alter(await real(...args), how)));
        const outcomes = await Promise.allSettled(checks.map(async (each) => (await store.check([each]))[0]!));
        const calls = evalsha.mock.calls.length;
        evalsha.mockRestore();
        const answers = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
        for (const outcome of outcomes) {
          if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(RateLimitStoreError);
        }
        // Some checks of a reply that says -1 are asked again; else it is all or none.
        if (calls > 1) return;
        expect([0, checks.length]).toContain(answers.length);
        if (answers.length === 0) failed++;
        else {
          told++;
          // As text, since nobody can tell 0 from -0.
          expect((reply as unknown[]).map(Number).join()).toBe(replyOf(checks, answers).join());
          for (const [index, decisions] of answers.entries()) {
            const { entries } = checks[index]!;
            for (const [position, decision] of decisions.entries()) {
              const { limit, cost } = entries[position]!;
              expect(decision.remaining).toBeLessThanOrEqual(limit.quota);
              if (cost > limit.quota) expect(decision).toMatchObject({ allowed: false, retryAfterMs: Infinity });
              if (decision.allowed) expect(decision.retryAfterMs).toBe(0);
              expect(decision.delayMs).toBeGreaterThanOrEqual(0);
            }
          }
        }
      }),
      { numRuns: runs },
    );
    expect(told).toBeGreaterThan(0);
    expect(failed).toBeGreaterThan(runs / 15);
  });

  it('fails what else was asked of a counter, or says what a script can say of it', async () => {
    const limit = compile({ algo: 'calendar-window', rate: 5, period: 'day', retain: '3d' });
    const counter = { limit, identity: 'user:1' };
    const store = new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: 300 });
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('history', 'penalize', 'block'),
        junk,
        fc.array(junk, { maxLength: 7 }),
        async (what, one, list) => {
          const reply = list.length === 0 ? one : list;
          const evalsha = jest.spyOn(redis, 'evalsha').mockResolvedValue(reply);
          const asked: Promise<unknown> =
            what === 'history'
              ? store.history(counter)
              : what === 'block'
                ? store.block(counter, 5)
                : store.penalize({ ...counter, units: 1 });
          const outcome = await asked.then(
            (value) => value,
            (error: Error) => error,
          );
          evalsha.mockRestore();
          if (outcome instanceof Error) expect(outcome).toBeInstanceOf(RateLimitStoreError);
          else if (what !== 'history') expect([0, 1]).toContain(Number((reply as unknown[])[0]));
          else expect(Number((reply as unknown[])[0]) * 3 + 1).toBe((reply as unknown[]).length);
        },
      ),
      { numRuns: propertyRuns(800) },
    );
  });

  it('changes no rate', async () => {
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const book = new RedisOverrideStore(redis, { prefix: freshPrefix(), timeoutMs: 1000 });
    const told: OverrideUpdate[] = [];
    book.subscribe((update) => told.push(update));
    await fc.assert(
      fc.asyncProperty(junk, fc.array(junk, { maxLength: 6 }), async (one, list) => {
        const reply = list.length === 0 ? one : list;
        const evalsha = jest.spyOn(redis, 'evalsha').mockResolvedValue(reply);
        const failure = await book.read().catch((error: unknown) => error);
        evalsha.mockRestore();
        if (failure !== undefined) expect(failure).toBeInstanceOf(RateLimitStoreError);
        for (const { now } of told.splice(0)) expect(Number.isSafeInteger(now)).toBe(true);
      }),
      { numRuns: propertyRuns(500) },
    );
    book.close();
  });
});
