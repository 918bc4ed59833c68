import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, MemoryStore, RedisStore, type Store } from '../../../lib/index.js';
import { type Check, CompiledLimit, type Refund, type StoreDecision } from '../../../lib/testing/store/index.js';
import {
  algorithmNames,
  anyBlocks,
  blocksOf,
  budgetOptions,
  clockStep,
  concurrencyOptions,
  costOf,
  costShare,
  optionsOf,
  warmingOptions,
} from '../../support/limits/arbitraries.js';
import { holdOptions } from '../../support/limits/hold-arbitraries.js';
import { moveLives, serverTime } from '../../support/redis/key-lives.js';
import { assertSideBySide, PROPERTY_TIMEOUT_MS, propertyRuns } from '../../support/limits/property-runs.js';
import { sharedLimit } from '../../storage/features/shares/simulation.js';
import {
  chargeOf,
  connectRedis,
  extraKeysOf,
  featureKeysOf,
  featuresOfOptions,
  featureTerms,
  freshPrefix,
  keyOf,
  ManualClock,
  type StoredOptions,
} from '../../support/limits/stores.js';

const RUNS = propertyRuns(60);
/** What is added to each time to live: more than a history takes, during which keys run out though the clock stands still. */
const SLACK_MS = 60_000;
/** Times are rounded, and keys are moved with the clock so often. */
const ROUNDING_MS = 60;
/** Beyond, Redis is told shorter times to live than it would take. */
const LONGEST_MS = 100 * 365 * 86_400_000;

/** Definitions of one counter, as an app has them before and after a change. */
type Definitions = fc.Arbitrary<[CompiledLimit, CompiledLimit]>;

/** Other settings that make a counter be written in another way. */
const settings = fc.record({
  blocks: anyBlocks,
  carry: fc.constantFrom(undefined, undefined, 'proportional' as const, 'additive' as const),
  reserveFor: fc.constantFrom(undefined, undefined, { critical: 0.3 }),
  usage: fc.constantFrom(undefined, undefined, { keep: '30d' }),
});

function definitionsOf(options: fc.Arbitrary<unknown>): Definitions {
  const own = options as fc.Arbitrary<StoredOptions>;
  return fc.tuple(own, own, settings, settings).map(([one, other, first, second]) => {
    const each = (options: StoredOptions, terms: typeof first, before?: CompiledLimit) =>
      new CompiledLimit(options, {
        location: 'test',
        featuresOfOptions,
        name: 'one',
        // They exclude each other.
        ...('hold' in options || 'rollover' in options || options.algo === 'budget'
          ? {}
          : blocksOf(options, terms.blocks)),
        ...(options.algo !== 'concurrency' && { features: featureTerms(terms, 'test') }),
        carry: terms.carry && before && { mode: terms.carry, quotaBefore: before.quota },
      });
    const before = each(one, first);
    return [before, each(other, second, before)];
  });
}

/** Tenants share the units of these. */
const shared = fc
  .tuple(optionsOf['sliding-window'], optionsOf['sliding-window'])
  .map((all) => all.map((options) => sharedLimit(options, { floor: 0.05 }).meet({ tenant: { id: 'a', weight: 1 } })));

const plans = fc.record(
  {
    algo: fc.constant('calendar-window' as const),
    rate: fc.integer({ min: 1, max: 12 }),
    period: fc.constantFrom('minute' as const, 'day' as const, 'month' as const),
    rollover: fc.constantFrom(0.5, 1),
    credits: fc.constant(true as const),
    retain: fc.constant('3d'),
  },
  { requiredKeys: ['algo', 'rate', 'period', 'rollover'] },
);

const calendar = fc
  .tuple(optionsOf['calendar-window'], fc.constantFrom({}, { retain: '2h' }))
  .map(([options, retain]) => ({ ...options, ...retain }));

