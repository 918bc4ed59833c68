import { describe, expect, it } from '@jest/globals';
import { compile } from '../../../support/limits/stores.js';
import { counterOf, five } from './limits.js';
import type { OperationsStage } from './stage.js';

/** What is kept of an upstream's window. */
export function learnWindowContract(stage: OperationsStage): void {
  const { at, take, peek, learn } = stage;

  describe('the window of the upstream', () => {
    const limit = compile(five['fixed-window']);

    it('is the next one as soon as an answer says so, though the end was told up to a second late', async () => {
      await learn(limit, { remaining: 1, resetAfterMs: 1000 });
      at(100);
      await learn(limit, { remaining: 3, resetAfterMs: 5000, ageMs: 40 });
      expect(await peek(limit)).toMatchObject({ remaining: 3 });
      at(1500);
      expect(await peek(limit)).toMatchObject({ remaining: 3 });
      // The window before may have ended later than so.
      await stage.store.reset([counterOf(limit)]);
      at(2000);
      await learn(limit, { remaining: 1, resetAfterMs: 1000 });
      at(2100);
      await learn(limit, { remaining: 3, resetAfterMs: 1899, ageMs: 0 });
      expect(await peek(limit)).toMatchObject({ remaining: 1 });
    });

    it('is not ended by an answer of the one before', async () => {
      await learn(limit, { remaining: 4, resetAfterMs: 5000, ageMs: 40 });
      at(10);
      await learn(limit, { remaining: 0, resetAfterMs: 1000, ageMs: 60 });
      expect(await peek(limit)).toMatchObject({ allowed: true, remaining: 4 });
      at(4000);
      await learn(limit, { inFlight: 1 });
      expect(await peek(limit)).toMatchObject({ remaining: 3 });
    });

    it('that is told again within a second less is the same', async () => {
      await learn(limit, { remaining: 3, resetAfterMs: 5000, ageMs: 40 });
      at(10);
      await learn(limit, { remaining: 2, resetAfterMs: 4000, ageMs: 50 });
      expect(await peek(limit)).toMatchObject({ remaining: 2 });
    });

    it('goes on where that of the limit ends', async () => {
      await take(limit, 2);
      at(9000);
      await learn(limit, { remaining: 2, resetAfterMs: 5000 });
      expect(await peek(limit)).toMatchObject({ remaining: 2 });
      at(10_500);
      expect(await peek(limit)).toMatchObject({ remaining: 5 });
      await learn(limit, { inFlight: 1 });
      expect(await peek(limit)).toMatchObject({ remaining: 1 });
    });

    it('gives back what was charged for it, once it is over', async () => {
      await take(limit, 1);
      await learn(limit, { remaining: 1, resetAfterMs: 1000 });
      expect(await peek(limit)).toMatchObject({ remaining: 1 });
      at(2000);
      await learn(limit, { inFlight: 1 });
      expect(await peek(limit)).toMatchObject({ remaining: 4 });
    });
  });

  describe('the window after that of the upstream', () => {
    const limit = compile({ algo: 'fixed-window', rate: 300, interval: 100_000 });

    it('has at most the quota of the upstream until an answer reports it', async () => {
      await learn(limit, { remaining: 0, resetAfterMs: 1000, quota: 50 });
      at(2000);
      await learn(limit, { asking: 1 });
      expect(await peek(limit)).toMatchObject({ remaining: 50 });
      await learn(limit, { inFlight: 10, asking: 1 });
      expect(await peek(limit)).toMatchObject({ remaining: 40 });
      await learn(limit, { inFlight: 50, asking: 1 });
      expect(await peek(limit)).toMatchObject({ allowed: false, remaining: 0 });
      await learn(limit, { inFlight: 0 });
      expect(await peek(limit)).toMatchObject({ remaining: 50 });
      await learn(limit, { remaining: 45, resetAfterMs: 1000, quota: 50 });
      expect(await peek(limit)).toMatchObject({ remaining: 45 });
    });

    it('has what the limit has if the quota is not reported, or is a minute old', async () => {
      await learn(limit, { remaining: 0, resetAfterMs: 1000 });
      at(2000);
      await learn(limit, { asking: 1 });
      expect(await peek(limit)).toMatchObject({ remaining: 300 });
      await learn(limit, { remaining: 20, resetAfterMs: 1000, quota: 50 });
      expect(await peek(limit)).toMatchObject({ remaining: 20 });
      at(3500);
      await learn(limit, { asking: 1 });
      expect(await peek(limit)).toMatchObject({ remaining: 50 });
      at(63_500);
      await learn(limit, { asking: 1 });
      expect(await peek(limit)).toMatchObject({ remaining: 300 });
    });

    it('has back what was charged for the one before, however long nobody learns', async () => {
      const long = compile({ algo: 'fixed-window', rate: 300, interval: 86_400_000 });
      await learn(long, { remaining: 5, resetAfterMs: 1000 });
      expect(await peek(long)).toMatchObject({ remaining: 5 });
      at(7_200_000);
      await learn(long, { asking: 1 });
      expect(await peek(long)).toMatchObject({ remaining: 300 });
    });

    it('has as many units as are left if the quota that is reported is lower', async () => {
      await learn(limit, { remaining: 40, resetAfterMs: 1000, quota: 1 });
      at(2000);
      await learn(limit, { asking: 1 });
      expect(await peek(limit)).toMatchObject({ remaining: 40 });
    });
  });

  it('leaves a fiftieth of a window to others while calls are on their way', async () => {
    const limit = compile({ algo: 'fixed-window', rate: 300, interval: 10_000 });
    await learn(limit, { remaining: 249, resetAfterMs: 5000 });
    expect(await peek(limit)).toMatchObject({ remaining: 249 });
    await learn(limit, { remaining: 149, resetAfterMs: 5000, inFlight: 10 });
    expect(await peek(limit)).toMatchObject({ remaining: 135 });
    await learn(limit, { remaining: 4, resetAfterMs: 5000, asking: 1 });
    expect(await peek(limit)).toMatchObject({ allowed: false, remaining: 0 });
    await learn(limit, { remaining: 4, resetAfterMs: 5000 });
    expect(await peek(limit)).toMatchObject({ remaining: 4 });
  });

  it('lets one ask at a time find out what is left of a window of which nobody has told for a second', async () => {
    const limit = compile({ algo: 'fixed-window', rate: 300, interval: 10_000 });
    await learn(limit, { remaining: 249, resetAfterMs: 5000 });
    await take(limit, 185);
    await learn(limit, { remaining: 49, resetAfterMs: 5000 });
    at(1001);
    await learn(limit, { instance: 1, asking: 3 });
    await learn(limit, { instance: 2, asking: 1 });
    expect(await peek(limit)).toMatchObject({ remaining: 3 });
    await take(limit, 3);
    await learn(limit, { instance: 2, asking: 1 });
    expect(await peek(limit)).toMatchObject({ allowed: false, remaining: 0 });
    await learn(limit, { instance: 1, remaining: 46, resetAfterMs: 3900 });
    await learn(limit, { instance: 2 });
    expect(await peek(limit)).toMatchObject({ remaining: 46 });
  });
}
