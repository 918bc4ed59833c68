import { showFailingLine } from './failing-line.mjs';
import { ModernFakeTimers, ModuleMocker } from './parts.mjs';

/** The globals that fake timers replace. */
const { clearImmediate, clearInterval, clearTimeout, Date, performance, setImmediate, setInterval, setTimeout } =
  globalThis;
const CLOCK = { clearImmediate, clearInterval, clearTimeout, Date, performance, setImmediate, setInterval, setTimeout };

/**
 * A test environment of Jest whose specs run in the realm of Node itself. In a realm of its own each spec would load Nest, the
 * clients and the library anew, and none would run long enough for V8 to optimize it.
 */
export default class NodeEnvironment {
  /** What Jest changes for a spec: it wraps `process.exit` anew each time, which must not reach the real one. */
  global = Object.create(globalThis, {
    process: { value: Object.create(process) },
    console: {
      get: () => globalThis.console,
      set: (value) => {
        globalThis.console = value;
      },
    },
  });
  moduleMocker = new ModuleMocker(globalThis);
  fakeTimers = null;
  /** Whether the spec is given a library of its own, as `@library own` in its first comment asks for. */
  ownsLibrary;
  #console = globalThis.console;

  constructor({ projectConfig }, { docblockPragmas }) {
    this.ownsLibrary = docblockPragmas['library'] === 'own';
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
  }

  async setup() {}

  async teardown() {
    this.moduleMocker.restoreAllMocks();
    this.fakeTimersModern.dispose();
    // A spec may have spied on a fake timer, which the end of the spy puts back.
    Object.assign(globalThis, CLOCK);
    globalThis.console = this.#console;
  }

  handleTestEvent({ name, test }, { unhandledErrors }) {
    if (name === 'test_done') for (const error of test.errors.flat()) showFailingLine(error);
    if (name === 'run_finish') for (const error of unhandledErrors.flat()) showFailingLine(error);
  }

  /** Nothing runs in a context of its own. */
  getVmContext() {
    return null;
  }
}
