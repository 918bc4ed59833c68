import { listOf, show } from '../wording.js';
import { meant } from './options.js';

const words = (list: readonly string[]) =>
  listOf(
    list.map((word) => `'${word}'`),
    'or',
  );

/** The messages of priorities, and of what is kept for them. */
export const priorityMessages = {
  wrongPriority: (got: unknown, known: readonly string[]) => `priority is ${show(got)}, wants ${words(known)}`,
  unknownMember: (got: string, known: readonly string[]) =>
    `got the option '${got}'${meant(got, known)}, wants only ${listOf(known, 'and')}`,
} as const;
