import { describe, expect, it } from '@jest/globals';
import type { AlgorithmOptions } from '../../../../lib/index.js';
import { ask, compile } from '../../../support/limits/stores.js';
import { type HoldsStage, type OnLapse, SECOND, ten } from './stage.js';

/** What becomes of units that are held when the limit is changed. */
export function holdsOfChangedWindows(stage: HoldsStage): void {
  const { at, reserve, settle, left } = stage;

  const longer: Record<string, AlgorithmOptions> = {
    'fixed-window': { algo: 'fixed-window', rate: 10, interval: '1d', hold: '5m' },
    'calendar-window': { algo: 'calendar-window', rate: 10, period: 'day', hold: '5m' },
    'sliding-window': { algo: 'sliding-window', rate: 10, interval: '1d', hold: '5m' },
    'sliding-log': { algo: 'sliding-log', rate: 10, interval: '1d', hold: '5m' },
    budget: { algo: 'budget', limit: 10, period: 'year', hold: '5m' },
  };

  it.each(Object.entries(longer))(
    '%s: takes nothing off the longer window that a new one is',
    async (algo, options) => {
      const short = 'interval' in options ? { interval: '1s' } : { period: 'second' };
      // A log knows until when it was that its units count: those that it still has do so.
      const units = algo === 'sliding-log' ? 3 : 8;
      for (const onLapse of ['charge', 'release'] as const) {
        const [first, then] = [
          compile({ ...ten[algo]!(onLapse), ...short } as AlgorithmOptions, onLapse),
          compile({ ...options, onLapse } as AlgorithmOptions, onLapse),
        ];
        at(0);
        const [settled, lapsing] = [await reserve(first, 3), await reserve(first, 2)];
        at(2 * SECOND);
        expect((await reserve(then, units)).allowed).toBe(true);
        await settle({ ...settled, limit: then }, 0);
        at(10 * SECOND);
        expect(await left(then)).toBe(algo === 'sliding-log' ? 2 : 10 - units);
        await settle({ ...lapsing, limit: then }, 1);
        expect(await left(then)).toBe(algo === 'sliding-log' ? 2 : 10 - units);
      }
    },
  );

  /** Windows that have lost by a while later what was charged before, and those of `ten`. */
  const shorter: Record<string, Partial<Record<string, string>>> = {
    'fixed-window': { interval: '1s' },
    'calendar-window': { period: 'second' },
    'sliding-window': { interval: '1s' },
    'sliding-log': { interval: '1s' },
    budget: { period: 'second' },
  };

  describe.each(Object.keys(shorter))('%s, of windows that were changed and changed back', (algo) => {
    const limits = (onLapse: OnLapse) => {
      const options = ten[algo]!(onLapse);
      return [compile(options, 'one'), compile({ ...options, ...shorter[algo] }, 'one')] as const;
    };

    it.each<OnLapse>(['charge', 'release'])('takes nothing off what others use, by %s', async (onLapse) => {
      const [own, short] = limits(onLapse);
      const [settled, lapsing] = [await reserve(own, 3), await reserve(own, 2)];
      at(2 * SECOND);
      await ask(stage.store, short);
      at(3 * SECOND);
      // What is left of those that are held counts for the others.
      const before = await left(own);
      const units = before - 1;
      expect((await reserve(own, units)).allowed).toBe(true);
      await settle({ ...settled, limit: own }, 0);
      expect(await left(own)).toBe(1);
      at(5 * SECOND);
      expect(await left(own)).toBe(1);
      await settle({ ...lapsing, limit: own }, 0);
      expect(await left(own)).toBe(1);
      await settle({ ...lapsing, limit: own }, 9);
      expect(await left(own)).toBe(1);
    });

    it('settles what is reserved from then on', async () => {
      const [own, short] = limits('charge');
      await reserve(own, 3);
      at(2 * SECOND);
      const there = await left(short);
      const other = await reserve(short, 4);
      await settle(other, 1);
      expect(await left(short)).toBe(there - 1);
      at(4 * SECOND);
      const before = await left(own);
      const held = await reserve(own, 2);
      await settle(held, 1);
      expect(await left(own)).toBe(before - 1);
    });

    it('settles what was held while nothing was charged under the others', async () => {
      const [own, short] = limits('charge');
      const held = await reserve(own, 6);
      at(2 * SECOND);
      expect(await left(short)).toBeGreaterThanOrEqual(4);
      await settle({ ...held, limit: short }, 1);
      await settle(held, 2);
      expect(await left(own)).toBe(8);
    });
  });

  it.each(Object.entries(ten))('%s: gives back what was reserved before `onLapse` was changed', async (_, options) => {
    const [charging, releasing] = [compile(options('charge')), compile(options('release'))];
    const held = await reserve(releasing, 6);
    expect((await reserve(charging, 2)).allowed).toBe(true);
    // A refusal knows it, too: a wait that is too long would be remembered.
    await expect(ask(stage.store, charging, { cost: 8 })).resolves.toMatchObject({
      allowed: false,
      retryAfterMs: 5 * SECOND,
    });
    at(5 * SECOND);
    expect(await left(charging)).toBe(8);
    expect((await reserve(charging, 8)).allowed).toBe(true);
    await settle({ ...held, limit: charging }, 1);
    expect(await left(charging)).toBe(0);
    at(10 * SECOND);
    expect(await left(charging)).toBe(0);
  });

  it.each(Object.entries(ten))('%s: gives back what is reserved after `onLapse` is changed', async (_, options) => {
    const [charging, releasing] = [compile(options('charge')), compile(options('release'))];
    const held = await reserve(charging, 6);
    at(6 * SECOND);
    expect(await left(releasing)).toBe(4);
    await reserve(releasing, 3);
    at(11 * SECOND);
    expect(await left(releasing)).toBe(4);
    await ask(stage.store, releasing);
    await settle({ ...held, limit: releasing }, 2);
    expect(await left(releasing)).toBe(7);
    const late = await reserve(releasing, 4);
    at(16 * SECOND);
    expect(await left(charging)).toBe(7);
    await settle({ ...late, limit: charging }, 1);
    expect(await left(charging)).toBe(6);
  });
}
