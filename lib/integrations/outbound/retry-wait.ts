import type { ReadReport } from './headers/read-upstream.js';

/** The first wait if the upstream sends none. Each further wait is twice the last. */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** The share of a wait that is added at random, so that calls don't all come back at once; and the maximum to add. */
const JITTER = 0.1;
const MOST_JITTER_MS = 1000;
const SERVICE_UNAVAILABLE = 503;
/** With other methods, a second call may repeat an action. */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

/** The facts that decide if a call may be sent again. */
export interface SentCall {
  readonly method: string;
  /** True if it has an `Idempotency-Key`. */
  readonly hasKey: boolean;
  /** True if its body can be sent again. */
  readonly canRepeat: boolean;
}

/**
 * Returns how long to wait before a call is sent again, in milliseconds, and never less than the upstream requires; `undefined` if it must
 * not be sent again.
 *
 * @param attempt how many times it was sent
 * @param random from 0 to 1
 */
export function retryWaitMs(
  { method, hasKey, canRepeat }: SentCall,
  { refused, retryAfterMs }: ReadReport,
  status: number,
  attempt: number,
  random: number,
): number | undefined {
  if (!refused || !canRepeat) return undefined;
  // The upstream may have started to process it.
  const isUnclear = status === SERVICE_UNAVAILABLE && retryAfterMs === undefined;
  if (isUnclear && !hasKey && !IDEMPOTENT.has(method.toUpperCase())) return undefined;
  if (retryAfterMs !== undefined) return retryAfterMs + random * Math.min(JITTER * retryAfterMs, MOST_JITTER_MS);
  const longest = Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), LONGEST_WAIT_MS);
  return longest * (0.5 + random / 2);
}
