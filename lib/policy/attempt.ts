import { RateLimitConfigError } from '../errors/errors.js';
import { type Place, showPlace } from './located.js';
import type { Problems } from './problems.js';

/** Calls what throws `RateLimitConfigError` for a mistake, with a location, and adds that as a problem of the place. */
export function attempt<T>(place: Place, problems: Problems, call: (location: string) => T): T | undefined {
  const location = showPlace(place);
  try {
    return call(location);
  } catch (error) {
    if (!(error instanceof RateLimitConfigError)) throw error;
    const { message } = error;
    const start = `${location}: `;
    problems.add(place, message.startsWith(start) ? message.slice(start.length) : message);
    return undefined;
  }
}
