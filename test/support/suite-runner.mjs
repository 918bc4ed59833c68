import { sep } from 'node:path';
import TestRunner, { EmittingTestRunner } from 'jest-runner';

/**
 * Specs whose coverage is not measured: those that ask other processes, and those that run the same code many thousand times. The
 * others run each line of theirs, and measuring takes as long again as a spec, the more the longer its worker lives.
 */
const UNMEASURED = ['algorithms', 'chaos', 'differential', 'docs', 'package', 'security', 'support'].map(
  (folder) => `${sep}test${sep}${folder}${sep}`,
);

/** Runs all specs as Jest does, and measures the coverage of some of them. */
export default class SuiteRunner extends EmittingTestRunner {
  #collectsCoverage;
  #measured;
  #unmeasured;

  constructor(globalConfig, context) {
    super(globalConfig, context);
    this.#collectsCoverage = globalConfig.collectCoverage;
    this.#measured = new TestRunner(globalConfig, context);
    this.#unmeasured = new TestRunner({ ...globalConfig, collectCoverage: false }, context);
  }

  async runTests(tests, watcher, options) {
    const isMeasured = ({ path }) => this.#collectsCoverage && !UNMEASURED.some((part) => path.includes(part));
    const [measured, unmeasured] = [tests.filter(isMeasured), tests.filter((test) => !isMeasured(test))];
    if (unmeasured.length > 0) await this.#unmeasured.runTests(unmeasured, watcher, options);
    if (measured.length > 0) await this.#measured.runTests(measured, watcher, options);
  }

  on(eventName, listener) {
    const ends = [this.#measured, this.#unmeasured].map((runner) => runner.on(eventName, listener));
    return () => ends.forEach((end) => end());
  }
}