const definitions: Record<string, Definitions> = {
  ...Object.fromEntries(algorithmNames.map((name) => [name, definitionsOf(optionsOf[name])])),
  'calendar-window': definitionsOf(calendar),
  concurrency: definitionsOf(concurrencyOptions),
  budget: definitionsOf(budgetOptions),
  'a plan': definitionsOf(plans),
  'that warms up, token-bucket': definitionsOf(
    warmingOptions.map((own) => ({ ...own, algo: 'token-bucket' as const })),
  ),
  'that warms up, gcra': definitionsOf(warmingOptions.map((own) => ({ ...own, algo: 'gcra' as const }))),
  'of tenants': shared as Definitions,
  ...Object.fromEntries(
    Object.entries(holdOptions).map(([name, options]) => [`with holds, ${name}`, definitionsOf(options)]),
  ),
};

const steps = fc.array(
  fc.record({
    clock: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: clockStep }),
    kind: fc.constantFrom(
      'check',
      'check',
      'check',
      'several',
      'refused beside',
      'refundable',
      'hold',
      'refund',
      'settle',
      'reserve',
      'penalize',
      'block',
      'unblock',
      'renew',
      'reset',
    ),
    /** Which of the definitions decides. */
    which: fc.nat(1),
    identity: fc.nat(1),
    cost: costShare,
    /** A share of the limit's window. */
    time: fc.double({ min: 0, max: 2, noNaN: true }),
    /** Another operation is in the same call. */
    beside: fc.boolean(),
  }),
  { minLength: 1, maxLength: 14 },
);
type Steps = typeof steps extends fc.Arbitrary<infer T> ? T : never;

const compile = (options: AlgorithmOptions, name: string) =>
  new CompiledLimit(options, { location: 'test', featuresOfOptions, name });
const other = compile({ algo: 'gcra', rate: 1, interval: '30d' }, 'other');

/** A store, whose keys are moved with the clock of the test. */
abstract class World {
  readonly clock = new ManualClock();
  abstract readonly store: Store;

  advance(ms: number): Promise<void> {
    this.clock.advanceMs(ms);
    return Promise.resolve();
  }

  /** A counter that is fresh in so many milliseconds, and no sooner, lives as long. */
  abstract expectToLive(limit: CompiledLimit, identity: string, resetAfterMs: number): Promise<void>;
}

class InProcess extends World {
  readonly store = new MemoryStore({ clock: this.clock.now });
  /** Units that are given back when their hold lapses make it fresh sooner. */
  private readonly releases: boolean;

  constructor(limits: readonly CompiledLimit[]) {
    super();
    this.releases = limits.some(({ options }) => 'onLapse' in options && options.onLapse === 'release');
  }

  /** A moment before, it is found as it is. */
  async expectToLive(limit: CompiledLimit, identity: string, resetAfterMs: number): Promise<void> {
    if (this.releases) return;
    const { micros } = this.clock;
    this.clock.micros += (resetAfterMs - 1) * 1000;
    const later = await peek(this.store, limit, identity);
    this.clock.micros = micros;
    expect(later.resetAfterMs).toBeGreaterThan(0);
  }
}

class OnRedis extends World {
  private readonly prefix = freshPrefix();
  private readonly began = serverTime(redis);
  readonly store = new RedisStore(redis, {
    clock: { now: this.clock.now, slackMs: SLACK_MS },
    prefix: this.prefix,
    timeoutMs: 60_000,
  });

  constructor(private readonly limits: readonly CompiledLimit[]) {
    super();
  }

  override async advance(ms: number): Promise<void> {
    const before = this.clock.now();
    await super.advance(ms);
    const moved = (this.clock.now() - before) / 1000;
    const keys = this.limits.flatMap((limit) =>
      ['id0', 'id1'].flatMap((identity) => {
        const key = keyOf(this.prefix, { limit, identity });
        return [key, ...featureKeysOf(key, { limit, identity }), ...extraKeysOf(key, { limit, identity })];
      }),
    );
    if (moved === 0) return;
    await moveLives(redis, [...new Set(keys)], {
      ms: moved,
      patienceMs: SLACK_MS - ROUNDING_MS,
      began: await this.began,
    });
  }

