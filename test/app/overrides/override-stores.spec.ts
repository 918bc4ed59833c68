import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { fieldOf } from '../../../lib/app/overrides/override-address.js';
import type { OverrideRecord, StoredRecord } from '../../../lib/app/overrides/override-record.js';
import { OverrideReplica } from '../../../lib/app/overrides/override-replica.js';
import type {
  OverrideChange,
  OverrideItem,
  OverrideStore,
  OverrideUpdate,
  StoredChange,
} from '../../../lib/app/overrides/override-store.js';
import { MemoryOverrideStore } from '../../../lib/app/overrides/memory.override-store.js';
import { RedisOverrideStore } from '../../../lib/app/overrides/redis.override-store.js';
import { propertyRuns } from '../../support/limits/property-runs.js';
import { connectRedis, freshPrefix } from '../../support/limits/stores.js';

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(async () => {
  await redis.quit();
});

const limit = fc.constantFrom('a', 'b:c');
const key = fc.constantFrom('', 'x', 'x*', 'tenant:\n');
const inherit = fc.constantFrom('keep' as const, 'proportional' as const, 'additive' as const, 'reset' as const);
const quota = fc.constantFrom(1, 10, Number.MAX_SAFE_INTEGER);
/** Nothing ends while a property is tried, or has ended before. */
const ends = fc.constantFrom('null', '+100000', '1000');
const rate = fc.constantFrom('{"rate":5}', '{"rate":9007199254740991,"burst":2}');
const mode = fc.constantFrom('"off"', '"shadow"');
const itemOf = (value: fc.Arbitrary<string>, kind: OverrideItem['kind']): fc.Arbitrary<OverrideItem> =>
  fc.record({ kind: fc.constant(kind), limit, key, value, inherit, ends, quota, previousQuota: quota });
const list = itemOf(fc.constantFrom('"allow"', '"deny"'), 'list').map((each) => ({
  ...each,
  inherit: 'keep' as const,
}));
const ofAllLimits = list.map((each) => ({ ...each, limit: '', key: 'ip:10.0.0.0/8' }));
const item = fc.oneof(itemOf(rate, 'rate'), itemOf(mode, 'mode'), list, ofAllLimits);
const cause = fc.record({
  by: fc.option(fc.string(), { nil: undefined }),
  reason: fc.constantFrom(undefined, 'a "b"\n'),
});
const cleared = (each: OverrideItem): OverrideItem => ({ ...each, value: 'null', inherit: 'keep', ends: 'null' });
const change: fc.Arbitrary<OverrideChange> = fc
  .oneof(
    fc.record({ operation: fc.constantFrom('set' as const, 'try' as const), items: fc.tuple(item), cause }),
    fc.record({ operation: fc.constant('clear' as const), items: fc.tuple(item.map(cleared)), cause }),
    fc.record({
      operation: fc.constant('restore' as const),
      items: fc.uniqueArray(fc.oneof(item, item.map(cleared)), { minLength: 1, maxLength: 4, selector: fieldOf }),
      lastVersion: fc.integer({ min: 0, max: 6 }),
      rollbackTo: fc.constant(0),
      cause,
    }),
  )
  .map(({ cause: given, ...made }) => ({ ...made, ...given }));

const isMeant = ({ expiresAt, generation }: OverrideRecord) => expiresAt !== 1000 || generation > 0;

/** What a store has told of, without what depends on the clock. */
class Told {
  readonly records = new Map<string, StoredRecord>();

  constructor(readonly store: OverrideStore) {
    store.subscribe(({ complete, records }) => {
      if (complete) this.records.clear();
      for (const [field, record] of records) {
        if (record === undefined) this.records.delete(field);
        else this.records.set(field, record);
      }
    });
  }

  async all(): Promise<unknown> {
    const stored = await this.store.changes(100);
    const changes = stored.map(({ at, previousAt, ...rest }, index) => {
      expect(previousAt).toBe(stored[index - 1]?.at ?? 0);
      return { ...rest, at: typeof at };
    });
    // What has ended may be told of, but for resets it means nothing.
    const records = [...this.records]
      .filter(([, each]) => isMeant(each as OverrideRecord))
      .toSorted(([one], [other]) => (one < other ? -1 : 1));
    return JSON.parse(JSON.stringify([records, changes]), (name, value: unknown) =>
      name === 'expiresAt' && value !== null ? (value as number) > 1000 : value,
    );
  }
}

it('make the same of the same changes, in process and on Redis', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 12 }), async (changes) => {
      const prefix = freshPrefix();
      const options = { prefix, timeoutMs: 5000 };
      const stores = [new MemoryOverrideStore(), new RedisOverrideStore(redis, options)].map(
        (store) => new Told(store),
      );
      const [memory, onRedis] = stores as [Told, Told];
      for (const each of changes) {
        expect(await onRedis.store.write(each)).toBe(await memory.store.write(each));
      }
      // One that reads everything afterwards finds what the other heard of change by change.
      const late = new Told(new RedisOverrideStore(redis, options));
      await late.store.read();
      const expected = await memory.all();
      expect(await onRedis.all()).toEqual(expected);
      expect(await late.all()).toEqual(expected);
    }),
    { numRuns: propertyRuns(100) },
  );
});

describe('what an instance has read', () => {
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
});
