import { retryAfterMs } from '../../engine/limit-headers/field-values.js';
import { rateLimitFields, xRateLimitFields } from '../../engine/limit-headers/rate-limit-fields.js';
import type { UpstreamLimit } from '../../engine/limit-headers/upstream-report.js';

/** A call that wasn't sent, since its turn would come later than `maxWait` allows. */
export class PacedError extends Error {
  /** `'PacedError'`. */
  override readonly name = 'PacedError';
  /** The error's code: `'SLUICE_NOT_SENT'`. */
  readonly code = 'SLUICE_NOT_SENT';

  /** Whole milliseconds until the server is expected to allow the call. */
  readonly retryAfterMs: number;

  /** Makes an error for a call that can be sent after a wait in milliseconds. */
  constructor(retryAfterMs: number) {
    super(`not sent: the server allows the next call in ${Math.ceil(retryAfterMs / 1000)} s`);
    this.retryAfterMs = Math.ceil(retryAfterMs);
  }
}

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
const MOST_ORIGINS = 100;

/**
 * Makes a `fetch` that waits before the server would reject a call. It reads `RateLimit`, `RateLimit-Policy`, `X-RateLimit-*` and
 * `Retry-After` of all responses, and remembers what they report per origin and limit. While nothing is known, it sends one call and waits
 * for its response. A call rejects with the reason of its signal also while it waits. Throws `RangeError` for a wrong option,
 * and `TypeError` for a `fetch` that isn't a function.
 *
 * @param fetch what sends the calls; by default the global one
 * @param options how long calls wait, and how often they are sent
 */
