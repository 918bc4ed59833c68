import { sep } from 'node:path';
import TestSequencer from '@jest/test-sequencer';

/** The specs that take longest, so that none of them is left when all others are done. Jest itself knows only those that it ran before. */
export const LONGEST = [
  'package/generated-projects',
  'browser/site',
  'redis/sentinel-failovers',
  'contract/stores',
  'outbound/phases',
  'browser/changes',
  'redis/moving-slots',
  'package/features',
  'chaos/outages',
  'e2e/sample-app',
  'browser/playground',
  'package/declarations',
  'package/docs',
  'browser/live',
  'redis/replicas',
  'redis/floating-commands',
  'browser/outage',
  'redis/cluster',
  'e2e/outcomes',
  'chaos/leaks',
  'security/redis-acl',
  'health/health-indicator',
  'usage/stores',
  'browser/accessibility',
  'bullmq/jobs',
  'chaos/cluster',
  'overrides/redis-overrides',
  'redis/script-operations',
  'usage/redis',
  'lists/redis-lists',
  'models/fast-path',
  'models/stores',
  'redis/fallback-store',
  'adaptive/simulation',
  'console/redis',
  'e2e/holding-elsewhere',
  'e2e/streams',
  'security/resets',
  'cli/as-built',
  'chaos/sentinels',
  'chaos/policy',
  'cli/explain',
  'algorithms/invariants',
  'overrides/redis-keyed-rates',
  'telemetry/optional-package',
  'nest/limits-that-live',
  'security/fuzz',
  'e2e/holding',
  'explain/redis',
  'redis/redis-store',
  'waiting/set-rate',
  'redis/work',
  'chaos/state-losses',
  'chaos/clock-steps',
  'package/spec-runner',
  'package/formats',
].map((name) => `${sep}${name.replace('/', sep)}.spec.ts`);

function rankOf({ path }) {
  const rank = LONGEST.findIndex((name) => path.endsWith(name));
  return rank === -1 ? LONGEST.length : rank;
}

export default class LongestFirst extends TestSequencer {
  sort(tests) {
    return super.sort(tests).toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}
