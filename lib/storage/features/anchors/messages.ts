import { show } from '../../../engine/errors/wording.js';

/** The messages of limits whose windows begin where the request says. */
export const anchorMessages = {
  wrongAnchor: (limit: string, got: unknown) =>
    `the anchor for limit '${limit}' is ${show(got)}, wants a Date, an ISO 8601 date such as '2026-01-31', milliseconds since the ` +
    "epoch, or null for the calendar's own window; of the years 1900 to 2199",
  noAnchor: (limit: string) =>
    `limit '${limit}' has an anchor by request, wants { anchor: date }, or { anchor: null } for the calendar's own window`,
  noAnchorHere: (location: string, limit: string) =>
    `${location}: limit '${limit}' has an anchor by request, wants a fixed one: nothing says here where its windows begin`,
} as const;
