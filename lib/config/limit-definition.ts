import type { ExecutionContext } from '@nestjs/common';
import type { AdaptiveOptions } from '../algorithms/adaptive-options.js';
import type { Anchor, AnchorOption } from '../algorithms/anchor.js';
import type { AlgorithmOptions } from '../algorithms/index.js';
import type { Duration } from '../algorithms/options.js';
import type { LimitKey } from '../key-resolvers/index.js';
import type { UsageOptions } from '../limits/usage-terms.js';
import type { CommonLimitOptions } from './common-limit-options.js';

/** Tenants that share the units of a counter, and their parts. */
export interface ShareOptions {
  /**
   * The tenant of a request: any form of a limit's `key`, such as `'user'`, `'header:x-tenant'` or a function of the context. For a
   * request without one, `onMissingKey` of the limit holds.
   */
  by: LimitKey;
  /**
   * The weights of tenants, whole numbers >= 1 and <= 1,000,000: by tenant, where all others have 1, or a function of the tenant. A
   * tenant is named as `by` finds it: `user:42` for `'user'`. An object may name the tenants of a header by its values; a function
   * is given `headerIdentity` of them.
   * @default 1 for each
   */
  weight?: Readonly<Record<string, number>> | ((tenant: string) => number);
  /**
   * Whether `'each'` tenant that the object `weight` does not name counts for itself, or they count `'together'` as one tenant of
   * weight 1: then names that somebody makes up take nothing from those that it names.
   * @default 'each'
   */
  unlisted?: 'each' | 'together';
  /**
   * The share of the quota that each active tenant may use at least, whatever the weights of others: 0 to 1. Parts may then be more
   * than the quota together; the total never is.
   * @default 0
   */
  floor?: number;
}

/** The algorithms whose units can be shared among tenants. */
type SharingAlgorithm = 'sliding-window' | 'token-bucket' | 'gcra';

/** The option of limits whose units are shared. */
export interface SharedLimitOptions {
  /**
   * Shares the units of a counter fairly among tenants. While there is room anyone may take it; under contention each active tenant
   * gets a part of the quota in proportion to its weight. A `sliding-window` that is always full lets slices / (slices + 1) of its
   * rate pass, 91 % with its 10 slices. Only for `sliding-window`, `token-bucket` and `gcra`; not with
   * refill `'intervally'`, `prefetch`, `blockFor` or `candidate`.
   * @default whoever comes first
   */
  share?: ShareOptions;
}

/** The option of limits that record the units that they charge. */
export interface RecordedLimitOptions {
  /**
   * Records the units that the limit charges each key, by the days of a time zone, in the same call that charges them: for
   * invoices, which read them by `Limiter.usage` and `Limiter.exportUsage`. A duration such as `'400d'`, at least 1 day and at most
   * 10 years, says how long a day can be read after its end; `{ keep, timezone }` says whose days, too. Not for `concurrency` and
   * `adaptive`, nor with `prefetch`.
   * @default nothing is recorded
   */
  usage?: Duration | UsageOptions;
}

/** Options of algorithms, of which all record what they charge but those that count what is in flight. */
type Recorded<Options> = Options extends { algo: 'concurrency' }
  ? Options & { usage?: never }
  : Options & RecordedLimitOptions;

/** The algorithms of which units can be borrowed: what they count does not depend on their rate. */
type BorrowingAlgorithm = 'fixed-window' | 'calendar-window' | 'sliding-window' | 'sliding-log';

/** The option of limits that borrow of the limit that they are within. */
export interface BorrowingOptions {
  /**
   * The most units of an interval with what is borrowed, a whole number >= `rate`. Beyond its own rate a limit may use units of the one
   * that it is within (`within`), as long as that has some that it lends (`lends`). What a decision tells (`quota`, `remaining`) is of
   * the ceiling. Only for `fixed-window`, `calendar-window`, `sliding-window` and `sliding-log`; not with `blockFor`, `reserveFor`,
   * `candidate`, `prefetch` or `share`.
   * @default the rate: nothing is borrowed
   */
  ceiling?: number;
}

