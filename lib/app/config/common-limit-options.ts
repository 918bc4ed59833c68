import type { ExecutionContext } from '@nestjs/common';
import type { Duration } from '../../engine/options/values.js';
import type { CommonFeatureOptions } from '../../storage/features/index.js';
import type { DecisionHooksOptions } from '../hooks/decision-hook.js';
import type { RefusalBody, RefusalMessage, RefusalOption } from '../http/refusal-answer.js';
import type { LimitKey } from '../../engine/limits/identity.js';
import type { OnStoreError } from '../../engine/limits/limit-settings.js';
import type { Priority } from '../../engine/limits/arguments.js';
import type { MeasuredCost } from './measured-cost.js';

/** How a request without a key for the limit is handled. */
export type OnMissingKey = 'ip' | 'skip' | 'refuse';

/** How a call over a transport that no reader supports is handled. */
export type OnMissingReader = 'refuse' | 'skip';

/** The point in the request at which a limit is checked. */
export type Phase = 'middleware' | 'guard' | 'authenticated';

/** The instances of the app that share a counter. */
export type Scope = 'cluster' | 'instance' | 'world';

/** How a request ended. */
export interface Outcome {
  /** True if it failed: the handler threw, the status is 400 or higher, or the client disconnected before the response was known. */
  readonly failed: boolean;
  /** The status of the response, over HTTP. */
  readonly statusCode?: number | undefined;
  /** The error of the handler, over transports other than HTTP. */
  readonly error?: unknown;
  /** True if the client disconnected before the response was known. Such a request counts both for `'failed'` and for `'succeeded'`. */
  readonly aborted: boolean;
  /**
   * The number of bytes of the response body that went through the socket, after compression; of an aborted download only the sent part.
   * Over HTTP/1 it includes the framing of chunked responses. `undefined` over transports other than HTTP, and for responses without a connection, such
   * as those of Fastify's `inject`.
   */
  readonly bytes?: number | undefined;
  /**
   * The milliseconds from the check of the limit to the end of the response, or of the handler if there is no response. The delay of
   * a `leaky-bucket` does not count.
   */
  readonly durationMs?: number | undefined;
  /** The request's context. */
  readonly context: ExecutionContext;
}

/** Selects which requests count after they have ended, or returns the number of units that each one counts. */
export type Count =
  | 'all'
  | 'failed'
  | 'succeeded'
  | ((outcome: Outcome) => boolean | number | Promise<boolean | number>);

