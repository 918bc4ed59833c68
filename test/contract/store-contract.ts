import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { AlgorithmOptions } from '../../lib/algorithms/index.js';
import { type CarryOver, CompiledLimit } from '../../lib/limits/compiled-limit.js';
import { RateLimitArgumentError } from '../../lib/errors/errors.js';
import type { Store, StoreDecision } from '../../lib/stores/store.js';
import { algorithmNames, type RateOptions } from '../support/arbitraries.js';
import { ask, comparable, compile, ManualClock } from '../support/stores.js';

type Algo = RateOptions['algo'];

/** Rate 5 every 10 s. */
const five: Record<Algo, AlgorithmOptions> = {
  'fixed-window': { algo: 'fixed-window', rate: 5, interval: '10s' },
  'calendar-window': { algo: 'calendar-window', rate: 5, period: 'minute' },
  'sliding-window': { algo: 'sliding-window', rate: 5, interval: '10s' },
  'sliding-log': { algo: 'sliding-log', rate: 5, interval: '10s' },
  'token-bucket': { algo: 'token-bucket', rate: 5, interval: '10s' },
  'leaky-bucket': { algo: 'leaky-bucket', rate: 5, interval: '10s', queue: 4 },
  gcra: { algo: 'gcra', rate: 5, interval: '10s' },
};

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const yes = (remaining: number, resetAfterMs: number, delayMs = 0) => ({
  allowed: true,
  remaining,
  resetAfterMs,
  delayMs,
});

const no = (remaining: number, resetAfterMs: number, retryAfterMs: number) => ({
  allowed: false,
  remaining,
  resetAfterMs,
  retryAfterMs,
});

const named = (options: AlgorithmOptions, name: string, shadow = false) =>
  new CompiledLimit(options, { location: 'test', name, shadow });

const bucket = (algo: 'token-bucket' | 'gcra') => compile({ algo, rate: 7, interval: 10, burst: 100 });

const one = (options: AlgorithmOptions) => compile(options, 'one');

const atOnce = (rate: number, interval: string, burst = rate) =>
  one({ algo: 'token-bucket', rate, interval, burst, refill: 'intervally' });

const aMinute = (burst: number) => one({ algo: 'token-bucket', rate: 1, interval: '1m', burst });

const hourly = { algo: 'gcra', rate: 3, interval: '1h' } as const;

/** A limit that carries over what was left of another quota. */
const carrying = (options: AlgorithmOptions, mode: CarryOver['mode'], quotaBefore: number) =>
  new CompiledLimit(options, { location: 'test', name: 'one', carry: { mode, quotaBefore } });

/** Five units or other so many. */
function sized(algo: keyof typeof five, units: number): CompiledLimit {
  const options = { ...five[algo] } as Record<string, unknown>;
  if (algo === 'leaky-bucket') options['queue'] = units - 1;
  else if (algo === 'gcra' || algo === 'token-bucket') options['burst'] = units;
  else options['rate'] = units;
  return one(options as unknown as AlgorithmOptions);
}

const fixedWindow = (interval: string) => one({ algo: 'fixed-window', rate: 1, interval });

const slidingLog = (interval: string) => one({ algo: 'sliding-log', rate: 3, interval });

const slidingWindow = (slices: number, interval: number | string = '10s') =>
  one({ algo: 'sliding-window', rate: 3, interval, slices });

const tenIn = (interval: string) => one({ algo: 'sliding-window', rate: 10, interval });

