import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { DateTime } from 'luxon';
import { Calendar, PERIODS } from '../../../lib/engine/algorithms/calendar.js';
import { expectEqual, propertyRuns } from '../../support/limits/property-runs.js';
import { calendarLabel } from './models.js';

const MINUTE = 60_000_000;
/** Clocks do not change twice in it. */
const WEEK = 7 * 24 * 60 * MINUTE;
const FROM = Date.UTC(2026, 0, 1) * 1000;
const TO = Date.UTC(2028, 0, 1) * 1000;

/** Zones whose clocks change at midnight, by half an hour, at a quarter to, or as most do; and one that never does. */
const ZONES = [
  'Africa/Cairo',
  'America/Havana',
  'America/Santiago',
  'Asia/Beirut',
  'Asia/Kathmandu',
  'Atlantic/Azores',
  'Australia/Lord_Howe',
  'Europe/Berlin',
  'Pacific/Chatham',
];

/** When the clocks of a zone change, in microseconds. */
function changesOf(zone: string): number[] {
  const offset = (micros: number) => calendarLabel(BigInt(micros), 'second', zone).split(' ').at(-1);
  const changes: number[] = [];
  for (let at = FROM; at < TO; at += WEEK) {
    let [low, high] = [at, at + WEEK];
    if (offset(low) === offset(high)) continue;
    while (high - low > MINUTE) {
      const middle = low + Math.floor((high - low) / 2 / MINUTE) * MINUTE;
      if (offset(middle) === offset(low)) low = middle;
      else high = middle;
    }
    changes.push(high);
  }
  return changes;
}

describe.each(ZONES)('the calendar of %s', (zone) => {
  const changes = changesOf(zone);
  const anyTime = fc.integer({ min: FROM, max: TO });
  const near = fc.integer({ min: -27 * 60 * MINUTE, max: 27 * 60 * MINUTE });
  const time = fc.oneof(anyTime, ...changes.map((change) => near.map((distance) => change + distance)));
  // Half an hour that is added to an hour belongs to the hour after it, and that hour begins before its window does.
  const exact = zone === 'Australia/Lord_Howe' ? PERIODS.filter((period) => period !== 'hour') : PERIODS;

  /** Each change of clocks in years that were, also before the epoch, and that will be. */
  const anyYear = fc.integer({ min: Date.UTC(1950, 0, 1) * 1000, max: Date.UTC(2400, 0, 1) * 1000 });

  it.each(PERIODS)('has the %s that luxon has', (period) => {
    const property = fc.property(fc.oneof(time, anyYear), (now) => {
      const windows = new Calendar(period, zone).windowAt(now);
      const at = DateTime.fromMillis(Math.floor(now / 1000), { zone });
      // Of these, each lasts as long as the others, even where clocks change by half an hour.
      const length = { second: 1000, minute: 60_000, hour: 3_600_000 }[period as string];
      if (length !== undefined) {
        const local = at.toMillis() + at.offset * 60_000;
        const start = at.toMillis() - (local - Math.floor(local / length) * length);
        expectEqual(windows, { start: start * 1000, end: (start + length) * 1000 });
        return;
      }
      const startOf = (moment: DateTime) => {
        const start = moment.startOf(period);
        // A day of two midnights begins with the first.
        const before = start.minus({ milliseconds: 1 });
        return before.day === start.day ? before.startOf(period) : start;
      };
      const start = startOf(at);
      const end = startOf(start.plus({ [period]: 1 }));
      expectEqual(windows, { start: start.toMillis() * 1000, end: end.toMillis() * 1000 });
    });
    fc.assert(property, { numRuns: propertyRuns(40) });
  });

  it.each(PERIODS)('has a %s for every moment', (period) => {
    const property = fc.property(fc.oneof(time, anyYear), (now) => {
      const { start, end } = new Calendar(period, zone).windowAt(now);
      return start <= now && end > now;
    });
    fc.assert(property, { numRuns: propertyRuns(40) });
  });

  it.each(exact)('has one %s after the other', (period) => {
    const property = fc.property(time, (now) => {
      // Each of its own: a calendar remembers the window that it told last.
      const windowAt = (micros: number) => new Calendar(period, zone).windowAt(micros);
      const window = windowAt(now);
      expectEqual(windowAt(window.start), window);
      expectEqual(windowAt(window.end - 1), window);
      expectEqual([windowAt(window.start - 1).end, windowAt(window.end).start], [window.start, window.end]);
      // On Chatham an hour holds minutes of two offsets.
      if (period === 'hour') return;
      const label = (micros: number) => calendarLabel(BigInt(micros), period, zone);
      const inside = label(now);
      expectEqual([label(window.start), label(window.end - 1)], [inside, inside]);
      const outside = [label(window.start - 1), label(window.end)];
      if (outside.includes(inside)) expect(outside).not.toContain(inside);
    });
    fc.assert(property, { numRuns: propertyRuns(40) });
  });
});
