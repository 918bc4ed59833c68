import { show } from '../wording.js';

/** The messages of limits that warm up. */
export const warmUpMessages = {
  wants: () => "{ for, from } such as { for: '5m', from: 0.3 }",
  tooLong: (location: string, got: unknown) =>
    `${location}: option 'for' is ${show(got)}, which cannot be counted in whole numbers beside this rate; wants it shorter, or a 'rate' and an 'interval' that divide each other`,
  intervally: (location: string) =>
    `${location}: options 'warmUp' and refill 'intervally' exclude each other, wants one of them`,
} as const;
