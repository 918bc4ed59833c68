import { describe, expect, it } from '@jest/globals';
import { ask, compile } from '../../../support/limits/stores.js';
import type { CheckStage } from './stage.js';

export function queueTicketsContract(stage: CheckStage): void {
  const { at } = stage;

  describe('a place in the queue of a leaky bucket', () => {
    const limit = compile({ algo: 'leaky-bucket', rate: 5, interval: '10s', queue: 3 });
    const counter = { limit, identity: 'ip:203.0.113.7' };
    const join = async (cost = 1) => {
      const { delayMs, ticket, allowed } = await ask(stage.store, limit, { cost });
      return { delayMs, ticket, allowed, units: cost };
    };

    it('at the end goes back to the end', async () => {
      const joined = [await join(), await join(), await join()];
      expect(joined.map(({ delayMs }) => delayMs)).toEqual([0, 2000, 4000]);
      at(500);
      await stage.store.refund([{ ...counter, ...joined[2]! }]);
      await expect(ask(stage.store, limit, { peek: true })).resolves.toMatchObject({
        remaining: 2,
        resetAfterMs: 3500,
      });
      await expect(join()).resolves.toMatchObject({ delayMs: 3500 });
    });

    it('in the middle goes to the next request, at its own time', async () => {
      const joined = [await join(), await join(), await join(), await join()];
      await expect(join()).resolves.toMatchObject({ allowed: false });
      await stage.store.refund([{ ...counter, ...joined[1]! }]);
      at(500);
      await expect(ask(stage.store, limit, { peek: true })).resolves.toMatchObject({ remaining: 1, delayMs: 1500 });
      await expect(join()).resolves.toMatchObject({ allowed: true, delayMs: 1500 });
      await expect(join()).resolves.toMatchObject({ allowed: false });
    });

    it('joins the end when those behind it go away, in whatever order they do', async () => {
      const joined = [await join(), await join(), await join(2)];
      for (const gone of [1, 2]) await stage.store.refund([{ ...counter, ...joined[gone]! }]);
      await expect(ask(stage.store, limit, { peek: true })).resolves.toMatchObject({
        remaining: 3,
        resetAfterMs: 2000,
      });
      await expect(join(3)).resolves.toMatchObject({ allowed: true, delayMs: 6000 });
    });

    it('is none if units are given back without one beyond it', async () => {
      const joined = [await join(), await join(), await join(), await join()];
      await stage.store.refund([{ ...counter, ...joined[1]! }]);
      await stage.store.refund([{ ...counter, units: 2 }]);
      await expect(ask(stage.store, limit, { peek: true })).resolves.toMatchObject({
        remaining: 3,
        resetAfterMs: 2000,
      });
    });

    it('is lost once its time has come', async () => {
      const joined = [await join(), await join(), await join(), await join()];
      await stage.store.refund([{ ...counter, ...joined[1]! }]);
      at(2001);
      // One has left by now: its place at the end is free, and no other.
      await expect(join()).resolves.toMatchObject({ allowed: true, delayMs: 5999 });
      await expect(join()).resolves.toMatchObject({ allowed: false });
    });

    it('of several units serves requests of fewer', async () => {
      const joined = [await join(), await join(2), await join()];
      expect(joined.map(({ delayMs }) => delayMs)).toEqual([0, 4000, 6000]);
      await stage.store.refund([{ ...counter, ...joined[1]! }]);
      await expect(ask(stage.store, limit, { cost: 3 })).resolves.toMatchObject({ allowed: false, remaining: 2 });
      await expect(join()).resolves.toMatchObject({ allowed: true, delayMs: 2000 });
      await expect(join()).resolves.toMatchObject({ allowed: true, delayMs: 4000 });
      await expect(join()).resolves.toMatchObject({ allowed: false });
    });

    it('of several units serves no more of them than are still to come', async () => {
      const joined = [await join(), await join(2), await join()];
      await stage.store.refund([{ ...counter, ...joined[1]! }]);
      at(2001);
      await expect(ask(stage.store, limit, { cost: 2, peek: true })).resolves.toMatchObject({
        allowed: false,
        remaining: 1,
      });
      await expect(join()).resolves.toMatchObject({ allowed: true, delayMs: 1999 });
      await expect(join()).resolves.toMatchObject({ allowed: true, delayMs: 5999 });
    });

    it('is shared by those that follow each other, in whatever order they are given back', async () => {
      for (const order of [
        [0, 1, 2],
        [2, 1, 0],
        [1, 0, 2],
        [0, 2, 1],
      ]) {
        await stage.store.reset([counter]);
        const joined = [await join(), await join(), await join(), await join()];
        for (const index of order) await stage.store.refund([{ ...counter, ...joined[index]! }]);
        await expect(join(3)).resolves.toMatchObject({ allowed: true, delayMs: 4000 });
        await expect(join()).resolves.toMatchObject({ allowed: false });
      }
    });

    it('is given back once, however often it is', async () => {
      const joined = [await join(), await join(2), await join()];
      await stage.store.refund([1, 1, 1].map((index) => ({ ...counter, ...joined[index]! })));
      await expect(join(2)).resolves.toMatchObject({ allowed: true, delayMs: 4000 });
      await expect(join()).resolves.toMatchObject({ allowed: false });
    });

    it('is none beyond the end once units were given back without one', async () => {
      const joined = [await join(), await join(), await join(), await join()];
      await stage.store.refund([{ ...counter, units: 3 }]);
      await stage.store.refund([{ ...counter, ...joined[3]! }]);
      for (const delayMs of [2000, 4000, 6000]) await expect(join()).resolves.toMatchObject({ delayMs });
      await expect(join()).resolves.toMatchObject({ allowed: false });
    });

    it('is none either when others have joined there since', async () => {
      const joined = [await join(), await join(), await join(), await join()];
      await stage.store.refund([{ ...counter, units: 3 }]);
      for (const delayMs of [2000, 4000, 6000]) await expect(join()).resolves.toMatchObject({ delayMs });
      for (const index of [2, 3]) await stage.store.refund([{ ...counter, ...joined[index]! }]);
      await expect(join()).resolves.toMatchObject({ allowed: false });
    });

    it('is none once the clock was set back by an interval or more', async () => {
      const charged = async () => {
        const [decisions] = await stage.store.check([{ entries: [{ ...counter, cost: 1 }], refundable: true }]);
        const { ticket, chargedAt: time } = decisions![0]!;
        return { ...counter, units: 1, ticket, chargedAt: time };
      };
      at(20_000);
      const joined = [await charged(), await charged(), await charged()];
      at(0);
      await join();
      await stage.store.refund(joined);
      await expect(ask(stage.store, limit, { peek: true })).resolves.toMatchObject({
        allowed: false,
        resetAfterMs: 8000,
      });
      at(2000);
      await expect(join()).resolves.toMatchObject({ allowed: true, delayMs: 6000 });
    });

    it('is kept for so many at most: those that come first', async () => {
      const long = compile({ algo: 'leaky-bucket', rate: 1000, interval: '1s', queue: 9999 }, 'long');
      const places = { limit: long, identity: 'ip:203.0.113.7' };
      const entries = [{ ...places, cost: 1 }];
      const answers = await stage.store.check(Array.from({ length: 1000 }, () => ({ entries })));
      const joined = answers.map(([decision]) => ({ ...places, units: 1, ticket: decision!.ticket }));
      await stage.store.refund(joined.filter((_, index) => index % 2 === 1).toReversed());
      const next = await stage.store.check(Array.from({ length: 102 }, () => ({ entries })));
      const expected = Array.from({ length: 100 }, (_, index) => 2 * index + 1);
      expect(next.map(([decision]) => decision!.delayMs)).toEqual([...expected, 999, 1000]);
    });
  });
}
