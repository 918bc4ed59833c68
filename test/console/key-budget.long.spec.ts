import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { KeyBudget, type SpaceSaving } from '../../lib/console/telemetry/space-saving.js';
import { propertyRuns } from '../support/limits/property-runs.js';

/** What limits refused: few limits refuse much more than the others. */
const refusals = fc.array(
  fc.record({
    limit: fc.integer({ min: 0, max: 11 }).map((n) => Math.floor(n * n * 0.08)),
    key: fc.integer({ min: 0, max: 60 }).map((n) => `key-${Math.floor(n * n * 0.02)}`),
    weight: fc.integer({ min: 1, max: 3 }),
  }),
  { maxLength: 600 },
);

const fed = (items: readonly { limit: number; key: string; weight: number }[], total: number) => {
  const budget = new KeyBudget(total);
  const sketches = new Map<number, SpaceSaving>();
  for (const { limit, key, weight } of items) {
    if (!sketches.has(limit)) sketches.set(limit, budget.open());
    sketches.get(limit)!.add(key, weight);
  }
  return { budget, sketches };
};

describe('the counters that all limits share', () => {
  it('are never more than there are, and keep the bounds of each key', () => {
    fc.assert(
      fc.property(refusals, fc.integer({ min: 96, max: 300 }), (items, total) => {
        const { sketches } = fed(items, total);
        expect([...sketches.values()].reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(total);
        for (const [limit, sketch] of sketches) {
          expect(sketch.size).toBeGreaterThanOrEqual(8);
          const weights = new Map<string, number>();
          for (const each of items) {
            if (each.limit === limit) weights.set(each.key, (weights.get(each.key) ?? 0) + each.weight);
          }
          const frequent = sketch.frequent();
          expect(frequent.length).toBeLessThanOrEqual(sketch.size);
          for (const { key, count, error } of frequent) {
            expect(count).toBeGreaterThanOrEqual(weights.get(key)!);
            expect(count - error).toBeLessThanOrEqual(weights.get(key)!);
          }
          const known = new Set(frequent.map(({ key }) => key));
          for (const [key, weight] of weights) if (!known.has(key)) expect(weight).toBeLessThanOrEqual(sketch.floor);
        }
      }),
      { numRuns: propertyRuns(100) },
    );
  });

  it('are divided in the same way each time', () => {
    fc.assert(
      fc.property(refusals, fc.integer({ min: 96, max: 300 }), (items, total) => {
        const shown = () => [...fed(items, total).sketches].map(([limit, each]) => [limit, each.size, each.frequent()]);
        expect(shown()).toEqual(shown());
      }),
      { numRuns: propertyRuns(30) },
    );
  });

  it('come back when a sketch is closed', () => {
    fc.assert(
      fc.property(refusals, (items) => {
        const { budget, sketches } = fed(items, 96);
        for (const sketch of sketches.values()) budget.close(sketch);
        const next = budget.open();
        for (let key = 0; key < 200; key++) next.add(`key-${key}`);
        expect(next.size).toBe(64);
      }),
      { numRuns: propertyRuns(20) },
    );
  });

  it('count exactly while a limit has fewer keys than it may have counters', () => {
    const { sketches } = fed(
      Array.from({ length: 2000 }, (_, index) => ({ limit: 0, key: `key-${index % 200}`, weight: 1 })),
      20_480,
    );
    const frequent = sketches.get(0)!.frequent();
    expect(frequent).toHaveLength(200);
    expect(frequent.every(({ count, error }) => count === 10 && error === 0)).toBe(true);
  });

  it('find what comes often in a flood of other keys, of which some are counted', () => {
    const budget = new KeyBudget();
    const sketch = budget.open();
    for (let call = 0; call < 500_000; call++) {
      if (call % 100_000 === 0) budget.turn();
      sketch.add(`key-${call}`);
      if (call % 10 === 0) sketch.add('often');
      if (call > 250_000 && call % 20 === 0) sketch.add('later');
    }
    const [first, second] = sketch.frequent();
    expect([first!.key, second!.key]).toEqual(['often', 'later']);
    expect(first!.count - first!.error).toBeLessThanOrEqual(50_000);
    expect(Math.abs(first!.count / 50_000 - 1)).toBeLessThan(0.1);
    expect(Math.abs(second!.count / 12_500 - 1)).toBeLessThan(0.35);
  });

  it('go to 2200 limits at the same time, and to a limit that refuses much later on', () => {
    const budget = new KeyBudget();
    const sketches = Array.from({ length: 2201 }, () => budget.open());
    for (let key = 0; key < 1000; key++) for (const sketch of sketches.slice(0, 300)) sketch.add(`key-${key}`);
    expect(sketches.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(20_480);
    expect(Math.min(...sketches.map(({ size }) => size))).toBe(8);
    const late = sketches.at(-1)!;
    for (let key = 0; key < 50; key++) late.add(`key-${key}`);
    for (let call = 0; call < 1000; call++) late.add('loud');
    expect(late.frequent()[0]!.key).toBe('loud');
  });
});
