import type { ExecutionContext } from '@nestjs/common';
import type { AlgorithmOptions } from '../algorithms/index.js';
import type { Duration } from '../algorithms/options.js';
import type { RefusalBody, RefusalMessage } from '../http/refusal-answer.js';
import type { LimitKey } from '../key-resolvers/index.js';
import type { OnStoreError } from '../limits/limit-settings.js';
import type { Priority } from '../limits/priority.js';
import type { ReservedShares } from '../limits/reserve-terms.js';

/** The handling of a request without a key for a limit. */
export type OnMissingKey = 'ip' | 'skip' | 'refuse';

/** The handling of a call of a transport that no reader reads. */
export type OnMissingReader = 'refuse' | 'skip';

/** The moment at which a limit is checked. */
export type Phase = 'middleware' | 'guard' | 'authenticated';

/** The instances of the app that count together. */
export type Scope = 'cluster' | 'instance';

/** The end of a request. */
export interface Outcome {
  /** Whether it failed: with an error, a status from 400 on, or a client that went away before the answer. */
  readonly failed: boolean;
  /** The status of the response, over HTTP. */
  readonly statusCode?: number | undefined;
  /** The error of the handler, over transports other than HTTP. */
  readonly error?: unknown;
  /** Whether the client went away before the answer was known. Then `'failed'` counts the request, and `'succeeded'` does, too. */
  readonly aborted: boolean;
  /** The request's context. */
  readonly context: ExecutionContext;
}

/** The requests that count in the end. */
export type Count = 'all' | 'failed' | 'succeeded' | ((outcome: Outcome) => boolean | Promise<boolean>);

/** The units that an instance takes at once, and their time to live. */
export interface PrefetchOptions {
  /** The most units that are taken in one call: a whole number >= 1. */
  units: number;
  /** Their time to live: milliseconds or a duration such as `'100ms'`, at most 1 minute. Then unused units are given back. */
  ttl: Duration;
}

type PatchOf<Options> = Options extends { algo: string } ? Partial<Options> : never;

/**
 * What a candidate has in place of its limit's options: those of the limit's algorithm that differ, such as `{ rate: 60 }`; or
 * another algorithm with its options. What it leaves out is as the limit has it, as far as the candidate's algorithm knows it.
 */
export type CandidateOptions = PatchOf<AlgorithmOptions>;

