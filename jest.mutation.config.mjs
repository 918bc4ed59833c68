import config from './jest.config.mjs';
import { specPaths } from './test/support/spec-paths.mjs';

// Mutants are many: each runs the properties a few times, always with the same values.
process.env['PROPERTY_RUNS'] ??= '0.2';

const { globalSetup: _setup, globalTeardown: _teardown, reporters: _reporters, ...common } = config;

/** The specs that need no Redis server. Specs of all stores run on the in-process one alone. */
const WITHOUT_REDIS = specPaths({
  algorithms: ['block-for', 'calendar', 'giving-back', 'leases', 'models', 'reserved-queue'],
  contract: ['eviction', 'fallback-operations', 'memory-store', 'one-deadline', 'prefetch', 'stores'],
  e2e: [
    'answers',
    'custom-transport',
    'defaults',
    'graphql',
    'keys',
    'middleware',
    'refusals',
    'routes',
    'scopes',
    'shut-down',
    'start-up',
    'websockets',
    'wiring',
  ],
  nest: ['limiter.service', 'transports'],
  waiting: ['changed-limits', 'giving-up', 'wait-queue'],
});

/** `npm run test:mutation`. */
export default {
  ...common,
  testMatch: WITHOUT_REDIS.map((spec) => `<rootDir>/${spec}`),
  moduleNameMapper: {
    '^\\.\\./support/stores\\.js$': '<rootDir>/test/support/memory-only.ts',
    ...common.moduleNameMapper,
  },
  setupFilesAfterEnv: ['<rootDir>/test/support/fixed-seed.ts'],
  coverageThreshold: undefined,
  maxWorkers: 1,
};
