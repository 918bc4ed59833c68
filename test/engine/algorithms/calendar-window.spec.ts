import { describe, expect, it } from '@jest/globals';
import { calendarWindow } from '../../../lib/engine/algorithms/calendar-window.js';

const compiled = (others: object = {}) =>
  calendarWindow.compile({ algo: 'calendar-window', rate: 5, period: 'day', ...others }, 'test');

const parameters = compiled();
const retaining = compiled({ retain: '2d' });
const HOUR = 3_600_000_000;
const DAY = 24 * HOUR;
const MIDNIGHT = Date.UTC(2026, 8, 21) * 1000;
const NOON = MIDNIGHT + DAY / 2;

/** A window that was charged at noon. */
const charged = (units: number, by = parameters) => {
  const state = calendarWindow.open(by, undefined, NOON);
  if (units > 0) calendarWindow.take(by, state, units);
  return calendarWindow.save(by, state);
};
const at = (now: number, units = 3, by = parameters) => calendarWindow.open(by, charged(units, by), now);

/** The window of the first day, when it has finished. */
const window = (count: number) => ({ count, start: MIDNIGHT, end: MIDNIGHT + DAY });

describe('the state of a calendar window', () => {
  it('is that of the window that holds the time', () => {
    expect(calendarWindow.open(parameters, undefined, NOON)).toMatchObject({
      count: 0,
      start: MIDNIGHT,
      end: MIDNIGHT + DAY,
      last: NOON,
      migrated: false,
      finished: [],
    });
  });

  it('lasts to the end of its window, and not longer', () => {
    expect(at(MIDNIGHT + DAY - 1)).toMatchObject({ count: 3, start: MIDNIGHT, last: NOON, migrated: false });
    expect(at(MIDNIGHT + DAY)).toMatchObject({ count: 0, start: MIDNIGHT + DAY, finished: [], migrated: false });
  });

  it('stays on a clock that was set back by less than a window', () => {
    const before = at(MIDNIGHT - 1);
    expect(before).toMatchObject({ count: 3, start: MIDNIGHT, end: MIDNIGHT + DAY, last: NOON, migrated: false });
    expect(at(NOON - DAY + 1)).toMatchObject({ count: 3, start: MIDNIGHT, last: NOON, migrated: false });
    calendarWindow.take(parameters, before, 1);
    expect(before).toMatchObject({ count: 4, last: NOON });
  });

  it('goes to the window of a clock that was set back by a window or more', () => {
    const now = NOON - DAY;
    expect(at(now)).toMatchObject({ count: 3, start: MIDNIGHT - DAY, end: MIDNIGHT, last: now, migrated: true });
  });

  it('goes to the window of another calendar', () => {
    const berlin = compiled({ timezone: 'Europe/Berlin' });
    expect(calendarWindow.open(berlin, charged(3), NOON + 1)).toMatchObject({
      count: 3,
      // What was charged before it is not counted.
      start: MIDNIGHT,
      end: MIDNIGHT + 22 * HOUR,
      last: NOON + 1,
      migrated: true,
    });
    const month = compiled({ period: 'month' });
    const first = Date.UTC(2026, 8, 1) * 1000;
    const firstDay = calendarWindow.open(parameters, undefined, first);
    calendarWindow.take(parameters, firstDay, 2);
    // Both end at the same time.
    const quarter = compiled({ period: 'quarter' });
    expect(calendarWindow.open(quarter, calendarWindow.open(month, firstDay, first + 1), first + 2)).toMatchObject({
      count: 2,
      // Nothing of what is counted is older.
      start: first,
      migrated: false,
    });
    // Both begin at the same time.
    expect(calendarWindow.open(month, firstDay, first + 1)).toMatchObject({ count: 2, start: first, migrated: true });
  });

  it('is reset at the end of its window, or at once if it is empty', () => {
    expect(calendarWindow.resetAfter(parameters, at(NOON + 1))).toBe(DAY / 2 - 1);
    expect(calendarWindow.resetAfter(parameters, at(NOON + 1, 0))).toBe(0);
  });
});

describe('finished windows', () => {
  it('are kept until they have ended for as long as they are retained', () => {
    expect(at(MIDNIGHT + 3 * DAY - 1, 3, retaining)).toMatchObject({ count: 0, finished: [window(3)] });
    expect(at(MIDNIGHT + 3 * DAY, 3, retaining)).toMatchObject({ count: 0, finished: [] });
  });

  it('are none of which nothing was allowed', () => {
    expect(at(MIDNIGHT + DAY, 0, retaining)).toMatchObject({ count: 0, finished: [] });
  });

  it('follow each other, and go one by one', () => {
    const second = at(NOON + DAY, 3, retaining);
    calendarWindow.take(retaining, second, 1);
    const third = calendarWindow.open(retaining, second, NOON + 2 * DAY);
    expect(third.finished).toEqual([window(3), { count: 1, start: MIDNIGHT + DAY, end: MIDNIGHT + 2 * DAY }]);
    expect(calendarWindow.open(retaining, third, MIDNIGHT + 3 * DAY - 1).finished).toHaveLength(2);
    expect(calendarWindow.open(retaining, third, MIDNIGHT + 3 * DAY).finished).toHaveLength(1);
    expect(calendarWindow.history!(retaining, third).map(({ count }) => count)).toEqual([1, 3]);
  });

  it('stay where the window after them has not ended', () => {
    const second = at(NOON + DAY, 3, retaining);
    calendarWindow.take(retaining, second, 1);
    expect(calendarWindow.open(retaining, second, NOON + DAY + 1)).toMatchObject({ count: 1, finished: [window(3)] });
  });

  it('are kept for as long as they can be read', () => {
    expect(calendarWindow.keepFor!(retaining, at(NOON + 1, 3, retaining))).toBe(DAY / 2 - 1 + 2 * DAY);
    expect(calendarWindow.keepFor!(retaining, at(MIDNIGHT + DAY + 1, 3, retaining))).toBe(2 * DAY - 1);
    expect(calendarWindow.keepFor!(retaining, at(NOON, 0, retaining))).toBe(0);
    expect(calendarWindow.keepFor!(parameters, at(NOON + 1))).toBe(DAY / 2 - 1);
  });

  it('take memory each', () => {
    const one = at(MIDNIGHT + DAY, 3, retaining);
    expect(calendarWindow.bytes!(one)).toBeGreaterThan(calendarWindow.bytes!(at(NOON)));
  });
});
