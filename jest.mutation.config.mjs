import config from './jest.config.mjs';

// Mutants are many: each runs the properties a few times, always with the same values.
process.env['PROPERTY_RUNS'] ??= '0.2';

const { globalSetup: _setup, globalTeardown: _teardown, reporters: _reporters, ...common } = config;

/** The specs that need no Redis server, for `npm run test:mutation`. Specs of all stores run on the in-process one alone. */
export default {
  ...common,
  testMatch: [
    '<rootDir>/test/algorithms/{block-for,calendar,giving-back,leases,models,reserved-queue}.spec.ts',
    '<rootDir>/test/contract/{eviction,fallback-operations,memory-store,one-deadline,prefetch,stores}.spec.ts',
    '<rootDir>/test/e2e/{answers,custom-transport,defaults,graphql,keys,middleware,refusals}.spec.ts',
    '<rootDir>/test/e2e/{routes,scopes,shut-down,start-up,websockets,wiring}.spec.ts',
    '<rootDir>/test/nest/{limiter.service,transports}.spec.ts',
    '<rootDir>/test/waiting/{changed-limits,giving-up,wait-queue}.spec.ts',
  ],
  moduleNameMapper: {
    '^\\.\\./support/stores\\.js$': '<rootDir>/test/support/memory-only.ts',
    ...common.moduleNameMapper,
  },
  setupFilesAfterEnv: ['<rootDir>/test/support/fixed-seed.ts'],
  coverageThreshold: undefined,
  maxWorkers: 1,
};
