import { counted } from '../wording.js';

/** The messages of calls that wait for units. */
export const waitMessages = {
  tooMany: (limit: string, most: number) =>
    `limit '${limit}' has ${counted(most, 'call')} of this process waiting for one key, the most that option 'maxWaiters' allows`,
  tooManyInAll: (limit: string, all: number, most: number) =>
    `limit '${limit}' lets no more calls wait: ${all} of this process wait for units, ten times what option 'maxWaiters' (${most}) allows for one key`,
} as const;
