import { holdOptions } from '../../../engine/algorithms/hold-options.js';
import { ownRows } from '../../../engine/options/option-row.js';
import { readOptions } from '../../../engine/options/check-options.js';
import type { FeaturedLimit, LimitFeature } from '../../../engine/limits/limit-feature.js';

/** How the units of a limit are held; times are microseconds. */
export interface HoldTerms {
  /** After how long a hold lapses. */
  readonly duration: number;
  /** Whether its units are then given back. */
  readonly releases: boolean;
  /** How long a hold is remembered, at least. */
  readonly known: number;
  /** Distinguishes the windows in which its units count from those of other options. */
  readonly windows: number;
}

/** The terms of a limit's `hold`, which its algorithm may have by default; `undefined` if its units cannot be held. */
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
  // What lapses without a request comes off what others keep later: holds are remembered as long as that is kept.
  const keptFor = releases ? Math.max(0, ...others.map(({ keepsFor = 0 }) => duration + keepsFor)) : 0;
  const known = Math.max(duration, holds.known?.(declared) ?? 0, keptFor);
  return { duration, releases, known, windows: hashOf(holds.windows(declared)) };
}

/** 32 bits of a text (FNV-1a). */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
