/**
 * A test runner of Stryker that loads specs once and runs them in one process, each mutant with the tests that reach it, until
 * one fails. Jest would load them anew for each mutant, which takes a hundred times as long.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { provideGlobals } from '../jest/typescript.mjs';
import { globals } from './jest-globals.mjs';
import { SpecFile } from './spec-file.mjs';
import { SPECS } from './specs.mjs';

/** How long a test may take with a mutant: so many milliseconds, and so many times what it takes without one. */
const LEAST_MS = 6000;
const TIMES = 12;
/** What it costs to begin a spec, in milliseconds of its tests. */
const BEGINNING = 3;

const require = createRequire(import.meta.url);

/** Where mutated code looks for the mutant that is in force, and counts what is reached. */
const stryker = (globalThis['__stryker__'] ??= {});

const PASSED = 0;
const FAILED = 1;

class InProcessRunner {
  #folder = process.cwd();
  /** Of the run without a mutant, for processes that come later. */
  #timesFile = join(this.#folder, 'times-of-tests.json');
  #specs = [];
  /** How often each spec was asked, and how often it found the mutant. */
  #record = new Map();

  /** Nothing is loaded anew: mutants of code that runs at import, too, come into force afterwards. */
  capabilities() {
    return { reloadEnvironment: true };
  }

  /** Loads all specs. */
  async init() {
    this.#prepare();
    for (const path of SPECS) {
      const spec = new SpecFile(path);
      spec.load(this.#folder);
      this.#specs.push(spec);
      this.#record.set(spec, { runs: 0, found: 0 });
    }
  }

  #prepare() {
    provideGlobals(globals);
    const support = join(this.#folder, 'test/support');
    // Properties draw the same values in each run: a mutant is found always or never. The first values that find it are enough.
    require(join(support, 'jest/property-seed.ts'));
    const fc = require('fast-check');
    fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true });
    // Specs of every store try the one in process alone, which runs the mutants.
    const memoryOnly = join(support, 'limits/memory-only.ts');
    require(memoryOnly);
    require.cache[join(support, 'limits/stores.ts')] = require.cache[memoryOnly];
  }

  /** Runs all tests without a mutant, and tells which code each of them reaches. */
  async dryRun({ timeout }) {
    const tests = [];
    for (const spec of this.#specs) {
      await spec.run(spec.tests, {
        mayTake: () => timeout,
        begin: ({ id }) => (stryker.currentTestId = id),
        end: ({ test, failure, takes }) => {
          stryker.currentTestId = undefined;
          test.takes = takes;
          const { id, name } = test;
          const common = { id, name, fileName: join(this.#folder, spec.path), timeSpentMs: takes };
          tests.push(
            failure === undefined
              ? { ...common, status: PASSED }
              : { ...common, status: FAILED, failureMessage: String(failure.error?.stack ?? failure.error) },
          );
          return true;
        },
      });
    }
    writeFileSync(
      this.#timesFile,
      JSON.stringify(Object.fromEntries(tests.map((test) => [test.id, test.timeSpentMs]))),
    );
    return { status: 'complete', tests, mutantCoverage: structuredClone(stryker.mutantCoverage) };
  }

  /** Runs the tests that reach a mutant, until one fails. */
  async mutantRun({ activeMutant, testFilter, hitLimit }) {
    this.#readTimes();
    let nrOfTests = 0;
    for (const { spec, tests } of this.#inOrder(testFilter)) {
      const { failed, ran, hits } = await this.#runSpec(spec, tests, activeMutant, hitLimit);
      nrOfTests += ran;
      this.#record.get(spec).runs++;
      if (hits > hitLimit) {
        await this.#expectToPass(spec, tests[0]);
        return { status: 'timeout', reason: `the mutant ran ${hits} times` };
      }
      if (failed === undefined) continue;
      this.#record.get(spec).found++;
      const { test, failure } = failed;
      await this.#expectToPass(spec, test);
      if (failure.isLate) return { status: 'timeout', reason: `${test.id} ${failure.error.message}` };
      return {
        status: 'killed',
        killedBy: [test.id],
        failureMessage: String(failure.error?.message ?? failure.error),
        nrOfTests,
      };
    }
    return { status: 'survived', nrOfTests };
  }

  /** The specs that reach a mutant: those first that are short and have found many. */
  #inOrder(testFilter) {
    const asked = testFilter && new Set(testFilter);
    return this.#specs
      .map((spec) => {
        const tests = asked === undefined ? spec.tests : spec.tests.filter(({ id }) => asked.has(id));
        const { runs, found } = this.#record.get(spec);
        const takes = tests.reduce((total, test) => total + test.takes, BEGINNING);
        return { spec, tests, rank: takes / ((found + 1) / (runs + 2)) };
      })
      .filter(({ tests }) => tests.length > 0)
      .toSorted((one, other) => one.rank - other.rank);
  }

  async #runSpec(spec, tests, { id }, hitLimit) {
    Object.assign(stryker, { activeMutant: id, hitCount: hitLimit === undefined ? undefined : 0, hitLimit });
    let failed;
    let ran = 0;
    await spec.run(tests, {
      mayTake: (test) => LEAST_MS + TIMES * (test?.takes ?? 0),
      end: ({ test, failure }) => {
        ran++;
        if (failure !== undefined) failed = { test, failure };
        return failure === undefined;
      },
    });
    const hits = stryker.hitCount ?? 0;
    Object.assign(stryker, { activeMutant: undefined, hitCount: undefined, hitLimit: undefined });
    return { failed, ran, hits };
  }

  /**
   * A test that has found a mutant passes without it, or the mutant has left something behind: then Stryker asks another process
   * for it, and for all further ones.
   */
  async #expectToPass(spec, test) {
    let failed;
    await spec.run([test], {
      mayTake: () => LEAST_MS + TIMES * test.takes,
      end: ({ failure }) => (failed = failure) === undefined,
    });
    if (failed === undefined) return;
    console.error(`${test.id} fails without the mutant, too: ${failed.error?.message ?? failed.error}`);
    process.exit(1);
  }

  #readTimes() {
    if (this.#specs[0].tests[0].takes > 0) return;
    const times = JSON.parse(readFileSync(this.#timesFile, 'utf8'));
    for (const test of this.#specs.flatMap(({ tests }) => tests)) test.takes = times[test.id] ?? 0;
  }
}

export const strykerPlugins = [{ kind: 'TestRunner', name: 'in-process', injectableClass: InProcessRunner }];
