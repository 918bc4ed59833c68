import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import type { AlgorithmOptions, Period, Store } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import {
  algorithmNames,
  concurrencyOptions,
  costOf,
  costShare,
  forwardStep,
  optionsOf,
} from '../../support/limits/arbitraries.js';
import { assertSideBySide, expectMatch, propertyRuns } from '../../support/limits/property-runs.js';
import {
  ask,
  type CarryOver,
  connectRedis,
  freshPrefix,
  keyOf,
  ManualClock,
  storeKinds,
  tickOf,
} from '../../support/limits/stores.js';
import { microsOf } from './models.js';

const RUNS = propertyRuns(80);

const identity = 'ip:203.0.113.7';

type Name = (typeof algorithmNames)[number] | 'concurrency';

const everyAlgorithm: readonly Name[] = [...algorithmNames, 'concurrency'];

/** Those that count what is owed. */
const owing = ['token-bucket', 'gcra', 'leaky-bucket'] as const;

/** Two hundred years ahead, a time in microseconds is no whole number any more: a wait in milliseconds up to half of that. */
const LONGEST_WAIT = 100 * 365 * 86_400_000;

/** How much later than the store the server may see a time to live, in milliseconds. */
const TOLERANCE = 60_000;

/** Definitions of one counter: of one algorithm, often alike but for their size. */
function definitionsOf(algo: Name): fc.Arbitrary<AlgorithmOptions[]> {
  const options = { ...optionsOf, concurrency: concurrencyOptions }[algo] as fc.Arbitrary<AlgorithmOptions>;
  return fc
    .record({ all: fc.array(options, { minLength: 2, maxLength: 3 }), sizeOnly: fc.boolean() })
    .map(({ all, sizeOnly }) => (sizeOnly ? all.map((each) => withSizeOf(all[0]!, each)) : all));
}

function withSizeOf(first: AlgorithmOptions, other: AlgorithmOptions): AlgorithmOptions {
  const { burst, queue, limit } = other as { burst?: number; queue?: number; limit?: number };
  const size = {
    burst,
    queue,
    limit,
    ...('rate' in other && !('burst' in first) && !('queue' in first) ? { rate: other.rate } : {}),
  };
  const given = Object.entries(size).filter(([option, value]) => value !== undefined && option in first);
  return { ...first, ...Object.fromEntries(given) };
}

const steps = fc.array(
  fc.record({
    clock: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: forwardStep }),
    /** Whose window the clock goes by, and who asks. */
    by: fc.nat(2),
    who: fc.nat(2),
    cost: costShare,
    all: fc.boolean(),
  }),
  { minLength: 2, maxLength: 40 },
);

/** What becomes of what was counted under another quota, where an instance knows of a change. */
const carries = fc.array(fc.option(fc.constantFrom('proportional' as const, 'additive' as const), { freq: 2 }), {
  minLength: 3,
  maxLength: 3,
});

/** The shortest window of each period, in microseconds. */
const HOUR = 3_600_000_000n;
const SHORTEST: Record<Period, bigint> = {
  second: 1_000_000n,
  minute: 60_000_000n,
  hour: HOUR,
  day: 23n * HOUR,
  week: 167n * HOUR,
  month: 671n * HOUR,
  quarter: 2159n * HOUR,
  year: 8760n * HOUR,
};

interface Charge {
  readonly time: bigint;
  readonly units: bigint;
  readonly by: AlgorithmOptions;
}

type Definition<A extends Name> = Extract<AlgorithmOptions, { algo: A }>;

const largest = (values: readonly bigint[]) => values.reduce((a, b) => (a > b ? a : b));
const smallest = (values: readonly bigint[]) => values.reduce((a, b) => (a < b ? a : b));

/**
 * The most units that the largest of the definitions allows alone in a stretch of length d, from a charge to a charge. With the
 * largest quota and the highest rate of all:
 * - gcra, token-bucket, leaky-bucket: quota + rate x d; where tokens come all at once, one refill more;
 * - sliding-log, sliding-window: quota for each shortest interval that has begun;
 * - fixed-window, calendar-window: one quota more, since a window may begin right after another.
 */
function mostWithin(definitions: readonly AlgorithmOptions[], quota: bigint, d: bigint): bigint {
  const { algo } = definitions[0]!;
  if (algo === 'calendar-window') {
    const periods = definitions.map((each) => SHORTEST[(each as Definition<typeof algo>).period]);
    return quota * (d / smallest(periods) + 2n);
  }
  const rates = definitions as Definition<
    'gcra' | 'token-bucket' | 'leaky-bucket' | 'fixed-window' | 'sliding-window'
  >[];
  if (algo === 'gcra' || algo === 'token-bucket' || algo === 'leaky-bucket') {
    const refills = rates.map((each) => ('refill' in each && each.refill === 'intervally' ? BigInt(each.rate) : 0n));
    const flows = rates.map(({ rate, interval }) => (BigInt(rate) * d) / microsOf(interval));
    return quota + largest(flows) + largest(refills);
  }
  const shortest = smallest(rates.map(({ interval }) => microsOf(interval)));
  return quota * (d / shortest + (algo === 'fixed-window' ? 2n : 1n));
}

/** The first stretch that holds more than the largest definition allows alone, if there is one. */
function overAdmission(
  definitions: readonly AlgorithmOptions[],
  quota: bigint,
  tick: bigint,
  charges: Charge[],
): unknown {
  if (definitions[0]!.algo === 'concurrency') return tooManyHeld(quota, charges);
  for (const [index, { time: first }] of charges.entries()) {
    let units = 0n;
    for (const { time: last, units: more } of charges.slice(index)) {
      units += more;
      const d = last - first;
      // What is charged within a tick is charged at its beginning.
      if (units > mostWithin(definitions, quota, tick > 1n ? d + tick : d)) return { first, last, units, quota };
    }
  }
  return undefined;
}

