import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MemoryStore } from '../../lib/index.js';
import type { Refund, StoreDecision } from '../../lib/testing/store/index.js';
import {
  ALGORITHMS,
  type AlgorithmName,
  costOf,
  INTERVALS,
  type Interval,
  mostInAnInterval,
  optionsOf,
  readAlgorithms,
  readSettings,
  type Settings,
} from '../../playground/simulation/settings.js';
import { type Run, runUntil, simulate, START } from '../../playground/simulation/simulation.js';
import { arrivalsOf, COLUMNS, columnsOf, PATTERNS, readPattern, SPAN } from '../../playground/simulation/traffic.js';
import { worstStretch } from '../../playground/simulation/worst-stretch.js';
import { chargeOf, compile, ManualClock } from '../support/limits/stores.js';
import { expectEqual, propertyRuns } from '../support/limits/property-runs.js';
import { ALGORITHMS as ALL_ALGORITHMS } from '../support/limits/checked-options.js';

const RUNS = propertyRuns(150);
const IDENTITY = 'ip:203.0.113.7';

const anySettings: fc.Arbitrary<Settings> = fc.record({
  rate: fc.integer({ min: 1, max: 20 }),
  interval: fc.constantFrom(...(Object.keys(INTERVALS) as Interval[])),
  burst: fc.integer({ min: 1, max: 30 }),
  queue: fc.integer({ min: 0, max: 30 }),
  slices: fc.integer({ min: 1, max: 20 }),
  limit: fc.integer({ min: 1, max: 6 }),
  hold: fc.integer({ min: 1, max: 100 }),
  estimate: fc.integer({ min: 1, max: 10 }),
});

/** Settings, with traffic of any pattern for them. */
const anyCase = fc
  .record({
    settings: anySettings,
    pattern: fc.constantFrom(...PATTERNS),
    load: fc.integer({ min: 10, max: 400 }),
    seed: fc.integer({ min: 0, max: 1e6 }),
    drawing: fc.array(fc.integer({ min: 0, max: 8 }), { minLength: COLUMNS, maxLength: COLUMNS }),
  })
  .map(({ settings, ...traffic }) => {
    const interval = INTERVALS[settings.interval].micros;
    return { settings, traffic: { ...traffic, rate: settings.rate, interval } };
  });

const anyAlgorithm = fc.constantFrom(...ALGORITHMS);

/** Ten units a minute, and as many requests as show most. */
const settings = readSettings({}, 'test');
const trafficOf = (pattern: (typeof PATTERNS)[number], more: object = {}) => ({
  pattern,
  rate: settings.rate,
  interval: 60e6,
  load: 150,
  seed: 1,
  drawing: [],
  ...more,
});
const edge = (algorithm: AlgorithmName, given: Settings = settings): Run =>
  simulate(algorithm, given, arrivalsOf(trafficOf('edge', { rate: given.rate })));

