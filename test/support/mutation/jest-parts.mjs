/** The parts of Jest that specs use, each found from the part that depends on it. */
import { createRequire } from 'node:module';

const from = createRequire(import.meta.url);
const part = (...path) => path.reduce((require, name) => createRequire(require.resolve(name)), from);

export const circus = part('jest', '@jest/core', 'jest-config')('jest-circus');
export const { jestExpect } = part('@jest/globals')('@jest/expect');
export const { ModuleMocker } = part('@jest/globals')('jest-mock');
export const { ModernFakeTimers } = part('jest-runner', 'jest-runtime')('@jest/fake-timers');
