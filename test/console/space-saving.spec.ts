import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { mergeFrequent, SpaceSaving } from '../../lib/console/telemetry/space-saving.js';
import { propertyRuns } from '../support/limits/property-runs.js';

/** A stream of few keys, some of which come much more often than others. */
const stream = fc.array(
  fc.record({
    key: fc.integer({ min: 0, max: 40 }).map((n) => `key-${Math.floor(n * n * 0.02)}`),
    weight: fc.integer({ min: 1, max: 9 }),
  }),
  { maxLength: 300 },
);
type Item = { key: string; weight: number };

const weigh = (items: readonly Item[]) => {
  const weights = new Map<string, number>();
  for (const { key, weight } of items) weights.set(key, (weights.get(key) ?? 0) + weight);
  return weights;
};
const fed = (items: readonly Item[], capacity: number) => {
  const counted = new SpaceSaving(capacity);
  for (const { key, weight } of items) counted.add(key, weight);
  return counted;
};

describe('the most frequent keys of a stream', () => {
  it('are told within the bounds of Space-Saving', () => {
    fc.assert(
      fc.property(stream, fc.integer({ min: 1, max: 12 }), (items, capacity) => {
        const weights = weigh(items);
        const total = items.reduce((sum, { weight }) => sum + weight, 0);
        const counted = fed(items, capacity);
        const frequent = counted.frequent();
        expect(frequent.length).toBeLessThanOrEqual(capacity);
        expect(frequent.reduce((sum, { count }) => sum + count, 0)).toBe(total);
        for (const { key, count, error } of frequent) {
          expect(count).toBeGreaterThanOrEqual(weights.get(key)!);
          expect(count - error).toBeLessThanOrEqual(weights.get(key)!);
          expect(error).toBeLessThanOrEqual(total / capacity);
        }
        const told = new Set(frequent.map(({ key }) => key));
        for (const [key, weight] of weights) {
          if (told.has(key)) continue;
          expect(weight).toBeLessThanOrEqual(Math.min(counted.floor, total / capacity));
        }
        expect(frequent).toEqual(frequent.toSorted((one, other) => other.count - one.count));
      }),
      { numRuns: propertyRuns(100) },
    );
  });

  it('are told within the sum of the bounds for several streams', () => {
    fc.assert(
      fc.property(fc.array(stream, { maxLength: 4 }), fc.integer({ min: 1, max: 12 }), (streams, capacity) => {
        const weights = weigh(streams.flat());
        const counted = streams.map((items) => fed(items, capacity));
        const merged = mergeFrequent(
          counted.map((each) => ({ frequent: each.frequent(), floor: each.floor })),
          Infinity,
        );
        for (const { key, count, error } of merged) {
          expect(count).toBeGreaterThanOrEqual(weights.get(key)!);
          expect(count - error).toBeLessThanOrEqual(weights.get(key)!);
        }
        const floors = counted.reduce((sum, { floor }) => sum + floor, 0);
        const told = new Set(merged.map(({ key }) => key));
        for (const [key, weight] of weights) if (!told.has(key)) expect(weight).toBeLessThanOrEqual(floors);
      }),
      { numRuns: propertyRuns(60) },
    );
  });
});
