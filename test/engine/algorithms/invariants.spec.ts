import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, RedisStore, type Store } from '../../../lib/index.js';
import type { CompiledLimit, Counter, StoreDecision } from '../../../lib/testing/store/index.js';
import type { RateOptions } from '../../support/limits/arbitraries.js';
import {
  algorithmNames,
  anyOptions,
  clockStep,
  costOf,
  costShare,
  forwardStep,
  optionsOf,
} from '../../support/limits/arbitraries.js';
import { assertSideBySide, expectEqual, expectMatch, propertyRuns } from '../../support/limits/property-runs.js';
import {
  ask,
  comparable,
  compile,
  connectRedis,
  extraKeysOf,
  freshPrefix,
  keyOf,
  ManualClock,
  slackMsOf,
  storeKinds,
  tickOf,
} from '../../support/limits/stores.js';
import { calendarLabel, microsOf } from './models.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const RUNS = propertyRuns(60);
const IDENTITY = 'ip:203.0.113.7';
/** What may be added to a decision's wait by rounding it up to a whole millisecond. */
const MILLISECOND = 1000n;

interface Step {
  clock: number;
  cost: number;
}

const history = (clock: fc.Arbitrary<number>, maxLength = 15) =>
  fc.array(fc.record<Step>({ clock, cost: costShare }), { minLength: 1, maxLength });

/** The clock stands still, or goes back. */
const stillOrBack = fc.oneof(fc.constant(0), fc.double({ min: -3, max: 0, noNaN: true }));

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis({ enableAutoPipelining: true });
});
afterAll(() => redis.disconnect());

/** A store with a clock of its own, and all that happened to one limit in it. */
class World {
  readonly clock = new ManualClock();
  readonly prefix = freshPrefix();
  readonly store: Store;
  readonly limit: CompiledLimit;
  readonly events: { time: number; step: number; cost: number; decision: StoreDecision }[] = [];
  private before = this.clock.now();

  constructor(
    kind: string,
    readonly options: AlgorithmOptions,
  ) {
    this.store = storeKinds[kind]!(this.clock, redis, this.prefix);
    this.limit = compile(options);
  }

  get counter(): Counter {
    return { limit: this.limit, identity: IDENTITY };
  }

  move(share: number): void {
    this.clock.advanceMs(share * this.limit.windowMs(this.clock.now() / 1000));
  }

  async ask(cost = 1): Promise<StoreDecision> {
    const decision = await ask(this.store, this.limit, { cost });
    const time = this.clock.now();
    this.events.push({ time, step: time - this.before, cost, decision });
    this.before = time;
    return decision;
  }

  peek(cost = 1): Promise<StoreDecision> {
    return ask(this.store, this.limit, { cost, peek: true });
  }

  async play(steps: readonly Step[]): Promise<void> {
    for (const { clock, cost } of steps) {
      this.move(clock);
      await this.ask(costOf(cost, this.limit.quota));
    }
  }

  /** All that Redis holds for the limits, byte for byte, with the moment at which each key runs out. */
  dump(limits: readonly CompiledLimit[] = [this.limit]): Promise<unknown[]> {
    return dumpOf(this.prefix, limits);
  }
}

function keysOf(prefix: string, limits: readonly CompiledLimit[]): string[] {
  return limits.flatMap((limit) => {
    const key = keyOf(prefix, { limit, identity: IDENTITY });
    return [key, ...extraKeysOf(key, { limit, identity: IDENTITY })];
  });
}

async function dumpOf(prefix: string, limits: readonly CompiledLimit[]): Promise<unknown[]> {
  const pipeline = redis.pipeline();
  for (const key of keysOf(prefix, limits)) pipeline.dumpBuffer(key).pexpiretime(key);
  const replies = (await pipeline.exec())!;
  return replies.map(([error, reply]) => {
    if (error) throw error;
    return Buffer.isBuffer(reply) ? reply.toString('hex') : reply;
  });
}

async function world(kind: string, options: AlgorithmOptions, test: (world: World) => Promise<void>): Promise<void> {
  const it = new World(kind, options);
  try {
    await test(it);
  } finally {
    await it.store.close();
  }
}

