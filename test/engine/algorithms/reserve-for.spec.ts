import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import type { AlgorithmOptions, Priority, ReservedShares, Store } from '../../../lib/index.js';
import { CompiledLimit, type LimitSettings, type StoreDecision } from '../../../lib/testing/store/index.js';
import {
  algorithmNames,
  anyPriority,
  clockStep,
  concurrencyOptions,
  costOf,
  costShare,
  optionsOf,
} from '../../support/limits/arbitraries.js';
import { assertSideBySide, expectEqual, expectMatch, propertyRuns } from '../../support/limits/property-runs.js';
import { ask, connectRedis, featureTerms, ManualClock, storeKinds } from '../../support/limits/stores.js';

const RUNS = propertyRuns(20);

const identity = 'ip:203.0.113.7';

const everyAlgorithm = { ...optionsOf, concurrency: concurrencyOptions } as Record<
  string,
  fc.Arbitrary<AlgorithmOptions>
>;

const shares: fc.Arbitrary<ReservedShares> = fc.oneof(
  fc.record({ critical: fc.double({ min: 0.01, max: 0.6, noNaN: true }) }),
  fc.record({ default: fc.double({ min: 0.01, max: 0.6, noNaN: true }) }),
  fc.record({
    critical: fc.double({ min: 0.01, max: 0.45, noNaN: true }),
    default: fc.double({ min: 0.01, max: 0.45, noNaN: true }),
  }),
);

const step = fc.record({
  clock: fc.oneof(fc.constant(0), clockStep),
  kind: fc.constantFrom('consume', 'consume', 'consume', 'reserve', 'refund', 'penalize', 'settle'),
  priority: anyPriority,
  cost: costShare,
});

const carry = fc.option(
  fc.record({
    mode: fc.constantFrom('proportional' as const, 'additive' as const),
    quotaBefore: fc.integer({ min: 1, max: 30 }),
  }),
  { freq: 3, nil: undefined },
);

function compile(
  options: AlgorithmOptions,
  { reserveFor, ...more }: { reserveFor?: ReservedShares; carry?: LimitSettings['carry'] },
) {
  const features = featureTerms({ reserveFor }, 'test');
  return new CompiledLimit(options, { location: 'test', name: `${options.algo} one`, features, ...more });
}

const kinds = Object.keys(storeKinds);
const names = [...algorithmNames, 'concurrency'];
const cases = kinds.flatMap((kind) => names.map((algo) => [kind, algo] as const));

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis({ enableAutoPipelining: true });
});
afterAll(() => redis.disconnect());

interface Step {
  clock: number;
  kind: string;
  priority: Priority;
  cost: number;
}

/** Plays a history, and looks at what is there before each step. */
async function play(
  { limit, store, clock, steps }: { limit: CompiledLimit; store: Store; clock: ManualClock; steps: readonly Step[] },
  look: (met: CompiledLimit, cost: number) => Promise<void>,
): Promise<unknown[]> {
  const taken: { met: CompiledLimit; units: number; decision: StoreDecision }[] = [];
  const answers: unknown[] = [];
  for (const { clock: share, kind, priority, cost: part } of steps) {
    clock.advanceMs(share * limit.windowMs(clock.now() / 1000));
    const met = limit.meet({ priority });
    const cost = costOf(part, limit.quota);
    await look(met, cost);
    const last = taken.at(-1);
    const isReservable = limit.algorithm.reservation !== undefined || limit.algorithm.queue !== undefined;
    if (kind === 'reserve' && isReservable) {
      const maxWaitMs = limit.windowMs(0);
      const decision = await store.reserve({ limit: met, identity, cost, maxWaitMs });
      answers.push(decision);
      if (decision.allowed) taken.push({ met, units: cost, decision });
    } else if (kind === 'refund' && last !== undefined) {
      const { ticket, chargedAt } = last.decision;
      await store.refund([{ limit: last.met, identity, units: last.units, ticket, chargedAt }]);
      taken.pop();
    } else if (kind === 'penalize' && limit.algorithm.leases === undefined) {
      await store.penalize({ limit: met, identity, units: cost });
    } else {
      const [decisions] = await store.check([{ entries: [{ limit: met, identity, cost }], refundable: true }]);
      answers.push(decisions![0]);
      if (decisions![0]!.allowed) taken.push({ met, units: cost, decision: decisions![0]! });
    }
  }
  return answers;
}

