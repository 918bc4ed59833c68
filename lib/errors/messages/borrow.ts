import { listOf } from '../wording.js';

/** The messages of limits that borrow of those that they are within, and of those that lend. */
export const borrowMessages = {
  ceilingWants: (rate: number) => `a whole number >= ${rate}, the 'rate'`,
  lendsWants: () => 'a number >= 0 and <= 1, the share of the quota that borrowers may use',
  ceilingAlone: (location: string) =>
    `${location}: option 'ceiling' needs 'within', the name of the limit whose units are borrowed`,
  notBorrowing: (location: string, algo: string, able: readonly string[]) =>
    `${location}: units of ${algo} cannot be borrowed, wants 'ceiling' with ${listOf(able, 'or')}`,
  exclude: (location: string, option: string, other: string) =>
    `${location}: options '${option}' and '${other}' exclude each other, wants one of them`,
} as const;
