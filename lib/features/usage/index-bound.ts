import { SLOTS } from '../../stores/redis/slot-tags.js';

/** Stands in an index for keys that were left out of it. No key is empty. */
export const LEFT_OUT = '';

/**
 * The most keys of a limit that an index may have, which is of one slot: its part of all of them, and so much more that hardly one of
 * them is ever left out, however they are spread over the slots. 0 for no bound.
 */
export function keysOfIndex(maxKeys: number | undefined): number {
  if (maxKeys === undefined) return 0;
  const mean = maxKeys / SLOTS;
  return Math.ceil(mean + 6 * Math.sqrt(mean) + 2);
}