describe('what is kept for the important', () => {
  // The definition: a request fits if it and what is kept from it fit, and waits until they do.
  it.each(cases)('%s, %s: a request is decided as one for what it asks and what is kept', async (kind, algo) => {
    let kept = 0;
    await assertSideBySide(
      fc.asyncProperty(
        everyAlgorithm[algo]!,
        shares,
        carry,
        fc.array(step, { minLength: 1, maxLength: 12 }),
        async (options, reserveFor, carry, steps) => {
          const clock = new ManualClock();
          const store = storeKinds[kind]!(clock, redis);
          const limit = compile(options, { reserveFor, carry });
          try {
            await play({ limit, store, clock, steps }, async (met, cost) => {
              const units = limit.quota - met.quota;
              const [own, whole, all] = await Promise.all([
                ask(store, met, { cost, peek: true }),
                ask(store, limit, { cost: cost + units, peek: true }),
                ask(store, limit, { peek: true }),
              ]);
              const { allowed, retryAfterMs } = whole;
              if (units > 0) kept++;
              expectMatch(own, {
                allowed,
                retryAfterMs,
                quota: limit.quota - units,
                remaining: Math.max(0, all.remaining - units),
                resetAfterMs: all.resetAfterMs,
              });
            });
          } finally {
            await store.close();
          }
        },
      ),
      RUNS,
    );
    expect(kept).toBeGreaterThan(RUNS);
  });

  it.each(cases)('%s, %s: is there, whatever others take', async (kind, algo) => {
    let kept = 0;
    await assertSideBySide(
      fc.asyncProperty(
        everyAlgorithm[algo]!,
        shares,
        fc.array(step, { minLength: 1, maxLength: 12 }),
        async (options, reserveFor, steps) => {
          const clock = new ManualClock();
          const store = storeKinds[kind]!(clock, redis);
          const limit = compile(options, { reserveFor });
          const others = steps
            .filter((each) => each.kind !== 'penalize')
            .map((each) => ({ ...each, clock: Math.abs(each.clock), priority: 'sheddable' as const }));
          const units = limit.quota - limit.meet({ priority: 'sheddable' }).quota;
          try {
            await play({ limit, store, clock, steps: others }, async () => {
              if (units === 0) return;
              kept++;
              expectMatch(await ask(store, limit, { cost: units, peek: true }), { allowed: true });
            });
          } finally {
            await store.close();
          }
        },
      ),
      RUNS,
    );
    expect(kept).toBeGreaterThan(RUNS);
  });

  it.each(names)('%s: both stores say the same', async (algo) => {
    await assertSideBySide(
      fc.asyncProperty(
        everyAlgorithm[algo]!,
        shares,
        carry,
        fc.array(step, { minLength: 1, maxLength: 12 }),
        async (options, reserveFor, carry, steps) => {
          const told: unknown[][] = [];
          for (const kind of kinds) {
            const clock = new ManualClock();
            const store = storeKinds[kind]!(clock, redis);
            const limit = compile(options, { reserveFor, carry });
            const answers = await play({ limit, store, clock, steps }, () => Promise.resolve());
            const withTicket = algo !== 'concurrency';
            told.push(
              answers.map((answer) => {
                const { source: _, ticket, ...rest } = answer as StoreDecision;
                return withTicket && ticket !== undefined ? { ...rest, ticket } : rest;
              }),
            );
            await store.close();
          }
          expectEqual(told[1], told[0]);
        },
      ),
      RUNS,
    );
  });
});