  async expectToLive(limit: CompiledLimit, identity: string, resetAfterMs: number): Promise<void> {
    const key = keyOf(this.prefix, { limit, identity });
    // Where a counter keeps no string, its block has a key of its own.
    const lives = await Promise.all([key, ...extraKeysOf(key, { limit, identity })].map((each) => redis.pttl(each)));
    const elapsed = (await serverTime(redis)) - (await this.began);
    expect(elapsed).toBeLessThan(SLACK_MS / 2);
    // Half of the slack may be gone.
    expect(Math.max(...lives) + elapsed - SLACK_MS / 2).toBeGreaterThanOrEqual(resetAfterMs - ROUNDING_MS);
  }
}

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis({ enableAutoPipelining: true });
});
afterAll(() => redis.disconnect());

async function peek(store: Store, limit: CompiledLimit, identity: string): Promise<StoreDecision> {
  const [decisions] = await store.check([{ entries: [{ limit, identity, cost: 1 }], peek: true }]);
  return decisions![0]!;
}

async function follow(world: World, limits: readonly CompiledLimit[], history: Steps): Promise<void> {
  const { store, clock } = world;
  const taken: Refund[] = [];
  try {
    for (const { clock: by, kind, which, identity: number, cost: part, time, beside } of history) {
      const limit = limits[which]!;
      const windowMs = limit.windowMs(clock.now() / 1000);
      await world.advance(by * windowMs);
      const identity = `id${number}`;
      const counter = { limit, identity };
      const cost = costOf(part, limit.quota);
      const ms = Math.round(time * windowMs);
      const check = async (more: Partial<Check> = {}, behind: readonly CompiledLimit[] = [limit]) => {
        const entries = behind.map((each) => ({ limit: each, identity, cost: each === limit ? cost : each.quota }));
        const [[decisions]] = await Promise.all([
          store.check([{ entries, ...more }]),
          ...(beside ? [store.block({ limit: other, identity: 'third' }, 0)] : []),
        ]);
        if (!decisions!.every(({ allowed }) => allowed)) return;
        taken.push(chargeOf({ ...counter, cost }, decisions![behind.indexOf(limit)]!));
      };
      const isOfUnits = limit.algorithm.leases === undefined;
      // Of what is not written, nobody says how long it lives.
      let isWritten = true;
      if (kind === 'check') await check();
      else if (kind === 'several') await Promise.all([check(), check(), check()]);
      else if (kind === 'refused beside') {
        await store.penalize({ limit: other, identity, units: 1 });
        await check({}, number === 0 ? [other, limit] : [limit, other]);
      } else if (kind === 'refundable') await check({ refundable: true });
      else if (kind === 'hold') await check({ hold: limit.estimates !== undefined, refundable: true });
      else if (kind === 'refund' || kind === 'settle') {
        const refund = taken.shift();
        isWritten = false;
        if (refund !== undefined) await store.refund([{ ...refund, ...(kind === 'settle' && { actual: cost }) }]);
      } else if (kind === 'reserve') {
        const decision = await store.reserve({ ...counter, cost, maxWaitMs: ms });
        if (decision.allowed) taken.push(chargeOf({ ...counter, cost }, decision));
      } else if (kind === 'penalize' && isOfUnits) await store.penalize({ ...counter, units: cost });
      else if (kind === 'block' || kind === 'unblock') await store.block(counter, kind === 'block' ? ms : 0);
      else if (kind === 'reset') await store.reset([counter]);
      else isWritten = false;
      if (kind === 'renew' && !isOfUnits && taken.length > 0) await store.renew(taken[0] as never);
      if (!isWritten) continue;
      const { resetAfterMs } = await peek(store, limit, identity);
      if (resetAfterMs > 1 && resetAfterMs < LONGEST_MS) await world.expectToLive(limit, identity, resetAfterMs);
    }
  } finally {
    await store.close();
  }
}

describe.each([
  ['MemoryStore', (limits: readonly CompiledLimit[]) => new InProcess(limits)],
  ['RedisStore', (limits: readonly CompiledLimit[]) => new OnRedis(limits)],
] as const)('no counter is forgotten before it is fresh, whatever was done to it: %s', (_, open) => {
  it.each(Object.keys(definitions))(
    '%s',
    async (name) => {
      const property = fc.asyncProperty(definitions[name]!, steps, (limits, history) =>
        follow(open(limits), limits, history),
      );
      await assertSideBySide(property, RUNS);
    },
    PROPERTY_TIMEOUT_MS,
  );
});
