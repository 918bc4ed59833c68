import { describe, expect, it } from '@jest/globals';
import { algorithmNames } from '../../../support/limits/arbitraries.js';
import { compile } from '../../../support/limits/stores.js';
import { blocked, counterOf, five } from './limits.js';
import type { OperationsStage } from './stage.js';

/** The limits of these tests allow 5 units in 10 s, or in a minute. */
export function learnContract(stage: OperationsStage): void {
  const { at, take, peek, learn, block } = stage;

  describe('learn', () => {
    describe.each(algorithmNames)('%s', (algo) => {
      const limit = compile(five[algo]);

      it('leaves no more than the upstream has, and does as if as much had been taken', async () => {
        await learn(limit, { remaining: 2 });
        const learnt = await peek(limit);
        await stage.store.reset([counterOf(limit)]);
        await take(limit, 3);
        expect(learnt).toEqual(await peek(limit));
      });

      it('takes off what all instances have in flight', async () => {
        await learn(limit, { instance: 1, inFlight: 1 });
        expect(await peek(limit)).toMatchObject({ remaining: 5 });
        await learn(limit, { instance: 2, inFlight: 2, remaining: 4 });
        expect(await peek(limit)).toMatchObject({ remaining: 1 });
      });

      it('only ever tightens', async () => {
        await take(limit, 4);
        const before = await peek(limit);
        await learn(limit, { remaining: 5 });
        await learn(limit, { remaining: 1, resetAfterMs: 5000 });
        expect(await peek(limit)).toEqual(before);
      });

      it('gives back what it charged for calls in flight', async () => {
        if (algo === 'leaky-bucket') return;
        await take(limit, 1);
        await learn(limit, { remaining: 4, resetAfterMs: 5000, inFlight: 3 });
        expect(await peek(limit)).toMatchObject({ remaining: 1 });
        await learn(limit, { remaining: 4, resetAfterMs: 5000, inFlight: 1 });
        expect(await peek(limit)).toMatchObject({ remaining: 3 });
        await learn(limit, { remaining: 3, resetAfterMs: 5000 });
        expect(await peek(limit)).toMatchObject({ remaining: 3 });
        await learn(limit, { remaining: 5, resetAfterMs: 5000 });
        expect(await peek(limit)).toMatchObject({ remaining: 3 });
      });

      it('charges no more than there is', async () => {
        await learn(limit, { remaining: 1, inFlight: 1_000_000 });
        expect(await peek(limit)).toMatchObject({ allowed: false, remaining: 0 });
        const whole = await peek(limit);
        await learn(limit, { remaining: 1, inFlight: 1_000_000 });
        expect(await peek(limit)).toEqual(whole);
      });
    });

    describe.each([...algorithmNames, 'concurrency' as const])('%s', (algo) => {
      const limit = compile(five[algo]);

      it('blocks until the upstream allows calls again, and never shortens a block', async () => {
        await learn(limit, { blockMs: 1000 });
        await expect(take(limit)).resolves.toMatchObject(blocked(1000));
        await learn(limit, { blockMs: 500 });
        await expect(take(limit)).resolves.toMatchObject(blocked(1000));
        at(500);
        await learn(limit, { blockMs: 2000 });
        await expect(take(limit)).resolves.toMatchObject(blocked(2000));
        await block(limit, 60_000);
        await learn(limit, { blockMs: 100, remaining: 0, resetAfterMs: 100 });
        await expect(take(limit)).resolves.toMatchObject(blocked(60_000));
      });

      it('blocks until the reset where the upstream has nothing left', async () => {
        await learn(limit, { remaining: 0, resetAfterMs: 30_000 });
        await expect(take(limit)).resolves.toMatchObject(blocked(30_000));
        at(30_000);
        await expect(take(limit)).resolves.toMatchObject({ allowed: true });
      });

      it('narrows down a reset that is told in whole seconds', async () => {
        await learn(limit, { remaining: 4, resetAfterMs: 3000 });
        at(600);
        await learn(limit, { remaining: 3, resetAfterMs: 2000 });
        at(700);
        await learn(limit, { remaining: 0, resetAfterMs: 2000 });
        await expect(take(limit)).resolves.toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 1900 });
      });
    });

    describe('an answer that comes late', () => {
      const limit = compile(five['fixed-window']);

      it('says nothing of the window that has begun since', async () => {
        await learn(limit, { remaining: 4, resetAfterMs: 1000 });
        at(11_000);
        await learn(limit, { remaining: 0, resetAfterMs: 12_000, ageMs: 10_500 });
        expect(await peek(limit)).toMatchObject({ allowed: true, remaining: 5 });
        await learn(limit, { remaining: 2, resetAfterMs: 5000, ageMs: 50 });
        expect(await peek(limit)).toMatchObject({ remaining: 2 });
      });

      it('says nothing if its own window may be over', async () => {
        await learn(limit, { remaining: 0, resetAfterMs: 200, ageMs: 200 });
        expect(await peek(limit)).toMatchObject({ allowed: true, remaining: 5 });
        await learn(limit, { remaining: 0, resetAfterMs: 201, ageMs: 200 });
        expect(await peek(limit)).toMatchObject({ allowed: false, retryAfterMs: 201 });
      });

      it('says what it knows of another limit of the upstream', async () => {
        await learn(limit, { remaining: 4, resetAfterMs: 1000, window: 1 });
        at(1500);
        await learn(limit, { remaining: 2, resetAfterMs: 60_000, ageMs: 1000, window: 2 });
        expect(await peek(limit)).toMatchObject({ remaining: 2 });
      });

      it('is no worse in another order', async () => {
        for (const remaining of [1, 3, 2, 4]) await learn(limit, { remaining, resetAfterMs: 5000 });
        expect(await peek(limit)).toMatchObject({ remaining: 1 });
      });
    });

    describe('units in flight', () => {
      const limit = compile(five['fixed-window']);

      it('are those that an instance told last', async () => {
        await learn(limit, { instance: 1, inFlight: 4 });
        await learn(limit, { instance: 1, inFlight: 1 });
        await learn(limit, { instance: 2, inFlight: 0, remaining: 4 });
        expect(await peek(limit)).toMatchObject({ remaining: 3 });
      });

      it('are those that another instance asks for, too', async () => {
        await learn(limit, { instance: 1, inFlight: 1, asking: 2, remaining: 5 });
        expect(await peek(limit)).toMatchObject({ remaining: 4 });
        await learn(limit, { instance: 2, remaining: 5 });
        expect(await peek(limit)).toMatchObject({ remaining: 2 });
      });

      it('of an instance that has gone are forgotten after a minute', async () => {
        await learn(limit, { instance: 1, inFlight: 4 });
        at(59_999);
        await learn(limit, { instance: 2, remaining: 5 });
        expect(await peek(limit)).toMatchObject({ remaining: 1 });
        await stage.store.reset([counterOf(limit)]);
        at(60_000);
        await learn(limit, { instance: 2, remaining: 5 });
        expect(await peek(limit)).toMatchObject({ remaining: 5 });
      });

      it('of a limit that holds units change nothing', async () => {
        const slots = compile(five.concurrency);
        await learn(slots, { remaining: 1, inFlight: 3 });
        expect(await peek(slots)).toMatchObject({ allowed: true, remaining: 5 });
      });
    });

    it('is forgotten by reset', async () => {
      const limit = compile(five['fixed-window']);
      await learn(limit, { remaining: 1, resetAfterMs: 60_000, inFlight: 2, instance: 1 });
      await stage.store.reset([counterOf(limit)]);
      await learn(limit, { instance: 2 });
      expect(await peek(limit)).toMatchObject({ remaining: 5 });
    });

    it('is of each counter by itself', async () => {
      const [limit, other] = [compile(five.gcra, 'one'), compile(five.gcra, 'other')];
      await Promise.all([
        learn(limit, { remaining: 1 }),
        learn(other, { remaining: 3 }),
        learn(limit, { inFlight: 2 }),
      ]);
      expect(await peek(limit)).toMatchObject({ remaining: 1 });
      expect(await peek(other)).toMatchObject({ remaining: 3 });
    });
  });
}
