import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MemoryStore } from '../../../lib/index.js';
import { type Check, CompiledLimit } from '../../../lib/testing/store/index.js';
import { ListStore } from '../../../lib/app/overrides/lists/list.store.js';
import type { ListVerdicts } from '../../../lib/app/overrides/lists/lists.js';

const limitOf = (name: string, shadow = false) =>
  new CompiledLimit({ algo: 'gcra', rate: 5, interval: '1h' }, { location: 'test', name, shadow });
const [first, second, shadow] = [limitOf('first'), limitOf('second'), limitOf('shadow', true)];

/** Lists by `limit identity`, where an identity may be an address. */
class Lists implements ListVerdicts {
  readonly said = new Map<string, 'allow' | 'deny'>();

  get isEmpty(): boolean {
    return this.said.size === 0;
  }

  whenUsed(begin: () => void): void {
    if (!this.isEmpty) begin();
  }

  verdict({ name }: CompiledLimit, identity: string, address: string | undefined) {
    return this.said.get(`${name} ${identity}`) ?? this.said.get(`${name} ${address}`);
  }
}

let inner: MemoryStore;
let lists: Lists;
let store: ListStore;

beforeEach(() => {
  inner = new MemoryStore();
  lists = new Lists();
  store = new ListStore(inner, lists);
});
afterEach(() => store.close());

const entry = (limit: CompiledLimit, identity = 'user:42') => ({ limit, identity, cost: 1 });

const reserve = (identity: string) => store.reserve({ ...entry(first, identity), maxWaitMs: 0 });

/** What each limit says, from where, and how much it leaves. */
async function told(entries: Check['entries'], address?: string) {
  const [decisions] = await store.check([{ entries, ...(address !== undefined && { address }) }]);
  return decisions!.map(({ limit, allowed, source, remaining }) => [limit, allowed, source, remaining]);
}

describe('a list', () => {
  it('lets pass without a charge', async () => {
    lists.said.set('first user:42', 'allow');
    expect(await told([entry(first)])).toEqual([['first', true, 'list', 5]]);
    expect(inner.size).toBe(0);
  });

  it('refuses until it changes', async () => {
    lists.said.set('first user:42', 'deny');
    const [decisions] = await store.check([{ entries: [entry(first)] }]);
    expect(decisions).toMatchObject([{ allowed: false, remaining: 0, retryAfterMs: Infinity, source: 'list' }]);
  });

  it('says nothing of others', async () => {
    expect(await told([entry(first)])).toEqual([['first', true, 'memory', 4]]);
    lists.said.set('first user:1', 'deny');
    expect(await told([entry(first)])).toEqual([['first', true, 'memory', 3]]);
  });

  it('says it of an address, too', async () => {
    lists.said.set('first 203.0.113.7', 'deny');
    expect(await told([entry(first)], '203.0.113.7')).toEqual([['first', false, 'list', 0]]);
    expect(await told([entry(first)], '203.0.113.8')).toEqual([['first', true, 'memory', 4]]);
  });

  it('decides its part of a check, in its place', async () => {
    lists.said.set('second user:42', 'allow');
    const third = limitOf('third');
    expect(await told([entry(first), entry(second), entry(third)])).toEqual([
      ['first', true, 'memory', 4],
      ['second', true, 'list', 5],
      ['third', true, 'memory', 4],
    ]);
  });

  it('refuses for all limits of a check, of which none is charged', async () => {
    lists.said.set('second user:42', 'deny');
    expect(await told([entry(first), entry(second)])).toEqual([
      ['first', true, 'list', 5],
      ['second', false, 'list', 0],
    ]);
    expect(inner.size).toBe(0);
  });

  it('refuses nothing for a limit in shadow mode', async () => {
    lists.said.set('shadow user:42', 'deny');
    expect(await told([entry(first), entry(shadow)])).toEqual([
      ['first', true, 'memory', 4],
      ['shadow', false, 'list', 0],
    ]);
  });

  it('hands on why the rest of a check failed', async () => {
    lists.said.set('first user:42', 'allow');
    const broken = new ListStore(
      new MemoryStore({
        clock: () => {
          throw new Error('no time');
        },
      }),
      lists,
    );
    const asked = broken.check([{ entries: [entry(first), entry(second)] }]);
    await expect(asked).rejects.toThrow('no time');
  });
});

describe('what a list decided', () => {
  const charge = { ...entry(first), units: 1 };

  it('is reserved at once, or not at all', async () => {
    lists.said.set('first a', 'allow').set('first b', 'deny');
    expect(await reserve('a')).toMatchObject({ allowed: true, source: 'list' });
    expect(await reserve('b')).toMatchObject({ allowed: false, source: 'list' });
    expect(await reserve('c')).toMatchObject({ allowed: true, source: 'memory' });
  });

  it('is not given back, as it was not charged', async () => {
    await told([entry(first)]);
    await told([entry(second)]);
    await store.refund([{ ...charge, source: 'list' }]);
    expect(inner.size).toBe(2);
    await store.refund([
      { ...charge, source: 'list' },
      { ...charge, limit: second, source: 'memory' },
    ]);
    expect(inner.size).toBe(1);
    await store.refund([{ ...charge, source: 'memory' }]);
    expect(inner.size).toBe(0);
  });

  it('is no reason for a penalty', async () => {
    await store.penalize({ ...charge, source: 'list' });
    expect(inner.size).toBe(0);
    await store.penalize({ ...charge, source: 'memory' });
    expect(inner.size).toBe(1);
  });
});
