import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MemoryStore } from '../../../lib/index.js';
import {
  type Check,
  CompiledLimit,
  type Counter,
  type Refund,
  type StoreDecision,
} from '../../../lib/testing/store/index.js';
import { featureTerms } from '../../support/limits/stores.js';
import { perInstance } from '../../support/limits/layers.js';
import { unitsOf } from '../../support/limits/usage.js';

const identity = 'ip:203.0.113.7';

function limit(name: string, rate: number, instance: boolean): CompiledLimit {
  return new CompiledLimit({ algo: 'fixed-window', rate, interval: '1m' }, { location: 'test', name, instance });
}

const own = (rate: number) => limit('own', rate, true);
const shared = (rate: number) => limit('shared', rate, false);

const entries = (...limits: CompiledLimit[]) => limits.map((each) => ({ limit: each, identity, cost: 1 }));

/** A store that remembers what it was asked, by the names of limits. */
class AskedStore extends MemoryStore {
  readonly asked: string[] = [];
  readonly checks: Check[] = [];

  override check(checks: readonly Check[]): Promise<StoreDecision[][]> {
    this.checks.push(...checks);
    for (const { entries: all, refundable = false } of checks)
      this.note(`check${refundable ? ' refundable' : ''}`, all);
    return super.check(checks);
  }
  override refund(refunds: readonly Refund[]): Promise<void> {
    this.note('refund', refunds);
    return super.refund(refunds);
  }
  override reset(counters: readonly Counter[]): Promise<boolean | void> {
    this.note('reset', counters);
    return super.reset(counters);
  }

  override close(): Promise<void> {
    this.asked.push('close');
    return super.close();
  }

  private note(operation: string, counters: readonly Counter[]): void {
    this.asked.push([operation, ...counters.map(({ limit: { name } }) => name)].join(' '));
  }
}

describe('the stores under an InstanceScopeStore', () => {
  let inner: AskedStore;
  let mine: AskedStore;
  let store: ReturnType<typeof perInstance>;
  beforeEach(() => {
    [inner, mine] = [new AskedStore(), new AskedStore()];
    store = perInstance(inner, mine);
  });
  afterEach(() => store.close());
  /** What each was asked since the last time: the shared one, then the instance's. */
  const asked = () => [inner, mine].map((each) => each.asked.splice(0));

  it('are asked only where they count, and only for what they count', async () => {
    const [a, b] = [own(9), shared(9)];
    await store.check([{ entries: entries(a) }, { entries: entries(b) }]);
    expect(asked()).toEqual([['check shared'], ['check own']]);
    await store.check([{ entries: entries(b, a) }]);
    // What was taken in process is given back if the shared limit refuses, and never the other way round.
    expect(asked()).toEqual([['check shared'], ['check refundable own']]);
    await store.check([{ entries: entries(b, a), refundable: true }]);
    expect(asked()).toEqual([['check refundable shared'], ['check refundable own']]);
    for (const act of ['refund', 'reset'] as const) {
      const on = (...limits: CompiledLimit[]) =>
        store[act](limits.map((each) => ({ limit: each, identity, units: 1 })));
      await on(a);
      expect(asked()).toEqual([[], [`${act} own`]]);
      await on(b, a);
      expect(asked()).toEqual([[`${act} shared`], [`${act} own`]]);
      await on(b);
      expect(asked()[0]).toEqual([`${act} shared`]);
    }
  });

  it('are given nothing back where nothing was charged', async () => {
    await store.refund([]);
    expect(asked()).toEqual([[], []]);
    await store.refund([{ limit: shared(9), identity, units: 1 }]);
    expect(asked()).toEqual([['refund shared'], []]);
  });

  it.each<[string, CompiledLimit, () => AskedStore]>([
    ['own', own(9), () => mine],
    ['shared', shared(9), () => inner],
  ])('get a check of %s limits alone as it is', async (_, only, there) => {
    const check: Check = { entries: entries(only), peek: true, strict: true, address: '203.0.113.7', since: 1 };
    await store.check([check]);
    expect(there().checks).toHaveLength(1);
    expect(there().checks[0]).toBe(check);
  });

  it('learn nothing if the one that counts cannot', async () => {
    Object.assign(mine, { learn: undefined });
    const lesson = { remaining: 3, resetAfterMs: 1000, ageMs: 0, inFlight: 0, instance: 1 };
    expect(await store.learn!({ limit: own(9), identity }, lesson)).toBeUndefined();
    const [left] = await store.check([{ entries: entries(own(9)), peek: true }]);
    expect(left).toMatchObject([{ remaining: 9 }]);
  });

  it('are closed, both', async () => {
    await store.close();
    expect(asked()).toEqual([['close'], ['close']]);
  });

  it('have the credits, the usage, the blocks and what is learnt of the limits that they count', async () => {
    const quotas = { algo: 'calendar-window', rate: 2, period: 'month', credits: true } as const;
    const features = featureTerms({ usage: '30d' }, 'test');
    for (const instance of [true, false]) {
      const plan = new CompiledLimit(quotas, { location: 'test', name: 'plan', instance, features });
      const [there, elsewhere] = instance ? [mine, inner] : [inner, mine];
      const counter = { limit: plan, identity: `user:${there === mine}` };
      expect(await store.credit!({ ...counter, units: 5 })).toBe(5);
      await store.check([{ entries: [{ ...counter, cost: 4 }] }]);
      const range = { from: -Infinity, to: Infinity };
      expect(await unitsOf(store, counter, range)).toMatchObject([{ units: 4 }]);
      expect(await unitsOf(store, counter, range)).toEqual(await unitsOf(there, counter, range));
      expect(await unitsOf(elsewhere, counter, range)).toEqual([]);

      const learning = instance ? own(9) : shared(9);
      const learnt = { limit: learning, identity };
      await store.block(learnt, 60_000);
      expect(await store.blockedFor!(learnt)).toBeGreaterThan(0);
      expect(await elsewhere.blockedFor(learnt)).toBe(0);
      await store.reset([learnt]);
      await store.learn!(learnt, { remaining: 3, resetAfterMs: 1000, ageMs: 0, inFlight: 0, instance: 1 });
      expect((await store.check([{ entries: entries(learning), peek: true }]))[0]).toMatchObject([{ remaining: 3 }]);
    }
  });
});
