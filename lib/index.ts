/**
 * Rate limiting for NestJS.
 * @module nestjs-sluice
 */
export type { LeaseEnd, WindowCount } from './engine/algorithms/algorithm.js';
export type { BudgetOptions } from './engine/algorithms/budget.js';
export type { CalendarOptions, CalendarWindowOptions } from './engine/algorithms/calendar-window.js';
export type { Anchor, AnchorOption } from './engine/algorithms/anchor.js';
export type { AnchoredPeriod, Period } from './engine/algorithms/calendar.js';
export type { AdaptiveOptions, AdaptiveShares } from './engine/algorithms/adaptive-options.js';
export type { ConcurrencyOptions } from './engine/algorithms/concurrency.js';
export type { FixedWindowOptions } from './engine/algorithms/fixed-window.js';
export type { GcraOptions } from './engine/algorithms/gcra.js';
export type { PlanOptions } from './engine/algorithms/plan/options.js';
export type { HoldOptions, OnLapse } from './engine/algorithms/common-options.js';
export type { AlgorithmName, AlgorithmOptions } from './engine/algorithms/index.js';
export type { LeakyBucketOptions } from './engine/algorithms/leaky-bucket.js';
export type { LimitMode, OnStoreError, StoreErrorPolicy, UnansweredCheck } from './engine/limits/limit-settings.js';
export type { Size } from './engine/options/kinds.js';
export type { Duration } from './engine/options/values.js';
export { eur, gbp, money, usd } from './engine/limits/money.js';
export type { SlidingLogOptions } from './engine/algorithms/sliding-log.js';
export type { SlidingWindowOptions } from './engine/algorithms/sliding-window.js';
export type { TokenBucketOptions } from './engine/algorithms/token-bucket.js';
export type { WarmingBucketOptions, WarmingLimitOptions, WarmUpOptions } from './engine/algorithms/warm-up/ramp.js';
export { getLimiterToken } from './app/config/tokens.js';
export { InjectLimiter, RateLimitDecision, RateLimit, type SkipReason, SkipRateLimit } from './nest/decorators.js';
export { Limited } from './nest/methods/limited.decorator.js';
export type {
  LimitedDecorator,
  LimitedMethod,
  LimitedOptions,
  MayReturnUndefined,
  OnLimit,
  SkippedDecorator,
} from './nest/methods/limited-options.js';
export type {
  AddressEntry,
  ConfiguredListEntry,
  IdentityEntry,
  ListEntry,
  ListName,
  ListsOptions,
  PatternEntry,
} from './app/config/list-entry.js';
export {
  defineLimit,
  defineLimits,
  type LimitDefaults,
  type AdaptiveLimitOptions,
  type ExactLimit,
  type LimitDefinition,
  type LimitOf,
} from './app/config/limit-definition.js';
export {
  RateLimitArgumentError,
  RateLimitConfigError,
  type RateLimitErrorCode,
  type RateLimitErrorOptions,
  RateLimitStoreError,
} from './engine/errors/errors.js';
export {
  type RateLimitHealth,
  RateLimitHealthIndicator,
  type RateLimitHealthOptions,
  type RateLimitHealthStatus,
} from './nest/health/rate-limit.health-indicator.js';
export type { HeaderFormat, HeaderFormatter, HeaderOption } from './app/http/header-format.js';
export type { LimitInfo } from './app/http/limit-info.js';
export {
  type DeniedStatus,
  RateLimitDeniedException,
  RateLimitExceededException,
} from './app/http/rate-limit.exceptions.js';
export type {
  RefusalBody,
  RefusalFunction,
  RefusalMessage,
  RefusalOption,
  RefusalResolver,
  RefusalResponse,
} from './app/http/refusal-answer.js';
export type {
  DecisionHook,
  DecisionHooksOptions,
  DecisionKind,
  DecisionObserver,
  ObservedDecision,
} from './app/hooks/decision-hook.js';
export {
  headerIdentity,
  type KeyFunction,
  type KeyResolver,
  type LimitKey,
  type ResolvedKey,
} from './engine/limits/identity.js';
export { ipIdentity } from './app/key-resolvers/ip.js';
export type {
  CommonLimitOptions,
  Count,
  OnMissingKey,
  OnMissingReader,
  Outcome,
  Phase,
  Scope,
} from './app/config/common-limit-options.js';
export type { CostByBytes, CostByDuration, MeasuredCost } from './app/config/measured-cost.js';
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
} from './app/config/limits-by-request.js';
export { Lease, type LeasedCheckResult, type LeasedDecision } from './app/limiter/lease.js';
export { Limiter } from './app/limiter/limiter.js';
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
} from './nest/explain/explanation.js';
export type { LimitQuery, RouteQuery } from './nest/explain/question.js';
export { formatExplanation } from './nest/explain/format.js';
export type { CreditOptions } from './app/limiter/credits.js';
export type { AcquireOptions } from './app/limiter/acquire.js';
export type { ReserveOptions } from './app/limiter/reserve.js';
export type {
  DailyUsage,
  KeyUsage,
  Usage,
  UsageExportOptions,
  UsageRange,
  UsageTime,
} from './storage/features/usage/reading.js';
export type { LimitCheck } from './app/limiter/limit-checks.js';
export { LimiterService } from './nest/limiter.service.js';
export { rateLimitOf, type RequestDecision } from './nest/request/request-decision.js';
export { RateLimitGuard } from './nest/rate-limit.enhancers.js';
export { RateLimitRejections } from './nest/rejections.guard.js';
export {
  RateLimitMiddleware,
  rateLimitMiddleware,
  type RateLimitMiddlewareFunction,
} from './nest/rate-limit.middleware.js';
export { RateLimitModule } from './nest/rate-limit.module.js';
export type { RateLimitModuleExtras, RateLimitModuleOptions, RegionOptions } from './app/config/module-options.js';
export type {
  PolicyData,
  PolicyFunction,
  PolicyLimitData,
  PolicyOptions,
  PolicyOverrideData,
} from './app/config/policy.js';
export type { ChangeCause } from './app/overrides/change-cause.js';
export type {
  ChangedList,
  ListedEntry,
  ListOptions,
  ListPage,
  ListPageOptions,
  UnlistOptions,
} from './app/overrides/lists/list.js';
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
} from './app/overrides/override.js';
export type { RedisClient, RedisConnection } from './storage/redis/client.js';
export type { ClusterConnection } from './storage/redis/given-connection.js';
export type {
  NodeRedisClient,
  NodeRedisCluster,
  NodeRedisConnection,
  NodeRedisSentinel,
} from './storage/redis/node-redis/types.js';
export { Reservation, ReservedCheck } from './app/limiter/reservation.js';
export { MemoryStore, RedisStore } from './storage/features/own-stores.js';
export type { MemoryStoreOptions } from './storage/stores/memory/memory.store.js';
export type { RedisStoreOptions } from './storage/stores/redis/redis.store.js';
export type { RequestRoute, Store } from './storage/stores/store.js';
export type {
  CallOptions,
  ConsumeOptions,
  CorrectionOptions,
  OfTenant,
  WithinOptions,
} from './engine/limits/consume-options.js';
export type { CheckResult, Decision } from './engine/limits/decision.js';
export type { Priority } from './engine/limits/arguments.js';
export type { AnchorFunction } from './storage/features/anchors/anchors.js';
export type { ReservedShares, ReservingLimitOptions } from './storage/features/priorities/priorities.js';
export type { BorrowingOptions, LendingLimitOptions } from './storage/features/borrowing/terms.js';
export type { CandidateLimitOptions, CandidateOptions, CandidatePatch } from './storage/features/candidates/options.js';
export type { SharedLimitOptions, ShareOptions } from './storage/features/shares/options.js';
export type { PrefetchLimitOptions, PrefetchOptions } from './storage/features/prefetch/terms.js';
export type { HeldNow } from './engine/limits/estimates.js';
export type { RecentUsage, RegionHolding } from './engine/limits/key-reports.js';
export type { UsageOptions, UsageTerms } from './storage/features/usage/terms.js';
export type { RecordedLimitOptions } from './storage/features/usage/usage.js';
export type { KeyDays, NamedUnits, TimeRange } from './storage/features/usage/range.js';
export type { DecisionEvent, DecisionOutcome } from './storage/telemetry/decision-event.js';
export type { ClientSocket } from './app/transports/connection.js';
export type { RequestLike, RequestParts, RequestReader } from './app/transports/request-reader.js';
export { RateLimitTimeoutError, RateLimitWaitersError } from './app/waiting/waiting-errors.js';
