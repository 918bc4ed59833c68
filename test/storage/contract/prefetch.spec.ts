import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { type AlgorithmOptions, MemoryStore, type Store } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { decideForFailing } from '../../support/limits/failing-answer.js';
import { LocalChannel } from '../../support/limits/local-channel.js';
import { PROPERTY_TIMEOUT_MS, propertyRuns } from '../../support/limits/property-runs.js';
import { takingAhead } from '../../support/limits/prefetching.js';
import { takingInAdvance } from '../../support/limits/layers.js';

const RUNS = propertyRuns(60);

/** Instances that share a store and hold units of it, on a clock that tests move: timers, too. */
class Instances {
  readonly calls: number[] = [];
  readonly channel = new LocalChannel();
  readonly store = new MemoryStore({ clock: () => Math.round(performance.now() * 1000) + 1_790_000_000_000_000 });
  private readonly stores: Store[];
  private readonly closeStore: () => Promise<void>;

  constructor(
    readonly limit: CompiledLimit,
    count: number,
  ) {
    const check = this.store.check.bind(this.store);
    this.store.check = (checks) => {
      this.calls.push(...checks.map(({ entries }) => entries[0]!.cost));
      return check(checks);
    };
    this.closeStore = this.store.close.bind(this.store);
    // Who ends first leaves it to the others.
    this.store.close = () => Promise.resolve();
    this.stores = Array.from({ length: count }, () => takingInAdvance(this.store, this.channel));
  }

  of(instance: number): Store {
    return this.stores[instance]!;
  }

  get counter() {
    return { limit: this.limit, identity: 'ip:203.0.113.7' };
  }

  async ask(instance = 0, cost = 1, peek = false) {
    const [decisions] = await this.of(instance).check([{ entries: [{ ...this.counter, cost }], peek }]);
    return decisions![0]!;
  }

  /** From now on the store says that it falls back. */
  fallBack(): void {
    const check = this.store.check.bind(this.store);
    this.store.check = async (checks) =>
      (await check(checks)).map((decisions) => decisions.map((decision) => ({ ...decision, source: 'fallback' })));
  }

  /** Units that the shared store has left. */
  async left(): Promise<number> {
    const [decisions] = await this.store.check([{ entries: [{ ...this.counter, cost: 1 }], peek: true }]);
    return decisions![0]!.remaining;
  }

  async close(): Promise<void> {
    for (const store of this.stores) await store.close();
    await this.closeStore();
  }
}

const prefetched = (options: AlgorithmOptions, prefetch: { units: number; ttl: number }, more: object = {}) =>
  new CompiledLimit(options, {
    location: 'test',
    name: 'prefetched',
    features: takingAhead(prefetch.units, prefetch.ttl),
    ...more,
  });

const window: AlgorithmOptions = { algo: 'fixed-window', rate: 1000, interval: '1m' };
const terms: { units: number; ttl: number } = { units: 64, ttl: 100_000 };

