import { show } from '../../errors/wording.js';

/** The messages of limits that warm up. */
export const warmUpMessages = {
  tooLong: (location: string, received: unknown) =>
    `${location}.for: a warm-up of ${show(received)} cannot be counted in whole numbers with this rate. Make it shorter, or use a 'rate' and an 'interval' that divide each other`,
} as const;
