import type { Type } from '@nestjs/common';
import type { OnStoreError } from '../../engine/limits/limit-settings.js';
import type { Duration } from '../../engine/options/values.js';
import type { RedisConnection } from '../../storage/redis/client.js';
import type { Store } from '../../storage/stores/store.js';
import type { DecisionHooksOptions } from '../hooks/decision-hook.js';
import type { HeaderOption } from '../http/header-format.js';
import type { RefusalBody, RefusalOption } from '../http/refusal-answer.js';
import type { RequestReader } from '../transports/request-reader.js';
import type { OnMissingKey, OnMissingReader } from './common-limit-options.js';
import type { ExactLimit, LimitDefaults, LimitDefinition } from './limit-definition.js';
import type { LimitSelector, ModuleLimit, WithDynamicRate } from './limits-by-request.js';
import type { ListsOptions } from './list-entry.js';
import type { PolicyOptions } from './policy.js';

/** The region in which an app runs, and the home Redis for limits of scope `'world'`. */
export interface RegionOptions {
  /** The name of this region, unique among all regions: 1 to 32 letters, digits or hyphens. */
  name: string;
  /**
   * The home Redis, which counts for all regions: a URL, ioredis options, or an ioredis or node-redis connection. All regions use the same
   * one, preferably a server used for nothing else. A single server or its Sentinels, not a Cluster.
   */
  home: RedisConnection;
}