/** Options of algorithms, of which only some can borrow, and only where they are within a limit. */
type Borrowing<Options> = Options extends { algo: BorrowingAlgorithm }
  ? Options & ({ ceiling?: never } | (Required<BorrowingOptions> & { within: string }))
  : Options & { ceiling?: never };

/** Options of algorithms, of which only some have shares. */
type Sharing<Options> = Options extends { algo: SharingAlgorithm }
  ? Options & SharedLimitOptions
  : Options & { share?: never };

/** Says by the request where the windows of a limit begin: a date, or nothing for the calendar's own windows. */
export type AnchorFunction = (
  context: ExecutionContext,
) => Anchor | null | undefined | Promise<Anchor | null | undefined>;

/** Options of algorithms, of which some may have an anchor that depends on the request. */
type Anchoring<Options> = Options extends { anchor: AnchorOption }
  ? Omit<Options, 'anchor'> & {
      /**
       * Where windows begin, such as a subscription's own month: a `Date`, an ISO 8601 date such as `'2026-01-31'` (of the
       * `timezone`, unless it names an offset) or milliseconds since the epoch; or a function of the context that gives one of
       * these, or nothing for the calendar's own window. The nth window begins at its local time, n periods after it: of the 31st on
       * 28 February, and then again on 31 March. Not with periods below a day; a function not with `prefetch`.
       * @default where the calendar's own windows begin
       */
      anchor: Anchor | AnchorFunction;
    }
  : Options;

/**
 * The options of a limit that learns how much fits, and so counts in one process and what is in flight: without those that need a
 * shared counter, or a number of units that is known.
 */
export interface AdaptiveLimitOptions extends Omit<
  CommonLimitOptions,
  'scope' | 'count' | 'blockFor' | 'forgetAfter' | 'prefetch' | 'candidate' | 'reserveFor' | 'within' | 'lends'
> {
  /** Each instance of the app learns for itself. */
  scope: 'instance';
  /**
   * The key of the counter: everyone shares what an instance can take.
   * @default 'global'
   */
  key?: LimitKey;
  /** It counts what is in flight, however that ends. */
  count?: never;
  /** `shares` says what each priority may take. */
  reserveFor?: never;
  /** It knows priorities, and no tenants. */
  share?: never;
  /** What is in flight comes back, so that no units add up. */
  usage?: never;
  /** It counts in one process, and how much fits of it changes. */
  within?: never;
  /** Nothing is within it. */
  lends?: never;
  /** It borrows nothing. */
  ceiling?: never;
  /** Nobody in particular asks too much of it. */
  blockFor?: never;
  /** There are no blocks to forget. */
  forgetAfter?: never;
  /** Nothing of it is on Redis. */
  prefetch?: never;
  /** A second version would learn from what the first one lets in. */
  candidate?: never;
}

/** One limit: an algorithm with its options, and the options of every limit. */
export type LimitDefinition =
  | (Anchoring<Recorded<Borrowing<Sharing<Exclude<AlgorithmOptions, AdaptiveOptions>>>>> & CommonLimitOptions)
  | (Extract<AlgorithmOptions, AdaptiveOptions> & AdaptiveLimitOptions);

/** The default options of all limits of an app. */
export type LimitDefaults = Omit<
  CommonLimitOptions,
  'name' | 'prefetch' | 'candidate' | 'reserveFor' | 'within' | 'lends' | 'perRoute' | 'phase'
>;

/** The result of a limit function: the name of a defined limit, a limit, several of these, or `null` for none on purpose. */
export type LimitAnswer = string | LimitDefinition | readonly (string | LimitDefinition)[] | null;

/**
 * Chooses limits by the request. It is asked once a request: in the guard, unless no user is known yet and the route has
 * guards of its own that may find one; then it is asked after them, and its limits are checked there. One that gives `undefined`, as
 * for a plan that it does not know, fails, and the request is answered with 500.
 */
export type LimitFunction = (context: ExecutionContext) => LimitAnswer | Promise<LimitAnswer>;

/** An argument of `@RateLimit`. */
export type LimitSpec = string | LimitDefinition | LimitFunction;
