import type { LimitDefinition } from '../../app/config/limit-definition.js';
import { isRecord } from '../../engine/util/objects.js';
import { type AskOptions, checkAskOptions } from '../../app/limiter/limit-checks.js';
import type { UpstreamParser } from '../../engine/limit-headers/upstream-report.js';
import {
  checkValue,
  knownOptions,
  refuseUnknown,
  wholeNumber,
  wrongOption,
} from '../../engine/options/check-options.js';
import { callableOrClass, orFunction } from '../../engine/options/kinds.js';
import type { OptionKind } from '../../engine/options/option-row.js';
import { type Duration, DURATION_FORM, isObject, milliseconds } from '../../engine/options/values.js';
import { parseUpstream, type Upstream, type UpstreamName, upstreams } from './headers/upstreams.js';

/**
 * A limit whose rate isn't known. All instances of the app learn it together; this requires the option `learn`. It starts at one call per
 * second, doubles the rate each second that it is used, and halves it when the upstream rejects a call; after that it grows slowly. Once
 * the upstream reports its quota and window in headers, these apply. A learned rate is forgotten after an hour without calls.
 */
export interface LearnedLimit {
  /** Selects a learned rate. */
  algo: 'learned';
  /** The name of the limit: 1 to 128 printable ASCII characters. It must not be the name of a defined limit. */
  name: string;
}

/**
 * The limits of calls: the name of a defined limit, a definition, or a list of these. A call takes units of all of them or of none.
 */
export type OutboundLimits =
  | string
  | LimitDefinition
  | LearnedLimit
  | readonly (string | LimitDefinition | LearnedLimit)[];

/** How rejected calls are sent again. */
export interface RetryOptions {
  /** Maximum number of times to send a call, including the first: a whole number >= 1. */
  attempts: number;
}

/**
 * A parser that needs the body of responses as parsed JSON. The call continues once the body was read. It continues without the body if
 * that is larger than 4 MB, or takes longer than 30 seconds or than the rest of the call's `timeout` (but at least a second).
 */
export interface BodyParser {
  /** Reads a response. */
  parse: UpstreamParser;
  /** True to pass the parser the `body` of JSON responses. */
  readsBody: boolean;
}

/** How outbound calls are limited. `Sent` is the type of the request, and `Answer` that of the response. */
export interface OutboundOptions<Sent, Answer> {
  /**
   * The key of the counter, usually the account at the upstream: a non-empty string, or a function of the request and the limit's name.
   * @default 'global': one counter for all calls
   */
  key?: (string | ((sent: Sent, limit: string) => string | Promise<string>)) | undefined;
  /**
   * The cost of a call: a whole number >= 0, or a function of the request and the limit's name that returns one. `concurrency` limits
   * ignore it and use their own cost.
   * @default the limit's own cost, or 1
   */
  cost?: (number | ((sent: Sent, limit: string) => number | Promise<number>)) | undefined;
  /**
   * The longest wait of a call, which then rejects with `RateLimitTimeoutError`: milliseconds or a duration such as `'30s'`, at most 1
   * year.
   * @default no timeout
   */
  timeout?: Duration | undefined;
  /**
   * Returns the actual cost of a call, a whole number >= 0 of the limit's units; the difference is charged or refunded. Return `undefined`
   * to leave the charge unchanged. This doesn't delay the response.
   * @default the charge is not changed
   */
  settle?: (answer: Answer, limit: string) => number | undefined | Promise<number | undefined>;
  /**
   * True to let limits learn from responses, for all instances of the app: they never have more units left than the upstream reports, and a
   * 429 or 503 with `Retry-After` blocks the key until then. Learning only makes a limit stricter. An object maps the names of your limits
   * to those of the upstream, such as `{ openai: 'tokens' }`. Without names, a limit follows one that counts requests or, with a `cost`,
   * one that counts another unit.
   * @default false
   */
  learn?: boolean | Readonly<Record<string, string>> | undefined;
  /**
   * How responses are read: the name of an upstream, or a function.
   * @default a parser of all known headers
   */
  parser?: UpstreamName | UpstreamParser | BodyParser | undefined;
  /**
   * The longest wait to accept from an upstream: milliseconds or a duration such as `'5m'`, at most 1 year.
   * @default '1h'
   */
  maxLearnedWait?: Duration | undefined;
  /**
   * Sends calls again that the upstream rejected with 429 or 503, or that the parser reports as rejected. A call waits a little longer than
   * `Retry-After`, then for its turn, ahead of calls that came later. It is charged again, as the upstream does. Not sent again: a body
   * that is a stream and, after a 503 without `Retry-After`, a `POST` or `PATCH` without an `Idempotency-Key`. If there isn't enough time,
   * the last rejection is the response.
   * @default each call is sent once
   */
  retry?: RetryOptions | undefined;
  /**
   * Orders calls that wait for the same counters: a number, or a function of the request. A call of priority 1 goes before calls of
   * priority 0 that came up to one `ageing` earlier, a call of priority 2 up to two; so no call waits forever.
   */
  priority?: (number | ((sent: Sent) => number)) | undefined;
  /**
   * The head start that one step of `priority` gives a call: milliseconds or a duration such as `'1m'`.
   * @default '1m'
   */
  ageing?: Duration | undefined;
}

