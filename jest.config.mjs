import { availableParallelism } from 'node:os';

export default {
  // Specs and the library are loaded by Node itself, each package and each file of the library once in a process.
  testEnvironment: '<rootDir>/test/support/jest/environment.mjs',
  testRunner: '<rootDir>/test/support/jest/spec-runner.mjs',
  // Jest itself compiles nothing, and need not load Babel.
  transform: {},
  setupFilesAfterEnv: ['nest-logger', 'property-seed'].map((name) => `<rootDir>/test/support/jest/${name}.mjs`),
  // Jest loads nothing of lib/: while it watches, it looks there for what has changed and for what imports that.
  roots: ['<rootDir>/lib', '<rootDir>/test'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': ['$1', '$1.js'] },
  testMatch: ['**/*.spec.ts'],
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
  testSequencer: '<rootDir>/test/support/jest/longest-first.mjs',
  // Much of the time tests wait, for a server or a clock. (Jest takes more than 100 % for a number of workers.)
  maxWorkers: availableParallelism() + 2,
  // What specs leave behind in a worker goes with it.
  workerIdleMemoryLimit: '1GB',
  // A busy machine takes its time to end a process.
  workerGracefulExitTimeout: 30_000,
  // Ends only what hangs, for hooks as for tests: on a machine that nothing else keeps busy, none takes a tenth of it.
  testTimeout: 600_000,
};
