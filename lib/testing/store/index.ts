/**
 * For stores of one's own: what the limiter asks of a store, a store on any database with transactions, and a suite that shows whether
 * a store decides as ours do.
 * @module nestjs-sluice/store
 */
export type { WindowCount } from '../../engine/algorithms/algorithm.js';
export { CompiledLimit, type LimitSettings, type MetBy } from '../../engine/limits/compiled-limit.js';
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
export { storeConformance } from './conformance/index.js';
export type { MakeStore, StoreConformanceOptions, StoreToTest, TestRunner } from './conformance/index.js';
export {
  TransactionalStore,
  type CounterChanges,
  type CounterWrite,
  type TransactionalStoreOptions,
} from './transactional-store.js';