interface Charge {
  /** Microseconds on a clock that only goes forward. */
  readonly time: bigint;
  readonly units: bigint;
}

/** Every stretch from one charge to another, with the units of both and of all between. */
function* stretches(charges: readonly Charge[]): Generator<{ first: bigint; last: bigint; units: bigint }> {
  for (const [index, { time: first }] of charges.entries()) {
    let units = 0n;
    for (const charge of charges.slice(index)) {
      units += charge.units;
      yield { first, last: charge.time, units };
    }
  }
}

/** More than the row of the algorithm allows: the first such stretch, if there is one. */
function overAdmission(options: RateOptions, limit: CompiledLimit, charges: readonly Charge[]): unknown {
  const quota = BigInt(limit.quota);
  const all = () => [...stretches(charges)];
  const rate = BigInt(options.rate);
  switch (options.algo) {
    case 'fixed-window': {
      const interval = microsOf(options.interval);
      let end = 0n;
      const windows = new Map<bigint, bigint>();
      for (const { time, units } of charges) {
        if (time >= end) end = time + interval;
        windows.set(end, (windows.get(end) ?? 0n) + units);
      }
      return [...windows].find(([, units]) => units > quota);
    }
    case 'calendar-window': {
      const windows = new Map<string, bigint>();
      for (const { time, units } of charges) {
        const label = calendarLabel(time, options.period, options.timezone ?? 'UTC');
        windows.set(label, (windows.get(label) ?? 0n) + units);
      }
      return [...windows].find(([, units]) => units > quota);
    }
    case 'sliding-window':
    case 'sliding-log': {
      const interval = microsOf(options.interval);
      return all().find(({ first, last, units }) => last - first < interval && units > quota);
    }
    default: {
      const interval = microsOf(options.interval);
      if (options.algo === 'token-bucket' && options.refill === 'intervally') {
        return all().find(({ first, last, units }) => units > quota + rate * ((last - first) / interval + 1n));
      }
      return all().find(({ first, last, units }) => (units - quota) * interval > rate * (last - first));
    }
  }
}

const only = (world: World) => world.events.filter(({ decision }) => decision.allowed);

/** The charges by the clock, which only went forward. */
function chargesByClock(world: World): Charge[] {
  const tick = tickOf(world.limit);
  return only(world).map(({ time, cost }) => ({ time: BigInt(time - (time % tick)), units: BigInt(cost) }));
}

/** The charges by how far the clock has gone forward in all, whatever it went back. */
function chargesByAdvance({ events, limit }: World): Charge[] {
  const tick = tickOf(limit);
  let advanced = 0;
  const charges: Charge[] = [];
  for (const { time, step, cost, decision } of events) {
    advanced += Math.max(0, Math.floor(time / tick) - Math.floor((time - step) / tick)) * tick;
    if (decision.allowed) charges.push({ time: BigInt(advanced), units: BigInt(cost) });
  }
  return charges;
}

const kinds = Object.keys(storeKinds);
const cases = kinds.flatMap((kind) => algorithmNames.map((algo) => [kind, algo] as const));
const redisCases = algorithmNames.map((algo) => ['RedisStore', algo] as const);

const optionsFor = (algo: (typeof algorithmNames)[number]) => optionsOf[algo] as fc.Arbitrary<RateOptions>;

function assertProperty<T>(property: fc.IAsyncProperty<T>, runs = RUNS): Promise<void> {
  return assertSideBySide(property, runs);
}

/** Asks for all that is left, too, so that the next request has to wait. */
async function untilRefused(world: World, cost: number): Promise<StoreDecision> {
  const { remaining } = await world.peek();
  if (remaining >= cost) await world.ask(remaining);
  return world.ask(cost);
}

/** How long a request may have to wait when the clock was set back, which would else wait for `waitMs`: one interval longer. */
function longestWaitMs(options: RateOptions, intervalMs: number, waitMs: number): number {
  switch (options.algo) {
    case 'calendar-window':
      // Another window of the calendar is longer by up to three days of 28.
      return waitMs + intervalMs * 1.12;
    case 'sliding-window':
      // Or as long as what is charged now counts: for a slice longer than the interval.
      return Math.max(waitMs + intervalMs, intervalMs + Math.ceil((intervalMs * 1000) / (options.slices ?? 10)) / 1000);
    case 'token-bucket':
      // With tokens that come all at once only the last refill is known, which is less than an interval before.
      return waitMs + (options.refill === 'intervally' ? intervalMs * 2 : intervalMs);
    default:
      return waitMs + intervalMs;
  }
}

