import { circus, ModernFakeTimers, ModuleMocker } from '../jest/parts.mjs';
import { expect } from '../jest/quick-expect.mjs';

const { afterAll, afterEach, beforeAll, beforeEach, describe, it } = circus;

const mocker = new ModuleMocker(globalThis);
const timers = new ModernFakeTimers({
  config: { fakeTimers: {}, rootDir: process.cwd() },
  global: globalThis,
});

const jest = {
  fn: (implementation) => mocker.fn(implementation),
  spyOn: (...target) => mocker.spyOn(...target),
  restoreAllMocks: () => mocker.restoreAllMocks(),
  mocked: (mock) => mock,
  // How long a test may take depends on how long it took without a mutant.
  setTimeout: () => undefined,
  useFakeTimers: (config) => timers.useFakeTimers(config),
  useRealTimers: () => timers.useRealTimers(),
  advanceTimersByTime: (ms) => timers.advanceTimersByTime(ms),
  advanceTimersByTimeAsync: (ms) => timers.advanceTimersByTimeAsync(ms),
  getTimerCount: () => timers.getTimerCount(),
};

/** What specs that run in one process import from `@jest/globals`. */
export const globals = { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest };
