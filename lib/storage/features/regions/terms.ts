import type { Algorithm, Parameters } from '../../../engine/algorithms/algorithm.js';
import { algorithms } from '../../../engine/algorithms/index.js';
import { configError, RateLimitConfigError } from '../../../engine/errors/errors.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { worldMessages } from './messages.js';

/** The scope of a limit that counts across regions. */
export const WORLD = 'world';

/**
 * How long a region may hold units, in microseconds: a fortieth of the interval, or a whole window if they end with it, within these
 * limits.
 */
const SHORTEST = 500_000;
const LONGEST = 10_000_000;
const PART = 40;

/** Options that don't apply to held units, or whose state would have to be known in all regions at once. */
const EXCLUDED = [
  'prefetch',
  'share',
  'reserveFor',
  'within',
  'ceiling',
  'lends',
  'candidate',
  'blockFor',
  'strike',
  'countRefused',
  'usage',
  'replicas',
  'hold',
  'warmUp',
  'rollover',
  'credits',
] as const;

/** The terms of a limit that counts across regions. */
export interface WorldTerms {
  readonly scope: typeof WORLD;
}

/** The terms of a limit with `scope: 'world'`. Throws `RateLimitConfigError` if another option excludes it. */
export function worldTerms(options: object, location: string): WorldTerms | undefined {
  const given = options as Readonly<Record<string, unknown>>;
  if (given['scope'] !== WORLD) return undefined;
  const excluded = EXCLUDED.find((option) => given[option] !== undefined && given[option] !== false);
  const other = excluded ?? (typeof given['anchor'] === 'function' ? 'anchor' : undefined);
  if (other !== undefined) throw configError('SLUICE_EXCLUDED_OPTIONS', worldMessages.excluded(location, other));
  return { scope: WORLD };
}

/** Throws `RateLimitConfigError` for a limit that can't count across regions, even if the app has only one. */
export function checkWorld(options: object, limit: CompiledLimit | undefined, location: string): void {
  if (worldTerms(options, location) === undefined || limit === undefined) return;
  homeParameters(limit.algorithm, limit.parameters, location);
}

/** The capability of an algorithm to use units a little later than they were charged. */
function capabilityOf({ granting, prefetch }: Algorithm) {
  return granting ?? prefetch;
}

/** Returns true if an algorithm's units must be used before the end of the window in which they were charged. */
export function endsWithWindow(algorithm: Algorithm): boolean {
  return capabilityOf(algorithm)?.endsWithWindow === true;
}

/** How long a region may hold units, in microseconds. */
export function lifetimeOf(algorithm: Algorithm, declared: Parameters): number {
  const window = algorithm.window(declared, 0);
  const lifetime = endsWithWindow(algorithm) ? window : Math.floor(window / PART);
  return Math.min(LONGEST, Math.max(SHORTEST, lifetime));
}

/** Stricter parameters that allow units to be used later than they were charged, by the lifetime. Throws `RateLimitConfigError`. */
export function homeParameters(algorithm: Algorithm, declared: Parameters, location: string): Parameters {
  const capability = capabilityOf(algorithm);
  if (capability === undefined) {
    const able = algorithms.namesOf((each) => capabilityOf(each) !== undefined);
    throw configError('SLUICE_UNSUPPORTED_OPTION', worldMessages.notFor(location, algorithm.name, able));
  }
  const lifetime = lifetimeOf(algorithm, declared);
  const parameters = capability.parameters(declared, lifetime);
  if (parameters === undefined) throw new RateLimitConfigError(worldMessages.tooShort(location, lifetime / 1000));
  return parameters;
}

/** The time after which a full counter is empty again, in microseconds. */
export function horizonOf(algorithm: Algorithm, parameters: Parameters, now: number): number {
  const state = algorithm.open(parameters, undefined, now);
  algorithm.take(parameters, state, parameters.quota);
  return algorithm.resetAfter(parameters, state);
}
