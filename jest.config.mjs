export default {
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
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
        sourceMaps: 'inline',
      },
    ],
  },
  globalSetup: '<rootDir>/test/support/global-setup.mjs',
  globalTeardown: '<rootDir>/test/support/global-teardown.mjs',
  reporters: ['default', '<rootDir>/test/support/closing-line-reporter.mjs'],
  collectCoverageFrom: ['lib/**/*.ts', '!lib/redis/*.generated.ts'],
  coverageProvider: 'v8',
  coverageReporters: ['text-summary', 'text'],
  coverageThreshold: { global: { lines: 95 } },
  // Much of the time tests wait, for a server or a clock.
  maxWorkers: '100%',
  testTimeout: 30_000,
};
