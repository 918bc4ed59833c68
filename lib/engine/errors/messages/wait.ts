import { counted } from '../wording.js';

/** The messages of calls that wait for units. */
export const waitMessages = {
  tooMany: (limit: string, most: number) =>
    `limit '${limit}' has ${counted(most, 'call')} of this process waiting for one key, the maximum that option 'maxWaiters' allows`,
  tooManyInAll: (limit: string, all: number, most: number) =>
    `limit '${limit}' lets no more calls wait: ${all} of this process wait for units, ten times the maximum for one key that option 'maxWaiters' (${most}) allows`,
} as const;
