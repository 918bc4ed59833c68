import { date, decimal, lengthOfTime, textOf } from './field-values.js';
import type { UpstreamResponse } from './upstream-report.js';

/** From here on a number is a time since the epoch in seconds (1973), and in milliseconds (1973, too). */
const EPOCH_SECONDS = 1e8;
const EPOCH_MS = 1e11;
/** More seconds than a day has are milliseconds. */
const MOST_SECONDS = 86_400;
/** The upstream's clock is believed to be ours, unless its `Date` differs by more: that one has whole seconds, and came a while ago. */
const MOST_SKEW_MS = 5000;

/** The time at which a response was made, in milliseconds since the epoch, on the upstream's clock. */
export function upstreamNow({ headers, receivedAt }: UpstreamResponse): number {
  const told = date(textOf(headers, 'date'));
  return told === undefined || Math.abs(told - receivedAt) <= MOST_SKEW_MS ? receivedAt : told;
}

/**
 * Reads when a limit is reset, in milliseconds from now: of seconds or milliseconds from now, of a time since the epoch in either,
 * of a date, or of a length of time such as `6m0s`. A time that is over is now.
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

/** Reads `Retry-After`: seconds, which some give with a part, or a date; and `Retry-After-Ms`, which is finer. */
export function retryAfterMs(response: UpstreamResponse): number | undefined {
  const fine = decimal(textOf(response.headers, 'retry-after-ms'));
  if (fine !== undefined) return fine;
  const text = textOf(response.headers, 'retry-after');
  const seconds = decimal(text);
  if (seconds !== undefined) return seconds * 1000;
  const at = date(text);
  return at === undefined ? undefined : Math.max(0, at - upstreamNow(response));
}
