import { wrongInput } from '../wording.js';

/** The messages of calls from code, and of limits in the options of outgoing API calls and jobs. */
export const askMessages = {
  noLimits: (location: string, received: unknown) =>
    wrongInput(
      location,
      "the name of a defined limit, a limit such as { name: 'api', algo: 'gcra', rate: 10, interval: '1s' }, or a list of these",
      received,
    ),
  sameLimitTwice: (location: string, name: string) =>
    `${location}: the limit '${name}' is in the list twice. List it once`,
  wrongKeyOf: (location: string, limit: string, received: unknown) =>
    wrongInput(`${location}.key for limit '${limit}'`, 'the function to return a string that is not empty', received),
  wrongCostOf: (location: string, limit: string, received: unknown) =>
    wrongInput(`${location}.cost for limit '${limit}'`, 'the function to return a whole number >= 0', received),
  notAtOnce: (limit: string) =>
    `limit '${limit}' is not counted in this process, so consumeSync cannot decide it. Call consume, or give the limit ` +
    "scope: 'instance'",
} as const;
