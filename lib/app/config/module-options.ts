import type { Type } from '@nestjs/common';
import type { OnStoreError } from '../../engine/limits/compiled-limit.js';
import type { Duration } from '../../engine/options/values.js';
import type { HeaderOption } from '../http/header-format.js';
import type { DecisionHooksOptions } from '../hooks/decision-hook.js';
import type { RefusalBody, RefusalOption } from '../http/refusal-answer.js';
import type { ListsOptions } from './list-entry.js';
import type { OnMissingKey, OnMissingReader } from './common-limit-options.js';
import type { ExactLimit, LimitDefaults, LimitDefinition } from './limit-definition.js';
import type { LimitSelector, ModuleLimit, WithDynamicRate } from './limits-by-request.js';
import type { PolicyOptions } from './policy.js';
import type { RegionOptions } from './region-options.js';
import type { RedisConnection } from '../../storage/redis/client.js';
import type { Store } from '../../storage/stores/store.js';
import type { RequestReader } from '../transports/request-reader.js';

/** The options of `RateLimitModule.forRoot`, also returned by the factory of `forRootAsync`. */
export interface RateLimitModuleOptions extends DecisionHooksOptions {
  /**
   * Where counters live: a URL, ioredis options, a connection of ioredis or an open client of node-redis (which stay open when the
   * app closes), or `{ nodes, options }` for a Cluster.
   * @default in this process
   */
  redis?: RedisConnection | undefined;
  /**
   * The region in which this app runs, beside others that have a Redis each, and the Redis that counts limits of scope `'world'` for all
   * of them. Rates, modes and lists that change while the app runs are kept there, too. Wants `redis`, that of this region.
   * @default one region
   */
  regions?: RegionOptions | undefined;
  /**
   * Limits that apply to every route, counted across routes; functions of the context and classes that implement `LimitResolver`
   * choose some of them by the request.
   * @default none
   */
  limits?: readonly ModuleLimit[] | undefined;
  /**
   * Limits that routes and code refer to by name.
   * @default none
   */
  define?: Readonly<Record<string, LimitDefinition>> | undefined;
  /**
   * Limits as data, from a file or a function. They add to `define`, and their options replace those of limits with the same name
   * in `define`, `forFeature` and `limits`. A policy with a mistake is refused as a whole.
   * @default none
   */
  policy?: PolicyOptions | undefined;
  /**
   * Default options of all limits, including those of routes and code: `key`, `cost`, `skip`, `count`, `blockFor`, `forgetAfter`,
   * `scope`, `mode`, `nearLimit`, `onStoreError`, `onMissingKey`, `message`, `body`, `status`, `answer`, `hidden`,
   * `retryAfter`.
   * @default see each option
   */
  defaults?: LimitDefaults | undefined;
  /**
   * Who is exempt from limits, and who is refused: `{ allow: [{ ip: '10.0.0.0/8' }], deny: [{ identity: 'tenant:acme' }] }`. An
   * entry with a `limit` applies to that limit only. `LimiterService.allow`, `deny` and `unlist` change the lists while the app
   * runs.
   * @default nobody
   */
  lists?: ListsOptions | undefined;
  /**
   * The headers that report limits: `'draft-8'` (RateLimit and RateLimit-Policy of the IETF drafts 08 to 11), `'draft-6'`,
   * `'legacy'` (X-RateLimit-*), a function, a list of these (if two set the same header, the later one wins), or `false`. A
   * refusal always has `Retry-After`.
   * @default 'draft-8'
   */
  headers?: HeaderOption | undefined;
  /**
   * Whether scripts of other origins may read these headers and `Retry-After`: if the app allows an origin (CORS), they are also
   * listed in `Access-Control-Expose-Headers`.
   * @default true
   */
  exposeHeaders?: boolean | undefined;
  /**
   * Spreads the waits that refusals report, so that clients do not all come back at once: a share of the wait, from 0 to 1. The
   * headers report `wait * (1 + random * retryJitter)`, with one random number from 0 to 1 for each response. Decisions stay
   * exact.
   * @default 0
   */
  retryJitter?: number | undefined;
  /**
   * Whether refusals are answered with problem details (RFC 9457, `application/problem+json`), of the types defined by the IETF
   * draft of the headers. Only over plain HTTP.
   * @default false
   */
  problem?: boolean | undefined;
  /**
   * Makes the JSON body of a refusal from the context, the result of all limits and the default body. If it fails, the default
   * body is sent. A limit may set its own.
   * @default `statusCode`, `message`, `error` and `limits`, or with `problem` the members of problem details
   */
  body?: RefusalBody | undefined;
  /**
   * Makes the response to a refused request, or a part of it: `{ status, body, headers }`. A function of the context, the result
   * of all limits and the usual response, or an injectable class that implements `RefusalResolver`. It may return a promise. If it
   * fails, or takes longer than `resolveTimeout`, the usual response is sent. A limit may set its own.
   * @default the usual response
   */
  answer?: RefusalOption | undefined;
  /**
   * Whether refusals say when to come back: in `Retry-After`, or in `retryAfterMs` of GraphQL errors and errors of messages. A limit
   * may set its own.
   * @default true
   */
  retryAfter?: boolean | undefined;
  /**
   * How long a check on Redis may take before `onStoreError` decides: milliseconds or a duration such as `'250ms'`.
   * @default 250
   */
  timeout?: Duration | undefined;
  /**
   * How long a request waits for a function, or a class, that finds its limits or their rate. Then the function has failed, and the
   * request is answered with 500; a `LimitResolver` may have an earlier answer, or a `fallback`. Milliseconds or a duration such as
   * `'2s'`, at most 1 hour.
   * @default '2s'
   */
  resolveTimeout?: Duration | undefined;
  /**
   * How long a check waits for others while this instance asks Redis 2,000 times a second or more, so that more travel in one call:
   * milliseconds or a duration from 1 to 100 ms, or `true` for 1 ms. Redis then takes about half as much time for each; each takes
   * up to so much longer. `timeout` includes that wait, and is at least twice as long. Below that rate, and without `redis`, it changes
   * nothing else.
   * @default false
   */
  gather?: Duration | boolean | undefined;
  /**
   * How long a request waits in total for a client that reads its response slowly: milliseconds or a duration. When the time is
   * up, a request whose response is complete releases its `concurrency` leases; if the response is still being written, its
   * connection is closed. A client that reads 16 KiB a second while the response is written is not slow. `false` waits without
   * end.
   * @default '30s'
   */
  sendTimeout?: Duration | false | undefined;
  /**
   * What happens while the store fails: `'local'` counts in process, `'allow'` lets requests pass, `'deny'` answers 503. Or a
   * function of the error and the check that returns one of these. A limit may set its own.
   * @default 'local'
   */
  onStoreError?: OnStoreError | undefined;
  /**
   * The share of each limit that this instance allows while it counts locally (`'local'`): with 1 / the number of instances, all
   * of them together stay within the limit. At least one unit is allowed.
   * @default 1
   */
  localShare?: number | undefined;
  /**
   * What happens to a request that has no key for a limit: `'ip'` counts its address instead, `'skip'` does not apply the limit,
   * `'refuse'` answers 401 for key `'user'` and 400 for any other. A limit may set its own.
   * @default 'ip'
   */
  onMissingKey?: OnMissingKey | undefined;
  /**
   * What happens to a call of a transport that none of the `readers` supports, if a limit needs one to find its key: `'refuse'`
   * answers 500, and the log names the transport; `'skip'` does not apply the limit and logs one warning. A limit by `'global'`,
   * or by a function that finds a key, needs no reader.
   * @default 'refuse'
   */
  onMissingReader?: OnMissingReader | undefined;
  /**
   * The number of leading bits of an IPv6 address that identify a client: 1 to 128.
   * @default 64
   */
  ipv6Prefix?: number | undefined;
  /**
   * The prefix of every Redis key, without braces.
   * @default 'sluice'
   */
  prefix?: string | undefined;
  /**
   * The most counters that the in-process store keeps. The least recently used are evicted first, and those that are blocked,
   * have offences or hold leases last.
   * @default 100_000
   */
  maxKeys?: number | undefined;
  /**
   * The most bytes of memory that these counters may take, by estimate.
   * @default 1_000 for each of `maxKeys`, and at least 16_000_000
   */
  maxBytes?: number | undefined;
  /**
   * The most calls of `acquire` and `hold` that may wait for one key of a limit in this process, a whole number >= 1; ten times
   * as many may wait for all keys together. It is also the most outbound calls that may wait for the same counters. Further calls
   * reject with `RateLimitWaitersError`.
   * @default 10_000
   */
  maxWaiters?: number | undefined;
  /**
   * Whether a check that Redis refused is refused again without a call until its wait is over (`source: 'cache'`). A refund, a
   * reset or an unblock by any instance ends that. Not used for limits whose units may come back earlier (`concurrency`,
   * `leaky-bucket`, limits with `count` or `cost`), nor on a Cluster.
   * @default true
   */
  refusalCache?: boolean | undefined;
  /**
   * Whether OpenTelemetry measures decisions and the store, and adds decisions to the active span. `false` does not load
   * `@opentelemetry/api`; `true` refuses to start without it.
   * @default whether `@opentelemetry/api` is installed
   */
  telemetry?: boolean | undefined;
  /**
   * Your own store instead of `redis`. It stays open when the app closes.
   * @default made from `redis`
   */
  store?: Store | undefined;
  /**
   * Readers for calls of further transports, or your own for a built-in one: objects or injectable classes.
   * @default readers for HTTP, GraphQL, WebSockets (socket.io and ws) and microservices
   */
  readers?: readonly (RequestReader | Type<RequestReader>)[] | undefined;
}

/** The options that a factory of `forRootAsync` returns. */
export interface ReturnedModuleOptions extends Omit<RateLimitModuleOptions, 'limits' | 'define'> {
  limits?: readonly (WithDynamicRate<ExactLimit> | LimitSelector)[] | undefined;
  define?: Readonly<Record<string, ExactLimit>> | undefined;
}

/** Options of the module itself; `forRootAsync` takes them beside `useFactory`. */
export interface RateLimitModuleExtras {
  /**
   * Whether the guard runs for every route, before all other global guards. If `false`, bind it with `@UseGuards(RateLimitGuard)`, or as your own `APP_GUARD`
   * where its place among other guards matters; an app with a `@RateLimit` that no bound guard checks does not start. `'custom'`
   * skips that check: your own guard calls it, or some limits are meant to be inactive.
   * @default true
   */
  guard?: boolean | 'custom' | undefined;
}
