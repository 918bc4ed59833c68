import { planMessages } from '../errors/messages/rates.js';
import { readLater } from '../options/kinds.js';
import type { OptionRow } from '../options/option-row.js';
import { readDate, TimeZone } from '../util/time-zone.js';
import { wrongOption } from '../options/check-options.js';

/**
 * The start of a window, from which all other windows are counted: a `Date`; an ISO 8601 date such as `'2026-01-31'` or
 * `'2026-01-31T09:30'`, in the limit's time zone unless it contains an offset; or milliseconds since the epoch.
 */
export type Anchor = Date | string | number;

/**
 * A function of a request, in the form that algorithms know: they have no type for its context, so a function of any context is accepted.
 */
interface Asking {
  anchor(context: unknown): Anchor | null | undefined | Promise<Anchor | null | undefined>;
}

/** The `anchor` in a limit's options: fixed, or a function of the context. */
export type AnchorOption = Anchor | Asking['anchor'];

const ISO_DATE = /^\d{4}-\d{2}-\d{2}(T.+)?$/;

/** Anchors must be in these years, so that seconds, or dates of other calendars, are not mistaken for dates. */
const FIRST_YEAR = 1900;
const LAST_YEAR = 2200;

export const anchorOption = {
  kind: readLater({
    expected: planMessages.fixedAnchorExpected(),
    isValid: (value) => readAnchor(value, 'UTC') !== undefined,
    schema: { anyOf: [{ type: 'number' }, { type: 'string', pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}(T.+)?$' }] },
  }),
  text: "The date at which windows begin, such as '2026-01-31': an ISO 8601 date, or milliseconds.",
  usual: "as the calendar's own",
} as const satisfies OptionRow;

/** Returns true if a function of the request determines the start of a limit's windows. */
export function asksForAnchor(options: object): options is Pick<Asking, 'anchor'> {
  return typeof (options as { anchor?: unknown }).anchor === 'function';
}

/** Reads a fixed anchor into milliseconds since the epoch. Throws `RateLimitConfigError`. */
export function fixedAnchor(anchor: unknown, timezone: string, location: string): number {
  const at = readAnchor(anchor, timezone);
  if (at === undefined) throw wrongOption(location, 'anchor', anchor, planMessages.anchorExpected());
  return at;
}

/** Milliseconds since the epoch; `undefined` if it isn't an anchor. */
export function readAnchor(anchor: unknown, timezone: string): number | undefined {
  const zone = TimeZone.named(timezone);
  const at = zone && timeOf(anchor, zone);
  if (zone === undefined || at === undefined || !isFinite(new Date(at).getTime())) return undefined;
  // NaN if the local time is beyond the last date.
  const year = new Date(zone.localTime(at)).getUTCFullYear();
  return year >= FIRST_YEAR && year < LAST_YEAR ? Math.floor(at) : undefined;
}

function timeOf(anchor: unknown, zone: TimeZone): number | undefined {
  if (anchor instanceof Date) return anchor.getTime();
  if (typeof anchor === 'number') return anchor;
  return typeof anchor === 'string' && ISO_DATE.test(anchor) ? readDate(anchor, zone) : undefined;
}
