import { sep } from 'node:path';
import TestSequencer from '@jest/test-sequencer';

/** The specs that take longest, so that none of them is left when all others are done. Jest itself knows only those that it ran before. */
const LONGEST = [
  'package/generated-projects',
  'outbound/phases',
  'browser/site',
  'contract/stores',
  'package/docs',
  'chaos/outages',
  'redis/sentinel-failovers',
  'browser/changes',
  'differential/stores',
  'e2e/outcomes',
  'chaos/leaks',
  'e2e/sample-app',
  'chaos/cluster',
  'telemetry/optional-package',
  'algorithms/invariants',
  'redis/moving-slots',
  'browser/live',
  'chaos/policy',
  'redis/floating-commands',
  'browser/accessibility',
  'browser/playground',
  'waiting/memory',
  'algorithms/calendar',
  'package/declarations',
  'redis/script-operations',
  'browser/outage',
  'usage/stores',
  'security/redis-acl',
  'chaos/holds',
  'differential/fast-path',
  'contract/estimated-bytes',
  'chaos/clock-steps',
  'lists/redis-lists',
  'package/spec-runner',
  'redis/cluster',
  'explain/verdicts',
  'redis/work',
  'algorithms/mixed-definitions',
  'e2e/slow-readers',
  'redis/replicas',
  'health/health-indicator',
  'redis/fallback-store',
  'e2e/lists',
  'differential/escalating-blocks',
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
