import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, type Type } from '@nestjs/common';
import { Redis } from 'ioredis';
import {
  type AlgorithmOptions,
  type LimitDefinition,
  LimiterService,
  MemoryStore,
  RateLimit,
  RateLimitConfigError,
  RateLimitStoreError,
  type Store,
} from '../../../lib/index.js';
import { CompiledLimit, type LimitSettings } from '../../../lib/testing/store/index.js';
import { HttpApp, startUp } from '../../e2e/http-app.js';
import { connectRedis, freshPrefix, ManualClock, SENDS_ONCE, storeKinds } from '../../support/limits/stores.js';
import { PATIENCE } from '../../support/redis/patience.mjs';
import { fallingBack, perInstance } from '../../support/limits/layers.js';
import { until } from '../../support/time/until.js';
import { atPlace } from '../../support/limits/at-place.js';

const identity = 'ip:203.0.113.7';

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

function limit(name: string, rate: number, settings: Partial<LimitSettings> = {}): CompiledLimit {
  return new CompiledLimit({ algo: 'fixed-window', rate, interval: '1m' }, { location: 'test', name, ...settings });
}

const own = (rate: number, settings: Partial<LimitSettings> = {}) =>
  limit('own', rate, { instance: true, ...settings });
const shared = (rate: number, settings: Partial<LimitSettings> = {}) => limit('shared', rate, settings);

const entries = (...limits: CompiledLimit[]) => limits.map((each) => ({ limit: each, identity, cost: 1 }));

