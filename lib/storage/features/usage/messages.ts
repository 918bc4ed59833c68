import { show } from '../../../engine/errors/wording.js';

/** The messages of limits that record the units that they charge. */
export const usageMessages = {
  notRecorded: (location: string, algo: string) =>
    `${location}: units of ${algo} are given back when the work ends, so they cannot be recorded, wants 'usage' with another algorithm`,
  noUsage: (limit: string) =>
    `limit '${limit}' records no usage, wants the option 'usage' of the limit, such as { usage: '400d' }`,
  leftOut: (limit: string, maxKeys: number) =>
    `limit '${limit}' was charged for more keys than its usage records: 'maxKeys' is ${maxKeys}, and those that came later are in no invoice`,
  noStore: (limit: string) =>
    `the store of limit '${limit}' records no usage, wants a store with 'usage' and 'usageOf'`,
  wrongTime: (option: string, got: unknown) =>
    `${option} is ${show(got)}, wants a Date, milliseconds since the epoch, or an ISO 8601 text such as '2026-11-01' or '2026-11-01T12:00Z'`,
  wrongRange: (from: string, to: string) => `from is ${from} and to is ${to}, wants from no later than to`,
  wrongBatch: (got: unknown, max: number) => `batch is ${show(got)}, wants a whole number >= 1 and <= ${max}`,
  notOptions: (got: unknown) => `got ${show(got)}, wants an object of options`,
  wrongReply: (key: string, got: unknown) => `the usage of ${show(key)} on Redis is ${show(got)}, wants days and units`,
} as const;
