import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { type Place, showPlace } from './located.js';
import type { Problems } from './problems.js';

/** The part of a location that a message is about, and the rest of the message: `.rate: expected ...`. */
const OF_PART = /^(.*?): (.*)$/s;

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
    const [, within, here] = (message.startsWith(location) && OF_PART.exec(message.slice(location.length))) || [];
    problems.add(place, here ?? message, location === showPlace(place) ? within : withoutEnd(within, place.path));
    return undefined;
  }
}

/** The part of a location, without the beginning that the path of the place already ends with. */
function withoutEnd(within: string | undefined, path: string): string | undefined {
  const steps = within?.match(/\.[^.[]+|\[[^\]]*\]/g) ?? [];
  const known = steps
    .map((_, index) => steps.slice(0, steps.length - index).join(''))
    .find((each) => path.endsWith(each));
  return within?.slice(known?.length ?? 0);
}
