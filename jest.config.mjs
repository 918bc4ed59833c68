import { availableParallelism } from 'node:os';
import { isInRest, isLong, specs } from './test/support/jest/suites.mjs';

/** `npm test` runs one tier of the specs, `npm run test:all` both; `npm run jest` runs whatever its arguments name. */
const TIERS = { quick: (spec) => !isLong(spec), rest: isInRest };
const isInTier = TIERS[process.env['TEST_TIER']];

export default {
  // Node loads specs and the library itself, each package and each file of the library once per process.
  testEnvironment: '<rootDir>/test/support/jest/environment.mjs',
  testRunner: '<rootDir>/test/support/jest/spec-runner.mjs',
  // Jest compiles nothing, so it need not load Babel.
  transform: {},
  setupFilesAfterEnv: ['<rootDir>/test/support/jest/property-seed.ts'],
  // Jest loads nothing of lib/: while it watches, it looks there for what has changed and for what imports that.
  roots: ['<rootDir>/lib', '<rootDir>/test'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': ['$1', '$1.js'] },
  testMatch:
    isInTier === undefined
      ? ['**/*.spec.ts']
      : specs()
          .filter(isInTier)
          .map((spec) => `<rootDir>/${spec}`),
  // Projects of their own, which a spec copies and installs.
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/package/projects/'],
  modulePathIgnorePatterns: ['<rootDir>/test/package/projects/'],
  globalSetup: '<rootDir>/test/support/global-setup.mjs',
  globalTeardown: '<rootDir>/test/support/global-teardown.mjs',
  reporters: [
    'default',
    '<rootDir>/test/support/jest/coverage-reporter.mjs',
    '<rootDir>/test/support/jest/closing-line-reporter.mjs',
  ],
  // Connections that other specs leave open use these, and must not count as timers of a spec.
  fakeTimers: { doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] },
  // Tests often wait for a server or a clock. (Jest takes more than 100 % for a number of workers.)
  maxWorkers: availableParallelism() + 1,
  // What specs leave behind in a worker goes with it.
  workerIdleMemoryLimit: '1GB',
  // A busy machine takes its time to end a process.
  workerGracefulExitTimeout: 30_000,
  // Ends only what hangs, for hooks as for tests: on a machine that nothing else keeps busy, none takes a tenth of it.
  testTimeout: 600_000,
};
