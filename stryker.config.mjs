import { startSharedRedis } from './test/support/redis/shared-redis.mjs';

// Mutants are many: each runs the properties a few times, always with the same values.
process.env['PROPERTY_RUNS'] ??= '0.3';
// As Jest has it: some libraries tell more of errors elsewhere.
process.env['NODE_ENV'] = 'test';

await startSharedRedis();

/** Mutation testing of the core: `npm run test:mutation`, or of some files with `-- --mutate lib/engine/algorithms/gcra.ts`. */
export default {
  mutate: [
    'lib/engine/algorithms/**/*.ts',
    'lib/storage/features/**/*.ts',
    'lib/engine/limits/**/*.ts',
    'lib/nest/request/**/*.ts',
    'lib/storage/stores/layers/**/*.ts',
    'lib/storage/stores/memory/**/*.ts',
  ],
  testRunner: 'in-process',
  plugins: ['./test/support/mutation/in-process-runner.mjs'],
  coverageAnalysis: 'perTest',
  // Mutants of code that runs once, at import, would need all tests anew.
  ignoreStatic: true,
  // Nothing that is run is checked for its types.
  disableTypeChecks: false,
  ignorePatterns: [
    '/.stryker-tmp',
    '/bench',
    '/build',
    '/coverage',
    '/dist',
    '/sample-app',
    '/test/chaos',
    '/test/package',
  ],
  dryRunTimeoutMinutes: 30,
  timeoutMS: 60_000,
  // What mutants leave behind goes with the process.
  maxTestRunnerReuse: 500,
  reporters: ['clear-text', 'html', 'json', 'progress'],
  clearTextReporter: { allowColor: false, logTests: false },
  htmlReporter: { fileName: 'reports/mutation/index.html' },
  jsonReporter: { fileName: 'reports/mutation/report.json' },
  incremental: true,
  incrementalFile: 'reports/mutation/incremental.json',
  thresholds: { high: 95, low: 85, break: 85 },
};
