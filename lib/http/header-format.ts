import { validateHeaderName, validateHeaderValue } from 'node:http';
import { serializeInteger, serializeString } from 'structured-headers';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import type { CheckResult, Decision } from '../limits/decision.js';
import type { LimitInfo } from './limit-info.js';

/** Makes response headers of a result; `limits` are in the order of `result.decisions`. */
export type HeaderFormatter = (result: CheckResult, limits: readonly LimitInfo[]) => Record<string, string>;

/** The name of a header format, or a formatter. */
export type HeaderFormat = 'draft-8' | 'draft-6' | 'legacy' | HeaderFormatter;

/** What the option `headers` takes. */
export type HeaderOption = HeaderFormat | readonly HeaderFormat[] | false;

/** The largest whole number of a structured field (RFC 9651). */
const MAX_INTEGER = 999_999_999_999_999;

/** What never changes of a limit's part in the headers. */
interface Serialised {
  readonly name: string;
  readonly policy: string;
  readonly policyWithoutName: string;
}

const serialised = new WeakMap<LimitInfo, Serialised>();

/** draft-ietf-httpapi-ratelimit-headers-08; the wire form did not change up to 11. */
const draft8: HeaderFormatter = ({ decisions }, limits) => {
  const parts = limits.map(serialise);
  const states = decisions.map((decision, index) => {
    const t = secondsLeft(decision);
    const state = `${parts[index]?.name};r=${integer(decision.remaining)}`;
    return t === undefined ? state : `${state};t=${integer(t)}`;
  });
  return { 'RateLimit-Policy': parts.map(({ policy }) => policy).join(', '), RateLimit: states.join(', ') };
};

/** draft-ietf-httpapi-ratelimit-headers-06: three plain numbers, of the tightest limit. */
const draft6: HeaderFormatter = ({ tightest }, limits) => ({
  'RateLimit-Policy': limits.map((limit) => serialise(limit).policyWithoutName).join(', '),
  ...numbers('RateLimit', tightest),
});

/** What was usual before there were drafts; the reset is in seconds from now. */
const legacy: HeaderFormatter = ({ tightest }) => numbers('X-RateLimit', tightest);

const formatters: ReadonlyMap<unknown, HeaderFormatter> = new Map([
  ['draft-8', draft8],
  ['draft-6', draft6],
  ['legacy', legacy],
]);

/** Reads the option `headers`. */
export function headerFormatters(option: HeaderOption, location: string): HeaderFormatter[] {
  if (option === false) return [];
  const formats: readonly HeaderFormat[] = Array.isArray(option) ? option : [option as HeaderFormat];
  return formats.map((format) => {
    const formatter = typeof format === 'function' ? checked(format) : formatters.get(format);
    if (formatter !== undefined) return formatter;
    const wants = `one of ${[...formatters.keys()].join(', ')}, a function, a list of these, or false`;
    throw new RateLimitConfigError(messages.wrongOption(location, 'headers', option, wants));
  });
}

/** Fails where it gives what no response can hold, which Fastify would notice only as it answers. */
function checked(format: HeaderFormatter): HeaderFormatter {
  return (result, limits) => {
    const headers = format(result, limits);
    for (const [name, value] of Object.entries(headers)) {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    }
    return headers;
  };
}

/** The longest wait, in seconds, of the limits that refused; nothing if none of them ever fits. */
export function retryAfter({ allowed, decisions }: CheckResult, limits: readonly LimitInfo[]): string | undefined {
  if (allowed) return undefined;
  const waits = decisions
    .filter((decision, index) => !decision.allowed && limits[index]?.shadow !== true)
    .map(({ retryAfterMs }) => retryAfterMs)
    .filter((wait) => Number.isFinite(wait));
  return waits.length === 0 ? undefined : String(Math.max(1, Math.ceil(Math.max(...waits) / 1000)));
}

function numbers(prefix: string, decision: Decision): Record<string, string> {
  const reset = secondsLeft(decision);
  return {
    [`${prefix}-Limit`]: String(decision.quota),
    [`${prefix}-Remaining`]: String(decision.remaining),
    ...(reset === undefined ? {} : { [`${prefix}-Reset`]: String(reset) }),
  };
}

function secondsLeft({ allowed, retryAfterMs, resetAfterMs }: Decision): number | undefined {
  const ms = allowed ? resetAfterMs : retryAfterMs;
  return Number.isFinite(ms) ? Math.ceil(ms / 1000) : undefined;
}

function serialise(limit: LimitInfo): Serialised {
  let known = serialised.get(limit);
  if (known === undefined) {
    const name = serializeString(limit.name);
    const q = integer(limit.quota);
    const w = integer(Math.max(1, Math.ceil(limit.windowMs / 1000)));
    const { quotaUnit } = limit;
    // Requests are the unit unless the policy says another.
    const unitOrWindow = quotaUnit === 'requests' ? `w=${w}` : `qu=${serializeString(quotaUnit)}`;
    known = { name, policy: `${name};q=${q};${unitOrWindow}`, policyWithoutName: `${q};w=${w}` };
    serialised.set(limit, known);
  }
  return known;
}

function integer(value: number): string {
  return serializeInteger(Math.min(value, MAX_INTEGER));
}
