import { afterAll, beforeAll, describe, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, MemoryStore, RedisStore, type Store } from '../../../../lib/index.js';
import { type Check, CompiledLimit, type StoreDecision } from '../../../../lib/testing/store/index.js';
import {
  algorithmNames,
  anyOptions,
  concurrencyOptions,
  costOf,
  costShare,
  forwardStep,
} from '../../../support/limits/arbitraries.js';
import { optionsOf } from '../../../support/limits/arbitraries.js';
import {
  assertSideBySide,
  expectEqual,
  PROPERTY_TIMEOUT_MS,
  propertyRuns,
} from '../../../support/limits/property-runs.js';
import { chargesOf, comparable, connectRedis, freshPrefix, ManualClock } from '../../../support/limits/stores.js';
import { WatchedStore } from './watched-store.js';
import { PATIENCE_MS } from '../../../support/redis/patience.mjs';

const RUNS = propertyRuns(150);

const steps = fc.array(
  fc.record({
    clock: forwardStep,
    identity: fc.nat(1),
    kind: fc.constantFrom('check', 'check', 'check', 'peek', 'reserve'),
    cost: costShare,
    refundable: fc.boolean(),
    /** Whether another limit is checked beside. */
    beside: fc.boolean(),
    /** Something that was charged before is given back. */
    giveBack: fc.boolean(),
    penalty: fc.constantFrom(0, 0, 0, 0.3),
  }),
  { minLength: 1, maxLength: 20 },
);
type Steps = typeof steps extends fc.Arbitrary<infer T> ? T : never;

const compile = (
  options: AlgorithmOptions,
  name: string,
  settings: { blockFor?: number; candidate?: AlgorithmOptions },
) => new CompiledLimit(options, { location: 'test', name: `${kindOf(options)} ${name}`, ...settings });

/** Limits of `concurrency` are known by their names. */
const kindOf = ({ algo }: AlgorithmOptions) => (algo === 'concurrency' ? algo : 'rate');

/** What a check charged, and what it charged where the second version is enforced, if it was. */
interface Taken {
  readonly checks: Map<Store, { check: Check; decisions: StoreDecision[] }>;
  readonly model: { check: Check; decisions: StoreDecision[] } | undefined;
}

