import { show } from '../wording.js';

/** The messages of windows that begin at an anchor, and of prepaid units. */
export const planMessages = {
  anchorWants: () =>
    "a Date, an ISO 8601 date such as '2026-01-31', milliseconds since the epoch, or a function of the context that gives " +
    'one of these; of the years 1900 to 2199',
  fixedAnchorWants: () =>
    "a fixed date: an ISO 8601 date such as '2026-01-31', or milliseconds since the epoch; of the years 1900 to 2199",
  anchorPeriod: (location: string, period: string, able: readonly string[]) =>
    `${location}: option 'anchor' is given with period '${period}', wants one of ${able.join(', ')}`,
  wrongCredits: (got: unknown) => `credits are ${show(got)}, wants a whole number >= 1 and <= ${2 ** 51}`,
  wrongCreditId: (got: unknown) => `the id of a credit is ${show(got)}, wants a string that is not empty`,
  wrongCreditOptions: (got: unknown) =>
    `the options of a credit are ${show(got)}, wants { id: 'payment-1' } or nothing`,
  noCredits: (limit: string) =>
    `limit '${limit}' takes no credits, wants the option 'credits' of the limit: { credits: true }`,
  noCreditStore: (limit: string) => `the store of limit '${limit}' keeps no credits, wants one that has 'credit'`,
  notAnchored: (limit: string) =>
    `limit '${limit}' got an anchor, wants none: its option 'anchor' is not a function of the request`,
} as const;
