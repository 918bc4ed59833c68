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
