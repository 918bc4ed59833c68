import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const LIBRARY = new URL('../../../lib/', import.meta.url);
const CODE = /^(?:export )?(?:default |abstract |async )*(?:class|function|const|let|enum)\b/m;
const LEAST_PERCENT = 95;

/** Tells which lines of the library the specs run, from what their processes wrote into a folder; fails the run if those are too few. */
export default class CoverageReporter {
  #error;

  async onRunComplete() {
    const folder = process.env['TEST_COVERAGE'];
    if (folder === undefined) return;
    // Only here: it takes a while to load.
    const { Report } = await import('c8');
    const report = new Report({
      all: true,
      extension: ['.ts'],
      include: filesWithCode().map((file) => `lib/${file}`),
      reporter: ['text', 'text-summary'],
      skipFull: true,
      src: ['lib'],
      tempDirectory: folder,
    });
    await report.run();
    const { pct } = (await report.getCoverageMapFromAllCoverageFiles()).getCoverageSummary().lines;
    if (pct >= LEAST_PERCENT) return;
    this.#error = new Error(`The specs run ${pct} % of the lines of lib/, and ${LEAST_PERCENT} % are wanted.`);
    process.stderr.write(`${this.#error.message}\n`);
  }

  getLastError() {
    return this.#error;
  }
}

/** The files of the library that hold more than types. */
function filesWithCode() {
  return (
    readdirSync(LIBRARY, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.generated.ts'))
      // A browser runs it, and specs that drive one look at it.
      .filter((file) => !file.startsWith(join('console', 'page', '/')))
      .filter((file) => CODE.test(readFileSync(new URL(file, LIBRARY), 'utf8')))
  );
}
