import fc from 'fast-check';
import type { AlgorithmOptions } from '../../../../lib/index.js';
import { type CheckEntry, CompiledLimit } from '../../../../lib/testing/store/index.js';
import { featureTerms } from '../../../support/limits/stores.js';
import { identityWithin } from '../../../../lib/engine/limits/hierarchy.js';

/** How a level is limited. */
export interface LevelOptions {
  readonly options: AlgorithmOptions;
  readonly ceiling?: number | undefined;
  readonly lends?: number | undefined;
  readonly shadow?: boolean;
}

/** The levels of a tree, the root first. */
export function limitsOf(levels: readonly LevelOptions[]): CompiledLimit[] {
  return levels.map(({ options, ceiling, lends, shadow = false }, index) => {
    const settings = {
      location: 'test',
      name: `level-${index}`,
      shadow,
      features: featureTerms({ lends, ceiling: index > 0 ? ceiling : undefined }, 'test'),
    };
    return new CompiledLimit(options, { ...settings, parent: index > 0 ? `level-${index - 1}` : undefined });
  });
}

/** What is asked of a counter and of all that it is within, itself first: `path` has the keys, the root's first. */
export function entriesOf(limits: readonly CompiledLimit[], path: readonly string[], cost: number): CheckEntry[] {
  const entries: CheckEntry[] = [];
  for (const [index, key] of path.entries()) {
    const parent = entries[0];
    const identity = parent === undefined ? key : identityWithin(parent, key);
    entries.unshift({ limit: limits[index]!, identity, cost });
  }
  return entries;
}

const INTERVAL = 1000;

/** Windows that count, of which units can be borrowed. */
export const windows = fc.constantFrom('fixed-window', 'sliding-window', 'sliding-log', 'calendar-window');

export const windowOptions = (algo: string, rate: number): AlgorithmOptions =>
  algo === 'calendar-window'
    ? { algo, rate, period: 'second' }
    : ({ algo, rate, interval: INTERVAL } as AlgorithmOptions);

/** A level that may borrow and lend. */
export const borrowingLevel = fc
  .record({
    algo: windows,
    rate: fc.integer({ min: 1, max: 12 }),
    more: fc.option(fc.integer({ min: 0, max: 15 }), { nil: undefined }),
    lends: fc.option(fc.constantFrom(0, 0.3, 0.5, 0.8, 1), { nil: undefined }),
    shadow: fc.integer({ min: 0, max: 9 }).map((drawn) => drawn === 0),
  })
  .map(({ algo, rate, more, lends, shadow }): LevelOptions => ({
    options: windowOptions(algo, rate),
    ceiling: more === undefined ? undefined : rate + more,
    lends,
    shadow,
  }));

/** A root of any algorithm. */
export const rootLevel = fc
  .record({
    algo: fc.constantFrom('fixed-window', 'sliding-window', 'sliding-log', 'gcra', 'token-bucket', 'leaky-bucket'),
    rate: fc.integer({ min: 1, max: 30 }),
    lends: fc.option(fc.constantFrom(0, 0.3, 0.5, 0.8, 1), { nil: undefined }),
  })
  .map(({ algo, rate, lends }): LevelOptions => ({ options: windowOptions(algo, rate), lends }));

/** The keys of a level, which are the same within different parents. */
export const key = fc.constantFrom('a', 'b', 'c:d');

export const pauseMs = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 250 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 2500 }) },
);