export function paced(fetch?: typeof globalThis.fetch, options: PacedOptions = {}): typeof globalThis.fetch {
  if (fetch !== undefined && typeof fetch !== 'function') {
    const hint = typeof fetch === 'object' && fetch !== null ? '; options are the second argument' : '';
    throw new TypeError(`paced: expected a fetch function, received ${shown(fetch)}${hint}`);
  }
  const { maxWait, attempts } = readOptions(options);
  const send: typeof globalThis.fetch = fetch ?? ((input, init) => globalThis.fetch(input, init));
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
      const call = await origin.turn(path, deadline, signal, notBefore);
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

function readOptions(options: unknown): { readonly maxWait: number; readonly attempts: number } {
  if (typeof options !== 'object' || options === null)
    throw new TypeError(`paced: expected an object of options, received ${shown(options)}`);
  const { maxWait = 60_000, attempts = 3, ...others } = options as Record<string, unknown>;
  if (typeof maxWait !== 'number' || !(maxWait >= 0))
    throw new RangeError(`maxWait: expected a number of milliseconds, received ${shown(maxWait)}`);
  // Infinity is allowed: `Number.isInteger` would refuse it.
  if (typeof attempts !== 'number' || !(attempts >= 1 && attempts === Math.floor(attempts)))
    throw new RangeError(`attempts: expected a whole number >= 1, received ${shown(attempts)}`);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw new RangeError(`paced: expected the options maxWait and attempts, received '${unknown}'`);
  return { maxWait, attempts };
}

function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
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

/** While nothing is known of a limit, one call asks the server; others wait for its response, but not longer than this. */
const PROBE_MS = 2000;
/** How long a reported count is used if the server doesn't report when it ends. */
const USUAL_WINDOW_MS = 1000;
/** A limit that three responses in a row don't report is forgotten. */
const MOST_MISSES = 3;
/** Maximum number of paths and of limits of an origin. */
const MOST_KEPT = 1000;
/** The longest time of a timer. */
const LONGEST_MS = 2 ** 31 - 1;

/** A limit of the server, as its responses report it. */
interface Policy {
  readonly key: string;
  /** True if a call takes one of its units. */
  countsCalls: boolean;
  /** Units that were left by the last report. */
  left: number;
  /** When the report ends; from then on nothing is known. */
  until: number;
  /** Calls without a response, which the report may not include. */
  inFlight: number;
  /** How many calls were sent before the report. */
  reportedAt: number;
  /** The call that asks the server, while nothing is known. */
  probe: Call | undefined;
  misses: number;
}

/** A call that waits to be sent, or was sent. */
interface Call {
  /** Its method and path, which identify its limits. */
  readonly path: string;
  /** When it must have been sent at the latest, and may be sent at the earliest. */
  readonly deadline: number;
  readonly notBefore: number;
  policies: readonly Policy[];
  /** How many calls were sent before it, and when it was sent. */
  order: number;
  sentAt: number;
  /** Sends it, or rejects with an error. */
  settle: (error?: { readonly reason: unknown }) => void;
}

interface Report {
  readonly limits: readonly UpstreamLimit[];
  /** How long to wait after a rejection; `undefined` if the call wasn't rejected. */
  readonly waitMs: number | undefined;
}

/** Calls to an origin, and what is known of its limits. Times are those of `performance.now()`. */
class Origin {
  private readonly policies = new Map<string, Policy>();
  /** The limits that the responses of a path reported. */
  private readonly paths = new Map<string, Set<Policy>>();
  private waiting: Call[] = [];
  private sent = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    // The first response shows which limits there are.
    this.policies.set('', unknown(''));
  }

  /**
   * Resolves when a call may be sent; `answered` ends it. A call that is sent again goes ahead of others. Rejects with the reason of the
   * signal, or with `PacedError`.
   */
  turn(path: string, deadline: number, signal: AbortSignal | null, notBefore?: number): Promise<Call> {
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.waiting = this.waiting.filter((other) => other !== call);
        call.settle({ reason: signal!.reason });
        // Its timer would keep a process alive.
        this.sendAll();
      };
      const call: Call = {
        path,
        deadline,
        notBefore: notBefore ?? -Infinity,
        policies: [],
        order: 0,
        sentAt: 0,
        settle(error) {
          signal?.removeEventListener('abort', abort);
          if (error === undefined) resolve(call);
          else reject(error.reason);
        },
      };
      if (signal?.aborted === true) return call.settle({ reason: signal.reason });
      signal?.addEventListener('abort', abort);
      if (notBefore === undefined) this.waiting.push(call);
      else this.waiting.unshift(call);
      this.sendAll();
    });
  }

  /** Notes what a response reports; nothing if there was no response. */
  answered(call: Call, report: Report | undefined): void {
    const now = performance.now();
    const reported = (report?.limits ?? [])
      .filter(({ remaining }) => remaining !== undefined)
      .map((limit) => this.note(limit, call, now));
    for (const policy of call.policies) {
      policy.inFlight--;
      if (policy.probe === call) policy.probe = undefined;
      // The server may have counted it.
      if (policy.countsCalls && !reported.includes(policy)) policy.left--;
    }
    if (report !== undefined) this.learn(call, reported, report.waitMs, now);
    this.sendAll();
  }

  private learn({ path, policies }: Call, reported: readonly Policy[], waitMs: number | undefined, now: number): void {
    let known = this.paths.get(path);
    if (known === undefined) keep(this.paths, path, (known = new Set()));
    for (const policy of reported) known.add(policy);
    for (const policy of policies) {
      if (reported.includes(policy) || now < policy.until || ++policy.misses < MOST_MISSES) continue;
      known.delete(policy);
      if (this.policies.get(policy.key) === policy) this.policies.delete(policy.key);
    }
    if (waitMs === undefined) return;
    const used = reported.filter(({ left }) => left <= 0);
    if (used.length === 0) {
      // A rejection for an unknown reason concerns the path.
      used.push(unknown(path));
      known.add(used[0]!);
    }
    for (const policy of used) policy.until = Math.max(policy.until, now + waitMs);
  }

  private note(limit: UpstreamLimit, call: Call, now: number): Policy {
    const { name, unit, quota, remaining, resetAfterMs, windowMs } = limit;
    const key = name === '' ? `${quota} ${windowMs}` : `"${name}"`;
    let policy = this.policies.get(key);
    if (policy === undefined) keep(this.policies, key, (policy = unknown(key)));
    const left = remaining!;
    const until = now + (resetAfterMs ?? windowMs ?? USUAL_WINDOW_MS);
    // The response to a call that was sent before the last report may be older than that.
    if (call.order >= policy.reportedAt || now >= policy.until || left < policy.left) {
      policy.left = left;
      policy.until = until;
    }
    policy.countsCalls = unit === undefined || unit === 'requests';
    policy.reportedAt = this.sent;
    policy.misses = 0;
    return policy;
  }

  /** Sends each call whose turn it is, and looks again when that may be so for the next one. */
  private sendAll(): void {
    clearTimeout(this.timer);
    const now = performance.now();
    let next = Infinity;
    this.waiting = this.waiting.filter((call) => {
      const policies = this.policiesOf(call.path);
      const at = Math.max(call.notBefore, ...policies.map((policy) => freeAt(policy, now)));
      if (at <= now) {
        this.send(call, policies, now);
        return false;
      }
      const least = Math.max(
        call.notBefore,
        ...policies.map((policy) => (policy.left > 0 ? now : freeAt(policy, now))),
      );
      if (least > call.deadline || now >= call.deadline) {
        call.settle({ reason: new PacedError(at - now) });
        return false;
      }
      next = Math.min(next, at, call.deadline);
      return true;
    });
    if (next < Infinity) this.timer = setTimeout(() => this.sendAll(), Math.min(Math.ceil(next - now), LONGEST_MS));
  }

  private policiesOf(path: string): readonly Policy[] {
    let known = this.paths.get(path);
    // A path that wasn't called before has the limits of its origin.
    if (known === undefined && this.policies.size > 0) return [...this.policies.values()];
    if (known === undefined) keep(this.paths, path, (known = new Set([unknown(path)])));
    return [...known];
  }

  private send(call: Call, policies: readonly Policy[], now: number): void {
    call.policies = policies;
    call.order = this.sent++;
    call.sentAt = now;
    for (const policy of policies) {
      policy.inFlight++;
      if (now >= policy.until) policy.probe = call;
    }
    call.settle();
  }
}

/** A limit of which nothing is known; forgotten if the first response doesn't report it. */
function unknown(key: string): Policy {
  const nothing = { left: 0, until: -Infinity, inFlight: 0, reportedAt: 0, probe: undefined };
  return { key, countsCalls: true, misses: MOST_MISSES - 1, ...nothing };
}

/** When a call may be sent as far as a limit is concerned; a response may show that it's earlier. */
function freeAt({ left, until, inFlight, countsCalls, probe }: Policy, now: number): number {
  if (now >= until) return probe === undefined ? now : probe.sentAt + PROBE_MS;
  return left > (countsCalls ? inFlight : 0) ? now : until;
}

/** Adds an entry; the oldest one makes room. */
function keep<T>(map: Map<string, T>, key: string, value: T, most = MOST_KEPT): void {
  if (map.size >= most) map.delete(map.keys().next().value!);
  map.set(key, value);
}
