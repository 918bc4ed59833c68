import calculateSlot from 'cluster-key-slot';

/** The slots of a Cluster. */
export const SLOTS = 16_384;

const CHARACTERS = '0123456789abcdefghijklmnopqrstuvwxyz'.split('');

let tags: readonly string[] | undefined;

/** A hash tag for each slot, by slot: keys with the tag are in that slot. Computed once per process, on first use. */
export function slotTags(): readonly string[] {
  return (tags ??= findTags());
}

/** The tag for the slot of keys with another tag. */
export function tagBeside(tag: string): string {
  return slotTags()[calculateSlot(tag)]!;
}

/**
 * Tags that end in one more character: the hash is continued from there, instead of being computed from the start for each tag.
 */
function findTags(): readonly string[] {
  const found: string[] = Array.from({ length: SLOTS });
  let left = SLOTS;
  let shorter: { readonly tag: string; readonly crc: number }[] = [{ tag: '', crc: 0 }];
  while (left > 0) {
    const longer: typeof shorter = [];
    for (const { tag, crc } of shorter) {
      for (const character of CHARACTERS) {
        const next = { tag: tag + character, crc: crc16(crc, character.charCodeAt(0)) };
        longer.push(next);
        const slot = next.crc % SLOTS;
        if (found[slot] !== undefined) continue;
        found[slot] = next.tag;
        if (--left === 0) return found;
      }
    }
    shorter = longer;
  }
  return found;
}

/** One step of a Cluster's hash: CRC16, polynomial 0x1021. */
function crc16(crc: number, byte: number): number {
  crc ^= byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  return crc;
}