describe('no stretch of time holds more units than the algorithm allows', () => {
  it.each(cases)('%s, %s', async (kind, algo) => {
    await assertProperty(
      fc.asyncProperty(optionsFor(algo), history(forwardStep, 40), (options, steps) =>
        world(kind, options, async (world) => {
          await world.play(steps);
          expect(overAdmission(options, world.limit, chargesByClock(world))).toBeUndefined();
        }),
      ),
    );
  });

  it.each(kinds)('%s, leaky-bucket: requests leave no faster than the rate', async (kind) => {
    await assertProperty(
      fc.asyncProperty(optionsOf['leaky-bucket'], history(forwardStep, 40), (options, steps) =>
        world(kind, options, async (world) => {
          await world.play(steps);
          // A wait is rounded up to a millisecond, and a clock, which has whole microseconds, down to a tick.
          const late = MILLISECOND + BigInt(tickOf(world.limit) - 1);
          const departures = only(world).map(({ time, cost, decision }) => ({
            time: BigInt(time + decision.delayMs * 1000),
            units: BigInt(cost),
          }));
          const tooFast = departures.flatMap((from, index) => {
            let units = 0n;
            return departures.slice(index + 1).filter((to) => {
              units += to.units;
              return units * microsOf(options.interval) > BigInt(options.rate) * (to.time - from.time + late);
            });
          });
          expect(tooFast).toEqual([]);
        }),
      ),
    );
  });

  // Forward movement is all that makes room: what the clock went back and forth gives nothing away.
  it.each(cases)('%s, %s, with a clock that also steps back', async (kind, algo) => {
    await assertProperty(
      fc.asyncProperty(optionsFor(algo), history(fc.oneof(clockStep, stillOrBack), 40), (options, steps) =>
        world(kind, options, async (world) => {
          await world.play(steps);
          const charges = chargesByAdvance(world);
          const still = [...stretches(charges)].filter(({ first, last }) => first === last);
          expect(still.filter(({ units }) => units > world.limit.quota)).toEqual([]);
          if (options.algo === 'calendar-window' || options.algo === 'fixed-window') return;
          expect(overAdmission(options, world.limit, charges)).toBeUndefined();
        }),
      ),
    );
  });
});

describe('a refused check leaves all as it was', () => {
  it.each(kinds)('%s', async (kind) => {
    const others = fc.array(anyOptions, { minLength: 1, maxLength: 4 });
    const steps = fc.array(
      fc.record({ clock: forwardStep, costs: fc.array(costShare, { minLength: 5, maxLength: 5 }) }),
      { minLength: 1, maxLength: 10 },
    );
    let refusals = 0;
    await assertProperty(
      fc.asyncProperty(anyOptions, others, steps, (first, others, steps) =>
        world(kind, first, async ({ store, clock, prefix }) => {
          const limits = [first, ...others].map((options, index) => compile(options, `${options.algo} ${index}`));
          const look = async () => comparable(await store.check([{ entries: entriesOf(() => 1), peek: true }]));
          const entriesOf = (cost: (index: number) => number) =>
            limits.map((limit, index) => ({ limit, identity: IDENTITY, cost: cost(index) }));
          for (const step of steps) {
            clock.advanceMs(step.clock * limits[0]!.windowMs(clock.now() / 1000));
            const before = [await look(), await dumpOf(prefix, limits)];
            const entries = entriesOf((index) => costOf(step.costs[index]!, limits[index]!.quota));
            const [decisions] = await store.check([{ entries }]);
            if (decisions!.every(({ allowed }) => allowed)) continue;
            refusals++;
            expectEqual([await look(), await dumpOf(prefix, limits)], before);
          }
        }),
      ),
      RUNS * 2,
    );
    expect(refusals).toBeGreaterThan(RUNS);
  });
});

