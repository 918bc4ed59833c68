import { availableParallelism } from 'node:os';
import config from './jest.config.mjs';
import { isUnit, specs } from './test/support/jest/suites.mjs';

const { globalSetup: _setup, globalTeardown: _teardown, ...shared } = config;

/** `npm run test:unit`: the specs that start nothing. No set-up starts Redis, so a spec that connects to it fails. */
export default {
  ...shared,
  // They wait for nothing.
  maxWorkers: availableParallelism(),
  testMatch: specs()
    .filter(isUnit)
    .map((spec) => `<rootDir>/${spec}`),
};
