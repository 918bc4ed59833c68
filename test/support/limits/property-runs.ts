import { isDeepStrictEqual } from 'node:util';
import { expect, jest } from '@jest/globals';
import fc from 'fast-check';
import { tier } from '../tier.js';

/** `npm test` makes 15 % of the usual runs, and the rest of the suite the others, with another seed. */
const SHARE = { quick: 0.15, rest: 0.85, all: 1 }[tier];
/** Multiplies the number of runs: `PROPERTY_RUNS=10 npm run jest`. */
const MULTIPLIER = Number(process.env['PROPERTY_RUNS'] ?? SHARE);

/** So many histories are tried at a time, so that what they ask of a server travels together. */
const LANES = 60;

/** How often a property is tried, of so many runs as usual. */
export function propertyRuns(usual: number): number {
  return Math.max(1, Math.ceil(usual * MULTIPLIER));
}

/** How long a test may take in a spec of properties, also beside busy processes. */
export const PROPERTY_TIMEOUT_MS = 600_000 * Math.max(1, MULTIPLIER);
jest.setTimeout(PROPERTY_TIMEOUT_MS);

/**
 * As `fc.assert`, for histories that wait for a server: in lanes beside each other, each with a seed of its own. A failure tells
 * the seed of its lane, which `fc.assert` repeats.
 */
export async function assertSideBySide<T>(property: fc.IAsyncProperty<T>, runs: number): Promise<void> {
  const lanes = Math.min(LANES, runs);
  const each = Array.from({ length: lanes }, (_, lane) => {
    const numRuns = Math.floor(runs / lanes) + (lane < runs % lanes ? 1 : 0);
    // What has failed by then is told, shrunk or not: else nobody would learn its seed.
    return fc.assert(property, {
      numRuns,
      plugins: [fc.interruptAfterTimeLimit(0.9 * PROPERTY_TIMEOUT_MS, { failOnInterrupt: true })],
      ...seedOf(lane),
    });
  });
  const failed = (await Promise.allSettled(each)).find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

/**
 * Where the seed is fixed, each lane has its own: all would try the same. The first one has the seed itself, so that it repeats what
 * failed.
 */
function seedOf(lane: number): { seed?: number } {
  const { seed } = fc.readConfigureGlobal();
  return seed === undefined ? {} : { seed: (seed + Math.imul(lane, 0x9e3779b1)) | 0 };
}

/** As `expect(actual).toEqual(expected)`, which costs ten times as much where both are equal. */
export function expectEqual(actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toEqual(expected);
}

/** As `expect(actual).toMatchObject(expected)`, for plain values. */
export function expectMatch<T extends object>(actual: T, expected: Partial<T>): void {
  const isMatch = Object.entries(expected).every(([name, value]) => Object.is(actual[name as keyof T], value));
  if (!isMatch) expect(actual).toMatchObject(expected);
}

/** As an `expect` of each claim about a value, which costs as much as a decision: fails with those that do not hold. */
export function expectHolds(about: unknown, claims: Readonly<Record<string, boolean>>): void {
  const broken = Object.keys(claims).filter((claim) => !claims[claim]);
  if (broken.length > 0) expect({ about, broken }).toEqual({ about, broken: [] });
}
