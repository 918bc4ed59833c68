/** The parts of Jest that specs use, each found from the part that depends on it. */
import { createRequire } from 'node:module';

const from = createRequire(import.meta.url);
const requireFrom = (...path) => path.reduce((require, name) => createRequire(require.resolve(name)), from);
const ofConfig = requireFrom('jest', '@jest/core', 'jest-config');

export const circus = ofConfig('jest-circus');
/** Runs one spec; modules of its own it has from the run-time that it is given. */
export const { default: runWithCircus } = ofConfig('jest-circus/runner');
export const { jestExpect } = requireFrom('@jest/globals')('@jest/expect');
export const { equals, iterableEquality, subsetEquality } = requireFrom(
  '@jest/globals',
  '@jest/expect',
  'expect',
)('@jest/expect-utils');
export const { ModuleMocker } = requireFrom('@jest/globals')('jest-mock');
export const { ModernFakeTimers } = requireFrom('jest-runner', 'jest-runtime')('@jest/fake-timers');
