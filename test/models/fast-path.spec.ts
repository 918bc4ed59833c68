import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, RedisStore } from '../../lib/index.js';
import { type Check, CompiledLimit, type Counter, type StoreDecision } from '../../lib/testing/store/index.js';
import { algorithmNames, clockStep, costOf, costShare, optionsOf } from '../support/limits/arbitraries.js';
import { moveLives, serverTime } from '../support/redis/key-lives.js';
import {
  assertSideBySide,
  expectEqual,
  expectHolds,
  PROPERTY_TIMEOUT_MS,
  propertyRuns,
} from '../support/limits/property-runs.js';
import { type CarryOver, connectRedis, freshPrefix, keyOf, ManualClock } from '../support/limits/stores.js';

const RUNS = propertyRuns(200);
/** Keys live so much longer than by the clock of the test, since it takes time as well. */
const PATIENCE_MS = 120_000;
/** Times to live are whole milliseconds, and are moved with the clock up to so often. */
const ROUNDING_MS = 20;

const READ_LIVES = `
  local lives = {}
  for at, key in ipairs(KEYS) do lives[at] = redis.call('PTTL', key) end
  return lives`;

/** The algorithms whose checks go the short way. */
const { plain } = JSON.parse(readFileSync('lua/fragments.json', 'utf8')) as { plain: string[] };
const plainNames = algorithmNames.filter((name) => plain.includes(name));
const plainOptions = fc.oneof(...plainNames.map((name) => optionsOf[name])) as fc.Arbitrary<AlgorithmOptions>;

/** A value of another writer: its bytes, or a list. */
const foreign = fc.oneof(
  fc.uint8Array({ maxLength: 60 }),
  ...[32, 40, 44].map((length) => fc.uint8Array({ minLength: length, maxLength: length })),
  fc.constant('list' as const),
);

/** What checks of one kind ask: limits from the first one on, how many, their costs, and whether they charge. */
const kind = (first: fc.Arbitrary<number>) =>
  fc.record({
    first,
    width: fc.integer({ min: 1, max: 3 }),
    costs: fc.tuple(costShare, costShare, costShare),
    mode: fc.constantFrom<Omit<Check, 'entries'>>({}, {}, {}, { refundable: true }, { peek: true }),
  });