describe('the simulation', () => {
  it('knows every algorithm but those that learn of what they let in', () => {
    const known = [...ALGORITHMS, 'adaptive'];
    expect(known.toSorted()).toEqual(ALL_ALGORITHMS.toSorted());
  });

  it('decides as the store in process does, field by field', () =>
    fc.assert(
      fc.asyncProperty(anyAlgorithm, anyCase, async (algorithm, { settings, traffic }) => {
        const arrivals = arrivalsOf(traffic);
        const { outcomes } = simulate(algorithm, settings, arrivals);
        expectEqual(
          outcomes.map(({ at, allowed, remaining, retryAfterMs, delayMs }) => ({
            at,
            allowed,
            remaining,
            retryAfterMs,
            delayMs,
          })),
          await storeOutcomes(algorithm, settings, arrivals),
        );
      }),
      { numRuns: RUNS },
    ));

  it('lets no more pass in any stretch of an interval than it says', () => {
    fc.assert(
      fc.property(anyAlgorithm, anyCase, (algorithm, { settings, traffic }) => {
        const { worst } = simulate(algorithm, settings, arrivalsOf(traffic));
        const most = mostInAnInterval(algorithm, settings) ?? Infinity;
        expect(worst?.units ?? 0).toBeLessThanOrEqual(most);
      }),
      { numRuns: RUNS },
    );
  });

  it('never lets more pass by a sliding window than its rate', () => {
    fc.assert(
      fc.property(fc.constantFrom('sliding-window', 'sliding-log'), anyCase, (algorithm, { settings, traffic }) => {
        const { worst } = simulate(algorithm, settings, arrivalsOf(traffic));
        expect(worst?.units ?? 0).toBeLessThanOrEqual(settings.rate);
      }),
      { numRuns: RUNS },
    );
  });

  it('never holds more at once than the limit of concurrency', () => {
    fc.assert(
      fc.property(anyCase, ({ settings, traffic }) => {
        const { heldMost } = simulate('concurrency', settings, arrivalsOf(traffic));
        expect(heldMost).toBeLessThanOrEqual(settings.limit);
      }),
      { numRuns: RUNS },
    );
  });

  it('tells what is left in the order of time, between nothing and the quota', () => {
    fc.assert(
      fc.property(anyAlgorithm, anyCase, (algorithm, { settings, traffic }) => {
        const { curve, quota } = simulate(algorithm, settings, arrivalsOf(traffic));
        expect(curve.times).toEqual(curve.times.toSorted((one, other) => one - other));
        expect(curve.times.at(-1)).toBe(SPAN * traffic.interval);
        expect(Math.min(...curve.remaining)).toBeGreaterThanOrEqual(0);
        expect(Math.max(...curve.remaining)).toBeLessThanOrEqual(quota);
      }),
      { numRuns: RUNS },
    );
  });

  it('is at each time what it would be without what came later', () => {
    fc.assert(
      fc.property(anyAlgorithm, anyCase, fc.double({ min: 0, max: SPAN, noNaN: true }), (algorithm, each, share) => {
        const { settings, traffic } = each;
        const until = Math.floor(share * traffic.interval);
        const arrivals = arrivalsOf(traffic);
        const run = simulate(algorithm, settings, arrivals);
        const stopped = runUntil(run, until, traffic.interval);
        const alone = simulate(
          algorithm,
          settings,
          arrivals.filter((at) => at <= until),
        );
        expect(stopped).toMatchObject({ allowed: alone.allowed, refused: alone.refused, until });
        expect(stopped.worst?.units ?? 0).toBeLessThanOrEqual(alone.worst?.units ?? 0);
        expect(stopped.curve.times.at(-1) ?? 0).toBeLessThanOrEqual(until);
        expect(runUntil(run, run.until, traffic.interval)).toEqual(run);
      }),
      { numRuns: RUNS },
    );
  });

  it('shows the double burst around the edge of a window', () => {
    // The first request opened the window, a minute before its end.
    expect(edge('fixed-window').worst).toMatchObject({ units: 19 });
    expect(edge('calendar-window').worst).toMatchObject({ units: 19 });
    expect(edge('sliding-window').worst).toMatchObject({ units: 10 });
    expect(edge('sliding-log').worst).toMatchObject({ units: 10 });
    expect(edge('leaky-bucket').worst?.units).toBeLessThanOrEqual(10);
  });

  it.each([
    ['fixed-window', 19],
    ['calendar-window', 20],
  ] as const)('reaches the most that %s says', (algorithm, most) => {
    const drawing = Array.from({ length: COLUMNS }, () => 0);
    // The last column before an edge of the calendar's windows, and the first one behind it.
    drawing.fill(20, COLUMNS / SPAN - 1, COLUMNS / SPAN + 1);
    if (algorithm === 'fixed-window') drawing[0] = 1;
    // Its window opens with the middle of the first column.
    const shift = algorithm === 'fixed-window' ? 60e6 / 32 : 0;
    const arrivals = arrivalsOf(trafficOf('drawn', { drawing })).map((at, index) => (index > 0 ? at + shift : at));
    expect(simulate(algorithm, settings, arrivals).worst?.units).toBe(most);
    expect(mostInAnInterval(algorithm, settings)).toBe(most);
  });

  it('takes the burst besides what flows in', () => {
    const given = readSettings({ burst: 5 }, 'test');
    expect(
      edge('gcra', given)
        .outcomes.slice(0, 8)
        .map(({ allowed }) => allowed),
    ).toContain(false);
    expect(edge('gcra', given).quota).toBe(5);
  });

  it('lets fewer pass than a budget has, until what they used is settled', () => {
    const given = readSettings({ estimate: 4, hold: 10 }, 'test');
    // A request every three seconds, which is settled after six.
    const arrivals = Array.from({ length: 20 }, (_, index) => index * 3e6);
    const { outcomes, curve } = simulate('budget', given, arrivals);
    expect(outcomes.filter(({ allowed }) => allowed).map(({ at }) => at / 3e6)).toEqual([0, 1, 2, 3, 5, 7, 9]);
    expect(curve.remaining.at(-1)).toBe(10);
    expect(simulate('budget', readSettings({ estimate: 1 }, 'test'), arrivals).allowed).toBe(10);
    expect(simulate('budget', readSettings({ rate: 1, estimate: 10 }, 'test'), [0, 0]).allowed).toBe(1);
  });

  it('passes what waits in a queue when it leaves', () => {
    const { outcomes, worst } = simulate('leaky-bucket', settings, [0, 0, 0]);
    expect(outcomes.map(({ delayMs }) => delayMs)).toEqual([0, 6000, 12_000]);
    expect(worst).toEqual({ units: 3, from: 0, to: 12e6 });
  });
});

