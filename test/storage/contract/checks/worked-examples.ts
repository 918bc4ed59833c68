import { describe, it } from '@jest/globals';
import { yes, no } from './limits.js';
import type { CheckStage } from './stage.js';

export function workedExamplesContract(stage: CheckStage): void {
  const { play } = stage;

  describe('worked examples', () => {
    it('fixed-window: 3 every 10 s', () =>
      play({ algo: 'fixed-window', rate: 3, interval: '10s' }, [
        [0, 1, yes(2, 10_000)],
        [4000, 2, yes(0, 6000)],
        [4000, 1, no(0, 6000, 6000)],
        [9999, 1, no(0, 1, 1)],
        [10_000, 1, yes(2, 10_000)],
        [35_000, 2, yes(1, 10_000)],
        [36_000, 2, no(1, 9000, 9000)],
      ]));

    it('calendar-window: 2 a minute', () =>
      play({ algo: 'calendar-window', rate: 2, period: 'minute' }, [
        [58_000, 1, yes(1, 2000)],
        [58_500, 1, yes(0, 1500)],
        [59_000, 1, no(0, 1000, 1000)],
        [60_000, 1, yes(1, 60_000)],
        [61_000, 2, no(1, 59_000, 59_000)],
      ]));

    it('sliding-window: 4 every 10 s, in slices of 1 s', () =>
      play({ algo: 'sliding-window', rate: 4, interval: '10s', slices: 10 }, [
        [0, 3, yes(1, 11_000)],
        [5500, 1, yes(0, 10_500)],
        [6000, 2, no(0, 10_000, 5000)],
        [10_999, 2, no(0, 5001, 1)],
        [11_000, 2, yes(1, 11_000)],
        // Long after the ring of slices has wrapped.
        [1_000_500, 4, yes(0, 10_500)],
        [1_011_000, 4, yes(0, 11_000)],
      ]));

    it('sliding-log: 3 every 10 s', () =>
      play({ algo: 'sliding-log', rate: 3, interval: '10s' }, [
        [0, 2, yes(1, 10_000)],
        [4000, 1, yes(0, 10_000)],
        [5000, 1, no(0, 9000, 5000)],
        [5000, 3, no(0, 9000, 9000)],
        [9999.999, 2, no(0, 4001, 1)],
        [10_000, 2, yes(0, 10_000)],
        [14_000, 1, yes(0, 10_000)],
      ]));

    it('gcra that warms up: 2 a second, 4 s from a third of that', () =>
      play({ algo: 'gcra', rate: 2, interval: '1s', burst: 1, warmUp: { for: '4s', from: 1 / 3 } }, [
        [0, 1, yes(0, 1375)],
        [0, 1, no(0, 1375, 1375)],
        [1374, 1, no(0, 1, 1)],
        [1375, 1, yes(0, 1125)],
        [2500, 1, yes(0, 875)],
        [3375, 1, yes(0, 625)],
        [4000, 1, yes(0, 500)],
        [4500, 1, yes(0, 500)],
        [5000, 1, yes(0, 500)],
        [5500, 1, yes(0, 500)],
        [8000, 1, yes(0, 500)],
        [13_000, 1, yes(0, 1375)],
      ]));

    it('token-bucket that warms up: a cold unit takes 4 of 100 tokens', () =>
      play({ algo: 'token-bucket', rate: 100, interval: '1s', warmUp: { for: '5m', from: 0.25 } }, [
        [0, 1, yes(96, 40)],
      ]));

    it('token-bucket: 5 every 10 s', () =>
      play({ algo: 'token-bucket', rate: 5, interval: '10s' }, [
        [0, 5, yes(0, 10_000)],
        [1000, 1, no(0, 9000, 1000)],
        [2000, 1, yes(0, 10_000)],
        [7000, 1, yes(1, 7000)],
        [7000, 3, no(1, 7000, 3000)],
        [100_000, 3, yes(2, 6000)],
      ]));

    it('token-bucket: 5 at once every 10 s', () =>
      play({ algo: 'token-bucket', rate: 5, interval: '10s', burst: 8, refill: 'intervally' }, [
        [0, 8, yes(0, 20_000)],
        [9999, 1, no(0, 10_001, 1)],
        [10_000, 2, yes(3, 10_000)],
        [15_000, 4, no(3, 5000, 5000)],
        [23_000, 8, yes(0, 20_000)],
      ]));

    it('gcra: 5 every 10 s, 2 at once', () =>
      play({ algo: 'gcra', rate: 5, interval: '10s', burst: 2 }, [
        [0, 1, yes(1, 2000)],
        [0, 1, yes(0, 4000)],
        [0, 1, no(0, 4000, 2000)],
        [2000, 1, yes(0, 4000)],
        [5000, 1, yes(0, 3000)],
        [5500, 2, no(0, 2500, 2500)],
      ]));

    it('leaky-bucket: one every 2 s, 2 wait', () =>
      play({ algo: 'leaky-bucket', rate: 5, interval: '10s', queue: 2 }, [
        [0, 1, yes(2, 2000)],
        [0, 1, yes(1, 4000, 2000)],
        [0, 1, yes(0, 6000, 4000)],
        [0, 1, no(0, 6000, 2000)],
        [1000, 1, no(0, 5000, 1000)],
        [2000, 1, yes(0, 6000, 4000)],
        // Two units leave when the second may.
        [100_000, 2, yes(1, 4000, 2000)],
      ]));

    it('leaky-bucket: nothing waits with a queue of 0', () =>
      play({ algo: 'leaky-bucket', rate: 5, interval: '10s', queue: 0 }, [
        [0, 1, yes(0, 2000)],
        [1999, 1, no(0, 1, 1)],
        [2000, 1, yes(0, 2000)],
      ]));
  });
}
