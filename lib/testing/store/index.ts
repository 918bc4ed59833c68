/**
 * For your own stores: the interface of a store, a base class for any database with transactions, and a test suite that compares a store
 * with the built-in ones.
 * @module nestjs-sluice/store
 */
export type { WindowCount } from '../../engine/algorithms/algorithm.js';
export { CompiledLimit } from '../../engine/limits/compiled-limit.js';
export type { MetBy } from '../../engine/limits/limit-feature.js';
export type { LimitSettings } from '../../engine/limits/limit-settings.js';
export type { CheckEntry, Counter } from '../../engine/limits/counter.js';
export type { Decision } from '../../engine/limits/decision.js';
export type { LearntRate, Lesson, RateLesson } from '../../storage/stores/lesson.js';
export type {
  Charge,
  Check,
  Claim,
  ClaimEnd,
  Credit,
  HeldLease,
  Refund,
  ReserveEntry,
  Store,
  StoreDecision,
} from '../../storage/stores/store.js';
export { storeConformance, type StoreConformanceOptions, type TestRunner } from './conformance/index.js';
export type { MakeStore, StoreToTest } from './conformance/stage.js';
export {
  TransactionalStore,
  type CounterChanges,
  type CounterWrite,
  type TransactionalStoreOptions,
} from './transactional-store.js';
