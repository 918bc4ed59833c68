import { listOf, wrongInput } from '../wording.js';

/** The messages of windows that begin at an anchor, and of prepaid units. */
export const planMessages = {
  anchorExpected: () =>
    "a Date, an ISO 8601 date such as '2026-01-31', milliseconds since the epoch, or a function of the context that returns " +
    'one of these, of the years 1900 to 2199',
  fixedAnchorExpected: () =>
    "a fixed date: an ISO 8601 date such as '2026-01-31', or milliseconds since the epoch, of the years 1900 to 2199",
  anchorPeriod: (location: string, period: string, able: readonly string[]) =>
    `${location}: option 'anchor' does not work with period '${period}'. Use ${listOf(able, 'or')}`,
  wrongCredits: (received: unknown) => wrongInput('credits', `a whole number >= 1 and <= ${2 ** 51}`, received),
  wrongCreditId: (received: unknown) => wrongInput('id of the credit', 'a string that is not empty', received),
  wrongCreditOptions: (received: unknown) =>
    wrongInput('options of the credit', "{ id: 'payment-1' } or nothing", received),
  noCredits: (limit: string) =>
    `limit '${limit}' takes no credits. Set the option 'credits' of the limit: { credits: true }`,
  noCreditStore: (limit: string) =>
    `the store of limit '${limit}' does not support credits. Use a store with the method 'credit'`,
  notAnchored: (limit: string) =>
    `limit '${limit}' takes no anchor: its option 'anchor' is not a function of the request. Remove 'anchor' from the call`,
} as const;