/** The options of every limit, of any algorithm. */
export interface CommonLimitOptions {
  /**
   * Identifies the limit: in headers, in `@SkipRateLimit` and where a nearer limit replaces it: 1 to 128 printable
   * ASCII characters.
   * @default the algorithm with its rate, such as `gcra:20/1s`; then the `key` and the `count`, if they are not the usual:
   * `gcra:20/1s:user`, `sliding-log:5/15m:failed`
   */
  name?: string;
  /**
   * The key of the counter: `'ip'`, `'user'` (the `id`, `sub` or `userId` of `request.user`), `'global'` (everyone together),
   * `'header:<name>'`, a function of the context, or an injectable class that implements `KeyResolver`.
   * @default the `key` of the module's `defaults`, or `'ip'`
   */
  key?: LimitKey;
  /**
   * The units of a request: a whole number >= 0, or a function that returns one. A request of 0 units takes nothing from this
   * limit: it is decided as by `peek`.
   * @default 1
   */
  cost?: number | ((context: ExecutionContext) => number | Promise<number>);
  /**
   * How important a request is: `'critical'`, `'default'` or `'sheddable'`, or a function that returns one of these. It matters where
   * the limit has `reserveFor`, and an `adaptive` limit refuses the least important ones first.
   * @default 'default'
   */
  priority?: Priority | ((context: ExecutionContext) => Priority | Promise<Priority>);
  /**
   * Keeps shares of the quota for important requests: of `{ critical: 0.2 }` only requests of priority `'critical'` may take the
   * last fifth, of `{ default: 0.1 }` none of priority `'sheddable'` the last tenth. A share is more than 0, all together are less
   * than 1; in units they are rounded up, and leave one unit to everybody. What a decision tells (`quota`, `remaining`,
   * `retryAfterMs`) is that of the request's priority. Not with `prefetch` or `blockFor`.
   * @default nothing is kept
   */
  reserveFor?: ReservedShares;
  /**
   * The name of a limit of `define` or `forFeature` that this one is within: a user within its team, a team within its organization.
   * A request is charged to this limit, to that one and to all that it is within in turn, together or to none, each by its own `key`.
   * Counters are those within others: `user:1` of one organization is another one than `user:1` of another. Not with `prefetch`,
   * `share` or phase `'middleware'`, nor within an `adaptive` limit or one of another `scope`.
   * @default within none
   */
  within?: string;
  /**
   * The share of the quota (of a limit with a `ceiling`: of its rate) that limits within this one may borrow, 0 to 1. The rest is kept
   * for what they use within their own rates. Not with `blockFor`, `reserveFor`, `candidate`, `prefetch` or `share`.
   * @default 1, all of it
   */
  lends?: number;
  /**
   * Selects requests that the limit does not count.
   * @default none
   */
  skip?: (context: ExecutionContext) => boolean | Promise<boolean>;
  /**
   * The requests that count: `'all'`, `'failed'` or `'succeeded'` ones, or those that a function selects. Each is charged first,
   * so that a burst cannot slip through, and refunded when its response has ended and does not count. A request whose client went
   * away before the answer was known always counts. Only requests to routes have an outcome; code that consumes units refunds
   * them itself.
   * @default 'all'
   */
  count?: Count;
  /**
   * Blocks a refused key for this time, in place of the wait of the refusal; then it counts anew. Retries in between change
   * nothing. A block shorter than that wait lets more pass than none: the quota with every block. Held leases, queued units and
   * debts outlast it. Milliseconds or a duration such as `'15m'`, at most 1 year.
   *
   * A list such as `['1m', '10m', '1h', '1d']` blocks longer with each offence: the first block lasts as long as the first of
   * these, the second as long as the second, and all further ones as long as the last; none is shorter than the one before. An
   * offence is a refusal that begins a block. `unblock` and `reset` forget offences, as `forgetAfter` does.
   * @default no block
   */
  blockFor?: Duration | readonly Duration[];
  /**
   * Forgets the offences of a key so long after the end of its last block, where `blockFor` is a list: milliseconds or a duration
   * such as `'1d'`, at most 1 year.
   * @default the last of `blockFor`
   */
  forgetAfter?: Duration;
  /**
   * Lets an instance take several units of a busy counter in one call of Redis and decide in process (`source: 'prefetch'`). No more
   * is allowed than without; less may be, by what other instances hold unused. The limit is a little stricter: sliding windows
   * are longer by `ttl`, bursts smaller by what flows in it. Not for `concurrency`, `leaky-bucket`, refill `'intervally'`, nor with
   * `blockFor` or scope `'instance'`.
   * @default each check asks Redis
   */
  prefetch?: PrefetchOptions;
  /**
   * Counts a second version of the limit beside it, which never refuses: `{ rate: 60 }`, or any other options of an algorithm.
   * `decisions$` and OpenTelemetry tell what it would refuse, clients are told nothing. Not with `prefetch`; of `concurrency`
   * only for `concurrency`.
   * @default no candidate
   */
  candidate?: CandidateOptions;
  /**
   * `'cluster'` counts across all instances of the app, `'instance'` in each for itself, in process and without Redis.
   * @default 'cluster'
   */
  scope?: Scope;
  /**
   * Whether each route has a counter of its own. For limits of the module and of classes; one of a
   * route has it anyway. Not with `phase: 'middleware'`, in `define` or from a function.
   * @default false, one counter for all routes
   */
  perRoute?: boolean;
  /**
   * `'shadow'` evaluates, counts and reports, and never refuses or delays, neither requests nor code. The variable
   * `RATE_LIMIT_MODE=shadow` of the environment does so for all limits.
   * @default 'enforce'
   */
  mode?: 'enforce' | 'shadow';
  /**
   * The share of the quota from which on a limit is said to be near, in `decisions$` and to OpenTelemetry: more than 0, at
   * most 1. It changes nothing that is decided.
   * @default 0.8
   */
  nearLimit?: number;
  /**
   * `'guard'` checks before the route's own guards, `'authenticated'` after all guards and before pipes and handler.
   * `'middleware'`, only for limits of the module, checks before the route is known if a `RateLimitMiddleware` runs, else in
   * the guard: by `'ip'`, `'global'` or `'header:<name>'`, with no `skip`, and with a `cost` that is a number.
   * @default 'authenticated' for key 'user', else 'guard'
   */
  phase?: Phase;
  /**
   * While the store fails: `'local'` counts in process, `'allow'` lets pass, `'deny'` answers 503; or a function of the error
   * and the check that gives one of these.
   * @default the module's `onStoreError`
   */
  onStoreError?: OnStoreError;
  /**
   * How many replicas of Redis have to confirm what is charged, credited or given back before the call is answered, so that a failover
   * is much less likely to lose it: a whole number from 1 to 100. If too few confirm it within half of the module's `timeout`, that is a
   * failure of the store, and `onStoreError` decides. In process it means nothing. Not with `prefetch` or `scope: 'instance'`.
   * @default no replica is asked
   */
  replicas?: number;
  /**
   * For a request that has no key: `'ip'` counts its address instead, `'skip'` does not apply the limit, `'refuse'` answers
   * 401 for `'user'` and 400 for any other key.
   * @default the module's `onMissingKey`
   */
  onMissingKey?: OnMissingKey;
  /**
   * The `message` of the response when this limit refuses, in problem details the `detail`: a text, or a function of the
   * context and of what all limits said. If the function fails, the default is sent.
   * @default 'Too many requests'
   */
  message?: RefusalMessage;
  /**
   * Makes the JSON body of the response when this limit refuses, of the context, of what all limits said, and of the body
   * that would be sent without it. If it fails, that one is sent.
   * @default the module's `body`
   */
  body?: RefusalBody;
}
