import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { AnchoredPeriod } from '../../../lib/index.js';
import { ANCHORED_PERIODS, AnchoredCalendar } from '../../../lib/engine/algorithms/calendar.js';
import { expectEqual, propertyRuns } from '../../support/limits/property-runs.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** When windows begin, from the one that holds a time on, in UTC. */
function starts(period: AnchoredPeriod, timezone: string, anchor: string, from: string, count: number): string[] {
  const calendar = new AnchoredCalendar(period, timezone, Date.parse(anchor));
  const found: string[] = [];
  for (let at = Date.parse(from) * 1000; found.length < count;) {
    const { start, end } = calendar.windowAt(at);
    found.push(new Date(start / 1000).toISOString().replace(':00.000Z', ''));
    at = end;
  }
  return found;
}

describe('windows that begin at an anchor', () => {
  it.each<[string, AnchoredPeriod, zone: string, anchor: string, from: string, string[]]>([
    [
      'the 31st is the last day of shorter months, and the 31st again',
      'month',
      'UTC',
      '2026-01-31T09:30Z',
      '2026-02-01T00:00Z',
      ['2026-01-31T09:30', '2026-02-28T09:30', '2026-03-31T09:30', '2026-04-30T09:30', '2026-05-31T09:30'],
    ],
    [
      'of a leap year',
      'month',
      'UTC',
      '2027-12-31T00:00Z',
      '2028-02-01T00:00Z',
      ['2028-01-31T00:00', '2028-02-29T00:00'],
    ],
    [
      'the 29th of February is the 28th in other years',
      'year',
      'UTC',
      '2024-02-29T00:00Z',
      '2026-06-01T00:00Z',
      ['2026-02-28T00:00', '2027-02-28T00:00', '2028-02-29T00:00', '2029-02-28T00:00'],
    ],
    [
      'quarters of the last of November',
      'quarter',
      'UTC',
      '2026-11-30T00:00Z',
      '2026-12-01T00:00Z',
      ['2026-11-30T00:00', '2027-02-28T00:00', '2027-05-30T00:00', '2027-08-30T00:00'],
    ],
    [
      'at the same local time in summer',
      'month',
      'Europe/Berlin',
      '2026-02-15T12:00Z',
      '2026-03-01T00:00Z',
      ['2026-02-15T12:00', '2026-03-15T12:00', '2026-04-15T11:00', '2026-05-15T11:00'],
    ],
    [
      'a local time that clocks skip is an hour later',
      'day',
      'Europe/Berlin',
      '2026-01-01T01:30Z',
      '2026-03-28T12:00Z',
      ['2026-03-28T01:30', '2026-03-29T01:30', '2026-03-30T00:30'],
    ],
    [
      'of one that they show twice the first counts',
      'day',
      'Europe/Berlin',
      '2026-01-01T01:30Z',
      '2026-10-24T12:00Z',
      ['2026-10-24T00:30', '2026-10-25T00:30', '2026-10-26T01:30'],
    ],
    [
      'also where it is the anchor, and the second one',
      'year',
      'Europe/Berlin',
      '2026-10-25T01:30Z',
      '2026-10-25T01:30Z',
      ['2026-10-25T00:30', '2027-10-25T00:30'],
    ],
    [
      'a day that a country skipped is no window',
      'day',
      'Pacific/Apia',
      '2011-12-28T10:00Z',
      '2011-12-29T10:00Z',
      ['2011-12-29T10:00', '2011-12-30T10:00', '2011-12-31T10:00'],
    ],
    [
      'weeks of a Wednesday',
      'week',
      'UTC',
      '2026-09-23T08:00Z',
      '2026-09-23T07:59Z',
      ['2026-09-16T08:00', '2026-09-23T08:00'],
    ],
    [
      'years before the anchor',
      'month',
      'UTC',
      '2026-03-31T00:00Z',
      '2024-02-01T00:00Z',
      ['2024-01-31T00:00', '2024-02-29T00:00'],
    ],
  ])('%s', (_, period, zone, anchor, from, expected) => {
    expect(starts(period, zone, anchor, from, expected.length)).toEqual(expected);
  });
});

