import { createRequire } from 'node:module';
import { join } from 'node:path';
import { circus } from '../jest/parts.mjs';

const require = createRequire(import.meta.url);

// Specs put fake timers in the place of the global ones.
const { clearTimeout, performance, setTimeout } = globalThis;

/** What was thrown beside a test, where nobody catches it. */
const uncaught = [];
for (const event of ['unhandledRejection', 'uncaughtException']) process.on(event, (error) => uncaught.push(error));

/** A spec whose tests can be run again and again. */
export class SpecFile {
  /** Its tests: each has an identifier, a name and the time in milliseconds that it took when it last passed. */
  tests = [];
  #root;

  constructor(path) {
    this.path = path;
  }

  load(folder) {
    circus.resetState();
    require(join(folder, this.path));
    this.#root = circus.getState().rootDescribeBlock;
    this.#collect(this.#root, [], []);
  }

  /** Adds the tests of a block. */
  #collect(block, names, outer) {
    const blocks = [...outer, block];
    for (const child of block.children) {
      if (child.mode === 'skip' || child.mode === 'todo') continue;
      const path = [...names, child.name];
      const name = path.join(' ');
      if (child.type === 'describeBlock') this.#collect(child, path, blocks);
      else this.tests.push({ id: `${this.path}: ${name}`, name, run: child.fn, blocks, takes: 0 });
    }
  }

  /**
   * Runs some of its tests in their order, with their hooks. It tells each test before it begins, and is told whether to go on
   * by what is done with its outcome; `mayTake` says how many milliseconds a test or a hook may take.
   */
  async run(tests, { begin = () => undefined, end, mayTake }) {
    const asked = new Map(tests.map((test) => [test.run, test]));
    const blocks = new Set(tests.flatMap((test) => test.blocks));
    let goesOn = true;
    const visit = async (block, broken) => {
      let failure = broken ?? (await failureOf(hooksOf(block, 'beforeAll'), mayTake()));
      for (const child of block.children) {
        if (!goesOn) break;
        if (blocks.has(child)) await visit(child, failure);
        const test = asked.get(child.fn);
        if (test?.blocks.at(-1) !== block) continue;
        begin(test);
        const start = performance.now();
        const failed = failure ?? (await this.#runTest(test, mayTake(test)));
        goesOn = end({ test, failure: failed, takes: performance.now() - start });
      }
      await failureOf(hooksOf(block, 'afterAll'), mayTake());
    };
    await visit(this.#root);
  }

  async #runTest({ run, blocks }, mayTake) {
    uncaught.length = 0;
    const before = blocks.flatMap((block) => hooksOf(block, 'beforeEach'));
    const after = blocks.toReversed().flatMap((block) => hooksOf(block, 'afterEach'));
    const failure = await failureOf([...before, run], mayTake);
    let afterwards;
    for (const hook of after) afterwards ??= await failureOf([hook], mayTake);
    return failure ?? afterwards ?? (uncaught.length > 0 ? { error: uncaught[0] } : undefined);
  }
}

function hooksOf(block, type) {
  return block.hooks.filter((hook) => hook.type === type).map(({ fn }) => fn);
}

/** Calls functions one after the other. The first failure, if there is one. */
async function failureOf(functions, mayTake) {
  for (const call of functions) {
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(() => resolve({ error: new Error(`took longer than ${mayTake} ms`), isLate: true }), mayTake);
    });
    const called = (async () => call())().then(
      () => undefined,
      (error) => ({ error }),
    );
    const failure = await Promise.race([called, late]);
    clearTimeout(timer);
    if (failure !== undefined) return failure;
  }
  return undefined;
}
