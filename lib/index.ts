/**
 * Rate limiting for NestJS.
 * @module nestjs-sluice
 */
export type { WindowCount } from './algorithms/algorithm.js';
export type { BudgetOptions } from './algorithms/budget.js';
export type { CalendarOptions, CalendarWindowOptions } from './algorithms/calendar-window.js';
export type { Anchor, AnchorOption } from './algorithms/anchor.js';
export type { AnchoredPeriod } from './algorithms/anchored-calendar.js';
export type { Period } from './algorithms/calendar.js';
export type { AdaptiveOptions, AdaptiveShares } from './algorithms/adaptive-options.js';
export type { LeaseEnd } from './algorithms/algorithm.js';
export type { ConcurrencyOptions } from './algorithms/concurrency.js';
export type { FixedWindowOptions } from './algorithms/fixed-window.js';
export type { GcraOptions } from './algorithms/gcra.js';
export type { PlanOptions } from './algorithms/plan/options.js';
export type { HoldOptions, OnLapse } from './algorithms/hold-options.js';
export type { AlgorithmName, AlgorithmOptions } from './algorithms/index.js';
export type { LeakyBucketOptions } from './algorithms/leaky-bucket.js';
export type { OnStoreError, StoreErrorPolicy, UnansweredCheck } from './limits/limit-settings.js';
export type { Duration } from './options/values.js';
export { eur, gbp, money, usd } from './limits/money.js';
export type { SlidingLogOptions } from './algorithms/sliding-log.js';
export type { SlidingWindowOptions } from './algorithms/sliding-window.js';
export type { TokenBucketOptions } from './algorithms/token-bucket.js';
export type { WarmingBucketOptions, WarmingLimitOptions, WarmUpOptions } from './algorithms/warm-up/options.js';
export { getLimiterToken } from './config/limiter-tokens.js';
export { InjectLimiter } from './nest/decorators/inject-limiter.decorator.js';
export { RateLimitDecision } from './nest/decorators/rate-limit-decision.decorator.js';
export { RateLimit } from './nest/decorators/rate-limit.decorator.js';
export { SkipRateLimit } from './nest/decorators/skip-rate-limit.decorator.js';
export type {
  AddressEntry,
  ConfiguredListEntry,
  IdentityEntry,
  ListEntry,
  ListName,
  ListsOptions,
  PatternEntry,
} from './config/list-entry.js';
export { defineLimit, defineLimits } from './config/define-limit.js';
export { RateLimitArgumentError, RateLimitConfigError, RateLimitStoreError } from './errors/errors.js';
export {
  type RateLimitHealth,
  RateLimitHealthIndicator,
  type RateLimitHealthOptions,
  type RateLimitHealthStatus,
} from './nest/health/rate-limit.health-indicator.js';
export type { HeaderFormat, HeaderFormatter, HeaderOption } from './http/header-format.js';
export type { LimitInfo } from './http/limit-info.js';
export { type DeniedStatus, RateLimitDeniedException } from './http/rate-limit-denied.exception.js';
export { RateLimitExceededException } from './http/rate-limit-exceeded.exception.js';
export type {
  RefusalBody,
  RefusalFunction,
  RefusalMessage,
  RefusalOption,
  RefusalResolver,
  RefusalResponse,
} from './http/refusal-answer.js';
export type {
  DecisionHook,
  DecisionHooksOptions,
  DecisionKind,
  DecisionObserver,
  ObservedDecision,
} from './hooks/decision-hook.js';
export { headerIdentity } from './key-resolvers/header.js';
export { ipIdentity } from './key-resolvers/ip.js';
export type { LimitKey } from './key-resolvers/index.js';
export type { KeyFunction, KeyResolver, ResolvedKey } from './key-resolvers/key-resolver.js';
export type {
  CommonLimitOptions,
  Count,
  OnMissingKey,
  OnMissingReader,
  Outcome,
  Phase,
  Scope,
} from './config/common-limit-options.js';
export type {
  LimitDefaults,
  AdaptiveLimitOptions,
  ExactLimit,
  LimitDefinition,
  LimitOf,
} from './config/limit-definition.js';
export type {
  DynamicLimit,
  DynamicRate,
  LimitAnswer,
  LimitFunction,
  LimitResolver,
  LimitSelector,
  LimitSpec,
  ModuleLimit,
  RateFunction,
  WithDynamicRate,
} from './config/limits-by-request.js';
export { Lease, type LeasedCheckResult, type LeasedDecision } from './limiter/lease.js';
export { Limiter } from './limiter/limiter.js';
export type {
  CounterState,
  ExplainedCandidate,
  ExplainedDecision,
  ExplainedFunction,
  ExplainedKey,
  ExplainedLimit,
  ExplainedMode,
  ExplainedOutcome,
  ExplainedRate,
  ExplainedShare,
  ExplainedSubject,
  Explanation,
  LeftOutLimit,
  LimitOrigin,
  LimitStatus,
} from './explain/explanation.js';
export type { LimitQuery, RouteQuery } from './explain/question.js';
export { formatExplanation } from './explain/format.js';
export type { CreditOptions } from './limiter/credits.js';
export type { AcquireOptions, ReserveOptions } from './limiter/limiter-options.js';
export type {
  DailyUsage,
  KeyUsage,
  Usage,
  UsageExportOptions,
  UsageRange,
  UsageTime,
} from './features/usage/reading.js';
export type { LimitCheck } from './limiter/limit-checks.js';
export { LimiterService } from './nest/limiter.service.js';
export { rateLimitOf } from './request/rate-limit-of.js';
export type { RequestDecision } from './request/request-decision.js';
export { RateLimitGuard } from './nest/rate-limit.guard.js';
export {
  RateLimitMiddleware,
  rateLimitMiddleware,
  type RateLimitMiddlewareFunction,
} from './nest/rate-limit.middleware.js';
export { RateLimitModule } from './nest/rate-limit.module.js';
export type { RateLimitModuleExtras, RateLimitModuleOptions } from './config/module-options.js';
export type {
  PolicyData,
  PolicyFunction,
  PolicyLimitData,
  PolicyOptions,
  PolicyOverrideData,
} from './config/policy.js';
export type { RegionOptions } from './config/region-options.js';
export type { ChangeCause } from './overrides/change-cause.js';
export type {
  ChangedList,
  ListedEntry,
  ListOptions,
  ListPage,
  ListPageOptions,
  ListQuery,
  UnlistOptions,
} from './overrides/lists/list.js';
export type { LimitMode } from './limits/limit-mode.js';
export type {
  ChangedMode,
  ChangedRate,
  ChangesOptions,
  ClearOptions,
  CurrentMode,
  CurrentRate,
  InheritMode,
  KeyOverrides,
  ListOverridesOptions,
  ModeOverride,
  Override,
  OverrideOptions,
  OverridePage,
  OverrideQuery,
  OverrideSource,
  RateOverride,
  RatePatch,
  RecordedChange,
  SetRateOptions,
} from './overrides/override.js';
export type { RedisClient, RedisConnection } from './redis/client.js';
export type { ClusterConnection } from './redis/given-connection.js';
export type {
  NodeRedisClient,
  NodeRedisCluster,
  NodeRedisConnection,
  NodeRedisSentinel,
} from './redis/node-redis/types.js';
export { Reservation } from './limiter/reservation.js';
export { ReservedCheck } from './limiter/reserved-check.js';
export { MemoryStore, RedisStore } from './features/own-stores.js';
export type { MemoryStoreOptions } from './stores/memory/memory.store.js';
export type { RedisStoreOptions } from './stores/redis/redis.store.js';
export type { Store } from './stores/store.js';
export type {
  CallOptions,
  ConsumeOptions,
  CorrectionOptions,
  OfTenant,
  WithinOptions,
} from './limits/consume-options.js';
export type { CheckResult, Decision } from './limits/decision.js';
export type { Priority } from './limits/priority.js';
export type { AnchorFunction } from './features/anchors/options.js';
export type { ReservedShares, ReservingLimitOptions } from './features/priorities/options.js';
export type { BorrowingOptions, LendingLimitOptions } from './features/borrowing/terms.js';
export type { CandidateLimitOptions, CandidateOptions, CandidatePatch } from './features/candidates/options.js';
export type { SharedLimitOptions, ShareOptions } from './features/shares/options.js';
export type { PrefetchLimitOptions, PrefetchOptions } from './features/prefetch/terms.js';
export type { HeldNow } from './limits/held-now.js';
export type { RecentUsage } from './limits/recent-usage.js';
export type { RegionHolding } from './limits/region-holding.js';
export type { UsageOptions, UsageTerms } from './features/usage/terms.js';
export type { RecordedLimitOptions } from './features/usage/usage.js';
export type { KeyDays, NamedUnits, TimeRange } from './features/usage/range.js';
export type { DecisionEvent, DecisionOutcome } from './telemetry/decision-event.js';
export type { RequestRoute } from './stores/check-origin.js';
export type { ClientSocket } from './transports/connection.js';
export type { RequestLike, RequestParts, RequestReader } from './transports/request-reader.js';
export { RateLimitTimeoutError } from './waiting/rate-limit-timeout.error.js';
export { RateLimitWaitersError } from './waiting/rate-limit-waiters.error.js';
