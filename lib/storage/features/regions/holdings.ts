import { RateLimitArgumentError } from '../../../engine/errors/errors.js';
import type { Counter } from '../../../engine/limits/counter.js';
import type { RegionHolding } from '../../../engine/limits/key-reports.js';
import { read, type ReadableStore } from '../../stores/feature-reading.js';
import { limitRegionsOf } from './limit-regions.js';
import { worldMessages } from './messages.js';

/** The name of the reading. */
export const HOLDINGS = 'regions';

/** The units of a counter that each region holds. Throws `RateLimitArgumentError` for a limit that counts in one region. */
export async function holdingsOf(store: ReadableStore, counter: Counter): Promise<RegionHolding[]> {
  const { limit } = counter;
  const nowhere = (): never => {
    throw new RateLimitArgumentError(worldMessages.oneRegion(limit.name), { code: 'SLUICE_UNSUPPORTED_CALL' });
  };
  if (limitRegionsOf(limit) === undefined) nowhere();
  // The layer of regions answers this, since the layers below don't know the home.
  return read<Promise<RegionHolding[]>>(store, limit, {
    name: HOLDINGS,
    counter,
    inMemory: nowhere,
    onRedis: nowhere,
    elsewhere: nowhere,
  });
}
