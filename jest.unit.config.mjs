import { existsSync } from 'node:fs';
import config from './jest.config.mjs';

/** The specs that start nothing, by folder: no Redis, no app that listens, no other process. */
const UNITS = {
  algorithms: ['calendar', 'fixed-window', 'leases', 'models'],
  contract: ['all-or-nothing', 'fallback-operations', 'memory-store', 'one-deadline', 'prefetch'],
  docs: ['blocks-of-peers', 'fine-print'],
  nest: ['hold-times', 'limit-types', 'limiter.service', 'openapi', 'transports'],
  package: ['layers', 'suites', 'version'],
  testing: ['expectations', 'test-clock'],
  waiting: ['changed-limits', 'giving-up', 'memory', 'wait-queue'],
};

const { globalSetup: _setup, globalTeardown: _teardown, coverageThreshold: _threshold, ...shared } = config;

const specs = Object.entries(UNITS).flatMap(([folder, names]) => names.map((name) => `test/${folder}/${name}.spec.ts`));
const missing = specs.filter((spec) => !existsSync(new URL(spec, import.meta.url)));
if (missing.length > 0) throw new Error(`jest.unit.config.mjs lists specs that are not there: ${missing.join(', ')}`);

/** `npm run test:unit`. A spec that asks for Redis fails, as no set-up starts one. */
export default {
  ...shared,
  testMatch: specs.map((spec) => `<rootDir>/${spec}`),
};
