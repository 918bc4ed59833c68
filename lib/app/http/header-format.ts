import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { CheckedLimit, CheckResult, Decision } from '../../engine/limits/decision.js';
import { isPromise } from '../../engine/util/awaitable.js';
import type { ExecutionContext } from '@nestjs/common';
import type { LimitInfo } from './limit-info.js';
import { wrongOption } from '../../engine/options/check-options.js';

/**
 * Returns response headers for a result. `limits` are in the order of `result.decisions`; hidden limits are in neither of them. `context`
 * belongs to the request.
 */
export type HeaderFormatter = (
  result: CheckResult,
  limits: readonly LimitInfo[],
  context: ExecutionContext,
) => Record<string, string>;

/** A built-in format, which doesn't need the context. */
type OwnFormatter = (result: CheckResult, limits: readonly LimitInfo[]) => Record<string, string>;

/** The name of a header format, or a formatter. */
export type HeaderFormat = 'draft-8' | 'draft-6' | 'legacy' | HeaderFormatter;

/** The values of the option `headers`. */
export type HeaderOption = HeaderFormat | readonly HeaderFormat[] | false;

/** The largest integer of a structured field (RFC 9651). */
const MAX_INTEGER = 999_999_999_999_999;

/** The constant parts of the headers for limits that are checked together. */
interface SerialisedList {
  readonly names: readonly string[];
  readonly policies: string;
  readonly policiesWithoutNames: string;
  /** The factor of each limit's units in the headers, if any limit counts bytes. */
  readonly bytes: readonly number[] | undefined;
}

const serialisedLists = new WeakMap<readonly LimitInfo[], SerialisedList>();

/** draft-ietf-httpapi-ratelimit-headers-08; the wire format is unchanged up to draft 11. */
const draft8: OwnFormatter = ({ decisions }, limits) => {
  const { names, policies, bytes } = serialiseAll(limits);
  let states = '';
  for (let index = 0; index < decisions.length; index++) {
    const decision = decisions[index]!;
    const t = secondsLeft(decision);
    if (index > 0) states += ', ';
    const left = bytes === undefined ? decision.remaining : decision.remaining * bytes[index]!;
    states += `${names[index]};r=${integer(left)}`;
    if (t !== undefined) states += `;t=${integer(t)}`;
  }
  return { 'RateLimit-Policy': policies, RateLimit: states };
};

/** draft-ietf-httpapi-ratelimit-headers-06: three plain numbers for the tightest limit. */
const draft6: OwnFormatter = ({ tightest }, limits) => ({
  'RateLimit-Policy': serialiseAll(limits).policiesWithoutNames,
  ...numbers('RateLimit', tightest),
});

/** The headers that were common before the drafts; the reset is in seconds from now. */
const legacy: OwnFormatter = ({ tightest }) => numbers('X-RateLimit', tightest);

const formatters: ReadonlyMap<unknown, HeaderFormatter> = new Map([
  ['draft-8', draft8],
  ['draft-6', draft6],
  ['legacy', legacy],
]);

const ownFormats: ReadonlySet<HeaderFormatter> = new Set(formatters.values());

/** Returns true for a built-in format, whose headers need no checks. */
export function isOwnFormat(formatter: HeaderFormatter): boolean {
  return ownFormats.has(formatter);
}

/** Returns true if a formatter returned an object of headers, rather than an array or a `Map`. */
export function isHeaders(made: unknown): boolean {
  return typeof made === 'object' && made !== null && !(Symbol.iterator in made) && !isPromise(made);
}

/** Reads the option `headers`. */
export function headerFormatters(option: HeaderOption, location: string): HeaderFormatter[] {
  if (option === false) return [];
  const formats: readonly HeaderFormat[] = Array.isArray(option) ? option : [option as HeaderFormat];
  return formats.map((format) => {
    const formatter = typeof format === 'function' ? checked(format) : formatters.get(format);
    if (formatter !== undefined) return formatter;
    const expected = `one of ${[...formatters.keys()].join(', ')}, a function, a list of these, or false`;
    throw wrongOption(location, 'headers', option, expected);
  });
}

/** Throws if the formatter returns invalid headers, which Fastify would only notice when it sends them. */
function checked(format: HeaderFormatter): HeaderFormatter {
  return (result, limits, context) => {
    const headers = format(result, limits, context);
    if (!isHeaders(headers)) return headers;
    for (const [name, value] of Object.entries(headers)) {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    }
    return headers;
  };
}

/** The longest wait of the limits that rejected, in seconds; `undefined` if the request can never fit. */
export function retryAfter({ allowed, decisions }: CheckResult, limits: readonly CheckedLimit[]): string | undefined {
  if (allowed) return undefined;
  const waits = decisions
    .filter((decision, index) => !decision.allowed && limits[index]?.limit.shadow !== true)
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

function serialiseAll(limits: readonly LimitInfo[]): SerialisedList {
  let known = serialisedLists.get(limits);
  if (known === undefined) {
    const parts = limits.map(serialise);
    known = {
      names: parts.map(({ name }) => name),
      policies: parts.map(({ policy }) => policy).join(', '),
      policiesWithoutNames: parts.map(({ policyWithoutName }) => policyWithoutName).join(', '),
      bytes: limits.some(({ bytesPerUnit }) => bytesPerUnit !== undefined)
        ? limits.map(({ bytesPerUnit = 1 }) => bytesPerUnit)
        : undefined,
    };
    serialisedLists.set(limits, known);
  }
  return known;
}

/** The part of a limit's headers that never changes. */
function serialise(limit: LimitInfo) {
  const name = quoted(limit.name);
  const q = integer(limit.quota);
  const w = integer(Math.max(1, Math.ceil(limit.windowMs / 1000)));
  const { quotaUnit, bytesPerUnit } = limit;
  const policyWithoutName = `${q};w=${w}`;
  if (bytesPerUnit !== undefined) {
    const bytes = integer(limit.quota * bytesPerUnit);
    return { name, policy: `${name};q=${bytes};qu=${quoted(quotaUnit)};w=${w}`, policyWithoutName };
  }
  // The unit is requests unless the policy specifies another one.
  const unitOrWindow = quotaUnit === 'requests' ? `w=${w}` : `qu=${quoted(quotaUnit)}`;
  return { name, policy: `${name};q=${q};${unitOrWindow}`, policyWithoutName };
}

function integer(value: number): string {
  return String(Math.min(value, MAX_INTEGER));
}

/** A string of RFC 9651. Names and units are printable ASCII. */
function quoted(text: string): string {
  return '"' + text.replaceAll('\\', '\\\\').replaceAll('"', '\\"') + '"';
}
