import { rateLimitFields, xRateLimitFields } from '../../engine/limit-headers/rate-limit-fields.js';
import { retryAfterMs } from '../../engine/limit-headers/field-values.js';
import { type Call, keep, Origin, type Report } from './origin.js';

/** The options of `paced`. */
export interface PacedOptions {
  /**
   * The longest time that a call waits in total before it is sent, in milliseconds. A call that would wait longer rejects with `PacedError`.
   * @default 60_000
   */
  maxWait?: number | undefined;
  /**
   * Maximum number of times to send a call that the server rejects with 429, or with 503 and `Retry-After`: a whole number >= 1. Only calls with
   * idempotent methods are sent again: GET, HEAD, OPTIONS, PUT and DELETE. 1 returns each rejection.
   * @default 3
   */
  attempts?: number | undefined;
}

const IDEMPOTENT = /^(?:GET|HEAD|OPTIONS|PUT|DELETE)$/i;
/** The first wait if a rejection reports none; each further one is twice the last. */
const FIRST_WAIT_MS = 500;
/** The share by which the wait before a call is sent again is lengthened at random, and the most that this adds. */
const JITTER = 0.1;
const MOST_JITTER_MS = 1000;
/** Maximum number of origins. */
const MOST_ORIGINS = 100;

/**
 * Makes a `fetch` that waits before the server would reject a call. It reads `RateLimit`, `RateLimit-Policy`, `X-RateLimit-*` and
 * `Retry-After` of all responses, and remembers what they report per origin and limit. While nothing is known, it sends one call and waits
 * for its response. A call rejects with the reason of its signal also while it waits. Throws `RangeError` for a wrong option.
 *
 * @param fetch what sends the calls; by default the global one
 * @param options how long calls wait, and how often they are sent
 */
export function paced(fetch?: typeof globalThis.fetch, options: PacedOptions = {}): typeof globalThis.fetch {
  const send: typeof globalThis.fetch = fetch ?? ((input, init) => globalThis.fetch(input, init));
  const { maxWait = 60_000, attempts = 3 } = options;
  if (!(maxWait >= 0)) throw new RangeError(`maxWait: expected milliseconds, received ${String(maxWait)}`);
  if (!(attempts >= 1)) throw new RangeError(`attempts: expected a whole number >= 1, received ${String(attempts)}`);
  const origins = new Map<string, Origin>();

  return async (input, init) => {
    const request = typeof input === 'object' && 'url' in input ? input : undefined;
    const url = urlOf(request?.url ?? (input as string | URL));
    // The server of a wrong URL is unknown, and `fetch` has an error for it.
    if (url === undefined) return send(input, init);
    const named = init?.method ?? request?.method ?? 'GET';
    const method = IDEMPOTENT.test(named) ? named.toUpperCase() : named;
    // `null` takes the signal off a request.
    const signal = (init?.signal === undefined ? request?.signal : init.signal) ?? null;
    const body: unknown = init?.body;
    const canRepeat = IDEMPOTENT.test(method) && !isStream(body);
    const deadline = performance.now() + maxWait;
    const path = `${method} ${url.pathname}`;
    const origin = origins.get(url.origin) ?? new Origin();
    // Those that weren't called for the longest time are forgotten.
    origins.delete(url.origin);
    keep(origins, url.origin, origin, MOST_ORIGINS);
    let notBefore: number | undefined;
    for (let attempt = 1; ; attempt++) {
      const call: Call = await origin.turn(path, deadline, signal, notBefore);
      let report: Report | undefined;
      try {
        const isLast = !canRepeat || attempt >= attempts;
        const response = await send(request !== undefined && !isLast ? request.clone() : input, init);
        report = reportOf(response, attempt);
        const { waitMs } = report;
        if (waitMs === undefined || isLast || performance.now() + waitMs > deadline) return response;
        notBefore = performance.now() + waitMs + Math.random() * Math.min(waitMs * JITTER, MOST_JITTER_MS);
        discard(response);
      } finally {
        origin.answered(call, report);
      }
    }
  };
}

function reportOf({ status, headers }: Response, attempt: number): Report {
  const response = { status, headers, receivedAt: Date.now() };
  const fields = rateLimitFields(response);
  const wait = retryAfterMs(response);
  const limits = fields.length > 0 ? fields : xRateLimitFields(response);
  const isRejected = status === 429 || (status === 503 && wait !== undefined);
  const used = limits.filter(({ remaining }) => remaining === 0).map(({ resetAfterMs = 0 }) => resetAfterMs);
  return {
    limits,
    waitMs: isRejected ? (wait ?? (Math.max(0, ...used) || FIRST_WAIT_MS * 2 ** (attempt - 1))) : undefined,
  };
}

/** Frees the connection of a response that nobody reads. The call goes on even if that fails. */
function discard({ body }: Response): void {
  // Not every `fetch` has streams of the web.
  if (typeof body?.cancel === 'function') body.cancel().catch(() => undefined);
}

/** A URL, also one that is relative to a page. */
function urlOf(text: string | URL): URL | undefined {
  const { location } = globalThis as { readonly location?: { readonly href: string } };
  try {
    return new URL(text, location?.href);
  } catch {
    return undefined;
  }
}

function isStream(body: unknown): boolean {
  return typeof body === 'object' && body !== null && ('getReader' in body || Symbol.asyncIterator in body);
}
