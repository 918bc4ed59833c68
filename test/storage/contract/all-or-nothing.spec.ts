import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { MemoryStore, RateLimitStoreError } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { allOrNothing, type Part, takeOf } from '../../../lib/storage/stores/all-or-nothing.js';
import { chargesOf } from '../../support/limits/stores.js';

const IDENTITY = 'user:1';

const limitOf = (name: string, rate: number, shadow = false) =>
  new CompiledLimit({ algo: 'fixed-window', rate, interval: '1h' }, { location: 'test', name, shadow });

const entriesOf = (parts: readonly Part[]) => parts.flatMap(({ entries }) => entries);

const check = (parts: readonly Part[], peek = false) => allOrNothing(entriesOf(parts), parts, peek);

describe('a check in several parts', () => {
  const stores: MemoryStore[] = [];
  afterEach(async () => {
    jest.useRealTimers();
    for (const store of stores.splice(0)) await store.close();
  });

  /** One limit in a store of its own, which says what is left of it. */
  function partOf(limit: CompiledLimit, cost = 1): Part & { left: () => Promise<number>; asked: boolean[] } {
    const store = new MemoryStore();
    stores.push(store);
    const entries = [{ limit, identity: IDENTITY, cost }];
    const asked: boolean[] = [];
    return {
      entries,
      asked,
      ask: async (peek, most) => {
        asked.push(peek);
        return (await store.check([{ ...takeOf(entries, most), peek, refundable: true }]))[0]!;
      },
      giveBack: (charged) => store.refund(chargesOf(entries, charged)),
      left: async () => (await store.check([{ entries, peek: true }]))[0]![0]!.remaining,
    };
  }

  const leftOf = (parts: readonly ReturnType<typeof partOf>[]) => Promise.all(parts.map(({ left }) => left()));

  it('charges all parts that allow', async () => {
    const parts = [partOf(limitOf('one', 5)), partOf(limitOf('two', 3))];
    expect(await check(parts)).toMatchObject([{ remaining: 4 }, { remaining: 2 }]);
    expect(await leftOf(parts)).toEqual([4, 2]);
  });

  it('gives back what was charged before a refusal, and only looks at what comes behind it', async () => {
    const parts = [partOf(limitOf('one', 5)), partOf(limitOf('two', 1)), partOf(limitOf('three', 5))];
    await check(parts);
    expect(await check(parts)).toMatchObject([
      { allowed: true, remaining: 4 },
      { allowed: false, remaining: 0 },
      { allowed: true, remaining: 4 },
    ]);
    expect(await leftOf(parts)).toEqual([4, 0, 4]);
    expect(parts.map(({ asked }) => asked)).toEqual([
      [false, false, true],
      [false, false],
      [false, true],
    ]);
  });

  it('takes of all parts what the one has that has the fewest left, and gives back what others gave beyond that', async () => {
    const parts = [partOf(limitOf('one', 9), 7), partOf(limitOf('two', 3, true), 7), partOf(limitOf('three', 4), 7)];
    const take = () => allOrNothing(entriesOf(parts), parts, false, undefined, true);
    expect(await take()).toMatchObject([
      { taken: 4, remaining: 5 },
      { allowed: false, taken: 4 },
      { taken: 4, remaining: 0 },
    ]);
    expect(await leftOf(parts)).toEqual([5, 3, 0]);
    expect(await take()).toMatchObject([{ allowed: true }, {}, { allowed: false, taken: 0 }]);
    expect(await leftOf(parts)).toEqual([5, 3, 0]);
  });

  it('gives back no unit twice if a part fails behind one that had fewer left', async () => {
    const first = partOf(limitOf('one', 9), 7);
    const failing: Part = {
      ...partOf(limitOf('three', 9), 7),
      ask: () => Promise.reject(new RateLimitStoreError('down')),
    };
    const parts = [first, partOf(limitOf('two', 4), 7), failing];
    await expect(allOrNothing(entriesOf(parts), parts, false, undefined, true)).rejects.toThrow('down');
    expect(await first.left()).toBe(9);
  });

  it('takes the word of a part for what it says once its units are back', async () => {
    const first = partOf(limitOf('one', 5));
    const part: Part = { ...first, afterwards: (charged) => charged.map((each) => ({ ...each, remaining: 99 })) };
    const refusing = partOf(limitOf('two', 1));
    await check([refusing]);
    expect(await check([part, refusing])).toMatchObject([{ remaining: 99 }, { allowed: false }]);
    expect(first.asked).toEqual([false]);
  });

  it('is refused by no shadow limit', async () => {
    const parts = [partOf(limitOf('one', 5)), partOf(limitOf('two', 1, true)), partOf(limitOf('three', 5))];
    await check(parts);
    expect(await check(parts)).toMatchObject([{ allowed: true }, { allowed: false }, { allowed: true }]);
    expect(await leftOf(parts)).toEqual([3, 0, 3]);
  });

  it('charges nothing when it only looks', async () => {
    const parts = [partOf(limitOf('one', 5)), partOf(limitOf('two', 3))];
    await check(parts, true);
    expect(await leftOf(parts)).toEqual([5, 3]);
  });

  it('reads parts at once: all if it only looks, else those behind a refusal', async () => {
    const refusing = partOf(limitOf('one', 1));
    await check([refusing]);
    /** Two parts that answer once both are asked. */
    const together = (): [Part, Part] => {
      const parts: [Part, Part] = [partOf(limitOf('two', 5)), partOf(limitOf('three', 5))];
      let release: () => void;
      const bothAsked = new Promise<void>((resolve) => (release = resolve));
      let asked = 0;
      return parts.map((part) => ({
        ...part,
        ask: async (peek: boolean) => {
          if (++asked === 2) release();
          await bothAsked;
          return part.ask(peek);
        },
      })) as [Part, Part];
    };
    expect(await check(together(), true)).toMatchObject([{ remaining: 5 }, { remaining: 5 }]);
    expect(await check([refusing, ...together()])).toMatchObject([{ allowed: false }, { remaining: 5 }, {}]);
  });

  it('gives back what was charged when a later part fails', async () => {
    const first = partOf(limitOf('one', 5));
    const failing: Part = { ...partOf(limitOf('two', 5)), ask: () => Promise.reject(new RateLimitStoreError('gone')) };
    await expect(check([first, failing])).rejects.toThrow('gone');
    expect(await leftOf([first])).toEqual([5]);
  });

  it('answers in the order of the entries, whatever the order of the parts', async () => {
    const parts = [partOf(limitOf('one', 5)), partOf(limitOf('two', 3))];
    const decisions = await allOrNothing(entriesOf(parts.toReversed()), parts, false);
    expect(decisions.map(({ limit }) => limit)).toEqual(['two', 'one']);
  });

  it('waits for no unit to come back beyond its deadline', async () => {
    jest.useFakeTimers();
    const hanging: Part = { ...partOf(limitOf('one', 5)), giveBack: () => new Promise<never>(() => undefined) };
    const refusing = partOf(limitOf('two', 1));
    await check([refusing]);
    const parts = [hanging, refusing];
    const late = allOrNothing(entriesOf(parts), parts, false, { at: performance.now() + 200, timeoutMs: 250 });
    const failed = expect(late).rejects.toThrow(/250 ms/);
    await jest.advanceTimersByTimeAsync(201);
    await failed;
  });
});
