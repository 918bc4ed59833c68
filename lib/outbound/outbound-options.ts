import type { Duration } from '../algorithms/options.js';
import type { LimitDefinition } from '../config/limit-definition.js';
import type { UpstreamParser } from './headers/upstream-report.js';
import type { UpstreamName } from './headers/upstreams.js';

/**
 * A limit whose rate is not known: it is learnt, by all instances of the app together, and needs the option `learn`. It begins with a
 * call a second, doubles the rate each second that is used, and halves it when the upstream refuses; from then on it grows slowly.
 * Once the upstream tells its quota and window in headers, these hold. What is learnt is forgotten after an hour without calls.
 */
export interface LearnedLimit {
  /** Says that the rate is learnt. */
  algo: 'learned';
  /** Identifies the limit: 1 to 128 printable ASCII characters, and the name of no defined limit. */
  name: string;
}

/** The limits of calls: a defined limit's name, a definition, or a list of these, of which a call takes units of all or of none. */
export type OutboundLimits =
  | string
  | LimitDefinition
  | LearnedLimit
  | readonly (string | LimitDefinition | LearnedLimit)[];

/** How calls that were refused are sent again. */
export interface RetryOptions {
  /** How often a call is sent at most, the first time included: a whole number >= 1. */
  attempts: number;
}

/**
 * A parser that needs the body of responses, read as JSON: a call goes on once it has come. A body of more than 4 MB is not read, nor one
 * that takes longer than what is left of the call's `timeout` (at least a second) or than 30 seconds: then the call goes on without.
 */
export interface BodyParser {
  /** Reads a response. */
  parse: UpstreamParser;
  /** True: the parser gets the `body` of responses that are JSON. */
  readsBody: boolean;
}

/** How calls to others' APIs are limited. `Sent` is what is sent, and `Answer` what comes back. */
export interface OutboundOptions<Sent, Answer> {
  /**
   * The key of the counter, any string that is not empty, or a function that gives it of what is sent and of the limit's name: the
   * account at the upstream, as a rule.
   * @default 'global', one counter for all calls
   */
  key?: string | ((sent: Sent, limit: string) => string | Promise<string>);
  /**
   * The units of a call: a whole number >= 0, or a function of what is sent and of the limit's name that returns one. Limits of
   * `concurrency` are asked for their own cost.
   * @default the limit's own cost, or 1
   */
  cost?: number | ((sent: Sent, limit: string) => number | Promise<number>);
  /**
   * The longest wait of a call: milliseconds or a duration such as `'30s'`, at most 1 year. It ends with `RateLimitTimeoutError`.
   * @default no end
   */
  timeout?: Duration;
  /**
   * Says what a call cost in the end, a whole number >= 0 of the limit's units; the difference is charged or given back. Nothing leaves
   * the charge as it was. It does not hold up the response.
   * @default the charge stays
   */
  settle?: (answer: Answer, limit: string) => number | undefined | Promise<number | undefined>;
  /**
   * Whether limits learn from responses, for all instances of the app: they have no more left than the upstream says, and a 429 or 503
   * with `Retry-After` blocks the key until then. An object says which of the upstream's limits each of ours follows, by its name:
   * `{ openai: 'tokens' }`; else it is one that counts requests, or, with a `cost`, what is no request. Limits only ever get tighter by
   * it.
   * @default false
   */
  learn?: boolean | Readonly<Record<string, string>>;
  /**
   * What reads responses: the name of an upstream, or a function.
   * @default any headers that are known
   */
  parser?: UpstreamName | UpstreamParser | BodyParser;
  /**
   * The longest wait that an upstream is believed: milliseconds or a duration such as `'5m'`, at most 1 year.
   * @default '1h'
   */
  maxLearnedWait?: Duration;
  /**
   * Sends calls again that the upstream refused: with 429, with 503, or as the parser says. It waits for what `Retry-After` says,
   * and a little longer, and then for its turn, before calls that came later; it is charged again, as the upstream does. A body that is
   * a stream is not sent twice; nor is, after a 503 without `Retry-After`, a `POST` or `PATCH` that has no `Idempotency-Key`. The last
   * refusal is the response if there is no more time.
   * @default each call is sent once
   */
  retry?: RetryOptions;
  /**
   * Orders calls that wait for the same counters: a number, or a function of what is sent. A call of priority 1 goes before those of 0
   * that came up to one `ageing` before it, one of 2 up to two; so nobody waits for ever.
   * @default 0
   */
  priority?: number | ((sent: Sent) => number);
  /**
   * How much earlier one step of `priority` puts a call: milliseconds or a duration such as `'1m'`.
   * @default '1m'
   */
  ageing?: Duration;
}

/** How calls of `fetch` are limited. Functions get a copy of the request or of the response, whose body they may read. */
export type FetchOptions = OutboundOptions<Request, Response>;
