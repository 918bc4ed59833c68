import { listOf } from '../../../engine/errors/wording.js';

/** The messages of limits with a candidate. */
export const candidateMessages = {
  holds: (location: string, received: string, algo: string) =>
    `${location}.algo: the limit has '${algo}' and its candidate '${received}'. Use 'concurrency' for both or for none`,
  sameAsLimit: (location: string, option: string, own: readonly string[]) =>
    `${location}: option '${option}' is always that of the limit. A candidate can only set ${listOf(own, 'or')}`,
  anchor: (location: string) =>
    `${location}.anchor: expected a fixed date, received a function: a candidate uses the anchor that the function of the limit returns`,
} as const;
