import { show, wrongInput } from '../../../engine/errors/wording.js';

/** The messages of limits that record the units that they charge. */
export const usageMessages = {
  notRecorded: (location: string, algo: string) =>
    `${location}: units of ${algo} are returned when the work ends, so they cannot be recorded. Use 'usage' with another algorithm`,
  noUsage: (limit: string) =>
    `limit '${limit}' records no usage. Set the option 'usage' of the limit, such as { usage: '400d' }`,
  leftOut: (limit: string, maxKeys: number) =>
    `limit '${limit}' was charged for more keys than its usage records: 'maxKeys' is ${maxKeys}, and later keys are missing from invoices`,
  noStore: (limit: string) => `the store of limit '${limit}' records no usage. Use a store with 'usage' and 'usageOf'`,
  wrongTime: (option: string, received: unknown) =>
    wrongInput(
      option,
      "a Date, milliseconds since the epoch, or an ISO 8601 text such as '2026-11-01' or '2026-11-01T12:00Z'",
      received,
    ),
  wrongRange: (from: string, to: string) => `from: expected a time no later than 'to' (${to}), received ${from}`,
  wrongBatch: (received: unknown, max: number) => wrongInput('batch', `a whole number >= 1 and <= ${max}`, received),
  notOptions: (received: unknown) => wrongInput('options', 'an object of options', received),
  wrongReply: (key: string, received: unknown) =>
    wrongInput(`usage of ${show(key)} on Redis`, 'days and units', received),
} as const;
