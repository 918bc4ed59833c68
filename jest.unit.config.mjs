import config from './jest.config.mjs';
import { specPaths } from './test/support/spec-paths.mjs';

/** The specs that start nothing, by folder: no Redis, no app that listens, no other process. */
const UNITS = specPaths({
  algorithms: ['calendar', 'fixed-window', 'leases', 'models'],
  console: ['page/format', 'page/series', 'page-size', 'space-saving', 'telemetry'],
  contract: ['all-or-nothing', 'fallback-operations', 'memory-store', 'one-deadline', 'prefetch'],
  docs: ['blocks-of-peers', 'fine-print'],
  nest: ['hold-times', 'limit-types', 'limiter.service', 'openapi', 'transports'],
  outbound: ['any-upstream', 'headers'],
  package: ['layers', 'suites', 'version'],
  playground: ['attributes', 'rate-limit-headers', 'simulation'],
  request: '*',
  testing: ['expectations', 'test-clock'],
  waiting: ['changed-limits', 'giving-up', 'memory', 'wait-queue'],
});

const { globalSetup: _setup, globalTeardown: _teardown, ...shared } = config;

/** `npm run test:unit`. A spec that asks for Redis fails, as no set-up starts one. */
export default {
  ...shared,
  testMatch: UNITS.map((spec) => `<rootDir>/${spec}`),
};
