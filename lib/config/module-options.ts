import type { Type } from '@nestjs/common';
import type { OnStoreError } from '../limits/compiled-limit.js';
import type { Duration } from '../algorithms/options.js';
import type { HeaderOption } from '../http/header-format.js';
import type { RefusalBody } from '../http/refusal-answer.js';
import type { ListsOptions } from './list-entry.js';
import type { OnMissingKey, OnMissingReader } from './common-limit-options.js';
import type { LimitDefaults, LimitDefinition } from './limit-definition.js';
import type { PolicyOptions } from './policy.js';
import type { RedisConnection } from '../redis/client.js';
import type { Store } from '../stores/store.js';
import type { RequestReader } from '../transports/request-reader.js';

/** The options of `RateLimitModule.forRoot`, and what the factory of `forRootAsync` gives. */
export interface RateLimitModuleOptions {
  /**
   * Where counters live: a URL, ioredis options, a connection of ioredis (which stays open when the app closes), or
   * `{ nodes, options }` for a Cluster.
   * @default the counters live in this process
   */
  redis?: RedisConnection | undefined;
  /**
   * Limits that apply to every route, counted across routes.
   * @default none
   */
  limits?: readonly LimitDefinition[];
  /**
   * Limits that routes and code refer to by name.
   * @default none
   */
  define?: Readonly<Record<string, LimitDefinition>>;
  /**
   * Limits as data, from a file or a function: they add to `define`, and their options replace those of `define`, `forFeature` and
   * of `limits` with the same name. What is wrong with them is refused as a whole.
   * @default none
   */
  policy?: PolicyOptions;
  /**
   * Default options of all limits, those of routes and code included: `key`, `cost`, `skip`, `count`,
   * `blockFor`, `forgetAfter`, `scope`, `mode`, `nearLimit`, `onStoreError`, `onMissingKey`, `message`, `body`.
   * @default what each of these says
   */
  defaults?: LimitDefaults;
  /**
   * Who is exempt from limits, and who is refused: `{ allow: [{ ip: '10.0.0.0/8' }], deny: [{ identity: 'tenant:acme' }] }`. An entry
   * with a `limit` is for that one. `LimiterService.allow`, `deny` and `unlist` change lists while the app runs.
   * @default nobody
   */
  lists?: ListsOptions;
  /**
   * The headers that tell of limits: `'draft-8'` (RateLimit and RateLimit-Policy of the IETF drafts 08 to 11), `'draft-6'`,
   * `'legacy'` (X-RateLimit-*), a function, a list of these (of two that set one header, the later wins), or `false`.
   * A refusal has its `Retry-After` in any case.
   * @default 'draft-8'
   */
  headers?: HeaderOption;
  /**
   * Whether scripts of other origins may read these headers and `Retry-After`: where the app allows an origin (CORS),
   * `Access-Control-Expose-Headers` names them, too.
   * @default true
   */
  exposeHeaders?: boolean;
  /**
   * Spreads the waits that refusals tell, so that clients do not all come back at once: a share of the wait, from 0 to 1. What
   * the headers say is `wait * (1 + random * retryJitter)`, with one random number from 0 to 1 a response. Decisions stay exact.
   * @default 0
   */
  retryJitter?: number;
  /**
   * Whether refusals are answered with problem details (RFC 9457, `application/problem+json`) of the types that the IETF
   * draft of the headers defines. Only over plain HTTP.
   * @default false
   */
  problem?: boolean;
  /**
   * Makes the JSON body of a refusal, of the context, of what all limits said, and of the body that would be sent without it.
   * If it fails, that one is sent. A limit may have another.
   * @default `statusCode`, `message`, `error` and `limits`, or with `problem` the members of problem details
   */
  body?: RefusalBody;
  /**
   * How long a check on Redis may take: milliseconds or a duration such as `'250ms'`. Then `onStoreError` decides.
   * @default 250
   */
  timeout?: Duration;
  /**
   * How long a request waits for a client that reads its answer slowly, all its waits together: milliseconds or a duration. If the
   * answer is complete by then, the request gives back what it holds of `concurrency` limits; if it is still being written, its
   * connection is closed. A client that reads 16 KiB a second is not slow while an answer is written. `false` waits as long as the
   * client likes.
   * @default '30s'
   */
  sendTimeout?: Duration | false;
  /**
   * While the store fails: `'local'` counts in process, `'allow'` lets pass, `'deny'` answers 503; or a function of the error
   * and the check that gives one of these. A limit may say otherwise.
   * @default 'local'
   */
  onStoreError?: OnStoreError;
  /**
   * The part of each limit that this instance allows while it counts for itself (`'local'`): 1 / the number of instances keeps
   * them together below the limit. At least one unit is allowed.
   * @default 1
   */
  localShare?: number;
  /**
   * For a request that has no key for a limit: `'ip'` counts its address instead, `'skip'` does not apply the limit,
   * `'refuse'` answers 401 for key `'user'` and 400 for any other. A limit may say otherwise.
   * @default 'ip'
   */
  onMissingKey?: OnMissingKey;
  /**
   * For a call of a transport that none of the `readers` reads, where a limit needs one to know whom it counts: `'refuse'` answers
   * 500, and the log names the transport; `'skip'` does not apply the limit, and a warning says so once. A limit by `'global'` or
   * by a function that finds a key needs no reader.
   * @default 'refuse'
   */
  onMissingReader?: OnMissingReader;
  /**
   * How many leading bits of an IPv6 address tell clients apart: 1 to 128.
   * @default 64
   */
  ipv6Prefix?: number;
  /**
   * The beginning of every Redis key; no braces.
   * @default 'sluice'
   */
  prefix?: string;
  /**
   * How many counters the in-process store keeps at most; the least recently used goes first, those that are blocked, have
   * offences or hold leases last.
   * @default 100_000
   */
  maxKeys?: number;
  /**
   * How many bytes of memory they take at most, as far as that can be estimated.
   * @default 1_000 for each of `maxKeys`, and at least 16_000_000
   */
  maxBytes?: number;
  /**
   * How many calls of `acquire` and `hold` may wait for one key of a limit in this process: a whole number >= 1. Ten times as many may
   * wait for all keys together. As many calls to others' APIs may wait for the same counters. Further ones reject with
   * `RateLimitWaitersError`.
   * @default 10_000
   */
  maxWaiters?: number;
  /**
   * Whether a check that Redis refused is refused again without a call until its wait is over (`source: 'cache'`). A refund, a
   * reset or an unblock by any instance ends that. Not used for limits whose units come back otherwise: `concurrency`,
   * `leaky-bucket`, with `count` or `cost`; nor on a Cluster.
   * @default true
   */
  refusalCache?: boolean;
  /**
   * Whether decisions and the store are measured with OpenTelemetry, and told to the active span. `false` does not load
   * `@opentelemetry/api`; `true` refuses to start without it.
   * @default if `@opentelemetry/api` is installed
   */
  telemetry?: boolean;
  /**
   * A store of your own instead of `redis`. It stays open when the app closes.
   * @default made from `redis`
   */
  store?: Store;
  /**
   * Readers of the calls of further transports, or of a known one in another way: objects, or injectable classes.
   * @default HTTP, GraphQL, WebSockets (socket.io and ws) and microservices are read
   */
  readers?: readonly (RequestReader | Type<RequestReader>)[];
}

/** Options of the module itself, which stand beside `useFactory` in `forRootAsync`. */
export interface RateLimitModuleExtras {
  /**
   * Whether the guard holds for every route. If `false`, bind it with `@UseGuards(RateLimitGuard)`, or as an `APP_GUARD` of your
   * own where its place among other guards matters; an app that declares `@RateLimit` where no guard is bound does not start.
   * `'custom'` starts without asking where it is bound: a guard of yours calls it, or some limits are to rest.
   * @default true
   */
  guard?: boolean | 'custom';
}
