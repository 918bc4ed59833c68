import { show } from '../wording.js';

/** The messages of calls from code, and of limits that calls to others' APIs and jobs name in their options. */
export const askMessages = {
  noLimits: (location: string, got: unknown) =>
    `${location}: got ${show(got)}, wants the name of a defined limit, a limit such as { name: 'api', algo: 'gcra', rate: 10, interval: '1s' }, or a ` +
    'list of these',
  sameLimitTwice: (location: string, name: string) =>
    `${location}: the limit '${name}' is in the list twice, wants it once`,
  wrongKeyOf: (location: string, limit: string, got: unknown) =>
    `${location}: the function 'key' gave ${show(got)} for limit '${limit}', wants a string that is not empty`,
  wrongCostOf: (location: string, limit: string, got: unknown) =>
    `${location}: the function 'cost' gave ${show(got)} for limit '${limit}', wants a whole number >= 0`,
  notAtOnce: (limit: string) =>
    `limit '${limit}' is not counted in this process, so consumeSync cannot decide it: call consume, or give it ` +
    "scope: 'instance'",
} as const;
