import { date, decimal, lengthOfTime, textOf } from './field-values.js';
import type { UpstreamResponse } from './upstream-report.js';

/** Numbers from here on are seconds since the epoch (since 1973), and numbers a thousand times as large are milliseconds. */
const EPOCH_SECONDS = 1e8;
const EPOCH_MS = 1e11;
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
 * Reads when a limit is reset, in milliseconds from now. The field may contain seconds or milliseconds, from now or since the epoch, a
 * date, or a duration such as `6m0s`. A time in the past is read as now.
 */
export function resetAfterMs(response: UpstreamResponse, name: string): number | undefined {
  const text = textOf(response.headers, name);
  if (text === undefined) return undefined;
  const number = decimal(text);
  if (number === undefined) {
    const at = date(text);
    return at === undefined ? lengthOfTime(text) : Math.max(0, at - upstreamNow(response));
  }
  if (number >= EPOCH_MS) return Math.max(0, number - upstreamNow(response));
  if (number >= EPOCH_SECONDS) return Math.max(0, number * 1000 - upstreamNow(response));
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
