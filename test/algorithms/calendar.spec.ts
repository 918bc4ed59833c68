import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Calendar, PERIODS } from '../../lib/algorithms/calendar.js';
import { calendarLabel } from './models.js';

const MINUTE = 60_000_000;
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
  for (let at = FROM; at < TO; at += 24 * 60 * MINUTE) {
    let [low, high] = [at, at + 24 * 60 * MINUTE];
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

  it.each(PERIODS)('has a %s for every moment', (period) => {
    const property = fc.property(time, (now) => {
      const { start, end } = new Calendar(period, zone).windowAt(now);
      expect(start).toBeLessThanOrEqual(now);
      expect(end).toBeGreaterThan(now);
    });
    fc.assert(property, { numRuns: 80 });
  });

  it.each(exact)('has one %s after the other', (period) => {
    const property = fc.property(time, (now) => {
      const window = new Calendar(period, zone).windowAt(now);
      expect(new Calendar(period, zone).windowAt(window.start)).toEqual(window);
      expect(new Calendar(period, zone).windowAt(window.end - 1)).toEqual(window);
      expect(new Calendar(period, zone).windowAt(window.end).start).toBe(window.end);
      expect(new Calendar(period, zone).windowAt(window.start - 1).end).toBe(window.start);
      // On Chatham an hour holds minutes of two offsets.
      if (period === 'hour') return;
      const label = (micros: number) => calendarLabel(BigInt(micros), period, zone);
      expect([label(window.start), label(window.end - 1)]).toEqual([label(now), label(now)]);
      expect([label(window.start - 1), label(window.end)]).not.toContain(label(now));
    });
    fc.assert(property, { numRuns: 80 });
  });
});
