import { show } from '../../../engine/errors/wording.js';

/** The messages of limits of which instances take units in advance. */
export const prefetchMessages = {
  tooLong: (location: string, ttl: unknown) =>
    `${location}: option 'prefetch.ttl' is ${show(ttl)}, wants it so short that less than the quota flows back in it, and no refill 'intervally'`,
} as const;
