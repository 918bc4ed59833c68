import { describe, expect, it } from '@jest/globals';
import { ask, compile } from '../../../support/limits/stores.js';
import { type HoldsStage, identity, SECOND, ten } from './stage.js';

/** What each algorithm does with units that are held. */
export function holdsOfEachAlgorithm(stage: HoldsStage): void {
  const { at, reserve, settle, left } = stage;

  describe.each(Object.entries(ten))('%s', (_, options) => {
    it('counts what is held, and what was really used once it is settled', async () => {
      const limit = compile(options('charge'));
      const held = await reserve(limit, 6);
      expect([held.allowed, await left(limit)]).toEqual([true, 4]);
      expect((await reserve(limit, 5)).allowed).toBe(false);
      await settle(held, 2);
      expect(await left(limit)).toBe(8);
    });

    it('settles once, and knows what was given back no more', async () => {
      const limit = compile(options('charge'));
      const held = await reserve(limit, 6);
      await Promise.all([settle(held, 2), settle(held, 2), settle(held, 2)]);
      expect(await left(limit)).toBe(8);
      const other = await reserve(limit, 3);
      await stage.store.refund([other]);
      await stage.store.refund([other]);
      await settle(other, 3);
      expect(await left(limit)).toBe(8);
    });

    it('settles more than there was, and allows nothing until that is paid off', async () => {
      const limit = compile(options('charge'));
      const held = await reserve(limit, 6);
      await settle(held, 13);
      await expect(ask(stage.store, limit)).resolves.toMatchObject({ allowed: false, remaining: 0 });
      await stage.store.refund([{ limit, identity, units: 4 }]);
      expect(await left(limit)).toBe(1);
    });

    it('keeps units charged whose hold lapses, and corrects them later', async () => {
      const limit = compile(options('charge'));
      const held = await reserve(limit, 6);
      at(5 * SECOND);
      expect(await left(limit)).toBe(4);
      await settle(held, 1);
      expect(await left(limit)).toBe(9);
    });

    it('releases units whose hold lapses, and corrects them later', async () => {
      const limit = compile(options('release'));
      const held = await reserve(limit, 6);
      at(5 * SECOND - 1);
      expect(await left(limit)).toBe(4);
      at(5 * SECOND);
      expect(await left(limit)).toBe(10);
      await ask(stage.store, limit, { cost: 2 });
      expect(await left(limit)).toBe(8);
      await settle(held, 7);
      await settle(held, 7);
      expect(await left(limit)).toBe(1);
    });

    it('tells a refusal when the units come back that a hold releases', async () => {
      const limit = compile(options('release'));
      await reserve(limit, 3);
      at(2 * SECOND);
      await reserve(limit, 4);
      at(3 * SECOND);
      await ask(stage.store, limit, { cost: 3 });
      await expect(ask(stage.store, limit, { cost: 3 })).resolves.toMatchObject({
        allowed: false,
        retryAfterMs: 2 * SECOND,
      });
      await expect(ask(stage.store, limit, { cost: 4 })).resolves.toMatchObject({ retryAfterMs: 4 * SECOND });
      at(7 * SECOND - 1);
      await expect(ask(stage.store, limit, { cost: 7, peek: true })).resolves.toMatchObject({ allowed: false });
      at(7 * SECOND);
      await expect(ask(stage.store, limit, { cost: 7 })).resolves.toMatchObject({ allowed: true, remaining: 0 });
    });

    it('changes nothing by a look, nor by a refusal', async () => {
      const limit = compile(options('release'));
      const held = await reserve(limit, 6);
      at(5 * SECOND);
      expect((await reserve(limit, 11)).allowed).toBe(false);
      for (let i = 0; i < 3; i++) expect(await left(limit)).toBe(10);
      await settle(held, 6);
      expect(await left(limit)).toBe(4);
    });

    it('forgets what is held with a reset', async () => {
      const limit = compile(options('charge'));
      const held = await reserve(limit, 6);
      await stage.store.reset([{ limit, identity }]);
      await settle(held, 9);
      expect(await left(limit)).toBe(10);
    });
  });
}