describe('units that an instance takes in advance', () => {
  let instances: Instances | undefined;
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(async () => {
    await instances?.close();
    instances = undefined;
    jest.useRealTimers();
  });

  /** Five units that nobody holds in advance. */
  const other = new CompiledLimit(
    { algo: 'fixed-window', rate: 5, interval: '1m' },
    { location: 'test', name: 'other' },
  );

  const checkOf = (app: Instances, limits: readonly CompiledLimit[]) =>
    app.of(0).check([{ entries: limits.map((limit) => ({ limit, identity: app.counter.identity, cost: 1 })) }]);

  const start = (limit: CompiledLimit, count = 1): Instances => (instances = new Instances(limit, count));

  it('are more and more while they are used up: a busy counter takes few calls', async () => {
    const app = start(prefetched(window, terms));
    const decisions = [];
    for (let i = 0; i < 255; i++) decisions.push(await app.ask());
    expect(app.calls).toEqual([1, 2, 4, 8, 16, 32, 64, 64, 64]);
    expect(decisions.every(({ allowed }) => allowed)).toBe(true);
    expect(decisions.map(({ remaining }) => remaining)).toEqual(decisions.map((_, index) => 999 - index));
    expect(decisions[254]).toMatchObject({ limit: 'prefetched', quota: 1000, retryAfterMs: 0, source: 'prefetch' });
  });

  it('are one at a time of a counter that few ask for', async () => {
    const app = start(prefetched(window, terms));
    for (let i = 0; i < 10; i++) {
      await app.ask();
      await jest.advanceTimersByTimeAsync(210);
    }
    expect(app.calls).toEqual(Array.from({ length: 10 }, () => 1));
    expect(await app.left()).toBe(990);
  });

  it('are asked for in one call by all who wait', async () => {
    const app = start(prefetched(window, terms));
    const decisions = await Promise.all(Array.from({ length: 40 }, () => app.ask()));
    expect(app.calls.length).toBeLessThanOrEqual(2);
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(40);
    expect(await app.left()).toBe(960);
  });

  it('come back when their time is over, and how many are taken next', async () => {
    const app = start(prefetched(window, terms));
    for (let i = 0; i < 40; i++) await app.ask();
    expect(await app.left()).toBe(1000 - 63);
    await jest.advanceTimersByTimeAsync(160);
    expect(await app.left()).toBe(1000 - 40);
    app.calls.length = 0;
    await app.ask();
    expect(app.calls).toEqual([9]);
  });

  it('come back at the end', async () => {
    const app = start(prefetched(window, terms));
    for (let i = 0; i < 40; i++) await app.ask();
    await app.of(0).close();
    expect(await app.left()).toBe(1000 - 40);
  });

  it('are at most half of what is left, so that other instances find some', async () => {
    const app = start(prefetched({ ...window, rate: 40 }, terms), 2);
    for (let i = 0; i < 33; i++) await app.ask(0);
    expect(Math.max(...app.calls)).toBeLessThanOrEqual(16);
    expect(await app.ask(1)).toMatchObject({ allowed: true });
  });

  it('are used to the last one, and then it says how long to wait', async () => {
    const app = start(prefetched({ ...window, rate: 100 }, terms));
    const decisions = await Promise.all(Array.from({ length: 150 }, () => app.ask()));
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(100);
    expect(decisions.at(-1)).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 60_000, source: 'memory' });
    expect(app.calls.length).toBeLessThan(12);
  });

  it('are as many as a request costs, however many are held', async () => {
    const app = start(prefetched({ ...window, rate: 100 }, terms));
    for (const cost of [1, 5, 2, 7, 1, 40]) expect(await app.ask(0, cost)).toMatchObject({ allowed: true });
    await app.of(0).close();
    expect(await app.left()).toBe(100 - 56);
    expect(await app.ask(0, 101)).toMatchObject({ allowed: false, retryAfterMs: Infinity });
  });

  it('have to be used before the window ends in which they were charged', async () => {
    const app = start(prefetched({ ...window, interval: 1000, rate: 100 }, { units: 50, ttl: 10_000_000 }));
    for (let i = 0; i < 20; i++) await app.ask();
    await jest.advanceTimersByTimeAsync(1000);
    const decisions = await Promise.all(Array.from({ length: 150 }, () => app.ask()));
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(100);
  });

  it('count as left for who only looks', async () => {
    const app = start(prefetched({ ...window, rate: 10 }, terms));
    for (let i = 0; i < 4; i++) await app.ask();
    expect(await app.ask(0, 6, true)).toMatchObject({ allowed: true, remaining: 6 });
    expect(await app.ask(0, 7, true)).toMatchObject({ allowed: false });
    expect(await app.ask(0, 6)).toMatchObject({ allowed: true, remaining: 0 });
  });

  it('are put back if another limit of the check refuses', async () => {
    const app = start(prefetched(window, terms));
    const both = () => checkOf(app, [app.limit, other]);
    for (let i = 0; i < 5; i++) expect((await both())[0]).toMatchObject([{ allowed: true }, { allowed: true }]);
    for (let i = 0; i < 50; i++) {
      expect((await both())[0]).toMatchObject([{ allowed: true, remaining: 995 }, { allowed: false }]);
    }
    await jest.advanceTimersByTimeAsync(200);
    expect(await app.left()).toBe(995);
  });

  it('are refused without a charge to the other limits of the check', async () => {
    const app = start(prefetched({ ...window, rate: 2 }, terms));
    const both = () => checkOf(app, [other, app.limit]);
    for (let i = 0; i < 2; i++) await both();
    expect((await both())[0]).toMatchObject([{ allowed: true, remaining: 3 }, { allowed: false }]);
    expect((await both())[0]).toMatchObject([{ allowed: true, remaining: 3 }, { allowed: false }]);
  });

  it('of a shadow limit are no reason to refuse', async () => {
    const app = start(prefetched({ ...window, rate: 2 }, terms, { shadow: true }));
    const both = () => checkOf(app, [other, app.limit]);
    for (let i = 0; i < 2; i++) await both();
    expect((await both())[0]).toMatchObject([{ allowed: true, remaining: 2 }, { allowed: false }]);
  });

  it('are gone on all instances after a reset', async () => {
    const app = start(prefetched({ ...window, rate: 100 }, terms), 2);
    for (let i = 0; i < 20; i++) await app.ask(i % 2);
    await app.of(0).reset([app.counter]);
    expect(await app.left()).toBe(100);
    let allowed = 0;
    for (let i = 0; i < 150; i++) if ((await app.ask(i % 2)).allowed) allowed++;
    expect(allowed).toBe(100);
  });

  it('are used by nobody who is blocked, on no instance', async () => {
    const app = start(prefetched({ ...window, rate: 100 }, terms), 2);
    for (let i = 0; i < 20; i++) await app.ask(i % 2);
    await app.of(0).block(app.counter, 5000);
    for (const instance of [0, 1])
      expect(await app.ask(instance)).toMatchObject({ allowed: false, retryAfterMs: 5000 });
    await app.of(1).block(app.counter, 0);
    expect(await app.left()).toBe(80);
  });

  it('do not survive a reset while they are being taken', async () => {
    const app = start(prefetched({ ...window, rate: 100 }, terms));
    for (let i = 0; i < 7; i++) await app.ask();
    const asking = app.ask();
    await app.of(0).reset([app.counter]);
    await asking;
    await app.of(0).close();
    // The one that was asked for may count or not; those taken with it are neither held nor given back.
    expect(await app.left()).toBeLessThanOrEqual(100);
  });

  it('can be reserved at once', async () => {
    const app = start(prefetched({ algo: 'gcra', rate: 100, interval: '1s' }, terms));
    for (let i = 0; i < 5; i++) await app.ask();
    const before = app.calls.length;
    expect(await app.of(0).reserve({ ...app.counter, cost: 1, maxWaitMs: 0 })).toMatchObject({
      source: 'prefetch',
      delayMs: 0,
    });
    expect(app.calls).toHaveLength(before);
  });

  it('tell an answer that throws so', async () => {
    const app = start(prefetched(window, terms));
    for (let i = 0; i < 2; i++) await app.ask();
    const told = decideForFailing(app.of(0), { entries: [{ ...app.counter, cost: 1 }] });
    expect(told).toEqual([new Error('an exporter failed')]);
  });

  it('are kept for so many counters at most, and any more are asked about one by one', async () => {
    const app = start(prefetched(window, terms));
    const ask = (identity: string) => app.of(0).check([{ entries: [{ limit: app.limit, identity, cost: 1 }] }]);
    await Promise.all(Array.from({ length: 10_001 }, (_, index) => ask(`user:${index}`)));
    await ask('user:10000');
    expect((await ask('user:10000'))[0]![0]!.source).toBe('memory');
  });

  it('are none of a very long identity', async () => {
    const app = start(prefetched(window, terms));
    const ask = () => app.of(0).check([{ entries: [{ limit: app.limit, identity: 'x'.repeat(65), cost: 1 }] }]);
    for (let i = 0; i < 10; i++) expect((await ask())[0]![0]!.source).toBe('memory');
    expect(app.calls).toHaveLength(10);
  });

  /** Asks until it is refused; says how many were allowed. */
  async function exhaust(app: Instances): Promise<number> {
    let allowed = 0;
    while ((await app.ask()).allowed) allowed++;
    return allowed;
  }

  it.each(['sliding-window', 'sliding-log'] as const)(
    'of a %s count for an interval from when they are used',
    async (algo) => {
      const app = start(prefetched({ algo, rate: 100, interval: 1000 }, { units: 64, ttl: 500_000 }));
      for (let i = 0; i < 40; i++) await app.ask();
      await jest.advanceTimersByTimeAsync(400);
      // Some of these were charged 400 ms ago.
      expect(await exhaust(app)).toBe(60);
      await jest.advanceTimersByTimeAsync(700);
      expect(await exhaust(app)).toBe(0);
      await jest.advanceTimersByTimeAsync(560);
      expect(await exhaust(app)).toBeGreaterThan(0);
    },
  );

  it.each(['gcra', 'token-bucket'] as const)('of a %s make no burst larger', async (algo) => {
    const app = start(prefetched({ algo, rate: 100, interval: 1000 }, { units: 64, ttl: 300_000 }));
    for (let i = 0; i < 10; i++) await app.ask();
    await jest.advanceTimersByTimeAsync(290);
    const held = app.calls.reduce((sum, units) => sum + units) - 10;
    expect(held).toBeGreaterThan(0);
    // What flows in 300 ms is not in the bucket.
    expect(await exhaust(app)).toBe(held + 70);
  });

  const limits = fc.record({
    algo: fc.constantFrom('sliding-window', 'sliding-log', 'gcra', 'token-bucket', 'fixed-window'),
    rate: fc.integer({ min: 10, max: 200 }),
    interval: fc.integer({ min: 50, max: 400 }),
    units: fc.integer({ min: 2, max: 100 }),
    share: fc.double({ min: 0.02, max: 0.8, noNaN: true }),
  });
  const bursts = fc.array(
    fc.record({
      instance: fc.oneof(fc.constant(0), fc.nat(2)),
      requests: fc.integer({ min: 1, max: 120 }),
      pause: fc.record({ of: fc.constantFrom('ttl', 'interval'), share: fc.double({ min: 0, max: 1.1, noNaN: true }) }),
    }),
    { minLength: 2, maxLength: 30 },
  );

  it('are only those that are used at once while the store falls back', async () => {
    const app = start(prefetched(window, terms));
    app.fallBack();
    for (let i = 0; i < 40; i++) expect(await app.ask()).toMatchObject({ source: 'fallback', quota: 1000 });
    expect(app.calls).toEqual(Array.from({ length: 40 }, () => 1));
    await Promise.all(Array.from({ length: 40 }, () => app.ask()));
    expect(await app.left()).toBe(1000 - 80);
  });

  it('come back at once when the store falls back while they are taken', async () => {
    const app = start(prefetched(window, terms));
    for (let i = 0; i < 7; i++) await app.ask();
    app.fallBack();
    await app.ask();
    expect(app.calls).toEqual([1, 2, 4, 8]);
    expect(await app.left()).toBe(1000 - 8);
  });

  it('would let more pass in all if other instances decided by the declared parameters', async () => {
    const app = start(prefetched({ algo: 'gcra', rate: 100, interval: 1000 }, { units: 64, ttl: 300_000 }));
    for (let i = 0; i < 10; i++) await app.ask();
    await jest.advanceTimersByTimeAsync(290);
    const entries = [{ ...app.counter, limit: app.limit.withoutRedis(), cost: 1 }];
    const plain = async () => (await app.store.check([{ entries }]))[0]![0]!.allowed;
    let allowed = 0;
    while (await plain()) allowed++;
    expect(allowed + (await exhaust(app))).toBeGreaterThan(100);
  });

  it(
    'let no more pass in any stretch of time than the limit says, whoever holds them',
    async () => {
      await fc.assert(
        fc.asyncProperty(limits, bursts, async ({ units, share, ...options }, steps) => {
          const ttl = Math.ceil(options.interval * share);
          const limit = prefetched(options, { units, ttl: ttl * 1000 });
          const app = new Instances(limit, 3);
          const uses: number[] = [];
          try {
            for (const { instance, requests, pause } of steps) {
              for (let i = 0; i < requests; i++) {
                const { allowed, remaining, quota } = await app.ask(instance);
                if (allowed) uses.push(performance.now());
                if (remaining < 0 || remaining > quota) throw new Error(`${remaining} of ${quota} remain`);
              }
              await jest.advanceTimersByTimeAsync(pause.share * (pause.of === 'ttl' ? ttl : options.interval));
            }
          } finally {
            await app.close();
          }
          expectNoMore(uses, options);
        }),
        { numRuns: RUNS },
      );
    },
    PROPERTY_TIMEOUT_MS,
  );

  const mixed = fc.array(
    fc.record({
      instance: fc.nat(1),
      way: fc.constantFrom('alone', 'with another limit', 'reserved', 'by no prefetched unit', 'looked at'),
      requests: fc.integer({ min: 1, max: 80 }),
      pause: fc.record({ of: fc.constantFrom('ttl', 'interval'), share: fc.double({ min: 0, max: 1.1, noNaN: true }) }),
    }),
    { minLength: 2, maxLength: 30 },
  );

  it(
    'let no more pass beside checks of all other kinds',
    async () => {
      const ample = new CompiledLimit(
        { algo: 'fixed-window', rate: 1_000_000, interval: '1h' },
        { location: 'test', name: 'ample' },
      );
      await fc.assert(
        fc.asyncProperty(limits, mixed, async ({ units, share, ...options }, steps) => {
          const ttl = Math.ceil(options.interval * share);
          const app = new Instances(prefetched(options, { units, ttl: ttl * 1000 }), 2);
          const entry = { ...app.counter, cost: 1 };
          const ways = {
            alone: async (instance: number) => [await app.ask(instance)],
            'with another limit': async (instance: number) =>
              (await app.of(instance).check([{ entries: [{ ...entry, limit: ample }, entry] }]))[0]!,
            reserved: async (instance: number) => [await app.of(instance).reserve({ ...entry, maxWaitMs: 0 })],
            'by no prefetched unit': async () => (await app.store.check([{ entries: [entry] }]))[0]!,
            'looked at': async (instance: number) => {
              await app.ask(instance, 1, true);
              return [];
            },
          };
          const uses: number[] = [];
          try {
            for (const { instance, way, requests, pause } of steps) {
              for (let i = 0; i < requests; i++) {
                const decisions = await ways[way](instance);
                if (decisions.length > 0 && decisions.every(({ allowed }) => allowed)) uses.push(performance.now());
              }
              await jest.advanceTimersByTimeAsync(pause.share * (pause.of === 'ttl' ? ttl : options.interval));
            }
          } finally {
            await app.close();
          }
          expectNoMore(uses, options);
        }),
        { numRuns: RUNS },
      );
    },
    PROPERTY_TIMEOUT_MS,
  );
});

/** Throws if more was used in any stretch of time than a limit allows. `uses` are times in milliseconds. */
function expectNoMore(uses: readonly number[], options: Parameters<typeof most>[0]): void {
  for (let first = 0; first < uses.length; first++) {
    // Those of one moment are one stretch.
    if (uses[first] === uses[first - 1]) continue;
    for (let last = first; last < uses.length; last++) {
      const stretchMs = uses[last]! - uses[first]!;
      if (last - first + 1 <= most(options, stretchMs)) continue;
      throw new Error(`${last - first + 1} units in ${stretchMs} ms, ${most(options, stretchMs)} are allowed`);
    }
  }
}

/** The most units that a limit lets pass in a stretch of so many milliseconds, both ends included. */
function most({ algo, rate, interval }: { algo: string; rate: number; interval: number }, stretchMs: number): number {
  if (algo === 'gcra' || algo === 'token-bucket') return rate + Math.floor((rate * stretchMs) / interval);
  const windows = Math.floor(stretchMs / interval) + 1;
  return rate * (algo === 'fixed-window' && stretchMs > 0 ? windows + 1 : windows);
}
