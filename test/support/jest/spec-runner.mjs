/**
 * A test runner of Jest: it loads a spec as Node loads any module, and hands it to Jest's own runner. All specs of a process share
 * the packages and the library. Each has instances of its own of what is in test/.
 */
import { createRequire } from 'node:module';
import { takeCoverage } from 'node:v8';
import { runWithCircus } from './parts.mjs';
import { expect } from './quick-expect.mjs';
import { provideGlobals, takeModules } from './typescript.mjs';

const require = createRequire(import.meta.url);
const asyncHooks = require('node:async_hooks');
/** Where an instance of Circus keeps its handlers of events for the next one. */
const HANDLERS = Symbol.for('EVENT_HANDLERS');

/** From this share of the memory that Jest lets a worker have, its coverage is written after each spec: Jest may end it at any time. */
const NEARLY = 0.9;

process.setSourceMapsEnabled(true);
const isMeasured = process.env['NODE_V8_COVERAGE'] !== undefined;
// Other programs that specs start are not measured.
delete process.env['NODE_V8_COVERAGE'];

/** What has kept values for asynchronous calls since the last spec ended. */
const storages = new Set();
for (const name of ['run', 'enterWith']) {
  const { prototype } = asyncHooks.AsyncLocalStorage;
  const use = prototype[name];
  prototype[name] = function (...args) {
    storages.add(this);
    return use.apply(this, args);
  };
}

/** What calls back again and again, of the spec that runs. */
const intervals = new Set();
const { setInterval, clearInterval } = globalThis;

// Not `async`: it would stand in the stacks of errors, between a spec and Jest.
export default function runSpec(globalConfig, config, environment, runtime, path, sendMessageToJest) {
  // Node maps the stacks of what it imported; Jest's way knows only what Jest has loaded.
  Error.prepareStackTrace = undefined;
  const jest = runtime.jestGlobals.jestObjectFor(path);
  // Whoever changes the library while Jest watches wants its change to be tried.
  const ownsLibrary = environment.ownsLibrary || globalConfig.watch || globalConfig.watchAll;
  const shared = ownsLibrary ? takeModules('lib') : undefined;
  const before = Object.getOwnPropertySymbols(globalThis);
  globalThis.setInterval = setIntervalOfSpec;
  const ownRuntime = {
    enterTestCode: () => undefined,
    leaveTestCode: () => undefined,
    requireInternalModule: requireAnew,
    requireModule: require,
    setGlobalsForRuntime: (globals) => provideGlobals({ ...globals, expect, jest }),
    unstable_shouldLoadAsEsm: () => false,
  };
  return runWithCircus(globalConfig, config, environment, ownRuntime, path, sendMessageToJest).finally(() => {
    takeModules('test');
    if (ownsLibrary) takeModules('lib');
    Object.assign(require.cache, shared);
    // Jest takes the time of the end from the clock that a spec may have replaced.
    environment.fakeTimersModern.useRealTimers();
    endStorages();
    endIntervals();
    resetNestLogger();
    const symbols = Object.getOwnPropertySymbols(globalThis).filter((symbol) => !before.includes(symbol));
    for (const symbol of symbols) Reflect.deleteProperty(globalThis, symbol);
    const isLarge = process.memoryUsage().heapUsed > NEARLY * globalConfig.workerIdleMemoryLimit;
    if (isMeasured && isLarge) takeCoverage();
  });
}

/** A storage that was used once costs all later specs of the process a hook for each of their promises, unless it is ended. */
function endStorages() {
  for (const storage of storages) storage.disable();
  storages.clear();
}

function setIntervalOfSpec(...args) {
  const interval = setInterval(...args);
  intervals.add(interval);
  return interval;
}

/** Stores in process that nobody closed, thousands after some specs, would look for what has run out until the process ends. */
function endIntervals() {
  globalThis.setInterval = setInterval;
  for (const interval of intervals) clearInterval(interval);
  intervals.clear();
}

/** Gives Nest its own logger back: apps of specs change it for all apps of the process. */
function resetNestLogger() {
  const nest = require.cache[require.resolve('@nestjs/common')]?.exports;
  nest?.Logger.overrideLogger(new nest.ConsoleLogger());
}

/** Each spec has a Circus of its own: the state of one holds all tests of a spec. */
function requireAnew(path) {
  delete require.cache[path];
  delete globalThis[HANDLERS];
  const { AsyncLocalStorage } = asyncHooks;
  asyncHooks.AsyncLocalStorage = CurrentTest;
  try {
    return require(path);
  } finally {
    asyncHooks.AsyncLocalStorage = AsyncLocalStorage;
  }
}

/** Where Circus keeps which test runs. One runs at a time, so that the hooks of all promises, a tenth of all CPU, are not needed. */
class CurrentTest {
  #store;

  getStore() {
    return this.#store;
  }

  run(store, callback) {
    const outer = this.#store;
    this.#store = store;
    return callback().finally(() => {
      this.#store = outer;
    });
  }
}
