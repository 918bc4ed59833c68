/**
 * The part of the suite that runs: `quick` for `npm test`, `rest` for what `npm test` leaves out, or everything.
 * `test/run.mjs` sets it.
 */
export const tier = (process.env['TEST_TIER'] ?? 'all') as 'quick' | 'rest' | 'all';

/** Splits variants of the same tests, such as HTTP adapters: `npm test` runs the first ones, the rest of the suite the others. */
export function variants<T>(all: readonly T[], inQuick = 1): readonly T[] {
  if (tier === 'quick') return all.slice(0, inQuick);
  return tier === 'rest' ? all.slice(inQuick) : all;
}