describe('the wait of a refusal is exact', () => {
  const earlier = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 });
  it.each(cases)('%s, %s', async (kind, algo) => {
    let waits = 0;
    await assertProperty(
      fc.asyncProperty(optionsFor(algo), history(clockStep), costShare, earlier, (options, steps, share, earlier) =>
        world(kind, options, async (world) => {
          await world.play(steps);
          const cost = Math.min(costOf(share, world.limit.quota), world.limit.quota);
          const refused = await untilRefused(world, cost);
          const wait = refused.retryAfterMs;
          expect(wait).toBeGreaterThan(0);
          waits++;
          const from = world.clock.now();
          for (const at of [...earlier.map((part) => Math.floor(part * (wait - 1))), wait - 1].toSorted(
            (a, b) => a - b,
          )) {
            world.clock.micros = from + at * 1000;
            expectMatch(await world.ask(cost), { allowed: false, retryAfterMs: wait - at });
          }
          world.clock.micros = from + wait * 1000;
          expectMatch(await world.ask(cost), { allowed: true, retryAfterMs: 0 });
        }),
      ),
    );
    expect(waits).toBe(RUNS);
  });
});

describe('remaining and resetAfterMs are exact', () => {
  it.each(cases)('%s, %s', async (kind, algo) => {
    await assertProperty(
      fc.asyncProperty(optionsFor(algo), history(clockStep, 10), (options, steps) =>
        world(kind, options, async (world) => {
          const { quota } = world.limit;
          for (const step of steps) {
            await world.play([step]);
            const { remaining } = await world.peek();
            if (remaining < 0 || remaining > quota) throw new Error(`${remaining} of ${quota} remain`);
            if (remaining > 0) expectMatch(await world.peek(remaining), { allowed: true, remaining });
            expectMatch(await world.peek(remaining + 1), { allowed: false, remaining });
          }
          // More than ever fits: it is refused, and settles what a clock that was set back has left.
          const { resetAfterMs } = await world.ask(quota + 1);
          const from = world.clock.now();
          if (resetAfterMs > 0) {
            world.clock.micros = from + (resetAfterMs - 1) * 1000;
            expect((await world.peek()).remaining).toBeLessThan(quota);
          }
          world.clock.micros = from + resetAfterMs * 1000;
          expectMatch(await world.peek(), { remaining: quota, resetAfterMs: 0 });
        }),
      ),
    );
  });
});

/** What Redis says of a key that has no end. */
const FOREVER = -1;

/** Milliseconds since the epoch by the clock of the server. */
async function serverMs(): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
}

describe('every key runs out by itself', () => {
  const withChanges = fc.array(
    fc.record({ clock: clockStep, cost: costShare, change: fc.boolean(), giveBack: fc.boolean() }),
    { minLength: 1, maxLength: 12 },
  );

  it.each(redisCases)('%s, %s, after any history', async (kind, algo) => {
    const retain = fc.constantFrom(undefined, '1h');
    let alive = 0;
    await assertProperty(
      fc.asyncProperty(optionsFor(algo), optionsFor(algo), withChanges, retain, (first, second, steps, retain) =>
        world(kind, first, async (world) => {
          const { prefix, store } = world;
          const limits = [first, second].map((options) =>
            compile(
              retain !== undefined && algo === 'calendar-window' ? ({ ...options, retain } as never) : options,
              'one',
            ),
          );
          for (const step of steps) {
            if (step.change) limits.reverse();
            const limit = limits[0]!;
            world.move(step.clock);
            const cost = costOf(step.cost, limit.quota);
            const { allowed, ticket } = await ask(store, limit, { cost });
            if (allowed && step.giveBack) await store.refund([{ limit, identity: IDENTITY, units: cost, ticket }]);
            for (const key of keysOf(prefix, [limit])) {
              const timeToLive = await redis.pttl(key);
              // -2: there is no such key, or no longer.
              if (timeToLive === FOREVER) throw new Error(`${key} has no end`);
              if (timeToLive >= 0) alive++;
            }
          }
        }),
      ),
    );
    expect(alive).toBeGreaterThan(RUNS);
  });

  it.each(algorithmNames)(
    'RedisStore, %s, when its state equals a fresh one, by the clock of the server',
    async (algo) => {
      const costs = fc.array(costShare, { minLength: 1, maxLength: 6 });
      await assertProperty(
        fc.asyncProperty(optionsFor(algo), costs, async (options, costs) => {
          const prefix = freshPrefix();
          const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS });
          const limit = compile(options);
          let charged = false;
          let slowest = 0;
          for (const share of costs) {
            const before = await serverMs();
            const { allowed, resetAfterMs } = await ask(store, limit, { cost: costOf(share, limit.quota) });
            charged ||= allowed;
            const key = keyOf(prefix, { limit, identity: IDENTITY });
            const [end, after] = await Promise.all([redis.pexpiretime(key), serverMs()]);
            expect(end).not.toBe(FOREVER);
            // The script ran between the two times, and a busy server may have been held up in the middle of it, now or before.
            slowest = Math.max(slowest, after - before);
            expect(end).toBeLessThanOrEqual(after + resetAfterMs + slackMsOf(limit) + slowest + 5);
            if (charged && before + resetAfterMs > after) expect(end).toBeGreaterThan(before + resetAfterMs - 2);
          }
        }),
      );
    },
  );
});