const formats = new Map<string, Intl.DateTimeFormat>();

/** What clocks show at a time, as if it were UTC: as the platform's own calendar has it. */
function wallOf(at: number, timeZone: string): number {
  const number = 'numeric';
  const fields = { year: number, month: number, day: number, hour: number, minute: number, second: number } as const;
  let format = formats.get(timeZone);
  if (format === undefined) {
    formats.set(timeZone, (format = new Intl.DateTimeFormat('en-US', { ...fields, hourCycle: 'h23', timeZone })));
  }
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const { year, month, day, hour, minute, second } = parts as Record<string, number>;
  return Date.UTC(year!, month! - 1, day, hour, minute, second) + (((at % 1000) + 1000) % 1000);
}

/** When the window of a number begins: a look at every hour around it. */
function startOf(number: number, period: AnchoredPeriod, zone: string, anchor: number): number {
  const wall = new Date(wallOf(anchor, zone));
  const days = { day: 1, week: 7 }[period as 'day'];
  const months = { month: 1, quarter: 3, year: 12 }[period as 'month'];
  const moved = new Date(wall);
  if (days !== undefined) moved.setUTCDate(wall.getUTCDate() + number * days);
  else {
    moved.setUTCDate(1);
    moved.setUTCMonth(wall.getUTCMonth() + number * months);
    const last = new Date(Date.UTC(moved.getUTCFullYear(), moved.getUTCMonth() + 1, 0)).getUTCDate();
    moved.setUTCDate(Math.min(wall.getUTCDate(), last));
  }
  const shown = moved.getTime();
  const offsets = new Set<number>();
  for (let by = -26; by <= 26; by++) offsets.add(wallOf(shown + by * HOUR, zone) - (shown + by * HOUR));
  const matching = [...offsets].map((offset) => shown - offset).filter((at) => wallOf(at, zone) === shown);
  return matching.length > 0 ? Math.min(...matching) : shown - Math.min(...offsets);
}

const LENGTHS = { day: DAY, week: 7 * DAY, month: 30.437 * DAY, quarter: 91.31 * DAY, year: 365.2425 * DAY };
const FROM = Date.UTC(2020, 0, 1);
const TO = Date.UTC(2034, 0, 1);
const ZONES = [
  'UTC',
  'Africa/Cairo',
  'America/Havana',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'Europe/Berlin',
  'Pacific/Chatham',
];

describe.each(ANCHORED_PERIODS)('a %s from an anchor', (period) => {
  const instant = fc.integer({ min: FROM, max: TO });
  // Near the end of a month, and where clocks change at night.
  const awkward = fc
    .record({ month: fc.nat(167), day: fc.integer({ min: 28, max: 31 }), minute: fc.nat(6 * 60) })
    .map(({ month, day, minute }) => Date.UTC(2020, month, day, 0, minute));

  it('is the one of a model that looks at every hour', () => {
    const property = fc.property(
      fc.constantFrom(...ZONES),
      fc.oneof(instant, awkward),
      fc.oneof(instant, awkward),
      (zone, anchor, now) => {
        const { start, end } = new AnchoredCalendar(period, zone, anchor).windowAt(now * 1000);
        const near = Math.floor((now - anchor) / LENGTHS[period]);
        const all = [-3, -2, -1, 0, 1, 2, 3, 4].map((by) => startOf(near + by, period, zone, anchor));
        const at = all.findLastIndex((each) => each <= now);
        expectEqual([start / 1000, end / 1000], [all[at], all[at + 1]]);
      },
    );
    fc.assert(property, { numRuns: propertyRuns(100) });
  });

  it('follows the one before it', () => {
    const property = fc.property(fc.constantFrom(...ZONES), awkward, instant, (zone, anchor, now) => {
      const windowAt = (micros: number) => new AnchoredCalendar(period, zone, anchor).windowAt(micros);
      const window = windowAt(now * 1000);
      expectEqual([windowAt(window.start), windowAt(window.end - 1)], [window, window]);
      expectEqual([windowAt(window.start - 1).end, windowAt(window.end).start], [window.start, window.end]);
    });
    fc.assert(property, { numRuns: propertyRuns(100) });
  });
});
