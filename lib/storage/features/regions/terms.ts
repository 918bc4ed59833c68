import type { Algorithm, Parameters } from '../../../engine/algorithms/algorithm.js';
import { algorithms } from '../../../engine/algorithms/index.js';
import { RateLimitConfigError } from '../../../engine/errors/errors.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { worldMessages } from './messages.js';

/** The scope of a limit that counts over several regions. */
export const WORLD = 'world';

/** How long a region may hold units, in microseconds: a fortieth of the interval, or a whole window with which they end, within these bounds. */
const SHORTEST = 500_000;
const LONGEST = 10_000_000;
const PART = 40;

/** What units that a region holds are not subject to, or what would have to be known of them at once. */
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

/** That a limit counts over several regions. */
export interface WorldTerms {
  readonly scope: typeof WORLD;
}

/** The terms of a limit with `scope: 'world'`. Throws `RateLimitConfigError` if another option does not go with it. */
export function worldTerms(options: object, location: string): WorldTerms | undefined {
  const given = options as Readonly<Record<string, unknown>>;
  if (given['scope'] !== WORLD) return undefined;
  const excluded = EXCLUDED.find((option) => given[option] !== undefined && given[option] !== false);
  const other = excluded ?? (typeof given['anchor'] === 'function' ? 'anchor' : undefined);
  if (other !== undefined)
    throw new RateLimitConfigError(worldMessages.excluded(location, other), { code: 'SLUICE_EXCLUDED_OPTIONS' });
  return { scope: WORLD };
}

/** Refuses a limit that cannot count over several regions, whether the app has any or not. Throws `RateLimitConfigError`. */
export function checkWorld(options: object, limit: CompiledLimit | undefined, location: string): void {
  if (worldTerms(options, location) === undefined || limit === undefined) return;
  homeParameters(limit.algorithm, limit.parameters, location);
}

/** How an algorithm lets units be used a little after they were charged. */
function capabilityOf({ granting, prefetch }: Algorithm) {
  return granting ?? prefetch;
}

/** Whether units of an algorithm must be used before the window ends in which they were charged. */
export function endsWithWindow(algorithm: Algorithm): boolean {
  return capabilityOf(algorithm)?.endsWithWindow === true;
}

/** For how long a region may hold units, in microseconds. */
export function lifetimeOf(algorithm: Algorithm, declared: Parameters): number {
  const window = algorithm.window(declared, 0);
  const lifetime = endsWithWindow(algorithm) ? window : Math.floor(window / PART);
  return Math.min(LONGEST, Math.max(SHORTEST, lifetime));
}

/** Stricter parameters, by which units may be used so long after they were charged. Throws `RateLimitConfigError`. */
export function homeParameters(algorithm: Algorithm, declared: Parameters, location: string): Parameters {
  const capability = capabilityOf(algorithm);
  if (capability === undefined) {
    const able = algorithms.namesOf((each) => capabilityOf(each) !== undefined);
    throw new RateLimitConfigError(worldMessages.notFor(location, algorithm.name, able), {
      code: 'SLUICE_UNSUPPORTED_OPTION',
    });
  }
  const lifetime = lifetimeOf(algorithm, declared);
  const parameters = capability.parameters(declared, lifetime);
  if (parameters === undefined) throw new RateLimitConfigError(worldMessages.tooShort(location, lifetime / 1000));
  return parameters;
}

/** The time after which a counter that is full is fresh again, in microseconds. */
export function horizonOf(algorithm: Algorithm, parameters: Parameters, now: number): number {
  const state = algorithm.open(parameters, undefined, now);
  algorithm.take(parameters, state, parameters.quota);
  return algorithm.resetAfter(parameters, state);
}
