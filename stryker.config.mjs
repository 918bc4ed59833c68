/** Mutation testing of the core: `npm run test:mutation`, or of some files with `-- --mutate lib/algorithms/gcra.ts`. */
export default {
  mutate: [
    'lib/algorithms/**/*.ts',
    'lib/limits/**/*.ts',
    'lib/request/**/*.ts',
    'lib/stores/layers/**/*.ts',
    'lib/stores/memory/**/*.ts',
  ],
  testRunner: 'jest',
  jest: { projectType: 'custom', configFile: 'jest.mutation.config.mjs', enableFindRelatedTests: false },
  coverageAnalysis: 'perTest',
  // Mutants of code that runs once, at import, would need all tests anew.
  ignoreStatic: true,
  ignorePatterns: ['/bench', '/coverage', '/dist', '/docs', '/sample-app', '/test/chaos', '/test/package'],
  dryRunTimeoutMinutes: 30,
  timeoutMS: 20_000,
  reporters: ['clear-text', 'html', 'json', 'progress'],
  clearTextReporter: { allowColor: false, logTests: false },
  htmlReporter: { fileName: 'reports/mutation/index.html' },
  jsonReporter: { fileName: 'reports/mutation/report.json' },
  incremental: true,
  incrementalFile: 'reports/mutation/incremental.json',
  thresholds: { high: 95, low: 85, break: 85 },
};
