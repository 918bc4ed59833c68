import { availableParallelism } from 'node:os';
import config from './jest.config.mjs';
import { specPaths } from './test/support/spec-paths.mjs';

/** The specs that start nothing, by folder: no Redis, no app that listens, no other process. */
const UNITS = specPaths({
  'engine/algorithms': [
    'arrival-time',
    'calendar',
    'calendar-window',
    'coarse-ticks',
    'concurrency',
    'fixed-window',
    'leaky-bucket',
    'leases',
    'models',
    'sliding-log',
    'sliding-window',
  ],
  console: ['live-feed', 'page/format', 'page/series', 'page-size', 'space-saving', 'telemetry'],
  'storage/contract': [
    'all-or-nothing',
    'blocks-in-memory',
    'circuit',
    'fallback-operations',
    'list-store',
    'memory-store',
    'one-deadline',
    'prefetch',
    'prefetch-counters',
    'prefetch-operations',
    'prefetch-several-limits',
    'prefetched-units',
    'remembered-refusals',
    'remembered-refusals-end',
    'scoped-store-calls',
  ],
  docs: ['blocks-of-peers', 'check-links', 'fine-print'],
  'nest/explain': ['impossible-keys', 'telemetry'],
  'storage/features/hierarchies': ['policies'],
  'engine/limits': '*',
  nest: [
    'guard-at-once',
    'hold-times',
    'limit-types',
    'limiter.service',
    'openapi',
    'request-of-call',
    'reservations',
    'transports',
    'unread-transports',
  ],
  'integrations/outbound': ['any-upstream', 'headers'],
  'app/overrides': ['key-table', 'lists/configured-lists', 'lists/prefix-table'],
  package: ['layers', 'suites', 'version'],
  playground: ['attributes', 'rate-limit-headers', 'simulation'],
  'nest/request': '*',
  testing: ['expectations', 'test-clock'],
  'app/waiting': ['changed-limits', 'giving-up', 'memory', 'wait-queue'],
});

const { globalSetup: _setup, globalTeardown: _teardown, ...shared } = config;

/** `npm run test:unit`. A spec that asks for Redis fails, as no set-up starts one. */
export default {
  ...shared,
  // They wait for nothing.
  maxWorkers: availableParallelism(),
  testMatch: UNITS.map((spec) => `<rootDir>/${spec}`),
};
