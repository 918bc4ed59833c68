import { show } from '../wording.js';

/** The messages of calls that take as many units as there are. */
export const upToMessages = {
  wrongUpTo: (got: unknown) => `upTo is ${show(got)}, wants a whole number >= 1`,
  withCost: (cost: unknown, upTo: unknown) =>
    `got cost ${show(cost)} and upTo ${show(upTo)}, wants one of them: upTo takes as many units as there are`,
  held: (limit: string, algo: string) =>
    `limit '${limit}' of algo '${algo}' holds units until they are released, so 'upTo' cannot take what is there; wants a 'cost'`,
  notOfAll: (limit: string) =>
    `LimiterService.check: limit '${limit}' has no 'upTo', wants it for all limits of the check or for none: each gives the same number`,
  shared: (limit: string) =>
    `LimiterService.check: several limits of the check are within limit '${limit}', so 'upTo' would take another number of it; wants ` +
    'a check for each',
  notReserved:
    "LimiterService.reserve: got the option 'upTo', wants a 'cost': only consume, peek and check take what is there",
} as const;