describe.each(Object.entries(storeKinds))('InstanceScopeStore over %s', (_, make) => {
  let sharedStore: Store;
  let store: Store;

  beforeEach(() => {
    const clock = new ManualClock();
    sharedStore = make(clock, redis);
    store = perInstance(sharedStore, new MemoryStore({ clock: clock.now }));
  });
  afterEach(() => store.close());

  async function check(limits: readonly CompiledLimit[], { cost = 1, peek = false } = {}) {
    const [decisions] = await store.check([{ entries: limits.map((each) => ({ limit: each, identity, cost })), peek }]);
    return decisions!;
  }

  /** What is allowed and left of each limit, in their order. */
  const told = async (limits: readonly CompiledLimit[], options: { cost?: number; peek?: boolean } = {}) =>
    (await check(limits, options)).map(({ limit: name, allowed, remaining }) => [name, allowed, remaining]);

  it('answers in the order of the limits, each from where it is counted', async () => {
    const limits = [shared(9), own(5), shared(7, { name: 'second' }), own(3, { name: 'fourth' })];
    const decisions = await check(limits);
    expect(decisions.map(({ limit: name, remaining }) => [name, remaining])).toEqual([
      ['shared', 8],
      ['own', 4],
      ['second', 6],
      ['fourth', 2],
    ]);
    const other = perInstance(sharedStore, new MemoryStore());
    const [there] = await other.check([{ entries: entries(...limits) }]);
    expect(there!.map(({ remaining }) => remaining)).toEqual([7, 4, 5, 2]);
  });

  it.each<[string, CompiledLimit[], [string, boolean, number][]]>([
    [
      'its own limit refuses',
      [own(3), shared(9)],
      [
        ['own', false, 2],
        ['shared', true, 8],
      ],
    ],
    [
      'a shared limit refuses',
      [own(9), shared(3)],
      [
        ['own', true, 8],
        ['shared', false, 2],
      ],
    ],
    [
      'both refuse',
      [own(3), shared(3)],
      [
        ['own', false, 2],
        ['shared', false, 2],
      ],
    ],
  ])('charges nothing if %s', async (_, limits, refused) => {
    await check(limits);
    for (let tries = 0; tries < 3; tries++) expect(await told(limits, { cost: 3 })).toEqual(refused);
    const left = refused.map(([name, , remaining]) => [name, true, remaining]);
    expect(await told(limits, { peek: true })).toEqual(left);
  });

  it('takes no notice of a limit that only watches, and charges those that do', async () => {
    const watching = [own(1, { shadow: true }), shared(3)];
    expect([await told(watching), await told(watching)]).toEqual([
      [
        ['own', true, 0],
        ['shared', true, 2],
      ],
      [
        ['own', false, 0],
        ['shared', true, 1],
      ],
    ]);
    const watched = [own(3, { name: 'other' }), shared(1, { shadow: true, name: 'watched' })];
    expect([await told(watched), await told(watched)].map(([first]) => first)).toEqual([
      ['other', true, 2],
      ['other', true, 1],
    ]);
  });

  it('only looks if it is told to', async () => {
    const limits = [own(3), shared(3)];
    for (let tries = 0; tries < 2; tries++) {
      expect(await told(limits, { peek: true })).toEqual([
        ['own', true, 3],
        ['shared', true, 3],
      ]);
    }
  });

  it('decides several checks at once', async () => {
    const [mine, ours] = [own(3), shared(3)];
    const answers = await store.check([
      { entries: entries(mine, ours) },
      { entries: entries(ours) },
      { entries: entries(mine) },
    ]);
    expect(answers.map((decisions) => decisions.map(({ limit: name }) => name))).toEqual([
      ['own', 'shared'],
      ['shared'],
      ['own'],
    ]);
    expect((await told([mine, ours], { peek: true })).map(([, , remaining]) => remaining)).toEqual([1, 1]);
  });

  it('leads every operation to where the limit is counted', async () => {
    const options: AlgorithmOptions = { algo: 'token-bucket', rate: 10, interval: '1h' };
    for (const instance of [true, false]) {
      const bucket = new CompiledLimit(options, { location: 'test', name: 'bucket', instance });
      const counter = { limit: bucket, identity };
      const left = async () => (await check([bucket], { peek: true }))[0]!.remaining;
      const { ticket } = await store.reserve({ ...counter, cost: 4, maxWaitMs: 0 });
      expect(await left()).toBe(6);
      await store.refund([{ ...counter, units: 3, ticket }]);
      expect(await left()).toBe(9);
      await store.penalize({ ...counter, units: 7 });
      expect(await left()).toBe(2);
      await store.block(counter, 1000);
      expect(await left()).toBe(0);
      await store.reset([counter]);
      expect(await left()).toBe(10);
      const slots = new CompiledLimit({ algo: 'concurrency', limit: 1, ttl: '10s' }, { location: 'test', instance });
      const [held] = await check([slots]);
      const lease = { limit: slots, identity, units: 1, ticket: held!.ticket! };
      expect(await store.renew(lease)).toBe(true);
      await store.refund([lease]);
      expect(await store.renew(lease)).toBe(false);
      const windows = new CompiledLimit(
        { algo: 'calendar-window', rate: 5, period: 'day' },
        { location: 'test', instance },
      );
      await check([windows]);
      expect(await store.history({ limit: windows, identity })).toMatchObject([{ count: 1 }]);
    }
  });

  it('gives back a lease and a place in a queue if a shared limit refuses', async () => {
    const slots = new CompiledLimit(
      { algo: 'concurrency', limit: 1, ttl: '10s' },
      { location: 'test', instance: true },
    );
    const queue = new CompiledLimit(
      { algo: 'leaky-bucket', rate: 1, interval: '1s', queue: 1 },
      { location: 'test', instance: true },
    );
    await check([shared(1)]);
    for (let tries = 0; tries < 2; tries++) {
      expect((await check([slots, queue, shared(1)])).map(({ allowed }) => allowed)).toEqual([true, true, false]);
    }
    expect((await check([slots, queue])).map(({ allowed, delayMs }) => [allowed, delayMs])).toEqual([
      [true, 0],
      [true, 0],
    ]);
  });
});