/** The options of `RateLimitModule.forRoot`, also returned by the factory of `forRootAsync`. */
export interface RateLimitModuleOptions extends DecisionHooksOptions {
  /**
   * The Redis that stores the counters: a URL, ioredis options, an ioredis connection or an open node-redis client (both stay open when the
   * app closes), or `{ nodes, options }` for a Cluster.
   * @default in this process
   */
  redis?: RedisConnection | undefined;
  /**
   * The region in which this app runs, and the home Redis that counts limits of scope `'world'` for all regions. The home Redis also stores
   * the rates, modes and lists that are changed at run time. Requires `redis`, which is the Redis of this region.
   * @default one region
   */
  regions?: RegionOptions | undefined;
  /**
   * Limits that apply to every route, with one counter for all routes. Functions of the context and classes that implement `LimitResolver`
   * choose limits per request.
   * @default none
   */
  limits?: readonly ModuleLimit[] | undefined;
  /**
   * Limits that routes and code refer to by name.
   * @default none
   */
  define?: Readonly<Record<string, LimitDefinition>> | undefined;
  /**
   * Limits as data, from a file or a function. They add to `define`, and their options replace those of limits with the same name in
   * `define`, `forFeature` and `limits`. If a policy contains an error, none of it is applied.
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
   * The clients that are exempt from limits, and those that are denied: `{ allow: [{ ip: '10.0.0.0/8' }], deny: [{ identity: 'tenant:acme'
   * }] }`. An entry with a `limit` applies to that limit only. `LimiterService.allow`, `deny` and `unlist` change the lists at run time.
   * @default nobody
   */
  lists?: ListsOptions | undefined;
  /**
   * The headers that report limits: `'draft-8'` (RateLimit and RateLimit-Policy of the IETF drafts 08 to 11), `'draft-6'`, `'legacy'`
   * (X-RateLimit-*), a function, a list of these (if two set the same header, the later one wins), or `false`. `Retry-After` is sent with
   * every rejection in any case.
   * @default 'draft-8'
   */
  headers?: HeaderOption | undefined;
  /**
   * If true, scripts of other origins can read these headers and `Retry-After`: responses that allow an origin (CORS) list them in
   * `Access-Control-Expose-Headers`.
   * @default true
   */
  exposeHeaders?: boolean | undefined;
  /**
   * Spreads the waits that rejections report, so that clients do not all return at once: a share of the wait, from 0 to 1. The headers
   * report `wait * (1 + random * retryJitter)`, with one random number from 0 to 1 per response. Decisions stay exact.
   * @default 0
   */
  retryJitter?: number | undefined;
  /**
   * If true, the body of a rejection is in the format of problem details (RFC 9457, `application/problem+json`), with the types that the
   * IETF draft of the headers defines. Only over plain HTTP.
   * @default false
   */
  problem?: boolean | undefined;
  /**
   * Returns the JSON body of a rejection from the context, the result of all limits and the default body. If it throws, the default body is
   * sent. A limit may set its own.
   * @default `statusCode`, `message`, `error` and `limits`, or with `problem` the members of problem details
   */
  body?: RefusalBody | undefined;
  /**
   * Returns the response to a rejected request, or a part of it: `{ status, body, headers }`. A function of the context, the result of all
   * limits and the usual response, or an injectable class that implements `RefusalResolver`. It may return a promise. If it fails, or takes
   * longer than `resolveTimeout`, the usual response is sent. A limit may set its own.
   * @default the usual response
   */
  answer?: RefusalOption | undefined;
  /**
   * If true, rejections report when to retry: in `Retry-After`, or in `retryAfterMs` of GraphQL errors and message errors. A limit may set
   * its own.
   * @default true
   */
  retryAfter?: boolean | undefined;
  /**
   * The maximum time for a check on Redis before `onStoreError` applies: milliseconds or a duration such as `'250ms'`.
   * @default 250
   */
  timeout?: Duration | undefined;
  /**
   * The maximum time that a request waits for a function or a class that finds its limits or their rate. After that, the function counts as
   * failed, and the request is answered with 500, unless a `LimitResolver` has a cached result or a `fallback`. Milliseconds or a duration
   * such as `'2s'`, at most 1 hour.
   * @default '2s'
   */
  resolveTimeout?: Duration | undefined;
  /**
   * Collects checks for this long while the instance sends 2,000 or more per second to Redis, so that one call carries several of them:
   * milliseconds or a duration from 1 to 100 ms, or `true` for 1 ms. This halves the time that Redis spends per check, and delays each
   * check by up to this time. `timeout` includes the delay, and is at least twice as long. Below that rate, and without `redis`, nothing is
   * delayed.
   * @default false
   */
  gather?: Duration | boolean | undefined;
  /**
   * The total time that a request waits for a client that reads its response slowly: milliseconds or a duration. After that, a request
   * whose response is complete releases its `concurrency` leases; if the response is still being written, its connection is closed. A
   * client that reads at least 16 KiB per second while the response is written isn't slow. `false` waits indefinitely.
   * @default '30s'
   */
  sendTimeout?: Duration | false | undefined;
  /**
   * The fallback while the store fails: `'local'` counts in process, `'allow'` lets requests pass, `'deny'` responds with 503. A function
   * of the error and the check may choose one of these. A limit may set its own.
   * @default 'local'
   */
  onStoreError?: OnStoreError | undefined;
  /**
   * The share of each limit that this instance allows while it counts locally (`'local'`). With 1 / the number of instances, all of them
   * together stay within the limit. At least one unit is allowed.
   * @default 1
   */
  localShare?: number | undefined;
  /**
   * How requests without a key for a limit are handled: `'ip'` counts the client's address instead, `'skip'` does not apply the limit,
   * `'refuse'` responds with 401 for key `'user'` and 400 for any other. A limit may set its own.
   * @default 'ip'
   */
  onMissingKey?: OnMissingKey | undefined;
  /**
   * How calls over a transport that none of the `readers` supports are handled, if a limit needs a reader to find its key. `'refuse'`
   * responds with 500, and the log names the transport; `'skip'` does not apply the limit and logs one warning. A limit whose key is
   * `'global'`, or a function that finds the key, needs no reader.
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
   * The maximum number of counters in the in-process store. The least recently used are evicted first; those that are blocked, have
   * offences or hold leases are evicted last.
   * @default 100_000
   */
  maxKeys?: number | undefined;
  /**
   * The maximum estimated memory for these counters, in bytes.
   * @default 1_000 for each of `maxKeys`, and at least 16_000_000
   */
  maxBytes?: number | undefined;
  /**
   * The maximum number of `acquire` and `hold` calls that may wait for one key of a limit in this process, a whole number >= 1; ten times
   * as many may wait for all keys together. It is also the maximum number of outbound calls that may wait for the same counters. Further
   * calls reject with `RateLimitWaitersError`.
   * @default 10_000
   */
  maxWaiters?: number | undefined;
  /**
   * If true, a check that Redis rejected is rejected again without calling Redis until its wait is over (`source: 'cache'`), or until any
   * instance refunds, resets or unblocks the key. Not used for limits whose units may come back earlier (`concurrency`, `leaky-bucket`,
   * limits with `count` or `cost`), nor on a Cluster.
   * @default true
   */
  refusalCache?: boolean | undefined;
  /**
   * If true, OpenTelemetry measures decisions and the store, and decisions are added to the active span; the app doesn't start if
   * `@opentelemetry/api` is missing. With `false`, `@opentelemetry/api` isn't loaded.
   * @default whether the app has set up the SDK of OpenTelemetry
   */
  telemetry?: boolean | undefined;
  /**
   * Your own store instead of `redis`. It stays open when the app closes.
   * @default made from `redis`
   */
  store?: Store | undefined;
  /**
   * Readers for calls over further transports, or replacements for built-in ones: objects or injectable classes.
   * @default readers for HTTP, GraphQL, WebSockets (socket.io and ws) and microservices
   */
  readers?: readonly (RequestReader | Type<RequestReader>)[] | undefined;
}

/** The options that a factory of `forRootAsync` returns. */
export interface ReturnedModuleOptions extends Omit<RateLimitModuleOptions, 'limits' | 'define'> {
  limits?: readonly (WithDynamicRate<ExactLimit> | LimitSelector)[] | undefined;
  define?: Readonly<Record<string, ExactLimit>> | undefined;
}

/** Options of the module itself; `forRootAsync` takes them next to `useFactory`. */
export interface RateLimitModuleExtras {
  /**
   * If true, the guard runs for every route, before all other global guards. With `false`, bind it with `@UseGuards(RateLimitGuard)`, or as
   * your own `APP_GUARD` if its position among other guards matters. The app then refuses to start if no bound guard checks a `@RateLimit`.
   * `'custom'` turns that check off, for apps whose own guard calls it or that leave some limits inactive on purpose.
   * @default true
   */
  guard?: boolean | 'custom' | undefined;
}