describe('looking changes nothing', () => {
  it.each(cases)('%s, %s', async (kind, algo) => {
    await assertProperty(
      fc.asyncProperty(optionsFor(algo), history(clockStep, 6), clockStep, costShare, (options, steps, step, share) =>
        world(kind, options, async (world) => {
          const cost = costOf(share, world.limit.quota);
          await world.peek(cost);
          expectEqual(await world.dump(), await new World(kind, options).dump());
          await world.play(steps);
          world.move(step);
          const before = await world.dump();
          const first = await world.peek(cost);
          expectEqual(await world.peek(cost), first);
          expectEqual(await world.dump(), before);
          const { allowed, retryAfterMs, delayMs } = first;
          expectMatch(await world.ask(cost), { allowed, retryAfterMs, delayMs });
        }),
      ),
    );
  });
});

describe('reset forgets', () => {
  it.each(cases)('%s, %s', async (kind, algo) => {
    await assertProperty(
      fc.asyncProperty(optionsFor(algo), history(clockStep, 6), (options, steps) =>
        world(kind, options, async (world) => {
          const fresh = await world.dump();
          await world.play(steps);
          const other = await ask(world.store, world.limit, { identity: 'another', cost: 1 });
          await world.store.reset([world.counter]);
          expect(await world.dump()).toEqual(fresh);
          expect(await world.peek()).toMatchObject({ allowed: true, remaining: world.limit.quota, resetAfterMs: 0 });
          const after = await ask(world.store, world.limit, { identity: 'another', peek: true });
          expect(after).toMatchObject({ remaining: other.remaining, resetAfterMs: other.resetAfterMs });
        }),
      ),
      Math.ceil(RUNS / 2),
    );
  });
});

describe('a clock that is set back blocks a key for no more than one interval longer', () => {
  const back = fc.oneof(
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.double({ min: 1, max: 2, noNaN: true }),
    fc.double({ min: 0, max: 1000, noNaN: true }),
  );
  it.each(cases)('%s, %s', async (kind, algo) => {
    await assertProperty(
      fc.asyncProperty(optionsFor(algo), history(forwardStep), back, costShare, (options, steps, back, share) =>
        world(kind, options, async (world) => {
          await world.play(steps);
          // All that is left goes, so that the store has seen the clock where it was last.
          const { remaining } = await world.peek();
          if (remaining === 0) return;
          await world.ask(remaining);
          const cost = Math.min(costOf(share, world.limit.quota), world.limit.quota);
          const { retryAfterMs: wait } = await world.peek(cost);
          const interval = world.limit.windowMs(world.clock.now() / 1000);
          world.clock.advanceMs(-back * interval);
          const { allowed, retryAfterMs } = await world.ask(cost);
          expect(allowed).toBe(false);
          expect(retryAfterMs).toBeLessThanOrEqual(longestWaitMs(options, interval, wait) + 1);
        }),
      ),
    );
  });
});
