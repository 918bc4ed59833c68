import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { MemoryStore, type Store } from '../../../lib/index.js';
import type { Check, StoreDecision } from '../../../lib/testing/store/index.js';
import { decidedBy, decideForFailing } from '../../support/limits/failing-answer.js';
import { compile, connectRedis, ManualClock, storeKinds } from '../../support/limits/stores.js';
import { fallingBack } from '../../support/limits/layers.js';

const limit = compile({ algo: 'fixed-window', rate: 2, interval: '1h' });
const check: Check = { entries: [{ limit, identity: 'user:1', cost: 1 }] };

const stores: Store[] = [];
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

function own(changes: Partial<Store>): Store {
  const store = Object.assign(new MemoryStore(), changes);
  stores.push(store);
  return store;
}

describe('a store that the app made', () => {
  it('is asked by its own check, if it overrides that of a class of ours', async () => {
    class Counting extends MemoryStore {
      asked = 0;
      override check(checks: readonly Check[]): Promise<StoreDecision[][]> {
        this.asked++;
        return super.check(checks);
      }
    }
    const counting = new Counting();
    const store = fallingBack(counting, own({}));
    stores.push(store);
    expect(await decidedBy(store, check)).toMatchObject([{ allowed: true, remaining: 1 }]);
    expect(await store.check([check, check])).toMatchObject([[{ allowed: true }], [{ allowed: false }]]);
    expect(counting.asked).toBe(3);
  });

  it.each<[string, () => unknown]>([
    ['nothing', () => Promise.resolve()],
    ['no list', () => Promise.resolve([{}])],
    ['too few decisions', () => Promise.resolve([[]])],
    ['undefined in place of a decision', () => Promise.resolve([[undefined]])],
    ['null in place of a decision', () => Promise.resolve([[null]])],
    ["an object that isn't a decision", () => Promise.resolve([[{}]])],
  ])('fails a check by %s', async (_, answer) => {
    const store = own({ check: answer as Store['check'] });
    await expect(decidedBy(store, check)).rejects.toThrow(
      /store: expected a list of 1 decisions for a check, received /,
    );
  });

  it("fails a reservation by an answer that isn't a decision", async () => {
    const store = fallingBack(own({ reserve: () => Promise.resolve(undefined as never) }), own({}));
    stores.push(store);
    const [entry] = check.entries;
    await expect(store.reserve({ ...entry!, maxWaitMs: 0 })).rejects.toThrow(
      'store: expected a decision for a reservation, received undefined',
    );
  });

  it('fails a check by throwing at once', async () => {
    const store = own({
      check: () => {
        throw new TypeError('no such table');
      },
    });
    await expect(decidedBy(store, check)).rejects.toThrow('no such table');
  });
});

describe.each(Object.keys(storeKinds))('%s', (kind) => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(() => redis.disconnect());

  it('tells an answer that throws so, and answers the other checks of the turn', async () => {
    const store = storeKinds[kind]!(new ManualClock(), redis);
    stores.push(store);
    const told = decideForFailing(store, check);
    expect(await decidedBy(store, check)).toMatchObject([{ allowed: true, remaining: 0 }]);
    expect(told).toEqual([new Error('an exporter failed')]);
  });
});
