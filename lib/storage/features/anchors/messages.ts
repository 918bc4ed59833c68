import { wrongInput } from '../../../engine/errors/wording.js';

/** The messages of limits whose windows begin at an anchor that each request brings. */
export const anchorMessages = {
  wrongAnchor: (limit: string, received: unknown) =>
    wrongInput(
      `anchor for limit '${limit}'`,
      "a Date, an ISO 8601 date such as '2026-01-31', milliseconds since the epoch, or null for the calendar's own window, of the years 1900 to 2199",
      received,
    ),
  noAnchor: (limit: string) =>
    `limit '${limit}' has an anchor by request: expected { anchor: date }, or { anchor: null } for the calendar's own window`,
  noAnchorHere: (location: string, limit: string) =>
    `${location}: limit '${limit}' has an anchor by request, which is unknown here. Use a limit with a fixed anchor`,
} as const;
