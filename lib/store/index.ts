/**
 * For stores of one's own: what the limiter asks of a store, a store on any database with transactions, and a suite that shows whether
 * a store decides as ours do.
 * @module nestjs-sluice/store
 */
export type { WindowCount } from '../algorithms/algorithm.js';
export { CompiledLimit, type LimitSettings, type MetBy } from '../limits/compiled-limit.js';
export type { CheckEntry, Counter } from '../limits/counter.js';
export type { Decision } from '../limits/decision.js';
export type { LearntRate, Lesson, RateLesson } from '../stores/lesson.js';
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
} from '../stores/store.js';
export { storeConformance } from './conformance/index.js';
export type { MakeStore, StoreConformanceOptions, StoreToTest, TestRunner } from './conformance/index.js';
export {
  TransactionalStore,
  type CounterChanges,
  type CounterWrite,
  type TransactionalStoreOptions,
} from './transactional-store.js';
