import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { type Place, showPlace } from './located.js';
import type { Problems } from './problems.js';

/**
 * Calls a function that may throw `RateLimitConfigError`, with a location, and adds the error as a problem of that place.
 * Messages may name something within the location.
 */
export function attempt<T>(
  place: Place,
  problems: Problems,
  call: (location: string) => T,
  location = showPlace(place),
): T | undefined {
  try {
    return call(location);
  } catch (error) {
    if (!(error instanceof RateLimitConfigError)) throw error;
    const { message } = error;
    const isHere = message.startsWith(location);
    problems.add(place, isHere ? message.slice(message.indexOf(': ', location.length) + 2) : message);
    return undefined;
  }
}
