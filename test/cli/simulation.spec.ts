import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MemoryStore } from '../../lib/index.js';
import { CompiledLimit } from '../../lib/testing/store/index.js';
import { AdmittedUnits } from '../../lib/cli/simulate/admitted-units.js';
import { Histogram, Timeline } from '../../lib/cli/simulate/timeline.js';
import type { LoggedRequest } from '../../lib/cli/simulate/logged-request.js';
import { ReorderBuffer } from '../../lib/cli/simulate/log-input.js';
import { SimulatedLimit } from '../../lib/cli/simulate/simulated-limit.js';
import { Simulation } from '../../lib/cli/simulate/simulation.js';
import { RequestKey } from '../../lib/cli/simulate/tracked-keys.js';
import {
  algorithmNames,
  anyBlocks,
  blocksOf,
  costOf,
  costShare,
  forwardStep,
  optionsOf,
  type RateOptions,
} from '../support/limits/arbitraries.js';
import { expectEqual, propertyRuns } from '../support/limits/property-runs.js';
import { ManualClock } from '../support/limits/stores.js';

const anyRate = fc.oneof(...algorithmNames.map((name) => optionsOf[name] as fc.Arbitrary<RateOptions>));

const limits = fc.array(
  fc.record({
    options: anyRate,
    shadow: fc.boolean(),
    blocks: anyBlocks,
    source: fc.integer({ min: 0, max: 1 }),
  }),
  { minLength: 1, maxLength: 3 },
);

const requests = fc.array(
  fc.record({
    /** A share of the window, or right to the end of the last wait. */
    step: fc.oneof({ weight: 4, arbitrary: forwardStep }, fc.constant('wait' as const)),
    cost: costShare,
    keys: fc.tuple(fc.constantFrom('a', 'b', '__proto__'), fc.constantFrom('a', 'c')),
  }),
  { minLength: 1, maxLength: 40 },
);

const SHARES = [0.01, 0.25, 0.5, 0.75, 0.99, 1];
const quantilesOf = (waits: Histogram) => SHARES.map((share) => waits.quantile(share));

describe('a simulation', () => {
  it('decides every request as MemoryStore does, with the same waits', async () => {
    const property = fc.asyncProperty(limits, requests, async (random, history) => {
      // The key of the first limit is the first one.
      const first = random[0]!.source;
      const all = random.map(({ options, shadow, blocks, source }, index) => {
        const location = `limit ${index}`;
        const limit = new CompiledLimit(options, { location, name: location, shadow, ...blocksOf(options, blocks) });
        const place = random.slice(0, index).filter((other) => other.source === source).length;
        return new SimulatedLimit(limit, location, source === first ? 0 : 1, place);
      });
      const simulation = new Simulation(all, 1000);
      const clock = new ManualClock();
      const store = new MemoryStore({ clock: clock.now });
      const expected = all.map(() => ({ refused: 0, never: 0, waits: new Histogram(), delays: new Histogram() }));
      let allowed = 0;
      let wait = 0;
      for (const { step, cost: share, keys } of history) {
        clock.advanceMs(step === 'wait' ? wait : step * all[0]!.limit.windowMs(clock.now() / 1000));
        const cost = costOf(share, all[0]!.limit.quota);
        const entries = all.map(({ limit, source }) => ({ limit, identity: keys[source]!, cost }));
        const [decisions = []] = await store.check([{ entries }]);
        const passes = decisions.every((decision, index) => decision.allowed || all[index]!.limit.shadow);
        for (const [index, { allowed: fits, retryAfterMs, delayMs }] of decisions.entries()) {
          const counts = expected[index]!;
          if (!fits) counts.refused++;
          if (retryAfterMs === Infinity) counts.never++;
          else if (!fits) counts.waits.add((wait = retryAfterMs));
          if (passes && all[index]!.limit.algorithm.queue) counts.delays.add(delayMs);
        }
        if (passes) allowed++;
        simulation.decide({
          time: clock.now(),
          keys: keys.slice(0, new Set(all.map((each) => each.source)).size).map((key) => new RequestKey(key)),
          cost,
        });
        expectEqual(simulation.allowed, allowed);
      }
      expectEqual(simulation.refused, history.length - allowed);
      for (const [index, { refused, never, waits, delays }] of all.entries()) {
        const counts = expected[index]!;
        expectEqual([refused, never], [counts.refused, counts.never]);
        expectEqual(quantilesOf(waits), quantilesOf(counts.waits));
        expectEqual(quantilesOf(delays), quantilesOf(counts.delays));
      }
      await store.close();
    });
    await fc.assert(property, { numRuns: propertyRuns(500) });
  });

  it('forgets the least recently used key when there are too many, and says whether it still counted', () => {
    const limit = new CompiledLimit({ algo: 'fixed-window', rate: 1, interval: '1m' }, { location: 'limit' });
    const simulation = new Simulation([new SimulatedLimit(limit, 'limit', 0, 0)], 2);
    const ask = (key: string, seconds: number) =>
      simulation.decide({ time: seconds * 1e6, keys: [new RequestKey(key)], cost: 1 });
    ask('a', 0);
    ask('b', 1);
    ask('b', 2);
    ask('c', 3);
    expect(simulation).toMatchObject({ evicted: 1, evictedCounting: 1, allowed: 3, refused: 1 });
    ask('a', 4);
    expect(simulation).toMatchObject({ evicted: 2, evictedCounting: 2, allowed: 4, refused: 1 });
    ask('b', 120);
    expect(simulation).toMatchObject({ evicted: 3, evictedCounting: 2, allowed: 5 });
    expect([...simulation.keys.values()]).toHaveLength(2);
  });
});

