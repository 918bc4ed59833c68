import { RateLimitArgumentError } from '../../errors/errors.js';
import type { Counter } from '../../limits/counter.js';
import { read, type ReadableStore } from '../../stores/feature-reading.js';
import { limitRegionsOf } from './limit-regions.js';
import { worldMessages } from './messages.js';

/** What a region holds of a counter, as the home knows it from its last call. */
export interface RegionHolding {
  /** Its name. */
  readonly region: string;
  /** Units that it held when it called last for this key; some may have been used since. */
  readonly held: number;
  /** Units that it was granted in the window of then, and has not given back. Only windows have such a count. */
  readonly granted: number;
  /** Milliseconds since it called for this key; absent if it has not, or it is no longer known. */
  readonly ageMs?: number;
  /** Milliseconds since it called for any key. */
  readonly seenMs?: number;
}

/** The name of the reading. */
export const HOLDINGS = 'regions';

/** What all regions hold of a counter. Throws `RateLimitArgumentError` for a limit that counts in one region. */
export async function holdingsOf(store: ReadableStore, counter: Counter): Promise<RegionHolding[]> {
  const { limit } = counter;
  const nowhere = (): never => {
    throw new RateLimitArgumentError(worldMessages.oneRegion(limit.name));
  };
  if (limitRegionsOf(limit) === undefined) nowhere();
  // The layer of regions answers it: nothing below knows the home.
  return read<Promise<RegionHolding[]>>(store, limit, {
    name: HOLDINGS,
    counter,
    inMemory: nowhere,
    onRedis: nowhere,
    elsewhere: nowhere,
  });
}
