import { show } from '../wording.js';

/** Messages of `SluiceThrottlerStorage`. */
export const throttlerStorageMessages = {
  failing: (where: string, reason: string) => `${where} failed, so this process counts its hits in memory: ${reason}`,
  recovered: (where: string) => `${where} answers again, so hits are counted there`,
  replaced: (node: string) => `node ${node} no longer has any hits: other nodes have taken them over`,
  wrongNumber: (name: string, received: unknown) =>
    `increment: expected a number as ${name}, received ${show(received)}`,
  wrongReply: (received: unknown) => `Redis returned an invalid reply for a hit: ${show(received)}`,
} as const;