describe('the units of a stretch', () => {
  it('are those that a list of all that was admitted has', () => {
    const admitted = fc.array(fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 5 })), {
      maxLength: 200,
    });
    fc.assert(
      fc.property(admitted, fc.integer({ min: 1, max: 300 }), (steps, length) => {
        const units = new AdmittedUnits();
        const all: { time: number; cost: number }[] = [];
        let time = 0;
        for (const [step, cost] of steps) {
          time += step;
          all.push({ time, cost });
          const inside = all.filter((each) => each.time > time - length);
          expectEqual(
            units.add(time, cost, length),
            inside.reduce((sum, each) => sum + each.cost, 0),
          );
          expectEqual(units.start, inside[0]!.time);
        }
        expectEqual(units.isExact, true);
      }),
      { numRuns: propertyRuns(200) },
    );
  });

  it('are never too many where there are too many times to keep, and bounded', () => {
    const units = new AdmittedUnits();
    const length = 1e9;
    let most = 0;
    for (let time = 1; time <= 300_000; time++) most = units.add(time * 1000, 1, length);
    expect(units.isExact).toBe(false);
    expect(units.room).toBeLessThanOrEqual(2 * 65_536);
    expect(most).toBe(300_000);
    for (let time = 300_001; time <= 1_500_000; time++) most = units.add(time * 1000, 1, length);
    expect(most).toBeLessThanOrEqual(1_000_000);
    expect(most).toBeGreaterThan(999_900);
  });
});

describe('waits', () => {
  it('are exact up to two seconds, and beyond rounded up by less than a thousandth', () => {
    const waits = fc.array(fc.oneof(fc.integer({ min: 0, max: 3000 }), fc.integer({ min: 0, max: 2 ** 50 })), {
      minLength: 1,
      maxLength: 60,
    });
    fc.assert(
      fc.property(waits, fc.double({ min: 0.01, max: 1, noNaN: true }), (all, share) => {
        const histogram = new Histogram();
        for (const wait of all) histogram.add(wait);
        const exact = all.toSorted((one, other) => one - other)[Math.ceil(share * all.length) - 1]!;
        const told = histogram.quantile(share);
        expectEqual([told >= exact, exact >= 2048 || told === exact, told <= exact * 1.001], [true, true, true]);
        expectEqual([histogram.count, histogram.max], [all.length, Math.max(...all)]);
      }),
      { numRuns: propertyRuns(300) },
    );
  });
});

describe('requests out of order', () => {
  it('leave in the order of their times, those of one time in that of the lines', () => {
    const times = fc.array(fc.integer({ min: 0, max: 100 }), { maxLength: 150 });
    fc.assert(
      fc.property(times, fc.integer({ min: 0, max: 120 }), (all, window) => {
        const left: LoggedRequest[] = [];
        const buffer = new ReorderBuffer(window, (request) => left.push(request));
        for (const [line, time] of all.entries()) buffer.push({ time, keys: [], cost: line + 1 });
        buffer.end();
        expectEqual(left.length, all.length);
        const latest = all.map((_, line) => Math.max(...all.slice(0, line + 1)));
        expectEqual(buffer.lateCount, all.filter((time, line) => time < latest[line]!).length);
        // A line that is later than the window behind the latest before it cannot be sorted in.
        if (all.some((time, line) => time <= latest[line]! - window && time < latest[line]!)) return;
        const sorted = all.map((time, line) => ({ time, line })).toSorted((a, b) => a.time - b.time || a.line - b.line);
        expectEqual(
          left.map(({ time, cost }) => ({ time, line: cost - 1 })),
          sorted,
        );
      }),
      { numRuns: propertyRuns(500) },
    );
  });

  it('are held back up to a number', () => {
    const left: number[] = [];
    const buffer = new ReorderBuffer(1e12, ({ time }) => left.push(time));
    for (let time = 150_000; time > 0; time--) buffer.push({ time, keys: [], cost: 1 });
    expect(left).toHaveLength(50_000);
    expect(left[0]).toBe(50_000);
    buffer.end();
    expect(left.slice(50_000)).toEqual(left.slice(50_000).toSorted((one, other) => one - other));
  });
});

describe('a time line', () => {
  it('has every request in its step, however long it gets', () => {
    const gaps = fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.boolean()), {
      minLength: 1,
      maxLength: 80,
    });
    fc.assert(
      fc.property(gaps, fc.constantFrom(1, 1e3, 1e6, 1e8, 1e10), (steps, scale) => {
        const timeline = new Timeline();
        const expected = new Map<number, [number, number]>();
        let time = Date.UTC(2026, 0, 1) * 1000;
        const all = steps.map(([gap, isAllowed]) => ({ time: (time += Math.floor(gap * scale * 1000)), isAllowed }));
        for (const each of all) timeline.add(each.time, each.isAllowed);
        for (const each of all) {
          const step = Math.floor((each.time / 1000 - timeline.startMs) / timeline.stepMs);
          const counts = expected.get(step) ?? [0, 0];
          counts[each.isAllowed ? 0 : 1]++;
          expected.set(step, counts);
        }
        expectEqual(timeline.allowed.length <= 600, true);
        for (const [step, count] of timeline.allowed.entries()) {
          expectEqual([count, timeline.refused[step]], expected.get(step) ?? [0, 0]);
        }
        expectEqual(timeline.refused.length, timeline.allowed.length);
      }),
      { numRuns: propertyRuns(200) },
    );
  });
});
