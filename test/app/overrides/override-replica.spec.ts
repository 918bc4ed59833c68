import { expect, it } from '@jest/globals';
import { OverrideReplica } from '../../../lib/app/overrides/override-replica.js';
import type { OverrideUpdate, StoredChange } from '../../../lib/app/overrides/override-store.js';

/** A change of a history, which the one before it was made at `previousAt`. */
const changeOf = (version: number, at: number, previousAt?: number): StoredChange => ({
  version,
  at,
  ...(previousAt !== undefined && { previousAt }),
  changes: [{ kind: 'list', limit: '', key: `id:${version}`, before: null, after: null }],
});

/** A replica that knows the changes 1 to 3, made at 1000, 2000 and 3000. */
function replicaOf3() {
  const updates: OverrideUpdate[] = [];
  const replica = new OverrideReplica((update) => void updates.push(update));
  replica.load({ now: 0, version: 0, at: 0, rates: new Map(), changes: [] }).finish({
    now: 0,
    version: 0,
    at: 0,
    rates: new Map(),
    changes: [],
  });
  for (const version of [1, 2, 3]) {
    expect(replica.hear(changeOf(version, 1000 * version, 1000 * (version - 1)), 0)).toBe(true);
  }
  expect(updates).toHaveLength(4);
  return { replica, updates };
}

it('takes messages that come late or twice for known', () => {
  const { replica, updates } = replicaOf3();
  for (const version of [1, 2, 3]) expect(replica.hear(changeOf(version, 1000 * version), 0)).toBe(true);
  expect(updates).toHaveLength(4);
});

it.each([
  ['later', 5000],
  ['earlier, by a clock that is behind', 500],
])('reads again after a change of another history with an older version, made %s', (_, at) => {
  const { replica, updates } = replicaOf3();
  expect(replica.hear(changeOf(1, at, 0), 0)).toBe(false);
  expect(replica.hear(changeOf(2, at, 900), 0)).toBe(false);
  expect(replica.hear(changeOf(3, at, 900), 0)).toBe(false);
  expect(updates).toHaveLength(4);
});

it('reads again after the next version of a history that parted before', () => {
  const { replica, updates } = replicaOf3();
  expect(replica.hear(changeOf(4, 5000, 4000), 0)).toBe(false);
  expect(updates).toHaveLength(4);
  expect(replica.hear(changeOf(4, 5000, 3000), 0)).toBe(true);
});

it('follows changes of a release that does not say which one they follow', () => {
  const { replica } = replicaOf3();
  expect(replica.hear(changeOf(4, 4000), 0)).toBe(true);
});