/** The options of every limit, of any algorithm. */
export interface CommonLimitOptions extends CommonFeatureOptions, DecisionHooksOptions {
  /**
   * The name of the limit. It appears in headers, `@SkipRateLimit` refers to it, and a limit closer to the handler replaces one of the same
   * name. 1 to 128 printable ASCII characters.
   * @default the algorithm with its rate, such as `gcra:20/1s`; then the `key` and the `count`, if they are not the defaults:
   * `gcra:20/1s:user`, `sliding-log:5/15m:failed`
   */
  name?: string | undefined;
  /**
   * The key of the counter: `'ip'`, `'user'` (the `id`, `sub` or `userId` of `request.user`), `'global'` (everyone together),
   * `'header:<name>'`, a function of the context, or an injectable class that implements `KeyResolver`.
   * @default the `key` of the module's `defaults`, or `'ip'`
   */
  key?: LimitKey | undefined;
  /**
   * The number of units that a request costs: a whole number >= 0, or a function that returns one. A request that costs 0 units is checked
   * against the limit, as by `peek`, but takes nothing. `{ by: 'bytes', per: '1kB' }` and `{ by: 'duration', per: '100ms' }` charge an
   * `estimate`, by default 1. Once the response has ended, its real cost replaces the estimate: surplus units are refunded, and missing units
   * are charged like those of `count`. Not for `concurrency` and `adaptive`.
   * @default 1
   */
  cost?: number | ((context: ExecutionContext) => number | Promise<number>) | MeasuredCost | undefined;
  /**
   * The importance of a request: `'critical'`, `'default'` or `'sheddable'`, or a function that returns one of these. It affects limits
   * with `reserveFor`, and `adaptive` limits, which reject the least important requests first.
   * @default 'default'
   */
  priority?: (Priority | ((context: ExecutionContext) => Priority | Promise<Priority>)) | undefined;
  /**
   * The name of the parent limit, from `define` or `forFeature`: a user's limit within the team's, a team's within the organization's. A
   * request is charged to this limit and to all of its ancestors, or to none of them. Each uses its own `key`. Counters are nested as well:
   * `user:1` of one organization does not share a counter with `user:1` of another. Cannot be combined with `prefetch`, `share` or phase
   * `'middleware'`, nor refer to an `adaptive` limit or one of another `scope`.
   * @default not within another limit
   */
  within?: string | undefined;
  /**
   * Selects requests that the limit does not count.
   * @default no request is skipped
   */
  skip?: ((context: ExecutionContext) => boolean | Promise<boolean>) | undefined;
  /**
   * Selects the requests that count: `'all'`, `'failed'`, `'succeeded'`, or those for which a function returns true. Each request is
   * charged when it arrives, so that a burst cannot slip through, and refunded after its response if it turns out not to count. A function
   * may also return the number of units that a request counts, a whole number >= 0. If that is less than its `cost`, the difference is
   * refunded. If it is more, the difference is charged even beyond the limit, up to one quota, and later requests wait. A request always
   * counts if its client disconnected before the response was known, or if the function throws or returns any other value. Only requests to
   * routes have an outcome; code that consumes units has to refund them itself.
   * @default 'all'
   */
  count?: Count | undefined;
  /**
   * Blocks a rejected key for this long, instead of until the request would fit. After the block, the counter starts from zero. Further
   * attempts during a block have no effect, unless `strike` is set. A block that is shorter than the normal wait lets more requests pass
   * than no block would, because each block ends with a full quota. Leases, queued units and debts outlast the block. Milliseconds or a
   * duration such as `'15m'`, at most 1 year.
   *
   * A list such as `['1m', '10m', '1h', '1d']` blocks longer with each offence, which is a rejection that starts a block. The nth block
   * lasts as long as the nth entry, and later ones as long as the last. No entry may be shorter than the one before it. `unblock`, `reset`
   * and the time of `forgetAfter` clear a key's offences.
   * @default no block
   */
  blockFor?: Duration | readonly Duration[] | undefined;
  /**
   * If true, an attempt during a block extends it: the block ends once the key has made no attempt for the duration of `blockFor`, or of
   * the step that its last offence reached. Such an attempt isn't another offence. Only calls that take units count as attempts; `peek`,
   * `reserve` and `acquire` don't. Requires `blockFor`.
   * @default false
   */
  strike?: boolean | undefined;
  /**
   * If `blockFor` is a list: the time from the end of a key's last block until its offences are forgotten. Milliseconds or a duration such
   * as `'1d'`, at most 1 year.
   * @default the last entry of `blockFor`
   */
  forgetAfter?: Duration | undefined;
  /**
   * If true, rejected attempts also count, and decisions report the number of attempted units in `tried`, as in "5 of 3". This never lets
   * more requests through. In a fixed or calendar window, attempts of equal cost are decided as they would be without it. In a sliding
   * window, attempts extend the wait, because the window stays full while they are in it. An attempt that costs more than the quota doesn't
   * count, since it can never fit. Only for `fixed-window`, `sliding-window` and `calendar-window`.
   * @default false
   */
  countRefused?: boolean | undefined;
  /**
   * `'cluster'` counts across all instances of the app that share a Redis. `'instance'` counts in each process separately, without Redis.
   * `'world'` counts across all `regions` of the module, each of which has its own Redis.
   * @default 'cluster'
   */
  scope?: Scope | undefined;
  /**
   * If true, each route has its own counter. Applies to limits of the module and of classes; a limit of a route always has its own. Not
   * available with `phase: 'middleware'`, in `define` or for limits that a function returns.
   * @default false, one counter for all routes
   */
  perRoute?: boolean | undefined;
  /**
   * `'shadow'` evaluates, counts and reports, but never rejects or delays a request or a call from code. The environment variable
   * `RATE_LIMIT_MODE=shadow` puts all limits into this mode.
   * @default 'enforce'
   */
  mode?: 'enforce' | 'shadow' | undefined;
  /**
   * The used share of the quota from which `decisions$` and OpenTelemetry report a counter as near its limit: more than 0, at most 1. It
   * has no effect on decisions.
   * @default 0.8
   */
  nearLimit?: number | undefined;
  /**
   * The unit that the console shows: a plural word such as `'tokens'`, shown as `1 token` in the singular, or an ISO 4217 currency code
   * such as `'USD'`. With a currency, each unit is a millionth, as with `usd`, so 500,000 units are shown as $0.50. It has no effect on
   * decisions.
   * @default units without a name
   */
  unit?: string | undefined;
  /**
   * `'guard'` checks before the route's own guards, `'authenticated'` after all guards and before pipes and handler. `'middleware'`, only
   * for limits of the module, checks in a `RateLimitMiddleware`, before the route is known, or in the guard if no middleware runs. In that
   * phase the key cannot be `'user'`, and functions such as `key`, `skip` and `cost` receive the request before its body is read, with a
   * context whose class and handler are `null`.
   * @default 'authenticated' for key 'user', else 'guard'
   */
  phase?: Phase | undefined;
  /**
   * The fallback while the store fails: `'local'` counts in process, `'allow'` lets requests pass, `'deny'` responds with 503. A function
   * of the error and the check may choose one of these.
   * @default the module's `onStoreError`
   */
  onStoreError?: OnStoreError | undefined;
  /**
   * The number of Redis replicas that have to confirm each charge, credit and refund before the call returns, from 1 to 100. This makes it
   * much less likely that a failover loses them. If too few replicas confirm within half of the module's `timeout`, the store counts as
   * failed, and `onStoreError` applies. Has no effect in process. Not available with `prefetch` or `scope: 'instance'`.
   * @default does not wait for replicas
   */
  replicas?: number | undefined;
  /**
   * How requests without a key are handled: `'ip'` counts the client's address instead, `'skip'` does not apply the limit, `'refuse'`
   * responds with 401 for `'user'` and 400 for any other key.
   * @default the module's `onMissingKey`
   */
  onMissingKey?: OnMissingKey | undefined;
  /**
   * The `message` of the response when this limit rejects, or the `detail` of problem details: a text, or a function of the context and the
   * result of all limits. If the function throws, the default is sent.
   * @default 'Too many requests'
   */
  message?: RefusalMessage | undefined;
  /**
   * Returns the JSON body of the response when this limit rejects, from the context, the result of all limits and the default body. If it
   * throws, the default body is sent.
   * @default the module's `body`
   */
  body?: RefusalBody | undefined;
  /**
   * The HTTP status of the response when this limit rejects: a whole number from 400 to 599, such as 402 for a spent budget. If several
   * limits reject, the one with the longest wait determines the status.
   * @default 429
   */
  status?: number | undefined;
  /**
   * Returns the response when this limit rejects, or a part of it: `{ status, body, headers }`. A function of the context, the result of
   * all limits and the usual response, or an injectable class that implements `RefusalResolver`. It may return a promise. If it fails, or
   * takes longer than the module's `resolveTimeout`, the usual response is sent.
   * @default the module's `answer`
   */
  answer?: RefusalOption | undefined;
  /**
   * If true, clients can't see this limit: headers, bodies, GraphQL errors, message errors and OpenAPI documents leave it out. A rejection
   * by this limit looks like any other, without its name.
   * @default false
   */
  hidden?: boolean | undefined;
  /**
   * If true, a rejection by this limit reports when to retry: in `Retry-After`, or in `retryAfterMs` of GraphQL errors and message errors.
   * @default the module's `retryAfter`
   */
  retryAfter?: boolean | undefined;
}
