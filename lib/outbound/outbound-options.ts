import type { Duration } from '../algorithms/options.js';
import type { LimitDefinition } from '../config/limit-definition.js';

/** The limits of calls: a defined limit's name, a definition, or a list of these, of which a call takes units of all or of none. */
export type OutboundLimits = string | LimitDefinition | readonly (string | LimitDefinition)[];

/** How calls to others' APIs are limited. `Sent` is what is sent, and `Answer` what comes back. */
export interface OutboundOptions<Sent, Answer> {
  /**
   * The key of the counter, any string that is not empty, or a function that gives it of what is sent and of the limit's name: the
   * account at the upstream, as a rule.
   * @default 'global', one counter for all calls
   */
  key?: string | ((sent: Sent, limit: string) => string | Promise<string>);
  /**
   * The units of a call, a whole number >= 1, or a function that gives it of what is sent and of the limit's name. Limits of
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