describe.each(Object.entries(storeKinds))('%s, by example', (_, make) => {
  const limit = compile(
    { algo: 'fixed-window', rate: 10, interval: '10s' },
    { reserveFor: { critical: 0.2, default: 0.1 } },
  );

  it('lets each priority take its part, and no more', async () => {
    const clock = new ManualClock();
    const store = make(clock, redis);
    const as = (priority: Priority, cost: number) => ask(store, limit.meet({ priority }), { cost });
    expect(await as('sheddable', 7)).toMatchObject({ allowed: true, quota: 7, remaining: 0 });
    expect(await as('sheddable', 1)).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 10_000 });
    expect(await as('default', 2)).toMatchObject({ allowed: false, quota: 8, remaining: 1, retryAfterMs: 10_000 });
    expect(await as('default', 1)).toMatchObject({ allowed: true, remaining: 0 });
    expect(await as('default', 9)).toMatchObject({ allowed: false, retryAfterMs: Infinity });
    expect(await as('critical', 2)).toMatchObject({ allowed: true, quota: 10, remaining: 0 });
    expect(await as('critical', 1)).toMatchObject({ allowed: false, retryAfterMs: 10_000 });
    await store.close();
  });

  it('charges all that was used, also beyond what others left', async () => {
    const clock = new ManualClock();
    const store = make(clock, redis);
    const most = compile({ algo: 'token-bucket', rate: 10, interval: '10s' }, { reserveFor: { critical: 0.8 } });
    await ask(store, most.meet({ priority: 'default' }));
    await ask(store, most.meet({ priority: 'critical' }), { cost: 6 });
    await store.penalize({ limit: most.meet({ priority: 'default' }), identity, units: 3 });
    expect(await ask(store, most, { peek: true })).toMatchObject({ allowed: false, remaining: 0 });
    await store.close();
  });

  it('lets each wait for its part', async () => {
    const clock = new ManualClock();
    const start = clock.micros;
    const store = make(clock, redis);
    const gcra = compile({ algo: 'gcra', rate: 10, interval: '10s' }, { reserveFor: { critical: 0.2 } });
    const steps: [second: number, cost: number, priority: Priority, allowed: boolean, retryAfterMs: number][] = [
      [0, 8, 'default', true, 0],
      [0, 1, 'default', false, 1000],
      [0, 2, 'critical', true, 0],
      [1, 1, 'default', false, 2000],
      [1, 1, 'critical', true, 0],
      [4, 1, 'default', true, 0],
    ];
    for (const [second, cost, priority, allowed, retryAfterMs] of steps) {
      clock.micros = start + second * 1_000_000;
      const decision = await ask(store, gcra.meet({ priority }), { cost });
      expect(decision).toMatchObject({ allowed, retryAfterMs, remaining: 0 });
    }
    await store.close();
  });

  it('lets those from whom it keeps something take nothing of the future', async () => {
    for (const algo of ['gcra', 'token-bucket'] as const) {
      const clock = new ManualClock();
      const store = make(clock, redis);
      const kept = compile({ algo, rate: 10, interval: '10s' }, { reserveFor: { critical: 0.2 } });
      const as = (priority: Priority, cost: number, maxWaitMs = 60_000) =>
        store.reserve({ limit: kept.meet({ priority }), identity, cost, priority, maxWaitMs });
      expect(await as('default', 6)).toMatchObject({ allowed: true, delayMs: 0, remaining: 2 });
      expect(await as('sheddable', 4)).toMatchObject({ allowed: false, remaining: 2, retryAfterMs: 2000 });
      expect(await as('default', 9)).toMatchObject({ allowed: false, retryAfterMs: Infinity });
      expect(await as('default', 2)).toMatchObject({ allowed: true, delayMs: 0 });
      for (let i = 0; i < 3; i++) expect(await as('default', 1)).toMatchObject({ allowed: false, retryAfterMs: 1000 });
      // Who may take all of it borrows, and what is owed keeps the others out.
      expect(await as('critical', 5)).toMatchObject({ allowed: true, delayMs: 3000 });
      expect(await as('default', 1)).toMatchObject({ allowed: false, retryAfterMs: 6000 });
      // A claim is a place in a line, which has an end for everybody.
      const claim = { id: 'job', keepMs: 60_000 };
      const limit = kept.meet({ priority: 'default' });
      const claimed = { limit, identity, cost: 1, maxWaitMs: 60_000, claim };
      expect(await store.reserve(claimed)).toMatchObject({ allowed: true, delayMs: 6000 });
      await store.close();
    }
  });

  it('decides requests of all priorities in one call, and several limits all or nothing', async () => {
    const clock = new ManualClock();
    const store = make(clock, redis);
    const bucket = compile({ algo: 'token-bucket', rate: 5, interval: '1s' }, { reserveFor: { critical: 0.4 } });
    const entries = (priority: Priority, cost: number) =>
      [limit, bucket].map((each) => ({ limit: each.meet({ priority }), identity, cost }));
    const decided = await store.check([
      { entries: entries('default', 3) },
      { entries: entries('default', 1) },
      { entries: entries('critical', 2) },
      { entries: entries('critical', 1) },
    ]);
    expect(decided.map((each) => each.map(({ allowed, remaining }) => [allowed, remaining]))).toEqual([
      [
        [true, 5],
        [true, 0],
      ],
      [
        [true, 5],
        [false, 0],
      ],
      [
        [true, 5],
        [true, 0],
      ],
      [
        [true, 5],
        [false, 0],
      ],
    ]);
    await store.close();
  });
});