describe('a candidate decides as where it is enforced, of the requests that its limit lets through', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis({ enableAutoPipelining: true });
  });
  afterAll(() => redis.disconnect());

  async function agree(
    options: AlgorithmOptions,
    candidate: AlgorithmOptions,
    other: AlgorithmOptions,
    blockFor: number,
    history: Steps,
  ) {
    const clock = new ManualClock();
    const inMemory = () => new MemoryStore({ clock: clock.now, slackMs: Infinity });
    const memory = new WatchedStore(inMemory());
    const remote = new WatchedStore(new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS }));
    // The same without the candidate; and where the second version is enforced.
    const [plain, model] = [inMemory(), inMemory()];
    const limit = compile(options, 'first', { blockFor, candidate });
    const alone = compile(options, 'first', { blockFor });
    const enforced = compile(candidate, 'first', { blockFor });
    const beside = compile(other, 'beside', {});
    const taken: Taken[] = [];
    try {
      for (const step of history) {
        clock.advanceMs(step.clock * limit.windowMs(clock.now() / 1000));
        const identity = `id${step.identity}`;
        const cost = costOf(step.cost, limit.quota);
        if (step.kind === 'reserve') await reserve(identity, cost);
        else await check(identity, cost, step);
        if (step.giveBack && taken.length > 0) await giveBack(taken.shift()!);
        if (step.penalty > 0 && limit.algorithm.leases === undefined) {
          const units = costOf(step.penalty, limit.quota);
          for (const store of [memory, remote]) await store.penalize({ limit, identity, units });
          await plain.penalize({ limit: alone, identity, units });
          await model.penalize({ limit: enforced, identity, units });
        }
      }
    } finally {
      for (const store of [memory, plain, model]) await store.close();
    }

    async function check(identity: string, cost: number, step: Steps[number]): Promise<void> {
      const { refundable } = step;
      const peek = step.kind === 'peek';
      const of = (first: CompiledLimit): Check => {
        const entries = [{ limit: first, identity, cost }];
        if (step.beside) entries.push({ limit: beside, identity, cost: 1 });
        return { entries, peek, refundable };
      };
      const wanted = (await plain.check([of(alone)]))[0]!;
      const isCharged = !peek && wanted.every(({ allowed }) => allowed);
      const checks: Taken['checks'] = new Map([[plain, { check: of(alone), decisions: wanted }]]);
      for (const store of [memory, remote]) {
        const before = store.asked;
        const decisions = (await store.check([of(limit)]))[0]!;
        expectEqual(store.asked, before + 1);
        checks.set(store, { check: of(limit), decisions });
        expectEqual(withoutCandidates(decisions), withoutCandidates(wanted));
      }
      if (peek) return;
      const asked = { entries: [{ limit: enforced, identity, cost }], refundable };
      // A refusal charges nothing; it may begin a block.
      const [seen] = (await model.check([{ ...asked, peek: true }]))[0]!;
      const isDecided = isCharged || !seen!.allowed;
      const decision = isDecided ? (await model.check([asked]))[0]![0]! : seen!;
      for (const { candidates } of [memory, remote]) {
        // A look tells no time at which anything was charged.
        const said = isDecided ? candidates : candidates.map(({ chargedAt: _, ...rest }) => rest);
        expectEqual(comparable([said]), comparable([[decision]]));
      }
      if (!isCharged) return;
      taken.push({ checks, model: decision.allowed ? { check: asked, decisions: [decision] } : undefined });
    }

    async function reserve(identity: string, cost: number): Promise<void> {
      const reservation = { identity, cost, maxWaitMs: limit.windowMs(0) };
      const wanted = await plain.reserve({ limit: alone, ...reservation });
      const of = (first: CompiledLimit): Check => ({ entries: [{ limit: first, identity, cost }] });
      const checks: Taken['checks'] = new Map([[plain, { check: of(alone), decisions: [wanted] }]]);
      for (const store of [memory, remote]) {
        const decision = await store.reserve({ limit, ...reservation });
        expectEqual(withoutCandidates([decision]), withoutCandidates([wanted]));
        checks.set(store, { check: of(limit), decisions: [decision] });
      }
      expectEqual(comparable([remote.candidates]), comparable([memory.candidates]));
      if (!wanted.allowed) return;
      const decision = await model.reserve({ limit: enforced, ...reservation });
      expectEqual(comparable([memory.candidates]), comparable([[decision]]));
      taken.push({ checks, model: decision.allowed ? { check: of(enforced), decisions: [decision] } : undefined });
    }

    async function giveBack({ checks, model: charged }: Taken): Promise<void> {
      for (const [store, { check: asked, decisions }] of checks)
        await store.refund(chargesOf(asked.entries, decisions));
      if (charged !== undefined) await model.refund(chargesOf(charged.check.entries, charged.decisions));
    }
  }

  const blocks = fc.constantFrom(0, 0, 7_654_321);

  it.each([...algorithmNames])(
    '%s, beside a limit of any algorithm',
    async (algo) => {
      const candidates = optionsOf[algo] as fc.Arbitrary<AlgorithmOptions>;
      const firsts = fc.oneof(candidates, ...Object.values(optionsOf)) as fc.Arbitrary<AlgorithmOptions>;
      await assertSideBySide(fc.asyncProperty(firsts, candidates, anyOptions, blocks, steps, agree), RUNS);
    },
    PROPERTY_TIMEOUT_MS,
  );

  it(
    'concurrency, beside concurrency',
    async () => {
      const property = fc.asyncProperty(concurrencyOptions, concurrencyOptions, anyOptions, blocks, steps, agree);
      await assertSideBySide(property, RUNS);
    },
    PROPERTY_TIMEOUT_MS,
  );

  it(
    'and as the limit itself, where it is equal',
    async () => {
      await assertSideBySide(fc.asyncProperty(anyOptions, blocks, steps, beEqual), RUNS);
    },
    PROPERTY_TIMEOUT_MS,
  );

  async function beEqual(options: AlgorithmOptions, blockFor: number, history: Steps): Promise<void> {
    const clock = new ManualClock();
    const limit = compile(options, 'equal', { blockFor, candidate: options });
    const stores = [
      new WatchedStore(new MemoryStore({ clock: clock.now, slackMs: Infinity })),
      new WatchedStore(new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS })),
    ];
    for (const step of history) {
      clock.advanceMs(step.clock * limit.windowMs(clock.now() / 1000));
      const entry = { limit, identity: `id${step.identity}`, cost: costOf(step.cost, limit.quota) };
      for (const store of stores) {
        const [decisions] = await store.check([{ entries: [entry], refundable: step.refundable }]);
        expectEqual(comparable([store.candidates]), comparable([decisions!.map(({ candidate: _, ...rest }) => rest)]));
      }
    }
    await stores[0]!.close();
  }
});

function withoutCandidates(decisions: readonly StoreDecision[]): unknown {
  return comparable([decisions.map(({ candidate: _, ...decision }) => decision)]);
}