/** What every store has to do. `make` makes one that asks the clock for the time. */
export function storeContract(make: (clock: ManualClock) => Store): void {
  let clock: ManualClock;
  let store: Store;
  let start: number;

  beforeEach(() => {
    clock = new ManualClock();
    setTime('2026-09-21T10:00:00Z');
    store = make(clock);
  });
  afterEach(() => store.close());

  function setTime(time: string): void {
    start = Date.parse(time);
    clock.micros = start * 1000;
  }

  /** Milliseconds after the start. */
  function at(ms: number): void {
    clock.micros = Math.round((start + ms) * 1000);
  }

  async function peekAfter(ms: number, limit: CompiledLimit): Promise<[remaining: number, retryAfterMs: number]> {
    at(ms);
    const { remaining, retryAfterMs } = await ask(store, limit, { peek: true });
    return [remaining, retryAfterMs];
  }

  type Expected = Partial<Omit<StoreDecision, 'limit' | 'source'>>;

  async function play(options: AlgorithmOptions, steps: readonly [ms: number, cost: number, expected: Expected][]) {
    const limit = compile(options);
    for (const [ms, cost, expected] of steps) {
      at(ms);
      const { limit: name, quota, source, ticket: _, ...decision } = await ask(store, limit, { cost });
      expect({ ms, ...decision }).toEqual({ ms, delayMs: 0, retryAfterMs: 0, ...expected });
      expect([name, quota]).toEqual([limit.name, limit.quota]);
      expect(['redis', 'memory']).toContain(source);
    }
  }

  describe('worked examples', () => {
    it('fixed-window: 3 every 10 s', () =>
      play({ algo: 'fixed-window', rate: 3, interval: '10s' }, [
        [0, 1, yes(2, 10_000)],
        [4000, 2, yes(0, 6000)],
        [4000, 1, no(0, 6000, 6000)],
        [9999, 1, no(0, 1, 1)],
        [10_000, 1, yes(2, 10_000)],
        [35_000, 2, yes(1, 10_000)],
        [36_000, 2, no(1, 9000, 9000)],
      ]));

    it('calendar-window: 2 a minute', () =>
      play({ algo: 'calendar-window', rate: 2, period: 'minute' }, [
        [58_000, 1, yes(1, 2000)],
        [58_500, 1, yes(0, 1500)],
        [59_000, 1, no(0, 1000, 1000)],
        [60_000, 1, yes(1, 60_000)],
        [61_000, 2, no(1, 59_000, 59_000)],
      ]));

    it('sliding-window: 4 every 10 s, in slices of 1 s', () =>
      play({ algo: 'sliding-window', rate: 4, interval: '10s', slices: 10 }, [
        [0, 3, yes(1, 11_000)],
        [5500, 1, yes(0, 10_500)],
        [6000, 2, no(0, 10_000, 5000)],
        [10_999, 2, no(0, 5001, 1)],
        [11_000, 2, yes(1, 11_000)],
        // Long after the ring of slices has wrapped.
        [1_000_500, 4, yes(0, 10_500)],
        [1_011_000, 4, yes(0, 11_000)],
      ]));

    it('sliding-log: 3 every 10 s', () =>
      play({ algo: 'sliding-log', rate: 3, interval: '10s' }, [
        [0, 2, yes(1, 10_000)],
        [4000, 1, yes(0, 10_000)],
        [5000, 1, no(0, 9000, 5000)],
        [5000, 3, no(0, 9000, 9000)],
        [9999.999, 2, no(0, 4001, 1)],
        [10_000, 2, yes(0, 10_000)],
        [14_000, 1, yes(0, 10_000)],
      ]));

    it('token-bucket: 5 every 10 s', () =>
      play({ algo: 'token-bucket', rate: 5, interval: '10s' }, [
        [0, 5, yes(0, 10_000)],
        [1000, 1, no(0, 9000, 1000)],
        [2000, 1, yes(0, 10_000)],
        [7000, 1, yes(1, 7000)],
        [7000, 3, no(1, 7000, 3000)],
        [100_000, 3, yes(2, 6000)],
      ]));

    it('token-bucket: 5 at once every 10 s', () =>
      play({ algo: 'token-bucket', rate: 5, interval: '10s', burst: 8, refill: 'intervally' }, [
        [0, 8, yes(0, 20_000)],
        [9999, 1, no(0, 10_001, 1)],
        [10_000, 2, yes(3, 10_000)],
        [15_000, 4, no(3, 5000, 5000)],
        [23_000, 8, yes(0, 20_000)],
      ]));

    it('gcra: 5 every 10 s, 2 at once', () =>
      play({ algo: 'gcra', rate: 5, interval: '10s', burst: 2 }, [
        [0, 1, yes(1, 2000)],
        [0, 1, yes(0, 4000)],
        [0, 1, no(0, 4000, 2000)],
        [2000, 1, yes(0, 4000)],
        [5000, 1, yes(0, 3000)],
        [5500, 2, no(0, 2500, 2500)],
      ]));

    it('leaky-bucket: one every 2 s, 2 wait', () =>
      play({ algo: 'leaky-bucket', rate: 5, interval: '10s', queue: 2 }, [
        [0, 1, yes(2, 2000)],
        [0, 1, yes(1, 4000, 2000)],
        [0, 1, yes(0, 6000, 4000)],
        [0, 1, no(0, 6000, 2000)],
        [1000, 1, no(0, 5000, 1000)],
        [2000, 1, yes(0, 6000, 4000)],
        // Two units leave when the second may.
        [100_000, 2, yes(1, 4000, 2000)],
      ]));

    it('leaky-bucket: nothing waits with a queue of 0', () =>
      play({ algo: 'leaky-bucket', rate: 5, interval: '10s', queue: 0 }, [
        [0, 1, yes(0, 2000)],
        [1999, 1, no(0, 1, 1)],
        [2000, 1, yes(0, 2000)],
      ]));
  });

  describe.each(algorithmNames)('%s', (algo) => {
    it('never allows a cost above the quota, and charges nothing for it', async () => {
      const limit = compile(five[algo]);
      const decision = await ask(store, limit, { cost: 6 });
      expect(decision).toMatchObject({
        allowed: false,
        quota: 5,
        remaining: 5,
        retryAfterMs: Infinity,
        resetAfterMs: 0,
      });
      await expect(ask(store, limit, { cost: 5 })).resolves.toMatchObject({ allowed: true, remaining: 0 });
    });

    it('counts weights', async () => {
      const limit = compile(five[algo]);
      const decisions = [];
      for (const cost of [3, 3, 2, 1]) decisions.push(await ask(store, limit, { cost }));
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false, true, false]);
      expect(decisions.map(({ remaining }) => remaining)).toEqual([2, 2, 0, 0]);
    });

    it('does not count refusals: an eager client recovers', async () => {
      const limit = compile(five[algo]);
      await ask(store, limit, { cost: 5 });
      const { retryAfterMs } = await ask(store, limit);
      for (let ms = 0; ms < retryAfterMs; ms += retryAfterMs / 20) {
        at(ms);
        await expect(ask(store, limit)).resolves.toMatchObject({ allowed: false });
      }
      at(retryAfterMs);
      await expect(ask(store, limit)).resolves.toMatchObject({ allowed: true });
    });

    it.each([500, 1900, 0.007])('has intervals of %d ms', async (interval) => {
      if (algo === 'calendar-window') return;
      const others = { algo, rate: 1, interval } as AlgorithmOptions;
      const limit = compile(algo === 'leaky-bucket' ? ({ ...others, queue: 0 } as AlgorithmOptions) : others);
      await expect(ask(store, limit)).resolves.toMatchObject({ allowed: true });
      at(interval - 0.001);
      await expect(ask(store, limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: expect.any(Number) });
      // A slice counts until none of it is in the window.
      at(algo === 'sliding-window' ? interval * 1.1 + 0.001 : interval);
      await expect(ask(store, limit)).resolves.toMatchObject({ allowed: true });
    });

    it('has more than a thousand units a second', async () => {
      const options = { ...five[algo], rate: 20_000 } as AlgorithmOptions;
      if ('interval' in options) options.interval = '1s';
      if ('queue' in options) options.queue = 19_999;
      const limit = compile(options);
      await expect(ask(store, limit, { cost: 19_999 })).resolves.toMatchObject({ allowed: true, remaining: 1 });
      await expect(ask(store, limit, { cost: 2 })).resolves.toMatchObject({ allowed: false });
      await expect(ask(store, limit)).resolves.toMatchObject({ allowed: true, remaining: 0 });
      if (!['token-bucket', 'gcra', 'leaky-bucket'].includes(algo)) return;
      at(1);
      await expect(ask(store, limit, { cost: 20 })).resolves.toMatchObject({ allowed: true, remaining: 0 });
    });

    it('gives units back, and never more than were taken', async () => {
      const limit = compile(five[algo]);
      const counter = { limit, identity: 'ip:203.0.113.7' };
      await store.refund([{ ...counter, units: 1 }]);
      const { ticket } = await ask(store, limit, { cost: 4 });
      await expect(ask(store, limit, { cost: 3 })).resolves.toMatchObject({ allowed: false });
      await store.refund([{ ...counter, units: 2, ticket }]);
      await expect(ask(store, limit, { cost: 3, peek: true })).resolves.toMatchObject({ allowed: true, remaining: 3 });
      await store.refund([{ ...counter, units: 100 }]);
      const fresh = { allowed: true, remaining: 5, resetAfterMs: 0 };
      await expect(ask(store, limit, { peek: true })).resolves.toMatchObject(fresh);
      await expect(ask(store, limit, { cost: 6 })).resolves.toMatchObject({ allowed: false });
    });

    it('keeps what it counted when more or less is allowed from now on', async () => {
      await ask(store, sized(algo, 5), { cost: 4 });
      // A token bucket has room for more, which flows in; what it lacks is the same in all others.
      const left = algo === 'token-bucket' ? 1 : 6;
      await expect(ask(store, sized(algo, 10), { peek: true })).resolves.toMatchObject({ remaining: left, quota: 10 });
      await expect(ask(store, sized(algo, 5), { peek: true })).resolves.toMatchObject({ remaining: 1 });
      await expect(ask(store, sized(algo, 3))).resolves.toMatchObject({ allowed: false, remaining: 0 });
      // Whoever looks, what is used stays used.
      await expect(ask(store, sized(algo, 10), { peek: true })).resolves.toMatchObject({ remaining: left });
    });

    it('is a counter of its own beside other algorithms, names and identities', async () => {
      const limits = algorithmNames.map((each) => compile(five[each], 'one')).concat(compile(five[algo], 'two'));
      await ask(store, compile(five[algo], 'one'), { cost: 5 });
      for (const limit of limits) {
        const remaining = limit.algorithm.name === algo && limit.name === 'one' ? 0 : 5;
        await expect(ask(store, limit, { peek: true })).resolves.toMatchObject({ remaining });
        await expect(ask(store, limit, { peek: true, identity: 'other' })).resolves.toMatchObject({ remaining: 5 });
      }
    });
  });

  describe('several limits', () => {
    const identity = 'user:42';
    it('1,000 a minute and 10,000 an hour', async () => {
      const minute = named({ algo: 'sliding-log', rate: 1000, interval: '1m' }, 'minute');
      const hour = named({ algo: 'sliding-window', rate: 10_000, interval: '1h' }, 'hour');
      const charge = async (cost: number) => {
        const entries = [minute, hour].map((limit) => ({ limit, identity, cost }));
        const [decisions] = await store.check([{ entries }]);
        return decisions!.map(({ allowed, remaining }) => [allowed, remaining]);
      };
      for (let i = 0; i < 10; i++) {
        at(i * MINUTE);
        expect(await charge(600)).toEqual([
          [true, 400],
          [true, 10_000 - 1000 * i - 600],
        ]);
        expect(await charge(600)).toEqual([
          [false, 400],
          [i < 9, 10_000 - 1000 * i - 600],
        ]);
        await charge(400);
      }
      at(10 * MINUTE);
      expect(await charge(1)).toEqual([
        [true, 1000],
        [false, 0],
      ]);
    });

    it('charges none if one refuses, wherever it stands', async () => {
      const limits = algorithmNames.map((algo) => named(five[algo], algo));
      const narrow = named({ algo: 'fixed-window', rate: 1, interval: '10s' }, 'narrow');
      for (const position of [0, 3, limits.length]) {
        const entries = limits.toSpliced(position, 0, narrow).map((limit) => ({ limit, identity, cost: 1 }));
        await store.check([{ entries }]);
        const [before] = await store.check([{ entries, peek: true }]);
        const [refused] = await store.check([{ entries }]);
        expect(refused!.map(({ allowed }) => allowed)).toEqual(entries.map(({ limit }) => limit !== narrow));
        const [after] = await store.check([{ entries, peek: true }]);
        expect(after).toEqual(before);
        await store.reset(entries);
      }
    });

    it('counts a shadow limit and never refuses because of it', async () => {
      const shadow = named({ algo: 'gcra', rate: 2, interval: '10s' }, 'shadow', true);
      const real = named({ algo: 'fixed-window', rate: 4, interval: '10s' }, 'real');
      const outcomes = [];
      for (let i = 0; i < 5; i++) {
        const [decisions] = await store.check([
          { entries: [shadow, real].map((limit) => ({ limit, identity, cost: 1 })) },
        ]);
        outcomes.push(decisions!.map(({ allowed, remaining }) => [allowed, remaining]));
      }
      expect(outcomes).toEqual([
        [
          [true, 1],
          [true, 3],
        ],
        [
          [true, 0],
          [true, 2],
        ],
        [
          [false, 0],
          [true, 1],
        ],
        [
          [false, 0],
          [true, 0],
        ],
        [
          [false, 0],
          [false, 0],
        ],
      ]);
      await store.reset([{ limit: shadow, identity }]);
      const entries = [shadow, real].map((limit) => ({ limit, identity, cost: 1 }));
      await expect(store.check([{ entries }])).resolves.toMatchObject([
        [{ allowed: true, remaining: 2 }, { allowed: false }],
      ]);
    });

    it('decides many checks of one call one after the other', async () => {
      const limit = compile({ algo: 'sliding-log', rate: 1000, interval: '1h' });
      const entries = [{ limit, identity, cost: 1 }];
      const answers = (await store.check(Array.from({ length: 1200 }, () => ({ entries })))).flat();
      expect(answers.map(({ allowed }) => allowed)).toEqual(Array.from({ length: 1200 }, (_, i) => i < 1000));
      expect(answers.map(({ remaining }) => remaining)).toEqual(
        Array.from({ length: 1200 }, (_, i) => Math.max(0, 999 - i)),
      );
    });

    it('decides the checks of one call each for itself', async () => {
      const limit = compile(five.gcra);
      const other = compile(five['fixed-window']);
      const checks = [
        { entries: [{ limit, identity: 'a', cost: 3 }] },
        {
          entries: [
            { limit, identity: 'b', cost: 5 },
            { limit: other, identity: 'b', cost: 1 },
          ],
        },
        {
          entries: [
            { limit, identity: 'a', cost: 3 },
            { limit: other, identity: 'a', cost: 1 },
          ],
        },
        { entries: [{ limit, identity: 'a', cost: 2 }], peek: true },
        { entries: [{ limit, identity: 'a', cost: 2 }] },
      ];
      const answers = await store.check(checks);
      expect(answers.map((each) => each.map(({ allowed }) => allowed))).toEqual([
        [true],
        [true, true],
        [false, true],
        [true],
        [true],
      ]);
      expect(answers[2]![1]).toMatchObject({ remaining: 5 });
      expect(answers[4]).toMatchObject([{ remaining: 0 }]);
      expect(await store.check([])).toEqual([]);
    });
  });

  describe('identities', () => {
    const limit = compile({ algo: 'fixed-window', rate: 1, interval: '10s' });
    const odd = {
      'of 10 KB': 'x'.repeat(10_240),
      'of 10 KB that end otherwise': `${'x'.repeat(10_239)}y`,
      'with line breaks': 'a\r\nb\n',
      'with braces': '{a}{b}}{',
      'with NUL': 'a\0b',
      'with emoji': '👩‍👩‍👧',
      'with half an emoji': '\ud83d',
      'with the other half': '\ude00',
      'with a replacement character': '\ufffd',
      'like a property': '__proto__',
      'like a hash': `#${'A'.repeat(43)}`,
      'with a blank': ' ',
    };

    it.each(Object.entries(odd))('%s', async (_, identity) => {
      for (const other of Object.values(odd)) {
        if (other !== identity) await ask(store, limit, { identity: other });
      }
      await expect(ask(store, limit, { identity })).resolves.toMatchObject({ allowed: true, remaining: 0 });
      await expect(ask(store, limit, { identity })).resolves.toMatchObject({ allowed: false });
    });

    it('never share a counter, nor do names', async () => {
      const unit = fc.constantFrom(
        'a',
        'b',
        ':',
        '{',
        '}',
        '#',
        '\n',
        '\0',
        '%',
        ' ',
        'é',
        'e\u0301',
        '\ud83d',
        '\ude00',
      );
      const anything = fc.integer({ min: 0, max: 0xff_ff }).map((code) => String.fromCharCode(code));
      const identity = fc.string({
        unit: fc.oneof({ weight: 6, arbitrary: unit }, anything),
        minLength: 1,
        maxLength: 6,
      });
      const name = fc.string({ unit: fc.constantFrom('a', 'b', ':', '{', '}', '#', ' '), minLength: 1, maxLength: 4 });
      const scope = fc.constantFrom('', 'a', 'b');
      const one = fc.record({ identity, name, scope });
      // Often parts of one text that was cut elsewhere.
      const cut = fc
        .tuple(fc.array(fc.constantFrom('a', 'b', 'fw'), { minLength: 3, maxLength: 6 }), fc.nat(), fc.nat())
        .map(([words, i, j]) => {
          const split = (at: number) => {
            const index = 1 + (at % (words.length - 1));
            return { identity: words.slice(0, index).join(':'), name: words.slice(index).join(':'), scope: '' };
          };
          return [split(i), split(j)] as const;
        });
      await fc.assert(
        fc.asyncProperty(fc.oneof(fc.tuple(one, one), cut), async ([first, second]) => {
          fc.pre(JSON.stringify(first) !== JSON.stringify(second));
          const counters = [first, second].map(({ identity, name, scope }) => ({
            identity,
            limit: new CompiledLimit(
              { algo: 'fixed-window', rate: 1, interval: '10s' },
              { location: 'test', name, namespace: scope },
            ),
          }));
          await store.reset(counters);
          for (const { limit, identity } of counters) {
            expect(await ask(store, limit, { identity })).toMatchObject({ allowed: true });
          }
        }),
        {
          numRuns: 500,
          examples: [
            [
              [
                { identity: 'a:b', name: 'c', scope: '' },
                { identity: 'a', name: 'b:c', scope: '' },
              ],
            ],
          ],
        },
      );
    });
  });

  describe('a place in the queue of a leaky bucket', () => {
    const limit = compile({ algo: 'leaky-bucket', rate: 5, interval: '10s', queue: 3 });
    const counter = { limit, identity: 'ip:203.0.113.7' };
    const join = async (cost = 1) => {
      const { delayMs, ticket, allowed } = await ask(store, limit, { cost });
      return { delayMs, ticket, allowed, units: cost };
    };

    it('at the end goes back to the end', async () => {
      const joined = [await join(), await join(), await join()];
      expect(joined.map(({ delayMs }) => delayMs)).toEqual([0, 2000, 4000]);
      at(500);
      await store.refund([{ ...counter, ...joined[2]! }]);
      await expect(ask(store, limit, { peek: true })).resolves.toMatchObject({ remaining: 2, resetAfterMs: 3500 });
      await expect(join()).resolves.toMatchObject({ delayMs: 3500 });
    });

    it('in the middle goes to the next request, at its own time', async () => {
      const joined = [await join(), await join(), await join(), await join()];
      await expect(join()).resolves.toMatchObject({ allowed: false });
      await store.refund([{ ...counter, ...joined[1]! }]);
      at(500);
      await expect(ask(store, limit, { peek: true })).resolves.toMatchObject({ remaining: 1, delayMs: 1500 });
      await expect(join()).resolves.toMatchObject({ allowed: true, delayMs: 1500 });
      await expect(join()).resolves.toMatchObject({ allowed: false });
    });

    it('joins the end when those behind it go away, in whatever order they do', async () => {
      const joined = [await join(), await join(), await join(2)];
      for (const gone of [1, 2]) await store.refund([{ ...counter, ...joined[gone]! }]);
      await expect(ask(store, limit, { peek: true })).resolves.toMatchObject({ remaining: 3, resetAfterMs: 2000 });
      await expect(join(3)).resolves.toMatchObject({ allowed: true, delayMs: 6000 });
    });

    it('is none if units are given back without one beyond it', async () => {
      const joined = [await join(), await join(), await join(), await join()];
      await store.refund([{ ...counter, ...joined[1]! }]);
      await store.refund([{ ...counter, units: 2 }]);
      await expect(ask(store, limit, { peek: true })).resolves.toMatchObject({ remaining: 3, resetAfterMs: 2000 });
    });

    it('is lost once its time has come', async () => {
      const joined = [await join(), await join(), await join(), await join()];
      await store.refund([{ ...counter, ...joined[1]! }]);
      at(2001);
      // One has left by now: its place at the end is free, and no other.
      await expect(join()).resolves.toMatchObject({ allowed: true, delayMs: 5999 });
      await expect(join()).resolves.toMatchObject({ allowed: false });
    });

    it('of several units serves requests of fewer', async () => {
      const joined = [await join(), await join(2), await join()];
      expect(joined.map(({ delayMs }) => delayMs)).toEqual([0, 4000, 6000]);
      await store.refund([{ ...counter, ...joined[1]! }]);
      await expect(ask(store, limit, { cost: 3 })).resolves.toMatchObject({ allowed: false, remaining: 2 });
      await expect(join()).resolves.toMatchObject({ allowed: true, delayMs: 2000 });
      await expect(join()).resolves.toMatchObject({ allowed: true, delayMs: 4000 });
      await expect(join()).resolves.toMatchObject({ allowed: false });
    });

    it('of several units serves no more of them than are still to come', async () => {
      const joined = [await join(), await join(2), await join()];
      await store.refund([{ ...counter, ...joined[1]! }]);
      at(2001);
      await expect(ask(store, limit, { cost: 2, peek: true })).resolves.toMatchObject({ allowed: false, remaining: 1 });
      await expect(join()).resolves.toMatchObject({ allowed: true, delayMs: 1999 });
      await expect(join()).resolves.toMatchObject({ allowed: true, delayMs: 5999 });
    });

    it('is shared by those that follow each other, in whatever order they are given back', async () => {
      for (const order of [
        [0, 1, 2],
        [2, 1, 0],
        [1, 0, 2],
        [0, 2, 1],
      ]) {
        await store.reset([counter]);
        const joined = [await join(), await join(), await join(), await join()];
        for (const index of order) await store.refund([{ ...counter, ...joined[index]! }]);
        await expect(join(3)).resolves.toMatchObject({ allowed: true, delayMs: 4000 });
        await expect(join()).resolves.toMatchObject({ allowed: false });
      }
    });

    it('is given back once, however often it is', async () => {
      const joined = [await join(), await join(2), await join()];
      await store.refund([1, 1, 1].map((index) => ({ ...counter, ...joined[index]! })));
      await expect(join(2)).resolves.toMatchObject({ allowed: true, delayMs: 4000 });
      await expect(join()).resolves.toMatchObject({ allowed: false });
    });

    it('is none beyond the end once units were given back without one', async () => {
      const joined = [await join(), await join(), await join(), await join()];
      await store.refund([{ ...counter, units: 3 }]);
      await store.refund([{ ...counter, ...joined[3]! }]);
      for (const delayMs of [2000, 4000, 6000]) await expect(join()).resolves.toMatchObject({ delayMs });
      await expect(join()).resolves.toMatchObject({ allowed: false });
    });

    it('is none either when others have joined there since', async () => {
      const joined = [await join(), await join(), await join(), await join()];
      await store.refund([{ ...counter, units: 3 }]);
      for (const delayMs of [2000, 4000, 6000]) await expect(join()).resolves.toMatchObject({ delayMs });
      for (const index of [2, 3]) await store.refund([{ ...counter, ...joined[index]! }]);
      await expect(join()).resolves.toMatchObject({ allowed: false });
    });

    it('is none once the clock was set back by an interval or more', async () => {
      const charged = async () => {
        const [decisions] = await store.check([{ entries: [{ ...counter, cost: 1 }], refundable: true }]);
        const { ticket, chargedAt: time } = decisions![0]!;
        return { ...counter, units: 1, ticket, chargedAt: time };
      };
      at(20_000);
      const joined = [await charged(), await charged(), await charged()];
      at(0);
      await join();
      await store.refund(joined);
      await expect(ask(store, limit, { peek: true })).resolves.toMatchObject({ allowed: false, resetAfterMs: 8000 });
      at(2000);
      await expect(join()).resolves.toMatchObject({ allowed: true, delayMs: 6000 });
    });

    it('is kept for so many at most: those that come first', async () => {
      const long = compile({ algo: 'leaky-bucket', rate: 1000, interval: '1s', queue: 9999 }, 'long');
      const places = { limit: long, identity: 'ip:203.0.113.7' };
      const entries = [{ ...places, cost: 1 }];
      const answers = await store.check(Array.from({ length: 1000 }, () => ({ entries })));
      const joined = answers.map(([decision]) => ({ ...places, units: 1, ticket: decision!.ticket }));
      await store.refund(joined.filter((_, index) => index % 2 === 1).toReversed());
      const next = await store.check(Array.from({ length: 102 }, () => ({ entries })));
      const expected = Array.from({ length: 100 }, (_, index) => 2 * index + 1);
      expect(next.map(([decision]) => decision!.delayMs)).toEqual([...expected, 999, 1000]);
    });
  });

  describe('a clock that is set back', () => {
    it('by less than an interval: time stands still', () =>
      play({ algo: 'fixed-window', rate: 5, interval: '10s' }, [
        [0, 3, yes(2, 10_000)],
        [-4000, 2, yes(0, 14_000)],
        [-2000, 1, no(0, 12_000, 12_000)],
        [10_000, 1, yes(4, 10_000)],
      ]));

    it('by more, from the last charge: a fixed window begins anew with what it counted', () =>
      play({ algo: 'fixed-window', rate: 5, interval: '10s' }, [
        [0, 1, yes(4, 10_000)],
        [9000, 3, yes(1, 1000)],
        [-6000, 2, no(1, 10_000, 10_000)],
        [-1000, 2, no(1, 5000, 5000)],
        [-1000, 1, yes(0, 5000)],
        [3999, 1, no(0, 1, 1)],
        [4000, 1, yes(4, 10_000)],
      ]));

    it('by more, from the last charge: a calendar window hands over what it counted', () =>
      play({ algo: 'calendar-window', rate: 5, period: 'minute' }, [
        [1000, 1, yes(4, 59_000)],
        [50_000, 3, yes(1, 10_000)],
        [-9000, 2, no(1, 69_000, 69_000)],
        [-10_000, 2, no(1, 10_000, 10_000)],
        [-10_000, 1, yes(0, 10_000)],
        [0, 1, yes(4, 60_000)],
      ]));

    it('by slightly more than an interval: a sliding window sees it, however long its slices are', async () => {
      for (const [slices, waitMs] of [
        [1, 119_501],
        [2, 89_501],
        [60, 60_501],
      ] as const) {
        at(60_500);
        await store.reset([{ limit: slidingWindow(slices), identity: 'ip:203.0.113.7' }]);
        await ask(store, slidingWindow(slices, '1m'), { cost: 3 });
        at(499);
        const refused = { allowed: false, remaining: 0 };
        await expect(ask(store, slidingWindow(slices, '1m'))).resolves.toMatchObject({
          ...refused,
          retryAfterMs: waitMs,
        });
        at(499 + waitMs - 1);
        await expect(ask(store, slidingWindow(slices, '1m'))).resolves.toMatchObject({ ...refused, retryAfterMs: 1 });
        at(499 + waitMs);
        await expect(ask(store, slidingWindow(slices, '1m'))).resolves.toMatchObject({ allowed: true, remaining: 2 });
      }
    });

    it.each(algorithmNames)('far, %s: what was counted is what happens now', async (algo) => {
      const limit = compile(five[algo]);
      await ask(store, limit, { cost: 5 });
      at(-1000 * DAY);
      const { allowed, retryAfterMs } = await ask(store, limit);
      expect(allowed).toBe(false);
      expect(retryAfterMs).toBeLessThanOrEqual(algo === 'calendar-window' ? MINUTE : 11_000);
      at(-1000 * DAY + retryAfterMs - 1);
      await expect(ask(store, limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
      at(-1000 * DAY + retryAfterMs);
      await expect(ask(store, limit)).resolves.toMatchObject({ allowed: true });
    });
  });

  describe('fractions', () => {
    it.each(['token-bucket', 'gcra'] as const)('%s: ten looks refill as much as one', async (algo) => {
      const [often, once] = [{ identity: 'often' }, { identity: 'once' }];
      for (const each of [often, once]) await ask(store, bucket(algo), { ...each, cost: 100 });
      for (let ms = 1; ms <= 9; ms++) {
        at(ms);
        await ask(store, bucket(algo), { ...often, cost: 50 });
      }
      at(10);
      const answers = [await ask(store, bucket(algo), often), await ask(store, bucket(algo), once)];
      expect(answers[0]).toEqual(answers[1]);
      expect(answers[0]).toMatchObject({ allowed: true, remaining: 6 });
    });

    it.each(['token-bucket', 'gcra'] as const)(
      '%s: none is lost when every whole unit is taken at once',
      async (algo) => {
        await ask(store, bucket(algo), { cost: 100 });
        let taken = 0;
        for (let ms = 1; ms <= 1000; ms++) {
          at(ms);
          const { remaining } = await ask(store, bucket(algo), { peek: true });
          if (remaining > 0)
            expect(await ask(store, bucket(algo), { cost: remaining })).toMatchObject({ allowed: true });
          taken += remaining;
        }
        expect(taken).toBe(700);
      },
    );
  });

  describe('parameters that change on a live counter', () => {
    it('fixed-window: a shorter interval ends the window earlier, a longer one not later', async () => {
      await ask(store, fixedWindow('10s'));
      await expect(ask(store, fixedWindow('4s'))).resolves.toMatchObject({ allowed: false, retryAfterMs: 4000 });
      await expect(ask(store, fixedWindow('1m'))).resolves.toMatchObject({ allowed: false, retryAfterMs: 10_000 });
    });

    it.each(['token-bucket', 'gcra', 'leaky-bucket'] as const)(
      '%s: debts stay debts at any rate and size',
      async (algo) => {
        const limit = (rate: number, units: number) =>
          one(
            algo === 'leaky-bucket'
              ? { algo, rate, interval: '10s', queue: units - 1 }
              : { algo, rate, interval: '10s', burst: units },
          );
        await ask(store, limit(10, 10), { cost: 8 });
        for (const units of [10, 5]) {
          const remaining = units === 10 ? 2 : 0;
          await expect(ask(store, limit(1, units), { peek: true })).resolves.toMatchObject({
            remaining,
            resetAfterMs: 80_000,
          });
        }
        // What a token bucket has more room for flows in.
        await expect(ask(store, limit(1, 20), { peek: true })).resolves.toMatchObject(
          algo === 'token-bucket' ? { remaining: 2, resetAfterMs: 180_000 } : { remaining: 12, resetAfterMs: 80_000 },
        );
        // A refusal keeps what was made of the debt, or its wait would begin anew each time.
        await expect(ask(store, limit(1, 5), { cost: 2 })).resolves.toMatchObject({
          allowed: false,
          retryAfterMs: 50_000,
        });
        await expect(ask(store, limit(1, 10), { peek: true })).resolves.toMatchObject({ remaining: 2 });
        at(49_999);
        await expect(ask(store, limit(1, 5), { cost: 2 })).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
        at(50_000);
        await expect(ask(store, limit(1, 5), { cost: 2 })).resolves.toMatchObject({ allowed: true });
        await expect(ask(store, limit(1, 10), { peek: true })).resolves.toMatchObject({ remaining: 5 });
      },
    );

    it.each(['token-bucket', 'gcra'] as const)(
      '%s: a refusal by a smaller burst makes no room for a larger one',
      async (algo) => {
        const limit = (burst: number) => one({ algo, rate: 1, interval: '1s', burst });
        let allowed = 0;
        for (let ms = 0; ms < 30_000; ms += 100) {
          at(ms);
          await ask(store, limit(10));
          for (const cost of [50, 10, 1]) if ((await ask(store, limit(100), { cost })).allowed) allowed += cost;
        }
        expect(allowed).toBeLessThanOrEqual(100 + 30);
      },
    );

    it.each(['token-bucket', 'gcra'] as const)(
      '%s: a refusal by finer ticks makes no room within a coarse one',
      async (algo) => {
        const [fine, coarse] = [one({ algo, rate: 1, interval: 0.007 }), one({ algo, rate: 1099, interval: '1y' })];
        at(0.789);
        await ask(store, coarse, { cost: 1099 });
        await expect(ask(store, fine)).resolves.toMatchObject({ allowed: false, remaining: 0 });
        await expect(ask(store, coarse, { peek: true })).resolves.toMatchObject({ remaining: 0 });
      },
    );

    it('token-bucket: a bucket that grew fills at its rate, also if it was refused and nobody came meanwhile', async () => {
      const minute = 60_000;
      await ask(store, aMinute(2), { cost: 2 });
      await expect(ask(store, aMinute(100), { cost: 50 })).resolves.toMatchObject({
        allowed: false,
        remaining: 0,
        retryAfterMs: 50 * minute,
        resetAfterMs: 100 * minute,
      });
      for (const ms of [2 * minute, 17 * minute, 50 * minute - 1]) {
        at(ms);
        const wait = 50 * minute - ms;
        await expect(ask(store, aMinute(100), { cost: 50 })).resolves.toMatchObject({ retryAfterMs: wait });
      }
      at(50 * minute);
      await expect(ask(store, aMinute(100), { cost: 50 })).resolves.toMatchObject({ allowed: true, remaining: 0 });
      // It has not grown once more for who saw it small meanwhile.
      await expect(ask(store, aMinute(2))).resolves.toMatchObject({ allowed: false });
      await expect(ask(store, aMinute(100), { peek: true })).resolves.toMatchObject({ resetAfterMs: 100 * minute });
    });

    describe('what is left of another quota', () => {
      it.each(['token-bucket', 'gcra', 'leaky-bucket'] as const)(
        '%s: scales with it, parts of a unit, too',
        async (algo) => {
          const limit = (rate: number): AlgorithmOptions =>
            algo === 'leaky-bucket' ? { algo, rate, interval: '1h', queue: rate - 1 } : { algo, rate, interval: '1h' };
          await ask(store, one(limit(3)), { cost: 2 });
          // 0.8 of a unit flow in 16 minutes: 1.8 of 3 are left.
          at(16 * 60_000);
          const more = carrying(limit(60), 'proportional', 3);
          await expect(ask(store, more, { peek: true })).resolves.toMatchObject({ remaining: 36 });
          await expect(ask(store, more, { cost: 36 })).resolves.toMatchObject({ allowed: true, remaining: 0 });
        },
      );

      it.each(['proportional', 'additive'] as const)(
        '%s: under a smaller one what is owed stays, as those find it who still know the larger one',
        async (mode) => {
          const old = one({ ...hourly, rate: 60 });
          const smaller = carrying(hourly, mode, 60);
          await ask(store, old, { cost: 60 });
          for (let i = 0; i < 3; i++) {
            await expect(ask(store, smaller)).resolves.toMatchObject({ allowed: false, remaining: 0 });
            await expect(ask(store, old)).resolves.toMatchObject({ allowed: false, remaining: 0 });
          }
          await expect(ask(store, old, { peek: true })).resolves.toMatchObject({ resetAfterMs: 3_600_000 });
        },
      );

      it('is carried over once, whoever charges or refuses meanwhile', async () => {
        const old = one(hourly);
        const larger = carrying({ ...hourly, rate: 60 }, 'proportional', 3);
        await ask(store, old, { cost: 2 });
        for (let i = 0; i < 3; i++) {
          await expect(ask(store, larger, { cost: 21 })).resolves.toMatchObject({ allowed: false, remaining: 20 });
          await expect(ask(store, old)).resolves.toMatchObject({ allowed: false });
        }
      });
    });

    it.each(['token-bucket', 'gcra', 'leaky-bucket'] as const)(
      '%s: scales what is owed in whole numbers, to the millisecond',
      async (algo) => {
        const limit = (rate: number) =>
          one(
            algo === 'leaky-bucket'
              ? { algo, rate, interval: '1m', queue: 19 }
              : { algo, rate, interval: '1m', burst: 20 },
          );
        await ask(store, limit(7), { cost: 20 });
        // 7 / 3 units have flowed off.
        at(20_000);
        for (const [rate, resetAfterMs] of [
          [1, 1_060_000],
          [2, 530_000],
          [4, 265_000],
          [8, 132_500],
          [16, 66_250],
        ] as const) {
          await expect(ask(store, limit(rate), { peek: true })).resolves.toMatchObject({ resetAfterMs });
        }
      },
    );

    describe('token-bucket, all tokens at once', () => {
      it('has none before the interval is over, which goes on at another rate', async () => {
        await ask(store, atOnce(1000, '1h'), { cost: 1000 });
        const minute = 60_000;
        expect(await peekAfter(30 * minute, atOnce(2000, '1h', 1000))).toEqual([0, 30 * minute]);
        expect(await peekAfter(30 * minute, atOnce(2000, '1h'))).toEqual([0, 30 * minute]);
        await expect(ask(store, atOnce(2000, '1h'), { cost: 2000 })).resolves.toMatchObject({
          allowed: false,
          remaining: 0,
          retryAfterMs: 30 * minute,
        });
        at(60 * minute - 1);
        await expect(ask(store, atOnce(2000, '1h'))).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
        at(60 * minute);
        await expect(ask(store, atOnce(2000, '1h'), { cost: 2000 })).resolves.toMatchObject({ allowed: true });
      });

      it('has none of an interval that is not over when the new one is shorter', async () => {
        await ask(store, atOnce(6000, '1m'), { cost: 6000 });
        const shorter = atOnce(100, '1s', 6000);
        expect(await peekAfter(59_300, shorter)).toEqual([0, 700]);
        await expect(ask(store, shorter, { cost: 101 })).resolves.toMatchObject({ retryAfterMs: 1700 });
        expect(await peekAfter(59_999, shorter)).toEqual([0, 1]);
        expect(await peekAfter(60_000, shorter)).toEqual([100, 0]);
        expect(await peekAfter(61_000, shorter)).toEqual([200, 0]);
      });

      it('has what came at the ends of intervals that are over', async () => {
        await ask(store, atOnce(10, '10s', 100), { cost: 100 });
        // 30 came, and the fourth interval has begun 5 s ago.
        expect(await peekAfter(35_000, atOnce(7, '20s', 100))).toEqual([30, 0]);
        await expect(ask(store, atOnce(7, '20s', 100), { cost: 31 })).resolves.toMatchObject({ retryAfterMs: 15_000 });
      });

      it('begins an interval when tokens flowed evenly before, and flows from now on when they did not', async () => {
        const evenly = one({ algo: 'token-bucket', rate: 10, interval: '10s' });
        await ask(store, evenly, { cost: 10 });
        at(4500);
        await expect(ask(store, atOnce(10, '10s'), { cost: 5 })).resolves.toMatchObject({
          allowed: false,
          remaining: 4,
          retryAfterMs: 10_000,
        });
        at(9500);
        await expect(ask(store, evenly, { cost: 5 })).resolves.toMatchObject({
          allowed: false,
          remaining: 4,
          retryAfterMs: 500,
        });
      });
    });

    it('sliding-log: a shorter window forgets earlier', async () => {
      for (const ms of [0, 4000, 8000]) {
        at(ms);
        await ask(store, slidingLog('10s'));
      }
      await expect(ask(store, slidingLog('5s'), { peek: true })).resolves.toMatchObject({ remaining: 1 });
      await expect(ask(store, slidingLog('10s'))).resolves.toMatchObject({ allowed: false, retryAfterMs: 2000 });
    });

    it('sliding-window: other slices hold what the old ones held', async () => {
      await ask(store, slidingWindow(10));
      at(5000);
      await ask(store, slidingWindow(10));
      for (const slices of [1, 3, 20, 1000]) {
        await expect(ask(store, slidingWindow(slices), { peek: true })).resolves.toMatchObject({ remaining: 1 });
      }
      at(16_000);
      await expect(ask(store, slidingWindow(20), { peek: true })).resolves.toMatchObject({ remaining: 3 });
    });

    it('sliding-window: a longer interval brings back nothing that has left, and keeps what has not', async () => {
      await ask(store, tenIn('10s'), { cost: 6 });
      at(9500);
      await ask(store, tenIn('10s'));
      at(12_000);
      await expect(ask(store, tenIn('10s'), { peek: true })).resolves.toMatchObject({ remaining: 9 });
      await expect(ask(store, tenIn('1m'), { peek: true })).resolves.toMatchObject({ remaining: 9 });
      // The unit counts as one of the second before 10 s, and so of the slice of 6 s that ends at 12 s.
      const refused = { allowed: false, remaining: 9, retryAfterMs: 60_000 };
      await expect(ask(store, tenIn('1m'), { cost: 10 })).resolves.toMatchObject(refused);
      at(30_000);
      await expect(ask(store, tenIn('10s'), { peek: true })).resolves.toMatchObject({ remaining: 10 });
      await expect(ask(store, tenIn('1m'), { cost: 10 })).resolves.toMatchObject({ ...refused, retryAfterMs: 42_000 });
      at(71_999);
      await expect(ask(store, tenIn('1m'), { cost: 10 })).resolves.toMatchObject({ ...refused, retryAfterMs: 1 });
      at(72_000);
      await expect(ask(store, tenIn('1m'), { cost: 10 })).resolves.toMatchObject({ allowed: true });
    });

    it('sliding-window: fewer and longer slices bring back nothing that has left', async () => {
      await ask(store, slidingWindow(10), { cost: 2 });
      at(5000);
      await ask(store, slidingWindow(10));
      at(11_000);
      for (const slices of [10, 1, 2, 3]) {
        await expect(ask(store, slidingWindow(slices), { peek: true })).resolves.toMatchObject({ remaining: 2 });
      }
    });

    it.each<[ms: number, slices: number, otherMs: number, otherSlices: number]>([
      [10_000, 7, 10_000, 10],
      [10_000, 1, 10_000, 10],
      [10_000, 3, 11_000, 4],
      [1000, 10, 60_000, 10],
      [1000, 1, 60_000, 7],
      [60_000, 1, 1000, 10],
    ])(
      'sliding-window: of %i ms in %i and %i ms in %i slices that refuse in turn, none keeps alive what counts',
      async (...[ms, slices, otherMs, otherSlices]) => {
        const limits = [slidingWindow(slices, ms), slidingWindow(otherSlices, otherMs)];
        at(700);
        await ask(store, limits[0]!, { cost: 3 });
        const end = 700 + Math.max(ms, otherMs) + ms / slices + otherMs / otherSlices;
        let allowed = false;
        for (let time = 711; time < end + 333 && !allowed; time += 333) {
          at(time);
          for (const limit of limits) allowed ||= (await ask(store, limit, { cost: 3 })).allowed;
        }
        expect(allowed).toBe(true);
      },
    );
  });

  describe('windows of the calendar', () => {
    type Period = Extract<AlgorithmOptions, { algo: 'calendar-window' }>['period'];
    const calendar = (period: Period, timezone = 'UTC', retain?: string) =>
      compile({ algo: 'calendar-window', rate: 1, period, timezone, ...(retain === undefined ? {} : { retain }) });

    it.each<[what: string, period: Period, timezone: string, from: string, ms: number]>([
      ['a second', 'second', 'UTC', '2026-09-21T10:00:00.250Z', 750],
      ['a minute', 'minute', 'UTC', '2026-09-21T10:00:01Z', 59_000],
      ['an hour', 'hour', 'UTC', '2026-09-21T10:00:01Z', HOUR - 1000],
      [
        'an hour in Kathmandu, which is 5 h 45 min ahead',
        'hour',
        'Asia/Kathmandu',
        '2026-09-21T10:00:00Z',
        15 * MINUTE,
      ],
      ['a day', 'day', 'UTC', '2026-09-21T10:00:00Z', 14 * HOUR],
      ['a day in Kathmandu', 'day', 'Asia/Kathmandu', '2026-09-21T18:14:00Z', MINUTE],
      ['a day of 23 h in Berlin', 'day', 'Europe/Berlin', '2026-03-28T23:00:00Z', 23 * HOUR],
      ['a day of 25 h in Berlin', 'day', 'Europe/Berlin', '2026-10-24T22:00:00Z', 25 * HOUR],
      ['a day of 24.5 h on Lord Howe', 'day', 'Australia/Lord_Howe', '2026-04-04T13:00:00Z', 24.5 * HOUR],
      ['a day of 23.5 h on Lord Howe', 'day', 'Australia/Lord_Howe', '2026-10-03T13:30:00Z', 23.5 * HOUR],
      [
        'an hour before clocks go back on Lord Howe',
        'hour',
        'Australia/Lord_Howe',
        '2026-04-04T14:10:00Z',
        50 * MINUTE,
      ],
      ['what they add to it', 'hour', 'Australia/Lord_Howe', '2026-04-04T15:00:00Z', 30 * MINUTE],
      [
        'an hour when clocks go forward on Lord Howe',
        'hour',
        'Australia/Lord_Howe',
        '2026-10-03T15:35:00Z',
        25 * MINUTE,
      ],
      ['an hour when clocks go back on Chatham', 'hour', 'Pacific/Chatham', '2026-04-04T14:05:00Z', 10 * MINUTE],
      ['an hour when clocks go forward on Chatham', 'hour', 'Pacific/Chatham', '2026-09-26T14:05:00Z', 10 * MINUTE],
      ['a day with two midnights in Havana', 'day', 'America/Havana', '2026-11-01T04:00:00Z', 25 * HOUR],
      ['a day without midnight in Santiago', 'day', 'America/Santiago', '2026-09-06T04:00:00Z', 23 * HOUR],
      ['a week, which begins on Monday', 'week', 'UTC', '2026-09-20T12:00:00Z', 12 * HOUR],
      ['a week with a change of the clocks', 'week', 'Europe/Berlin', '2026-10-18T22:00:00Z', 7 * DAY + HOUR],
      ['a February', 'month', 'UTC', '2027-02-01T00:00:00Z', 28 * DAY],
      ['a leap February', 'month', 'UTC', '2028-02-01T00:00:00Z', 29 * DAY],
      ['a month of 31 days', 'month', 'UTC', '2026-10-31T00:00:00Z', DAY],
      [
        'a month that begins with two midnights',
        'month',
        'America/Havana',
        '2026-11-01T05:30:00Z',
        30 * DAY - HOUR / 2,
      ],
      ['a quarter', 'quarter', 'UTC', '2026-12-31T00:00:00Z', DAY],
      ['a year', 'year', 'UTC', '2027-01-01T00:00:00Z', 365 * DAY],
      ['a leap year', 'year', 'Europe/Berlin', '2027-12-31T23:00:00Z', 366 * DAY],
    ])('%s', async (_, period, timezone, from, ms) => {
      setTime(from);
      const limit = calendar(period, timezone);
      await expect(ask(store, limit)).resolves.toMatchObject({ allowed: true, resetAfterMs: ms });
      for (const share of [0.3, 0.6]) {
        at(Math.floor(ms * share));
        const retryAfterMs = ms - Math.floor(ms * share);
        await expect(ask(store, limit)).resolves.toMatchObject({ allowed: false, retryAfterMs });
      }
      at(ms - 0.001);
      await expect(ask(store, limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
      at(ms);
      await expect(ask(store, limit)).resolves.toMatchObject({ allowed: true });
    });

    it('can be read after their end for as long as they are retained', async () => {
      const limit = calendar('day', 'UTC', '7d');
      const counter = { limit, identity: 'user:42' };
      const midnight = Date.parse('2026-09-21T00:00:00Z');
      const window = (day: number) => ({ start: midnight + day * DAY, end: midnight + (day + 1) * DAY, count: 1 });
      const afterDays = (days: number) => at(midnight - start + days * DAY);
      await expect(store.history(counter)).resolves.toEqual([]);
      await ask(store, limit, counter);
      await expect(store.history(counter)).resolves.toEqual([window(0)]);
      afterDays(2.5);
      await expect(store.history(counter)).resolves.toEqual([window(0)]);
      await ask(store, limit, counter);
      afterDays(3);
      await ask(store, limit, counter);
      await expect(store.history(counter)).resolves.toEqual([window(3), window(2), window(0)]);
      afterDays(8 - 1 / DAY);
      await expect(store.history(counter)).resolves.toEqual([window(3), window(2), window(0)]);
      afterDays(8);
      await expect(store.history(counter)).resolves.toEqual([window(3), window(2)]);
      await ask(store, limit, counter);
      await expect(store.history(counter)).resolves.toEqual([window(8), window(3), window(2)]);
      afterDays(12);
      await expect(store.history(counter)).resolves.toEqual([window(8)]);
      afterDays(16);
      await expect(store.history(counter)).resolves.toEqual([]);
    });

    it('are forgotten at their end if they are not retained', async () => {
      const counter = { limit: calendar('day'), identity: 'user:42' };
      await ask(store, counter.limit, counter);
      await expect(store.history(counter)).resolves.toHaveLength(1);
      at(14 * HOUR);
      await expect(store.history(counter)).resolves.toEqual([]);
    });

    it('go with a reset', async () => {
      const counter = { limit: calendar('day', 'UTC', '7d'), identity: 'user:42' };
      for (const day of [0, 1, 2]) {
        at(day * DAY);
        await ask(store, counter.limit, counter);
      }
      await store.reset([counter]);
      await expect(store.history(counter)).resolves.toEqual([]);
    });

    it('are all that has a history', async () => {
      const counter = { limit: compile(five.gcra), identity: 'user:42' };
      await expect(store.history(counter)).rejects.toThrow(RateLimitArgumentError);
    });
  });

  it('answers a look like the check that follows it', async () => {
    const entries = algorithmNames.map((algo) => ({ limit: compile(five[algo]), identity: 'user:42', cost: 2 }));
    for (let i = 0; i < 4; i++) {
      const [looked] = comparable(await store.check([{ entries, peek: true }]));
      const [charged] = comparable(await store.check([{ entries }]));
      const outcome = ({ allowed, retryAfterMs, delayMs, ticket }: (typeof looked & object)[number]) => {
        return { allowed, retryAfterMs, delayMs, ticket };
      };
      expect(charged!.map(outcome)).toEqual(looked!.map(outcome));
    }
  });
}
