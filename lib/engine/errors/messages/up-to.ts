import { show, wrongInput } from '../wording.js';

/** The messages of calls with `upTo`. */
export const upToMessages = {
  wrongUpTo: (received: unknown) => wrongInput('upTo', 'a whole number >= 1', received),
  withCost: (cost: unknown, upTo: unknown) =>
    `options: expected either 'cost' or 'upTo', received cost ${show(cost)} and upTo ${show(upTo)}; upTo takes as many units as there are`,
  held: (limit: string, algo: string) =>
    `limit '${limit}' of algo '${algo}' holds units until they are released, so it does not support 'upTo'. Use 'cost'`,
  notOfAll: (limit: string) =>
    `LimiterService.check: limit '${limit}' has no 'upTo'. Give it to all limits of the check or to none: each gives the same number`,
  shared: (limit: string) =>
    `LimiterService.check: several limits of the check are within limit '${limit}', so 'upTo' would take a different number from it. Use ` +
    'a separate check for each',
  notReserved:
    "LimiterService.reserve: 'upTo' is not supported. Use 'cost': only consume, peek and check accept 'upTo'",
} as const;
