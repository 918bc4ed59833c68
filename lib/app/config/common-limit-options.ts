import type { ExecutionContext } from '@nestjs/common';
import type { Duration } from '../../engine/options/values.js';
import type { CommonFeatureOptions } from '../../storage/features/index.js';
import type { DecisionHooksOptions } from '../hooks/decision-hook.js';
import type { RefusalBody, RefusalMessage, RefusalOption } from '../http/refusal-answer.js';
import type { LimitKey } from '../../engine/limits/limit-key.js';
import type { OnStoreError } from '../../engine/limits/limit-settings.js';
import type { Priority } from '../../engine/limits/priority.js';
import type { MeasuredCost } from './measured-cost.js';

/** What happens to a request that has no key for a limit. */
export type OnMissingKey = 'ip' | 'skip' | 'refuse';

/** What happens to a call of a transport that no reader supports. */
export type OnMissingReader = 'refuse' | 'skip';

/** When a limit is checked. */
export type Phase = 'middleware' | 'guard' | 'authenticated';

/** Which instances of the app count together. */
export type Scope = 'cluster' | 'instance' | 'world';

/** How a request ended. */
export interface Outcome {
  /** Whether it failed: with an error, a status from 400 on, or a client that went away before the answer. */
  readonly failed: boolean;
  /** The status of the response, over HTTP. */
  readonly statusCode?: number | undefined;
  /** The error of the handler, over transports other than HTTP. */
  readonly error?: unknown;
  /** Whether the client went away before the answer was known. Such a request counts under `'failed'` and under `'succeeded'`. */
  readonly aborted: boolean;
  /**
   * The bytes of the response's body that went through the socket: compressed ones, and what a client that left had read. Over HTTP/1
   * with the framing of chunked responses. `undefined` over transports other than HTTP, and for responses without a connection, such
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

/** Which requests count once they have ended, or how many units each counts. */
export type Count =
  | 'all'
  | 'failed'
  | 'succeeded'
  | ((outcome: Outcome) => boolean | number | Promise<boolean | number>);

/** The options of every limit, of any algorithm. */
export interface CommonLimitOptions extends CommonFeatureOptions, DecisionHooksOptions {
  /**
   * The name of the limit: in headers, in `@SkipRateLimit`, and where a nearer limit of the same name replaces it. 1 to 128
   * printable ASCII characters.
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
   * The units that a request costs: a whole number >= 0, or a function that returns one. A request of 0 units takes nothing from
   * this limit and is decided as by `peek`. `{ by: 'bytes', per: '1kB' }` and `{ by: 'duration', per: '100ms' }` charge an
   * `estimate`, by default 1, and what the response really took once it has ended: surplus units come back, and missing ones are
   * charged as `count` does. Not for `concurrency` and `adaptive`.
   * @default 1
   */
  cost?: number | ((context: ExecutionContext) => number | Promise<number>) | MeasuredCost | undefined;
  /**
   * How important a request is: `'critical'`, `'default'` or `'sheddable'`, or a function that returns one of these. It matters
   * to limits with `reserveFor`, and to `adaptive` limits, which refuse the least important requests first.
   * @default 'default'
   */
  priority?: (Priority | ((context: ExecutionContext) => Priority | Promise<Priority>)) | undefined;
  /**
   * The name of the limit of `define` or `forFeature` that this one is within: a user within its team, a team within its
   * organization. A request is charged to this limit, to that one and to all that it is within in turn, all or none, each by its
   * own `key`. Counters are nested as well: `user:1` of one organization does not share a counter with `user:1` of another. Not
   * with `prefetch`, `share` or phase `'middleware'`, nor within an `adaptive` limit or one of another `scope`.
   * @default not within another limit
   */
  within?: string | undefined;
  /**
   * Selects requests that the limit does not count.
   * @default no request is skipped
   */
  skip?: ((context: ExecutionContext) => boolean | Promise<boolean>) | undefined;
  /**
   * Which requests count: `'all'`, `'failed'` or `'succeeded'` ones, or those that a function selects. Each request is charged
   * first, so that a burst cannot slip through, and refunded when its response has ended and it turns out not to count. A function
   * may return how many units a request counts, a whole number >= 0: of fewer than its `cost`, the rest comes back; more are charged
   * whether they fit or not, up to one quota beyond the quota, and later requests wait for them. A request
   * whose client went away before the answer was known always counts, and so does one for which the function fails or returns any other
   * value. Only requests to routes have an outcome; code that consumes
   * units refunds them itself.
   * @default 'all'
   */
  count?: Count | undefined;
  /**
   * Blocks a refused key for this time, instead of the wait of the refusal; then it counts anew. Retries in between change
   * nothing, unless `strike` is set. A block shorter than that wait lets more pass than no block: the full quota after every block. Held leases, queued
   * units and debts outlast it. Milliseconds or a duration such as `'15m'`, at most 1 year.
   *
   * A list such as `['1m', '10m', '1h', '1d']` blocks longer with each offence, which is a refusal that begins a block: the nth
   * block lasts as long as the nth entry, and further ones as long as the last. No entry may be shorter than the one before.
   * `unblock` and `reset` clear offences, and so does `forgetAfter`.
   * @default no block
   */
  blockFor?: Duration | readonly Duration[] | undefined;
  /**
   * Whether tries during a block prolong it: a block lasts until a key has made none for as long as `blockFor`, or the step of its
   * last offence, says. Such a try is no offence. Only what takes units is a try, as only that begins a block: neither `peek`, `reserve`
   * nor `acquire`. It needs `blockFor`.
   * @default false
   */
  strike?: boolean | undefined;
  /**
   * With a list of `blockFor`, how long after the end of a key's last block its offences are forgotten: milliseconds or a
   * duration such as `'1d'`, at most 1 year.
   * @default the last entry of `blockFor`
   */
  forgetAfter?: Duration | undefined;
  /**
   * Whether tries that the limit refuses count, too: decisions then say in `tried` how many units were asked for, as in "5 of 3". It
   * never lets more through. In a fixed or calendar window, tries of one cost are decided as without it; a sliding window is full for
   * as long as tries are in it, so they prolong the wait. A cost above the quota, which never fits, does not count. For `fixed-window`,
   * `sliding-window` and `calendar-window`.
   * @default false
   */
  countRefused?: boolean | undefined;
  /**
   * `'cluster'` counts across all instances of the app that share a Redis; `'instance'` lets each instance count on its own, in process
   * and without Redis; `'world'` counts across all `regions` of the module, each of which has a Redis.
   * @default 'cluster'
   */
  scope?: Scope | undefined;
  /**
   * Whether each route has its own counter. For limits of the module and of classes; a limit of a route always has its own. Not
   * with `phase: 'middleware'`, in `define` or from a function.
   * @default false, one counter for all routes
   */
  perRoute?: boolean | undefined;
  /**
   * `'shadow'` evaluates, counts and reports, but never refuses or delays, neither requests nor code. The environment variable
   * `RATE_LIMIT_MODE=shadow` puts all limits into this mode.
   * @default 'enforce'
   */
  mode?: 'enforce' | 'shadow' | undefined;
  /**
   * The share of the quota at which `decisions$` and OpenTelemetry report a counter as near its limit: more than 0, at most 1. It
   * changes no decision.
   * @default 0.8
   */
  nearLimit?: number | undefined;
  /**
   * What the units are, where the console shows them: a word in plural such as `'tokens'`, of which one is shown as `1 token`; or
   * the ISO 4217 code of a currency such as `'USD'`, of which a unit is a millionth, as `usd` counts: 500,000 are shown as $0.50.
   * It changes no decision.
   * @default units without a name
   */
  unit?: string | undefined;
  /**
   * `'guard'` checks before the route's own guards, `'authenticated'` after all guards and before pipes and handler.
   * `'middleware'`, only for limits of the module, checks in a `RateLimitMiddleware`, before the route is known, or in the guard
   * if no middleware runs. The key cannot be `'user'` there. Functions such as `key`, `skip` and `cost` get the request before its
   * body is read, in a context whose class and handler are `null`.
   * @default 'authenticated' for key 'user', else 'guard'
   */
  phase?: Phase | undefined;
  /**
   * What happens while the store fails: `'local'` counts in process, `'allow'` lets requests pass, `'deny'` answers 503. Or a
   * function of the error and the check that returns one of these.
   * @default the module's `onStoreError`
   */
  onStoreError?: OnStoreError | undefined;
  /**
   * How many Redis replicas have to confirm each charge, credit and refund before the call is answered, so that a failover is
   * much less likely to lose it: a whole number from 1 to 100. If too few confirm within half of the module's `timeout`, the
   * store counts as failed, and `onStoreError` decides. No effect in process. Not with `prefetch` or `scope: 'instance'`.
   * @default does not wait for replicas
   */
  replicas?: number | undefined;
  /**
   * What happens to a request that has no key: `'ip'` counts its address instead, `'skip'` does not apply the limit, `'refuse'`
   * answers 401 for `'user'` and 400 for any other key.
   * @default the module's `onMissingKey`
   */
  onMissingKey?: OnMissingKey | undefined;
  /**
   * The `message` of the response when this limit refuses, or the `detail` of problem details: a text, or a function of the
   * context and of the result of all limits. If the function fails, the default is sent.
   * @default 'Too many requests'
   */
  message?: RefusalMessage | undefined;
  /**
   * Makes the JSON body of the response when this limit refuses, from the context, the result of all limits and the default body.
   * If it fails, the default body is sent.
   * @default the module's `body`
   */
  body?: RefusalBody | undefined;
  /**
   * The HTTP status of the response when this limit refuses: a whole number from 400 to 599, such as 402 for a spent budget. If
   * several limits refuse, the status is that of the one with the longest wait.
   * @default 429
   */
  status?: number | undefined;
  /**
   * Makes the response when this limit refuses, or a part of it: `{ status, body, headers }`. A function of the context, the
   * result of all limits and the usual response, or an injectable class that implements `RefusalResolver`. It may return a
   * promise. If it fails, or takes longer than the module's `resolveTimeout`, the usual response is sent.
   * @default the module's `answer`
   */
  answer?: RefusalOption | undefined;
  /**
   * Whether clients learn nothing of this limit: it is not in headers, bodies, GraphQL errors, errors of messages and OpenAPI
   * documents. Its refusals are refusals as others, without its name.
   * @default false
   */
  hidden?: boolean | undefined;
  /**
   * Whether a refusal of this limit says when to come back: in `Retry-After`, or in `retryAfterMs` of GraphQL errors and errors of
   * messages.
   * @default the module's `retryAfter`
   */
  retryAfter?: boolean | undefined;
}
