import { wrongInput } from '../../../engine/errors/wording.js';

/** The messages of limits of which instances take units in advance. */
export const prefetchMessages = {
  tooLong: (location: string, ttl: unknown) =>
    wrongInput(
      `${location}.prefetch.ttl`,
      "a time so short that less than the quota flows back in it, and no refill 'intervally'",
      ttl,
    ),
} as const;
