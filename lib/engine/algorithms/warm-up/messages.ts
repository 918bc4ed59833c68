import { show } from '../../errors/wording.js';

/** The messages of limits that warm up. */
export const warmUpMessages = {
  tooLong: (location: string, got: unknown) =>
    `${location}: option 'for' is ${show(got)}, which cannot be counted in whole numbers beside this rate; wants it shorter, or a 'rate' and an 'interval' that divide each other`,
} as const;
