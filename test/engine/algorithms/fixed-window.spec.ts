import { describe, expect, it } from '@jest/globals';
import { fixedWindow } from '../../../lib/engine/algorithms/fixed-window.js';

const parameters = fixedWindow.compile({ algo: 'fixed-window', rate: 5, interval: 10 }, 'test');
const { interval } = parameters;
const START = 1_000_000;

/** A window that opened at `START` and was charged there. */
const charged = (units: number) => {
  const state = fixedWindow.open(parameters, undefined, START);
  fixedWindow.take(parameters, state, units);
  return fixedWindow.save(parameters, state);
};

describe('the state of a fixed window', () => {
  it('lasts for one interval, and not to its end', () => {
    const last = fixedWindow.open(parameters, charged(3), START + interval - 1);
    expect(last).toMatchObject({ count: 3, start: START, end: START + interval });
    const next = fixedWindow.open(parameters, charged(3), START + interval);
    expect(next).toMatchObject({ count: 0, start: START + interval, end: START + 2 * interval });
  });

  it('begins with the next charge if it is empty', () => {
    expect(fixedWindow.open(parameters, charged(0), START + 1)).toMatchObject({ count: 0, start: START + 1 });
  });

  it('ends sooner under a shorter interval', () => {
    const shorter = fixedWindow.compile({ algo: 'fixed-window', rate: 5, interval: 4 }, 'test');
    expect(fixedWindow.open(shorter, charged(3), START + 1)).toMatchObject({ count: 3, end: START + shorter.interval });
    expect(fixedWindow.open(shorter, charged(3), START + shorter.interval)).toMatchObject({ count: 0 });
  });

  it('opens anew, with its units, on a clock that was set back by one interval or more', () => {
    const near = fixedWindow.open(parameters, charged(3), START - interval + 1);
    expect(near).toMatchObject({ count: 3, start: START, migrated: false });
    const far = fixedWindow.open(parameters, charged(3), START - interval);
    expect(far).toMatchObject({
      count: 3,
      start: START - interval,
      end: START,
      last: START - interval,
      migrated: true,
    });
  });

  it('keeps the time of its last charge on a clock that was set back', () => {
    const state = fixedWindow.open(parameters, charged(1), START - 1);
    fixedWindow.take(parameters, state, 1);
    expect(state).toMatchObject({ count: 2, last: START });
  });

  it('takes units back that were charged in it, down to none', () => {
    const state = fixedWindow.open(parameters, charged(3), START + 1);
    fixedWindow.give(parameters, state, 1, undefined, START);
    expect(state.count).toBe(2);
    fixedWindow.give(parameters, state, 9);
    expect(state.count).toBe(0);
  });

  it('takes no units back that an earlier window was charged', () => {
    const state = fixedWindow.open(parameters, charged(3), START + 1);
    fixedWindow.give(parameters, state, 1, undefined, START - 1);
    expect(state.count).toBe(3);
  });

  it('is reset at its end, or at once if it is empty', () => {
    expect(fixedWindow.resetAfter(parameters, fixedWindow.open(parameters, charged(3), START + 1))).toBe(interval - 1);
    expect(fixedWindow.resetAfter(parameters, fixedWindow.open(parameters, undefined, START))).toBe(0);
  });
});