/** A step of a history: the clock moves, something happens to a counter, then checks are made in one call. */
const step = fc.record({
  clock: clockStep,
  event: fc.record({
    kind: fc.constantFrom(
      'none',
      'none',
      'none',
      'refund',
      'penalize',
      'block',
      'unblock',
      'reserve',
      'foreign',
      'corrupt',
    ),
    limit: fc.nat(2),
    identity: fc.nat(2),
    share: costShare,
    /** A part of the limit's window. */
    time: fc.double({ min: 0, max: 2, noNaN: true }),
    value: foreign,
    byte: fc.nat(43),
  }),
  /** From here on the first limit has other parameters. */
  change: fc.integer({ min: 0, max: 5 }).map((number) => number === 0),
  carry: fc.constantFrom(undefined, undefined, 'proportional' as const, 'additive' as const),
  /** Whose checks are made, in this order, and of which kind; twice the same is a hot key. */
  asked: fc.array(fc.record({ identity: fc.nat(2), kind: fc.nat(2) }), { minLength: 1, maxLength: 8 }),
  /** Most calls have checks of one kind. */
  kinds: fc.oneof(fc.tuple(kind(fc.constant(0))), fc.tuple(kind(fc.nat(2)), kind(fc.nat(2)), kind(fc.nat(2)))),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

let redis: Redis;
const programs: string[] = [];
beforeAll(async () => {
  redis = await connectRedis({ enableAutoPipelining: true });
  const evalsha = redis.evalsha.bind(redis) as (...args: unknown[]) => Promise<unknown>;
  jest.spyOn(redis, 'evalsha').mockImplementation((...args: unknown[]) => {
    // Behind the hash, the number of keys and the keys.
    programs.push(String(args[2 + Number(args[1])]));
    return evalsha(...args);
  });
});
afterAll(() => {
  jest.restoreAllMocks();
  redis.disconnect();
});

const isPlain = (program: string) => !/^\[(?:0|-1|-2),/.test(program);

/** A store, and what its keys are called. */
class Side {
  readonly prefix = freshPrefix();
  readonly store: RedisStore;
  /** What was allowed to be given back, as this side's store says it. */
  readonly taken: StoreDecision[] = [];

  constructor(
    clock: ManualClock,
    private readonly other?: CompiledLimit,
  ) {
    this.store = new RedisStore(redis, {
      clock: { now: clock.now, slackMs: PATIENCE_MS },
      prefix: this.prefix,
      timeoutMs: 60_000,
    });
  }

  key(counter: Counter): string {
    return keyOf(this.prefix, counter);
  }

  /** An operation in the same call makes the script decide all of it the general way. */
  async check(checks: Check[]): Promise<StoreDecision[][]> {
    const { other } = this;
    if (other === undefined) return this.store.check(checks);
    const [decisions] = await Promise.all([
      this.store.check(checks),
      this.store.block({ limit: other, identity: 'other' }, 0),
    ]);
    return decisions;
  }
}

/** What came of it, or why it failed, without what tells one script from another. */
async function outcomeOf(act: Promise<unknown>): Promise<unknown> {
  try {
    return await act;
  } catch (error) {
    return String(error).replace(/\d+/g, '');
  }
}

class History {
  private readonly clock = new ManualClock();
  private readonly fast = new Side(this.clock);
  private readonly general: Side;
  private readonly sides: readonly [Side, Side];
  private readonly limits: CompiledLimit[];
  /** By the server's clock, in milliseconds. */
  private began = NaN;
  private readonly taken: { counter: Counter; units: number; at: number }[] = [];
  private isCorrupt = false;
  private isFirst = true;
  private hasFailed = false;

  constructor(
    private readonly first: AlgorithmOptions,
    private readonly changed: AlgorithmOptions,
    others: readonly AlgorithmOptions[],
    private readonly shadows: readonly boolean[],
  ) {
    this.limits = [first, ...others].map((options, index) => this.make(options, index));
    this.general = new Side(
      this.clock,
      new CompiledLimit({ algo: 'gcra', rate: 1, interval: 1 }, { location: 'test' }),
    );
    this.sides = [this.fast, this.general];
  }

  async run(steps: readonly Step[]): Promise<void> {
    this.began = await serverTime(redis);
    for (const each of steps) {
      await this.step(each);
      // Of a call that fails, more or less may have been written by then.
      if (this.hasFailed) return;
    }
    const entries = this.limits.map((limit) => ({ limit, cost: 1 }));
    await this.check(
      [0, 1, 2].map((number) => ({
        peek: true,
        entries: entries.map((entry) => ({ ...entry, identity: `id${number}` })),
      })),
    );
  }

  private make(options: AlgorithmOptions, index: number, carry?: CarryOver): CompiledLimit {
    const shadow = this.shadows[index] === true;
    return new CompiledLimit(options, { location: 'test', name: `${options.algo} ${index}`, shadow, carry });
  }

  private async step({ clock, event, change, carry, asked, kinds }: Step): Promise<void> {
    await this.advance(clock * this.limits[0]!.windowMs(this.clock.now() / 1000));
    if (change) {
      const quotaBefore = this.limits[0]!.quota;
      this.limits[0] = this.make(this.isFirst ? this.changed : this.first, 0, carry && { mode: carry, quotaBefore });
      this.isFirst = !this.isFirst;
    }
    await this.happen(event);
    const checks = asked.map(({ identity, kind }): Check => {
      const { first, width, costs, mode } = kinds[kind % kinds.length]!;
      const limits = this.limits.slice(first % this.limits.length).slice(0, width);
      return {
        ...mode,
        entries: limits.map((limit, index) => ({
          limit,
          identity: `id${identity}`,
          cost: costOf(costs[index]!, limit.quota),
        })),
      };
    });
    await this.check(checks);
  }

  /** What a server's clock does to its keys is done to them here. */
  private async advance(ms: number): Promise<void> {
    const before = this.clock.now();
    this.clock.advanceMs(ms);
    const moved = (this.clock.now() - before) / 1000;
    const keys = this.counters().flatMap((counter) => this.sides.map((side) => side.key(counter)));
    // Both of a pair end at the same time, though one may have been written later, or live longer: what is found when the clock steps
    // back, or in a value of nonsense, would tell them apart.
    await moveLives(redis, keys, { ms: moved, patienceMs: PATIENCE_MS - ROUNDING_MS, began: this.began, width: 2 });
  }

  private counters(): Counter[] {
    return this.limits.flatMap((limit) => [0, 1, 2].map((number) => ({ limit, identity: `id${number}` })));
  }

  private async check(checks: Check[]): Promise<void> {
    const [fast, general] = (await Promise.all(this.sides.map((side) => outcomeOf(side.check(checks))))) as [
      unknown,
      unknown,
    ];
    // Of a foreign value that is no number one fails on its way, and the other one by what it replies.
    const haveFailed = this.isCorrupt && !Array.isArray(fast) && !Array.isArray(general);
    if (!haveFailed) expectEqual(fast, general);
    this.hasFailed = !Array.isArray(fast);
    if (this.hasFailed) expect([this.isCorrupt, fast]).toEqual([true, fast]);
    if (this.hasFailed) return;
    for (const [index, { entries, peek = false, refundable = false }] of checks.entries()) {
      const decisions = (fast as StoreDecision[][])[index]!;
      const allowed = !peek && decisions.every((decision, at) => decision.allowed || entries[at]!.limit.shadow);
      for (const [at, { cost, ...counter }] of entries.entries()) {
        if (!allowed || !refundable || !decisions[at]!.allowed) continue;
        for (const [side, its] of [
          [this.fast, fast],
          [this.general, general],
        ] as [Side, StoreDecision[][]][]) {
          side.taken.push(its[index]![at]!);
        }
        this.taken.push({ counter, units: cost, at: this.taken.length });
      }
    }
    await this.expectToLive(checks, fast as StoreDecision[][]);
  }

  /** No key ends before its counter is fresh, nor much later. */
  private async expectToLive(checks: readonly Check[], decisions: readonly StoreDecision[][]): Promise<void> {
    if (this.isCorrupt) return;
    const ends = new Map<string, number>();
    for (const [index, { entries, peek }] of checks.entries()) {
      if (peek === true) continue;
      for (const [at, entry] of entries.entries()) ends.set(this.fast.key(entry), decisions[index]![at]!.resetAfterMs);
    }
    if (ends.size === 0) return;
    const lives = (await redis.eval(READ_LIVES, ends.size, ...ends.keys())) as number[];
    const elapsed = (await serverTime(redis)) - this.began;
    expect(elapsed).toBeLessThan(PATIENCE_MS / 2);
    // A refusal leaves a key alone that has half of its patience.
    const early = [...ends].filter(
      ([, resetAfterMs], at) => lives[at]! >= 0 && lives[at]! - PATIENCE_MS / 2 + elapsed < resetAfterMs - ROUNDING_MS,
    );
    expectHolds(early, { 'no key ends early': early.length === 0 });
  }

  private async happen({ kind, limit: number, identity, share, time, value, byte }: Step['event']): Promise<void> {
    const limit = this.limits[number % this.limits.length]!;
    const counter = { limit, identity: `id${identity}` };
    const units = costOf(share, limit.quota);
    const ms = Math.round(time * limit.windowMs(this.clock.now() / 1000));
    const both = async (act: (side: Side) => Promise<unknown>) => {
      const [fast, general] = [await outcomeOf(act(this.fast)), await outcomeOf(act(this.general))];
      expectEqual(fast, general);
    };
    switch (kind) {
      case 'refund': {
        const taken = this.taken.shift();
        if (taken === undefined) return;
        return both(({ store, taken: places }) => {
          const { ticket, chargedAt } = places[taken.at]!;
          return store.refund([{ ...taken.counter, units: taken.units, ticket, chargedAt }]);
        });
      }
      case 'penalize':
        return both(({ store }) => store.penalize({ ...counter, units }));
      case 'block':
        return both(({ store }) => store.block(counter, ms));
      case 'unblock':
        return both(({ store }) => store.block(counter, 0));
      case 'reserve':
        return both(({ store }) => store.reserve({ ...counter, cost: units, maxWaitMs: ms }));
      case 'foreign':
        this.isCorrupt = true;
        return both(async (side) => {
          const key = side.key(counter);
          await redis.del(key);
          if (value === 'list') await redis.rpush(key, 'one', 'two');
          else await redis.set(key, Buffer.from(value), 'PX', 3 * PATIENCE_MS);
        });
      case 'corrupt':
        return this.corrupt(counter, byte);
      default:
    }
  }

  /** Both sides have what the fast one has stored, with another bit in it. */
  private async corrupt(counter: Counter, at: number): Promise<void> {
    const [fast, general] = this.sides.map((side) => side.key(counter)) as [string, string];
    const value = await redis.getBuffer(fast).catch(() => null);
    if (value === null || value.length <= at || (await redis.exists(general)) === 0) return;
    this.isCorrupt = true;
    value[at]! ^= 1 << (at % 8);
    await Promise.all([fast, general].map((key) => redis.set(key, value, 'KEEPTTL')));
  }
}

describe('the fast way of the script decides as the general one, field by field, on any history', () => {
  it.each(plainNames)(
    '%s, alone and with others',
    async (algo) => {
      programs.length = 0;
      const options = optionsOf[algo] as fc.Arbitrary<AlgorithmOptions>;
      const others = fc.array(plainOptions, { maxLength: 2 });
      const shadows = fc.array(fc.boolean(), { minLength: 3, maxLength: 3 });
      const steps = fc.array(step, { minLength: 1, maxLength: 14 });
      const property = fc.asyncProperty(
        options,
        options,
        others,
        shadows,
        steps,
        (first, changed, more, shadow, history) => new History(first, changed, more, shadow).run(history),
      );
      await assertSideBySide(property, RUNS);
      expect(programs.filter(isPlain).length).toBeGreaterThan(2 * RUNS);
      expect(programs.filter((program) => !isPlain(program)).length).toBeGreaterThan(2 * RUNS);
    },
    PROPERTY_TIMEOUT_MS,
  );
});