/** How calls of `fetch` are limited. Functions get a copy of the request or response and may read its body. */
export type FetchOptions = OutboundOptions<Request, Response>;

/** Validated options with defaults filled in. */
export interface OutboundSettings<Sent, Answer> extends BodyParser, AskOptions<Sent> {
  readonly timeoutMs: number;
  readonly settle: OutboundOptions<Sent, Answer>['settle'];
  readonly priority: NonNullable<OutboundOptions<Sent, Answer>['priority']>;
  readonly ageingMs: number;
  readonly maxLearnedWaitMs: number;
  /** The names of the upstream's limits by the names of ours; or true if limits learn at all. */
  readonly learn: boolean | Readonly<Record<string, string>>;
  /** Maximum number of times to send a call. */
  readonly attempts: number;
}

const KNOWN = [
  'key',
  'cost',
  'timeout',
  'settle',
  'learn',
  'parser',
  'maxLearnedWait',
  'retry',
  'priority',
  'ageing',
] as const;
const FUNCTION = callableOrClass('a function');
const PRIORITY = orFunction({ expected: 'a number', isValid: Number.isFinite }, 'a function');
const WAIT: OptionKind = {
  expected: `${DURATION_FORM}, at most 1 year`,
  isValid: (value) => milliseconds(value) !== undefined,
};
const LEARN: OptionKind = {
  expected: "true, false, or the names of the upstream's limits by those of ours, such as { openai: 'tokens' }",
  isValid: (value) =>
    typeof value === 'boolean' || (isObject(value) && Object.values(value).every((each) => typeof each === 'string')),
};

/** Reads the options of calls. Throws `RateLimitConfigError`. */
export function readOptions<Sent, Answer>(given: unknown, location: string): OutboundSettings<Sent, Answer> {
  const options = knownOptions<OutboundOptions<Sent, Answer>>(location, given === undefined ? {} : given, KNOWN);
  const { key = 'global', cost, timeout, settle, priority = 0, ageing = '1m' } = options;
  const { learn = false, parser, maxLearnedWait = '1h', retry } = options;
  checkAskOptions(location, key, cost, 'a function');
  if (settle !== undefined) checkValue(location, 'settle', settle, FUNCTION);
  checkValue(location, 'priority', priority, PRIORITY);
  const timeoutMs = timeout === undefined ? Infinity : readWait(location, 'timeout', timeout);
  const ageingMs = readWait(location, 'ageing', ageing);
  const maxLearnedWaitMs = readWait(location, 'maxLearnedWait', maxLearnedWait);
  checkValue(location, 'learn', learn, LEARN);
  const read = { ...readParser(parser, location), attempts: readAttempts(retry, location) };
  return { ...read, location, key, cost, timeoutMs, settle, priority, ageingMs, maxLearnedWaitMs, learn };
}

function readWait(location: string, option: string, given: Duration): number {
  checkValue(location, option, given, WAIT);
  return milliseconds(given)!;
}

function readParser(parser: unknown, location: string): BodyParser {
  if (parser === undefined) return { parse: parseUpstream, readsBody: false };
  if (typeof parser === 'function') return { parse: parser as UpstreamParser, readsBody: false };
  const known: Upstream | undefined =
    typeof parser === 'string' && Object.hasOwn(upstreams, parser) ? upstreams[parser as UpstreamName] : undefined;
  const { parse, readsBody = false } = known ?? ((isRecord(parser) ? parser : {}) as Partial<Upstream>);
  if (typeof parse === 'function' && typeof readsBody === 'boolean') return { parse, readsBody };
  const expected = `one of ${Object.keys(upstreams).join(', ')}, a function, or { parse, readsBody }`;
  throw wrongOption(location, 'parser', parser, expected);
}

function readAttempts(retry: unknown, location: string): number {
  if (retry === undefined) return 1;
  if (!isRecord(retry)) throw wrongOption(location, 'retry', retry, 'an object such as { attempts: 3 }');
  refuseUnknown(`${location}.retry`, retry, ['attempts']);
  return wholeNumber(`${location}.retry`, 'attempts', retry['attempts']);
}
