import { sep } from 'node:path';
import TestSequencer from '@jest/test-sequencer';

/** The specs that take longest, so that none of them is left when all others are done. Jest itself knows only those that it ran before. */
const LONGEST = [
  'package/generated-projects',
  'differential/stores',
  'chaos/cluster',
  'chaos/outages',
  'chaos/leaks',
  'contract/stores',
  'package/tarball-contents',
  'docs/browser/site',
  'algorithms/invariants',
  'algorithms/mixed-definitions',
  'browser/changes',
  'browser/accessibility',
  'browser/live',
  'browser/outage',
  'contract/eviction',
  'chaos/sentinels',
  'package/declarations',
  'algorithms/giving-back',
  'security/resets',
  'e2e/sample-app',
  'e2e/streams',
  'browser/playground',
  'differential/fast-path',
  'security/redis-acl',
  'chaos/prefetch',
  'cli/simulate',
  'cli/as-built',
  'testing/rate-limit-testing',
  'redis/cluster',
  'health/health-indicator',
  'cli/explain',
  'shares/fairness',
  'console/telemetry',
  'outbound/learning',
  'overrides/redis-overrides',
  'console/redis',
  'explain/versions',
  'console/routes',
  'adaptive/simulation',
  'redis/fallback-store',
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
