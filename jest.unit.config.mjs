import config from './jest.config.mjs';

/** The specs that start nothing, by folder: no Redis, no app that listens, no other process. */
const UNITS = {
  algorithms: ['calendar', 'leases', 'models'],
  contract: ['fallback-operations', 'memory-store', 'one-deadline', 'unit-lease'],
  docs: ['blocks-of-peers', 'fine-print'],
  nest: ['hold-times', 'limit-types', 'limiter.service', 'openapi', 'transports'],
  package: ['version'],
  testing: ['expectations', 'test-clock'],
  waiting: ['changed-limits', 'giving-up', 'memory', 'places'],
};

const { globalSetup: _setup, globalTeardown: _teardown, coverageThreshold: _threshold, ...shared } = config;

/** `npm run test:unit`. A spec that asks for Redis fails, as no set-up starts one. */
export default {
  ...shared,
  testMatch: Object.entries(UNITS).flatMap(([folder, names]) =>
    names.map((name) => `<rootDir>/test/${folder}/${name}.spec.ts`),
  ),
};
