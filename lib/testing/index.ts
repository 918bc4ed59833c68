/**
 * Helpers for tests of apps that have limits.
 * @module nestjs-sluice/testing
 */
export {
  expectAllRoutesLimited,
  type TestedApp,
  exhaust,
  type ExpectedAllowance,
  type ExpectedRefusal,
  expectAllowed,
  expectRefused,
} from './expectations.js';
export { RateLimitTesting, type TestingBuilder } from './rate-limit-testing.js';
export { TestClock, createTestingStore, type TestingStoreOptions } from './test-clock.js';
