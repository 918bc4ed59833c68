import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type MemoryStore, RateLimitStoreError } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { requestChargesOf, giveBack, type RequestCharge } from '../../../lib/nest/request/charges.js';
import type { Rule } from '../../../lib/app/rules/rule.js';
import { createTestingStore, TestClock } from '../../../lib/testing/index.js';
import { ruleOf } from '../../support/limits/rules.js';

const identity = 'ip:203.0.113.7';
const five = { algo: 'fixed-window', rate: 5, interval: '1h' } as const;

describe('what a check charged', () => {
  let clock: TestClock;
  let store: MemoryStore;
  beforeEach(() => {
    clock = new TestClock();
    store = createTestingStore({ clock });
  });
  afterEach(() => store.close());

  /** Checks one request against rules, and says what it charged. */
  async function charge(rules: readonly Rule[], cost = 1): Promise<RequestCharge[]> {
    const entries = rules.map((rule) => ({ rule, limit: rule.limit, identity, cost }));
    const [decisions] = await store.check([{ entries, refundable: true }]);
    return requestChargesOf({ entries, decisions: decisions!, store, refundable: true });
  }

  async function remaining({ limit }: Rule): Promise<number> {
    const [decisions] = await store.check([{ entries: [{ limit, identity, cost: 1 }], peek: true }]);
    return decisions![0]!.remaining;
  }

  const one = ruleOf(five, { name: 'one' });
  const two = ruleOf(five, { name: 'two' });

  it('is the cost of each limit, open until it is settled or given back', async () => {
    expect(await charge([one, two], 2)).toMatchObject([
      { rule: one, limit: one.limit, identity, units: 2, settled: false, returned: false, store },
      { rule: two, limit: two.limit, identity, units: 2, settled: false, returned: false, store },
    ]);
  });

  it('is nothing where a limit that only watches would have refused', async () => {
    const watched = ruleOf(five, { name: 'watched', shadow: true });
    await charge([watched], 5);
    expect(await charge([one, watched])).toMatchObject([{ rule: one }]);
  });

  it('comes back, and nothing of other requests', async () => {
    await charge([one, two], 2);
    const charges = await charge([one, two]);
    await giveBack(charges);
    expect([await remaining(one), await remaining(two)]).toEqual([3, 3]);
    expect(charges).toMatchObject([
      { settled: true, returned: true },
      { settled: true, returned: true },
    ]);
  });

  it('comes back once', async () => {
    await charge([one], 2);
    const charges = await charge([one]);
    await Promise.all([giveBack(charges), giveBack(charges)]);
    await giveBack(charges);
    expect(await remaining(one)).toBe(3);
  });

  it('comes back as far as it has not', async () => {
    const charges = await charge([one, two]);
    await giveBack(charges.slice(0, 1));
    await charge([one]);
    await giveBack(charges);
    expect([await remaining(one), await remaining(two)]).toEqual([4, 5]);
  });

  it('is as much as it was settled at', async () => {
    const charges = await charge([one], 3);
    charges[0]!.units = 1;
    await giveBack(charges);
    expect(await remaining(one)).toBe(3);
  });

  it('comes back without a call of the store where there is nothing', async () => {
    const refund = jest.spyOn(store, 'refund');
    await giveBack([]);
    const charges = await charge([one]);
    charges[0]!.units = 0;
    await giveBack(charges);
    expect(refund).not.toHaveBeenCalled();
    expect(charges).toMatchObject([{ settled: false, returned: false }]);
  });

  it('comes back in one call of the store', async () => {
    const refund = jest.spyOn(store, 'refund');
    await giveBack(await charge([one, two]));
    expect(refund.mock.calls).toMatchObject([[[{ limit: one.limit }, { limit: two.limit }]]]);
  });

  it('comes back to the limit that decides by now', async () => {
    const changing = ruleOf(five, { name: 'changing' });
    const charges = await charge([changing]);
    const limit = new CompiledLimit({ ...five, rate: 10 }, { location: 'test', name: 'changing' });
    changing.decideBy(limit);
    const refund = jest.spyOn(store, 'refund');
    await giveBack(charges);
    expect(refund.mock.calls[0]![0][0]!.limit).toBe(limit);
  });

  it('is not given back to a window that is over', async () => {
    const charges = await charge([one]);
    clock.advance('1h');
    await charge([one], 2);
    await giveBack(charges);
    expect(await remaining(one)).toBe(3);
  });

  it('is not given back while the store fails, which nobody is told of', async () => {
    const charges = await charge([one]);
    const refund = jest.spyOn(store, 'refund').mockRejectedValue(new RateLimitStoreError('down'));
    await expect(giveBack(charges)).resolves.toBeUndefined();
    // It is not tried again.
    await giveBack(charges);
    expect(refund).toHaveBeenCalledTimes(1);
  });

  it('is not given back by a store that fails otherwise, which whoever asked is told of', async () => {
    const charges = await charge([one]);
    jest.spyOn(store, 'refund').mockRejectedValue(new TypeError('a bug'));
    await expect(giveBack(charges)).rejects.toThrow('a bug');
  });
});