describe('while the shared store fails', () => {
  const failure = new RateLimitStoreError('down');
  function failing(): Store {
    const shared = new MemoryStore();
    shared.check = () => Promise.reject(failure);
    return shared;
  }

  it('a limit that denies leaves the instance’s own as they were, and these still work alone', async () => {
    const local = new MemoryStore();
    const store = perInstance(fallingBack(failing(), local), local);
    for (let tries = 0; tries < 8; tries++) {
      const checking = store.check([{ entries: entries(own(3), shared(3, { onStoreError: 'deny' })) }]);
      await expect(checking).rejects.toThrow(RateLimitStoreError);
    }
    const [alone] = await store.check([{ entries: entries(own(3)) }]);
    expect(alone).toMatchObject([{ allowed: true, remaining: 2, source: 'memory' }]);
    const [both] = await store.check([{ entries: entries(own(3), shared(3)) }]);
    expect(both).toMatchObject([
      { allowed: true, remaining: 1, source: 'memory' },
      { allowed: true, remaining: 2, source: 'fallback' },
    ]);
    await store.close();
  });

  it('only looking gives nothing back that others took', async () => {
    const store = perInstance(failing(), new MemoryStore());
    await store.check([{ entries: entries(own(3)) }]);
    await expect(store.check([{ entries: entries(own(3), shared(3)), peek: true }])).rejects.toBe(failure);
    const [left] = await store.check([{ entries: entries(own(3)), peek: true }]);
    expect(left).toMatchObject([{ remaining: 2 }]);
    await store.close();
  });
});

describe('apps on one Redis', () => {
  const own = { name: 'own', algo: 'fixed-window', rate: 2, interval: '1h', scope: 'instance' } as const;
  const everyone = { name: 'everyone', algo: 'fixed-window', rate: 3, interval: '1h' } as const;

  @Controller()
  class ScopedController {
    @Get('own')
    @RateLimit(own)
    own() {}

    @Get('mixed')
    @RateLimit(own, everyone)
    mixed() {}

    @Get('denied')
    @RateLimit({ ...own, rate: 9 }, { ...everyone, onStoreError: 'deny' })
    denied() {}
  }

  const apps: HttpApp[] = [];
  afterEach(async () => {
    jest.restoreAllMocks();
    for (const app of apps.splice(0)) await app.close();
  });

  async function start(client: Redis, prefix: string): Promise<HttpApp> {
    const limits = { store: undefined as never, redis: client, prefix, timeout: PATIENCE, define: { own } };
    const app = await HttpApp.start('express', { controllers: [ScopedController], limits });
    apps.push(app);
    return app;
  }

  it('count for themselves what is theirs, without a call to Redis', async () => {
    const prefix = freshPrefix();
    const [one, two] = [await start(redis, prefix), await start(redis, prefix)];
    const sent = jest.spyOn(redis, 'sendCommand');
    expect([await one.statuses(3, '/own'), await two.statuses(3, '/own')]).toEqual([
      [200, 200, 429],
      [200, 200, 429],
    ]);
    const limiter = one.nest.get(LimiterService).for('own');
    expect((await limiter.consume('user:1')).source).toBe('memory');
    await limiter.penalize('user:1', 1);
    await limiter.block('user:1', '1m');
    await limiter.unblock('user:1');
    await limiter.refund('user:1', 1);
    await limiter.reset('user:1');
    expect(sent).not.toHaveBeenCalled();
    expect(await redis.keys(`${prefix}:*`)).toEqual([]);
  });

  it('share the others, and charge all limits of a request or none', async () => {
    const prefix = freshPrefix();
    const [one, two] = [await start(redis, prefix), await start(redis, prefix)];
    expect(await one.statuses(3, '/mixed')).toEqual([200, 200, 429]);
    // What the one refused by its own limit has cost nothing of the three.
    const last = await two.get('/mixed');
    expect([last.status, last.headers.get('ratelimit')]).toEqual([200, '"own";r=1;t=3600, "everyone";r=0;t=3600']);
    for (let tries = 0; tries < 2; tries++) {
      const refused = await two.get('/mixed');
      expect([refused.status, await refused.json()]).toMatchObject([429, { limits: ['everyone'] }]);
      expect(refused.headers.get('ratelimit')).toMatch(/^"own";r=1;t=\d+, "everyone";r=0;t=\d+$/);
    }
  });

  it('charge nothing of their own while Redis fails and a limit denies', async () => {
    const client = new Redis(process.env['TEST_REDIS_URL']!, { ...SENDS_ONCE, retryStrategy: () => null });
    const app = await start(client, freshPrefix());
    expect((await app.get('/denied')).status).toBe(200);
    client.disconnect();
    expect(await app.statuses(3, '/denied')).toEqual([503, 503, 503]);
    await client.connect();
    // The circuit opened after some failures, and is tried again after a second.
    let response: Response;
    const isAllowed = async () => (response = await app.get('/denied')).status === 200;
    await until(isAllowed, undefined, 50);
    expect(response!.headers.get('ratelimit')?.split(';')[1]).toBe('r=7');
    client.disconnect();
  });
});

