import { holdOptions } from '../../../engine/algorithms/common-options.js';
import { ownRows } from '../../../engine/options/option-row.js';
import { readOptions } from '../../../engine/options/check-options.js';
import type { FeaturedLimit, LimitFeature } from '../../../engine/limits/limit-feature.js';

/** The terms by which the units of a limit are held; times are in microseconds. */
export interface HoldTerms {
  /** The time after which a hold lapses. */
  readonly duration: number;
  /** True if the units of a lapsed hold are returned. */
  readonly releases: boolean;
  /** The minimum time to remember a hold. */
  readonly known: number;
  /** Distinguishes its windows from those that other options would have. */
  readonly windows: number;
}

/** The terms of a limit's `hold`, which may be the default of its algorithm; `undefined` if its units can't be held. */
export function holdTerms(
  { algorithm, options, declared }: FeaturedLimit,
  others: readonly LimitFeature[],
  location: string,
): HoldTerms | undefined {
  const { holds } = algorithm;
  if (holds === undefined || others.some(({ withoutEstimates }) => withoutEstimates === true)) return undefined;
  const { hold = ownRows(algorithm.options)['hold']?.default, onLapse } = options as Record<string, unknown>;
  if (hold === undefined) return undefined;
  const read = readOptions(location, { hold, onLapse }, holdOptions);
  const duration = read.hold!;
  const releases = read.onLapse === 'release';
  // A lapse reduces records of other features afterwards, so holds are remembered as long as these records.
  const keptFor = releases ? Math.max(0, ...others.map(({ keepsFor = 0 }) => duration + keepsFor)) : 0;
  const known = Math.max(duration, holds.known?.(declared) ?? 0, keptFor);
  return { duration, releases, known, windows: hashOf(holds.windows(declared)) };
}

/** A 32-bit hash of a text (FNV-1a). */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
