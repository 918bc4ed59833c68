import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { KeyTable } from '../../../lib/app/overrides/key-table.js';
import { ExpiryQueue } from '../../../lib/engine/util/heap.js';
import { propertyRuns } from '../../support/limits/property-runs.js';

const text = fc.string({ unit: fc.constantFrom('a', 'b', ':'), maxLength: 5 });
const key = fc.oneof(
  text.filter(Boolean),
  text.filter(Boolean).map((each) => `${each}*`),
);
const step = fc.record({ key, isSet: fc.boolean() });

/** All keys that hold for an identity, the most specific first. */
function matching(keys: Iterable<string>, identity: string): string[] {
  const prefixes = [...keys].filter((each) => each.endsWith('*') && identity.startsWith(each.slice(0, -1)));
  const exact = [...keys].filter((each) => each === identity);
  return [...exact, ...prefixes.toSorted((one, other) => other.length - one.length)];
}

describe('a table of keys', () => {
  it('finds what a search through all of them finds', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.array(text, { minLength: 1 }), (steps, identities) => {
        const table = new KeyTable<string>();
        const model = new Set<string>();
        for (const each of steps) {
          if (each.isSet) {
            table.set(each.key, each.key);
            model.add(each.key);
          } else {
            table.delete(each.key);
            model.delete(each.key);
          }
        }
        expect(table.size).toBe(model.size);
        expect(table.values().toSorted()).toEqual([...model].toSorted());
        for (const identity of identities) {
          expect(table.find(identity)).toBe(matching(model, identity)[0]);
          expect([...table.all(identity)]).toEqual(matching(model, identity));
        }
      }),
      { numRuns: propertyRuns(500) },
    );
  });

  it('gives its keys page by page, each once', () => {
    fc.assert(
      fc.property(fc.uniqueArray(key), fc.integer({ min: 1, max: 4 }), (keys, count) => {
        const table = new KeyTable<string>();
        for (const each of keys) table.set(each, each);
        const found: string[] = [];
        for (;;) {
          const page = table.keysAfter(found.at(-1), count);
          found.push(...page);
          if (page.length < count) break;
        }
        expect(found).toEqual(keys.toSorted());
      }),
      { numRuns: propertyRuns(300) },
    );
  });
});

it('a queue of expiries gives what has expired, the earliest first', () => {
  const times = fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 40 });
  fc.assert(
    fc.property(times, fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 5 }), (all, moments) => {
      const queue = new ExpiryQueue<number>();
      let left = all.toSorted((one, other) => one - other);
      for (const at of all) queue.add(at, at);
      for (const now of moments) {
        expect(queue.takeExpired(now)).toEqual(left.filter((at) => at <= now));
        left = left.filter((at) => at > now);
        expect([queue.size, queue.next]).toEqual([left.length, left[0] ?? Infinity]);
      }
    }),
    { numRuns: propertyRuns(500) },
  );
});
