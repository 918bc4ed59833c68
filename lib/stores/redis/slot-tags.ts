import calculateSlot from 'cluster-key-slot';

/** The slots of a Cluster. */
export const SLOTS = 16_384;

const CHARACTERS = '0123456789abcdefghijklmnopqrstuvwxyz'.split('');

let tags: readonly string[] | undefined;

/** A hash tag of each slot, by the slot: keys with it lie there. Found once a process, when they are asked for first. */
export function slotTags(): readonly string[] {
  return (tags ??= findTags());
}

/** The tag of the slot in which keys with another tag lie. */
export function tagBeside(tag: string): string {
  return slotTags()[calculateSlot(tag)]!;
}

/** A tag that ends in one more character: each step of the hash takes it on from there, in place of reckoning each tag from its start. */
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

/** A step of the hash of a Cluster: CRC16, polynomial 0x1021. */
function crc16(crc: number, byte: number): number {
  crc ^= byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  return crc;
}
