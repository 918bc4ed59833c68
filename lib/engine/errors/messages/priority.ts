import { listOf, unknownName, wrongInput } from '../wording.js';

const words = (list: readonly string[]) =>
  listOf(
    list.map((word) => `'${word}'`),
    'or',
  );

/** The messages of priorities, and of the units that are reserved for them. */
export const priorityMessages = {
  wrongPriority: (received: unknown, known: readonly string[]) => wrongInput('priority', words(known), received),
  unknownMember: (received: string, known: readonly string[]) => unknownName('option', received, known),
} as const;
