import { SLOTS } from '../../stores/redis/slot-tags.js';

/** Marks in an index that keys were left out. No key is empty. */
export const LEFT_OUT = '';

/**
 * The most keys of a limit that the index of one slot may have: its part of all keys, with enough room that hardly any are ever
 * left out, however they are spread over the slots. 0 for no bound.
 */
export function keysOfIndex(maxKeys: number | undefined): number {
  if (maxKeys === undefined) return 0;
  const mean = maxKeys / SLOTS;
  return Math.ceil(mean + 6 * Math.sqrt(mean) + 2);
}