function controllerWith(definition: object): Type {
  @Controller()
  class ReportsController {
    @Get()
    @RateLimit(definition as LimitDefinition)
    list() {}
  }
  return ReportsController;
}

const errorOf = (starting: Promise<void>) => starting.then(undefined, (error: unknown) => error);

describe('start-up errors', () => {
  const window = { algo: 'fixed-window', rate: 3, interval: '1m' };
  const slots = { algo: 'concurrency', limit: 2, ttl: '30s' };
  const whole = 'a whole number >= 1';
  const time =
    "milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), more than 0 and at most 1 year";
  const steps =
    "a duration of more than 0 and at most 1 year, or 1 to 100 durations such as ['1m', '10m', '1h'], each at least as long as the one before";
  const count = 'one of all, failed, succeeded, or a function of the outcome';

  it.each<[object, string]>([
    [{ ...window, count: 'failures' }, `count: expected ${count}, received 'failures'`],
    [{ ...window, count: true }, `count: expected ${count}, received true`],
    [{ ...window, count: null }, `count: expected ${count}, received null`],
    [{ ...window, blockFor: 0 }, `blockFor: expected ${steps}, received 0`],
    [{ ...window, blockFor: '-1m' }, `blockFor: expected ${steps}, received '-1m'`],
    [{ ...window, blockFor: 'long' }, `blockFor: expected ${steps}, received 'long'`],
    [{ ...window, blockFor: '2y' }, `blockFor: expected ${steps}, received '2y'`],
    [{ ...window, blockFor: null }, `blockFor: expected ${steps}, received null`],
    [{ ...window, scope: 'process' }, "scope: expected one of cluster, instance, world, received 'process'"],
    [{ algo: 'concurrency', ttl: '30s' }, `limit: missing, expected ${whole}`],
    [{ algo: 'concurrency', limit: 2 }, `ttl: missing, expected ${time}`],
    [{ ...slots, limit: 0 }, `limit: expected ${whole}, received 0`],
    [{ ...slots, limit: '2' }, `limit: expected ${whole}, received '2'`],
    [{ ...slots, ttl: '0s' }, `ttl: expected ${time}, received '0s'`],
    [{ ...slots, ttl: 'soon' }, `ttl: expected ${time}, received 'soon'`],
    [{ ...slots, rate: 5 }, "option 'rate' is not an option of 'concurrency': it belongs to"],
    [
      { ...window, ttl: '30s' },
      "option 'ttl' is not an option of 'fixed-window': it belongs to concurrency and adaptive",
    ],
  ])('%p', async (definition, message) => {
    const places: [string, Promise<unknown>][] = [
      ['@RateLimit on ReportsController.list', errorOf(startUp({}, [controllerWith(definition)]))],
      ['limits[0]', errorOf(startUp({ limits: [definition as LimitDefinition] }))],
      ['define.given', errorOf(startUp({ define: { given: definition as LimitDefinition } }))],
    ];
    for (const [place, failing] of places) {
      const error = await failing;
      expect(error).toBeInstanceOf(RateLimitConfigError);
      expect((error as Error).message).toContain(atPlace(place, message));
    }
  });
});
