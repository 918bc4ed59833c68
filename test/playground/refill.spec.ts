import { describe, expect, it } from '@jest/globals';
import { leftAt, type Units } from '../../playground/live/refill.js';

const told: Units = {
  quota: 5,
  left: 0,
  at: 1000,
  refillMs: undefined,
  until: 31_000,
  refused: false,
};

describe('what is left of a limit', () => {
  it('grows bit by bit up to the quota', () => {
    const reading = { ...told, refillMs: 30_000 };
    expect([1000, 7000, 16_000, 31_000, 90_000].map((now) => leftAt(reading, now))).toEqual([0, 1, 2.5, 5, 5]);
    expect(leftAt({ ...reading, left: 3, refused: true, until: 2000 }, 7000)).toBe(4);
  });

  it('comes back all at once where a window ends', () => {
    expect([1000, 30_999, 31_000].map((now) => leftAt(told, now))).toEqual([0, 0, 5]);
  });

  it('is at least one when a refusal is over, of which nothing else is known', () => {
    const reading = { ...told, refused: true, until: 4000 };
    expect([3999, 4000, 90_000].map((now) => leftAt(reading, now))).toEqual([0, 1, 1]);
    expect(leftAt({ ...reading, left: 3 }, 4000)).toBe(3);
    expect(leftAt({ ...reading, quota: 0 }, 4000)).toBe(0);
  });

  it('is what was told if no quota was', () => {
    expect(leftAt({ ...told, left: 3, quota: undefined }, 90_000)).toBe(3);
  });
});
