import type { UpstreamResponse } from './upstream-report.js';

/** The longest field value to read. */
const LONGEST = 4096;

/** Integers up to the largest of 64 bits, which has 20 digits and stands for "never" or "unlimited". */
const DECIMAL = /^\d{1,20}(?:\.\d{1,17})?$/;
const UNIT_MS: Readonly<Record<string, number>> = {
  d: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 0.001,
  µs: 0.001,
  ns: 0.000001,
};
const PARTS = /(\d{1,17}(?:\.\d{1,17})?)(ms|us|µs|ns|d|h|m|s)/gy;

/** The value of a field without surrounding white space; `undefined` if it is absent, empty or too long. */
export function textOf(headers: { get(name: string): string | null }, name: string): string | undefined {
  const value: unknown = headers.get(name);
  if (typeof value !== 'string' || value.length > LONGEST) return undefined;
  const text = value.trim();
  return text === '' ? undefined : text;
}

/** A number >= 0; `undefined` for anything else, negative numbers included. */
export function decimal(text: string | undefined): number | undefined {
  return text !== undefined && DECIMAL.test(text) ? Number(text) : undefined;
}

/** Whole units, rounded down: a fraction of a unit is of no use. */
export function units(text: string | undefined): number | undefined {
  const value = decimal(text);
  return value === undefined ? undefined : Math.floor(value);
}

/** A length of time such as `6m0s` or `120ms`, in milliseconds. */
export function lengthOfTime(text: string | undefined): number | undefined {
  if (text === undefined || text.length > 100) return undefined;
  let total = 0;
  let read = 0;
  for (const [part, count, unit] of text.matchAll(PARTS)) {
    total += Number(count) * UNIT_MS[unit!]!;
    read += part.length;
  }
  return read > 0 && read === text.length ? total : undefined;
}

/** A date of RFC 9110 or RFC 3339, in milliseconds since the epoch; no other text that JavaScript accepts as a date. */
export function date(text: string | undefined): number | undefined {
  if (text === undefined || text.length > 64) return undefined;
  if (!/^[A-Z][a-z]{2,8}, |^[A-Z][a-z]{2} [A-Z][a-z]{2} |^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}/.test(text))
    return undefined;
  // The asctime form has no zone, and means UTC.
  const time = Date.parse(/^[A-Z][a-z]{2} /.test(text) ? `${text} GMT` : text);
  return Number.isFinite(time) ? time : undefined;
}

/** Numbers from here on are seconds since the epoch (since 1973). Numbers 10³, 10⁶ and 10⁹ times as large are ms, µs and ns. */
const EPOCH_SECONDS = 1e8;
const EPOCH_UNITS_MS = [1e-6, 1e-3, 1];
/** No limit is reset before 2001, so a unit that leads there is too small. "Never" may be the year 9999 in ms. */
const EARLIEST_MS = 1e12;
/** Numbers larger than the seconds of a day are milliseconds. */
const MOST_SECONDS = 86_400;
/** Smaller differences between `Date` and the local clock are ignored: `Date` has whole seconds and is a little old on arrival. */
const MOST_SKEW_MS = 5000;

/** When a response was created: milliseconds since the epoch on the upstream's clock. */
export function upstreamNow({ headers, receivedAt }: UpstreamResponse): number {
  const sent = date(textOf(headers, 'date'));
  return sent === undefined || Math.abs(sent - receivedAt) <= MOST_SKEW_MS ? receivedAt : sent;
}

/**
 * Reads when a limit is reset, in milliseconds from now. The field may contain seconds or milliseconds from now, seconds, milliseconds,
 * microseconds or nanoseconds since the epoch, a date, or a duration such as `6m0s`. A time in the past is read as now.
 */
export function resetAfterMs(response: UpstreamResponse, name: string): number | undefined {
  const text = textOf(response.headers, name);
  if (text === undefined) return undefined;
  const number = decimal(text);
  if (number === undefined) {
    const at = date(text);
    return at === undefined ? lengthOfTime(text) : Math.max(0, at - upstreamNow(response));
  }
  if (number >= EPOCH_SECONDS) {
    const unit = EPOCH_UNITS_MS.find((ms) => number * ms >= EARLIEST_MS) ?? 1000;
    return Math.max(0, number * unit - upstreamNow(response));
  }
  return number > MOST_SECONDS ? number : number * 1000;
}

/** Reads `Retry-After` (seconds, possibly with a fraction, or a date) and the more precise `Retry-After-Ms`. */
export function retryAfterMs(response: UpstreamResponse): number | undefined {
  const fine = decimal(textOf(response.headers, 'retry-after-ms'));
  if (fine !== undefined) return fine;
  const text = textOf(response.headers, 'retry-after');
  const seconds = decimal(text);
  if (seconds !== undefined) return seconds * 1000;
  const at = date(text);
  return at === undefined ? undefined : Math.max(0, at - upstreamNow(response));
}
