import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

const CODE = /^(?:export )?(?:default |abstract |async )*(?:class|function|const|let|enum)\b/m;

/** The files of the library that hold more than types. */
const filesWithCode = readdirSync(new URL('lib/', import.meta.url), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.generated.ts'))
  // A browser runs it, and specs that drive one look at it.
  .filter((file) => !file.startsWith(join('console', 'page', '/')))
  .filter((file) => CODE.test(readFileSync(new URL(`lib/${file}`, import.meta.url), 'utf8')));

export default {
  testEnvironment: 'node',
  // Those of lib/ are found for the coverage: a file that no spec loads has none.
  roots: ['<rootDir>/lib', '<rootDir>/test'],
  testMatch: ['**/*.spec.ts'],
  // Projects of their own, which a spec copies and installs.
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/package/projects/'],
  modulePathIgnorePatterns: ['<rootDir>/test/package/projects/'],
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2023',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: true },
          keepClassNames: true,
        },
        module: { type: 'es6' },
        sourceMaps: true,
      },
    ],
  },
  globalSetup: '<rootDir>/test/support/global-setup.mjs',
  globalTeardown: '<rootDir>/test/support/global-teardown.mjs',
  reporters: ['default', '<rootDir>/test/support/closing-line-reporter.mjs'],
  // One pattern: each spec matches all that it loads with all patterns there are.
  collectCoverageFrom: [`lib/{${filesWithCode.join(',')}}`],
  coverageProvider: 'v8',
  coverageReporters: ['text-summary', 'text'],
  coverageThreshold: { global: { lines: 95 } },
  runner: '<rootDir>/test/support/suite-runner.mjs',
  testSequencer: '<rootDir>/test/support/longest-first.mjs',
  // Much of the time tests wait, for a server or a clock. (Jest takes more than 100 % for a number of workers.)
  maxWorkers: availableParallelism() + 1,
  // A busy machine takes its time to end a process.
  workerGracefulExitTimeout: 30_000,
  // Ends only what hangs: nothing that is tested takes a tenth of it, unless the machine is busy.
  testTimeout: 120_000,
};
