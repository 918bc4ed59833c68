import { isPromise } from '../../../engine/util/awaitable.js';
import type {
  UpstreamLimit,
  UpstreamParser,
  UpstreamReport,
  UpstreamResponse,
} from '../../../engine/limit-headers/upstream-report.js';

/** A parser's report without implausible values: units are whole, and no time is longer than the longest accepted wait. */
export interface ReadReport {
  readonly limits: readonly UpstreamLimit[];
  readonly retryAfterMs: number | undefined;
  readonly refused: boolean;
}

const MOST_LIMITS = 20;
const LONGEST_NAME = 128;
const SERVICE_UNAVAILABLE = 503;
const TOO_MANY_REQUESTS = 429;

/** Reads a response with a parser and drops implausible values. Never throws, even if the parser does. */
export function readUpstream(parse: UpstreamParser, response: UpstreamResponse, maxWaitMs: number): ReadReport {
  const isRefusal = response.status === TOO_MANY_REQUESTS || response.status === SERVICE_UNAVAILABLE;
  try {
    const report = parse(response);
    // A promise comes too late to report. Its rejection must not be unhandled.
    if (isPromise<unknown>(report)) report.then(undefined, () => undefined);
    const { limits, retryAfterMs, refused } = (report ?? {}) as Partial<UpstreamReport>;
    const listed: readonly unknown[] = Array.isArray(limits) ? limits.slice(0, MOST_LIMITS) : [];
    return {
      limits: listed.flatMap((limit) => read(limit, maxWaitMs)),
      retryAfterMs: waitOf(retryAfterMs, maxWaitMs),
      refused: typeof refused === 'boolean' ? refused : isRefusal,
    };
  } catch {
    return { limits: [], retryAfterMs: undefined, refused: isRefusal };
  }
}

function read(limit: unknown, maxWaitMs: number): UpstreamLimit[] {
  if (typeof limit !== 'object' || limit === null) return [];
  const { name, unit, quota, remaining, resetAfterMs, windowMs, refill } = limit as Partial<UpstreamLimit>;
  return [
    {
      name: shortText(name) ?? '',
      unit: shortText(unit),
      quota: unitsOf(quota),
      remaining: unitsOf(remaining),
      resetAfterMs: waitOf(resetAfterMs, maxWaitMs),
      windowMs: waitOf(windowMs, maxWaitMs),
      refill: refill === 'gradual' ? 'gradual' : 'at-reset',
    },
  ];
}

function shortText(text: unknown): string | undefined {
  return typeof text === 'string' && text !== '' ? text.slice(0, LONGEST_NAME) : undefined;
}

function unitsOf(value: unknown): number | undefined {
  if (typeof value !== 'number' || !(value >= 0)) return undefined;
  return Math.min(Math.floor(value), Number.MAX_SAFE_INTEGER);
}

function waitOf(value: unknown, most: number): number | undefined {
  return typeof value === 'number' && value >= 0 ? Math.min(value, most) : undefined;
}