/** The first moment at which more is held than the largest limit, each for as long as it was granted. */
function tooManyHeld(quota: bigint, charges: readonly Charge[]): unknown {
  return charges.find(({ time: now }) => {
    const held = charges.filter(
      ({ time, by }) => time <= now && now < time + microsOf((by as Definition<'concurrency'>).ttl),
    );
    return held.reduce((sum, { units }) => sum + units, 0n) > quota;
  });
}

/** Of slices that are longer than its window a limit cannot tell when their units came: it takes them for new, and forgets older ones. */
function forgetsSlices(refused: CompiledLimit, limits: readonly CompiledLimit[]): boolean {
  const window = windowOf(refused);
  return window !== undefined && limits.some((other) => windowOf(other)!.length >= window.interval);
}

function windowOf({ parameters }: CompiledLimit): { interval: number; length: number } | undefined {
  return 'slices' in parameters ? (parameters as unknown as { interval: number; length: number }) : undefined;
}

const make = (options: AlgorithmOptions, carry?: CarryOver) =>
  new CompiledLimit(options, { location: 'test', name: 'one', carry });

/** A limit for each definition, of which some know of a change of the rate. */
function limitsOf(definitions: readonly AlgorithmOptions[], carries: readonly (CarryOver['mode'] | null)[]) {
  return definitions.map((options, index) => {
    const mode = carries[index];
    const { quota } = make(definitions[(index + 1) % definitions.length]!);
    return make(options, mode ? { mode, quotaBefore: quota } : undefined);
  });
}

describe('definitions of one counter, asked in any order', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis({ enableAutoPipelining: true });
  });
  afterAll(() => redis.disconnect());

  const cases = Object.keys(storeKinds).flatMap((kind) => everyAlgorithm.map((algo) => [kind, algo] as const));

  it.each(cases)('%s, %s: allow no more than the largest alone, and a refusal makes no room', async (kind, algo) => {
    const property = fc.asyncProperty(definitionsOf(algo), carries, steps, async (definitions, carries, history) => {
      const clock = new ManualClock();
      const store: Store = storeKinds[kind]!(clock, redis);
      const limits = limitsOf(definitions, carries);
      const left = async () => {
        const all = [];
        for (const limit of limits) all.push((await ask(store, limit, { identity, peek: true })).remaining);
        return all;
      };
      const charges: Charge[] = [];
      try {
        for (const { clock: share, by, who, cost, all } of history) {
          clock.advanceMs(share * limits[by % limits.length]!.windowMs(clock.now() / 1000));
          const limit = limits[who % limits.length]!;
          const before = await left();
          const units = all ? Math.max(1, before[who % limits.length]!) : costOf(cost, limit.quota);
          const { allowed } = await ask(store, limit, { identity, cost: units });
          if (allowed) {
            charges.push({
              time: BigInt(clock.micros),
              units: BigInt(units),
              by: definitions[who % definitions.length]!,
            });
            continue;
          }
          // What a definition carries over is room by its change of the rate. A refusal may write it down, for the others too.
          if (limit.carry !== undefined || forgetsSlices(limit, limits)) continue;
          const after = await left();
          if (after.some((remaining, index) => remaining > before[index]!)) expect(after).toEqual(before);
        }
        const quota = largest(limits.map((limit) => BigInt(limit.quota)));
        const tick = BigInt(Math.max(...limits.map(tickOf)));
        expect(overAdmission(definitions, quota, tick, charges)).toBeUndefined();
      } finally {
        await store.close();
      }
    });
    await assertSideBySide(property, RUNS);
  });

  const exact = Object.keys(storeKinds).flatMap((kind) => owing.map((algo) => [kind, algo] as const));

  it.each(exact)('%s, %s: a wait is exact, and its key outlives it', async (kind, algo) => {
    const property = fc.asyncProperty(definitionsOf(algo), carries, steps, async (definitions, carries, history) => {
      const clock = new ManualClock();
      const prefix = freshPrefix();
      const store: Store = storeKinds[kind]!(clock, redis, prefix);
      const limits = limitsOf(definitions, carries);
      try {
        for (const { clock: share, by, who, cost: part, all } of history) {
          clock.advanceMs(share * limits[by % limits.length]!.windowMs(clock.now() / 1000));
          const limit = limits[who % limits.length]!;
          const cost = Math.min(limit.quota, all ? limit.quota : costOf(part, limit.quota));
          const { allowed, retryAfterMs } = await ask(store, limit, { identity, cost });
          if (allowed || retryAfterMs > LONGEST_WAIT) continue;
          const from = clock.micros;
          if (kind === 'RedisStore') {
            const timeToLive = await redis.pttl(keyOf(prefix, { limit, identity }));
            expect(timeToLive).toBeGreaterThan(clock.slackMs + retryAfterMs - TOLERANCE);
          }
          clock.micros = from + (retryAfterMs - 1) * 1000;
          expectMatch(await ask(store, limit, { identity, cost }), {
            allowed: false,
            retryAfterMs: 1,
          });
          clock.micros = from + retryAfterMs * 1000;
          expectMatch(await ask(store, limit, { identity, cost, peek: true }), { allowed: true });
          clock.micros = from;
        }
      } finally {
        await store.close();
      }
    });
    await assertSideBySide(property, RUNS);
  });
});
