import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

/** Names each skipped test, and ends a run with one line: `N passed, N failed`. `test/run.mjs` prints that line itself and gets the numbers. */
export default class ClosingLineReporter {
  #line;

  constructor() {
    // Jest's summary and the teardown come after reporters: only the end of the process is last.
    process.once('exit', () => {
      if (this.#line) process.stdout.write(`${this.#line}\n`);
    });
  }

  onRunComplete(_contexts, results) {
    const passed = results.numPassedTests;
    // A spec file that could not run has no failed tests of its own.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const skipped = results.numPendingTests + results.numTodoTests;
    for (const { testFilePath, testResults } of results.testResults)
      for (const { status, fullName } of testResults)
        if (status === 'pending' || status === 'todo')
          process.stdout.write(`skipped: ${relative(process.cwd(), testFilePath)}: ${fullName}\n`);
    const file = process.env.TEST_COUNTS;
    if (file !== undefined) writeFileSync(file, JSON.stringify({ passed, failed, skipped }));
    else this.#line = `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
  }
}
