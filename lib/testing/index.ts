/**
 * Helpers for tests of apps that have limits.
 * @module nestjs-sluice/testing
 */
export { expectAllRoutesLimited, type TestedApp } from './all-routes-limited.js';
export { exhaust } from './expectations.js';
export { type ExpectedAllowance, type ExpectedRefusal, expectAllowed, expectRefused } from './expectations.js';
export { RateLimitTesting, type TestingBuilder } from './rate-limit-testing.js';
export { TestClock } from './test-clock.js';
export { createTestingStore, type TestingStoreOptions } from './testing-store.js';
