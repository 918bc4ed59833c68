import { join } from 'node:path';
import TestRunner, { EmittingTestRunner } from 'jest-runner';
import { specPaths } from './spec-paths.mjs';

/**
 * The specs whose coverage is measured. Together they run nearly all lines of the library; a line that only another spec runs
 * counts as not covered. Measuring takes as long again as a spec, the more the longer its worker lives.
 */
const MEASURED = specPaths({
  adaptive: ['app', 'simulation'],
  algorithms: ['leases'],
  bullmq: ['jobs', 'late-jobs', 'processors'],
  candidates: ['options'],
  cli: ['as-built', 'explain', 'simulation'],
  console: ['changes', 'live', 'options', 'redis', 'routes', 'security', 'telemetry'],
  contract: ['claims', 'fallback-operations', 'memory-store', 'prefetch'],
  e2e: ['answers', 'lists', 'middleware', 'start-up'],
  explain: ['routes', 'versions'],
  health: ['health-indicator'],
  hierarchies: ['app', 'limiter'],
  nest: ['limit-types', 'limiter.service', 'limits-that-live'],
  outbound: ['any-upstream', 'axios', 'dispatcher', 'fetch', 'headers', 'learning', 'retries'],
  overrides: ['lists/configured-lists', 'lists/lists', 'redis-overrides'],
  plans: ['anchors-in-app', 'credits-in-app'],
  policy: ['file-source', 'policies', 'reader', 'schema'],
  redis: ['cluster', 'connection-errors', 'fallback-store', 'prefetch'],
  shares: ['app', 'fairness', 'redis'],
  telemetry: ['open-telemetry'],
  testing: ['rate-limit-testing'],
  usage: ['app', 'stores'],
  waiting: ['changed-limits', 'wait-queue'],
}).map((path) => join(import.meta.dirname, '../..', path));

/** A worker keeps what its specs have loaded, and the more that is, the longer collecting garbage and measuring take. A larger one is replaced. */
const LARGEST_WORKER_BYTES = 500 * 2 ** 20;

/** Runs all specs as Jest does, and measures the coverage of some of them. */
export default class SuiteRunner extends EmittingTestRunner {
  #collectsCoverage;
  #measured;
  #unmeasured;

  constructor(globalConfig, context) {
    super(globalConfig, context);
    this.#collectsCoverage = globalConfig.collectCoverage;
    const config = { ...globalConfig, workerIdleMemoryLimit: LARGEST_WORKER_BYTES };
    this.#measured = new TestRunner(config, context);
    this.#unmeasured = new TestRunner({ ...config, collectCoverage: false }, context);
  }

  async runTests(tests, watcher, options) {
    const isMeasured = ({ path }) => this.#collectsCoverage && MEASURED.includes(path);
    const [measured, unmeasured] = [tests.filter(isMeasured), tests.filter((test) => !isMeasured(test))];
    if (unmeasured.length > 0) await this.#unmeasured.runTests(unmeasured, watcher, options);
    if (measured.length > 0) await this.#measured.runTests(measured, watcher, options);
  }

  on(eventName, listener) {
    const ends = [this.#measured, this.#unmeasured].map((runner) => runner.on(eventName, listener));
    return () => ends.forEach((end) => end());
  }
}
