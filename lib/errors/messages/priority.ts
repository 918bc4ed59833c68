import { listOf, show } from '../wording.js';

const words = (list: readonly string[]) =>
  listOf(
    list.map((word) => `'${word}'`),
    'or',
  );

/** The messages of priorities, and of what is kept for them. */
export const priorityMessages = {
  wrongPriority: (got: unknown, known: readonly string[]) => `priority is ${show(got)}, wants ${words(known)}`,
  unknownMember: (got: string, known: readonly string[]) =>
    `got the option '${got}', wants only ${listOf(known, 'and')}`,
  reserveForWants: (known: readonly string[]) =>
    `an object of shares by priority, ${words(known)}, each more than 0 and together less than 1, such as { critical: 0.2 }`,
  reserveForWith: (location: string, other: string) =>
    `${location}: options 'reserveFor' and '${other}' exclude each other, wants one of them`,
} as const;