describe('the worst stretch', () => {
  it('is the one that counting every stretch finds', () => {
    const times = fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 60 });
    fc.assert(
      fc.property(times, fc.integer({ min: 1, max: 120 }), (times, interval) => {
        const counts = times.map((start) => times.filter((at) => at >= start && at < start + interval).length);
        const worst = worstStretch(times, interval);
        expect(worst?.units ?? 0).toBe(Math.max(0, ...counts));
        if (worst === undefined) return;
        expect(worst.to - worst.from).toBeLessThan(interval);
        expect(times.filter((at) => at >= worst.from && at <= worst.to)).toHaveLength(worst.units);
      }),
      { numRuns: RUNS },
    );
  });
});

describe('the traffic', () => {
  it('comes in order, while the simulation lasts', () => {
    fc.assert(
      fc.property(anyCase, ({ traffic }) => {
        const arrivals = arrivalsOf(traffic);
        expect(arrivals).toEqual(arrivals.toSorted((one, other) => one - other));
        expect(arrivals.every((at) => Number.isInteger(at) && at >= 0 && at < SPAN * traffic.interval)).toBe(true);
      }),
      { numRuns: RUNS },
    );
  });

  it('is what its columns say, and what is drawn over them', () => {
    fc.assert(
      fc.property(anyCase, ({ traffic }) => {
        const drawing = columnsOf(traffic);
        expect(drawing).toHaveLength(COLUMNS);
        expect(columnsOf({ ...traffic, pattern: 'drawn', drawing })).toEqual(drawing);
      }),
      { numRuns: RUNS },
    );
  });

  it('has the load that was asked for', () => {
    expect(arrivalsOf(trafficOf('steady'))).toHaveLength(15 * SPAN);
    const counts = Array.from({ length: 200 }, (_, seed) => arrivalsOf(trafficOf('poisson', { seed })).length);
    const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
    expect(mean / SPAN).toBeGreaterThan(14);
    expect(mean / SPAN).toBeLessThan(16);
  });

  it('is the same for the same seed, and another one for another', () => {
    expect(arrivalsOf(trafficOf('poisson'))).toEqual(arrivalsOf(trafficOf('poisson')));
    expect(arrivalsOf(trafficOf('poisson', { seed: 2 }))).not.toEqual(arrivalsOf(trafficOf('poisson')));
  });
});

describe('what it is asked for', () => {
  it.each([
    [{ rate: 0 }, 'here.rate: expected a whole number >= 1 and <= 100, received 0'],
    [{ rate: '10' }, "rate: expected a whole number >= 1 and <= 100, received '10'"],
    [{ interval: '5m' }, "interval: expected one of 1s, 1m, 1h, 1d, received '5m'"],
    [{ queue: -1 }, 'queue: expected a whole number >= 0 and <= 200, received -1'],
    [{ hold: 101 }, 'hold: expected a whole number >= 1 and <= 100, received 101'],
  ])('refuses %j', (given, message) => {
    expect(() => readSettings(given, 'here')).toThrow(message);
  });

  it('refuses what is no algorithm, and no pattern', () => {
    expect(() => readAlgorithms('gcra,bucket', 'here')).toThrow(
      /here\.algorithms: expected one of.+, received 'bucket'/,
    );
    expect(() => readPattern('flood', 'here')).toThrow(
      "here.pattern: expected one of steady, burst, poisson, edge, drawn, received 'flood'",
    );
    expect(readAlgorithms('gcra, fixed-window', 'here')).toEqual(['fixed-window', 'gcra']);
  });

  it('takes the rate for what is left out', () => {
    expect(readSettings({ rate: 7 }, 'here')).toMatchObject({ rate: 7, burst: 7, queue: 7, interval: '1m' });
  });
});

interface StoreOutcome extends Pick<StoreDecision, 'allowed' | 'remaining' | 'retryAfterMs' | 'delayMs'> {
  readonly at: number;
}

/** What the store says to the same requests, with its clock moved. */
async function storeOutcomes(
  algorithm: AlgorithmName,
  settings: Settings,
  arrivals: readonly number[],
): Promise<StoreOutcome[]> {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock: clock.now });
  const limit = compile(optionsOf(algorithm, settings));
  const hold = Math.round((settings.hold / 100) * INTERVALS[settings.interval].micros);
  const cost = costOf(algorithm, settings);
  const held: { until: number; refund: Refund }[] = [];
  const outcomes: StoreOutcome[] = [];
  for (const at of arrivals) {
    while (held[0] !== undefined && held[0].until <= at) {
      const { until, refund } = held.shift()!;
      clock.micros = START + until;
      await store.refund([refund]);
    }
    clock.micros = START + at;
    const entries = [{ limit, identity: IDENTITY, cost }];
    const [[decision]] = (await store.check([{ entries, refundable: true, hold: true }])) as [[StoreDecision]];
    if (['concurrency', 'budget'].includes(algorithm) && decision.allowed) {
      const refund = { ...chargeOf({ limit, identity: IDENTITY, cost }, decision), actual: 1 };
      held.push({ until: at + hold, refund });
    }
    const { allowed, remaining, retryAfterMs, delayMs } = decision;
    outcomes.push({ at, allowed, remaining, retryAfterMs, delayMs });
  }
  await store.close();
  return outcomes;
}
