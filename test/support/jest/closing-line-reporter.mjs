/** Ends a run with one line: `N passed, N failed`, and `, N skipped` if there were any. */
export default class ClosingLineReporter {
  #line;

  constructor() {
    // The summary of Jest and the teardown come after reporters: only the end of the process is last.
    process.once('exit', () => {
      if (this.#line) process.stdout.write(`${this.#line}\n`);
    });
  }

  onRunComplete(_contexts, results) {
    // A spec file that could not run has no failed tests of its own.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const skipped = results.numPendingTests + results.numTodoTests;
    this.#line = `${results.numPassedTests} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
  }
}
