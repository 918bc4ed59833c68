import { describe, expect, it } from '@jest/globals';
import { type AlgorithmOptions, RateLimitArgumentError } from '../../../../lib/index.js';
import { ask, compile } from '../../../support/limits/stores.js';
import { five, MINUTE, HOUR, DAY } from './limits.js';
import type { CheckStage } from './stage.js';

export function calendarContract(stage: CheckStage): void {
  const { setTime, at } = stage;

  describe('windows of the calendar', () => {
    type Period = Extract<AlgorithmOptions, { algo: 'calendar-window' }>['period'];
    const calendar = (period: Period, timezone = 'UTC', retain?: string) =>
      compile({ algo: 'calendar-window', rate: 1, period, timezone, ...(retain === undefined ? {} : { retain }) });

    it.each<[what: string, period: Period, timezone: string, from: string, ms: number]>([
      ['a second', 'second', 'UTC', '2026-09-21T10:00:00.250Z', 750],
      ['a minute', 'minute', 'UTC', '2026-09-21T10:00:01Z', 59_000],
      ['an hour', 'hour', 'UTC', '2026-09-21T10:00:01Z', HOUR - 1000],
      [
        'an hour in Kathmandu, which is 5 h 45 min ahead',
        'hour',
        'Asia/Kathmandu',
        '2026-09-21T10:00:00Z',
        15 * MINUTE,
      ],
      ['a day', 'day', 'UTC', '2026-09-21T10:00:00Z', 14 * HOUR],
      ['a day in Kathmandu', 'day', 'Asia/Kathmandu', '2026-09-21T18:14:00Z', MINUTE],
      ['a day of 23 h in Berlin', 'day', 'Europe/Berlin', '2026-03-28T23:00:00Z', 23 * HOUR],
      ['a day of 25 h in Berlin', 'day', 'Europe/Berlin', '2026-10-24T22:00:00Z', 25 * HOUR],
      ['a day of 24.5 h on Lord Howe', 'day', 'Australia/Lord_Howe', '2026-04-04T13:00:00Z', 24.5 * HOUR],
      ['a day of 23.5 h on Lord Howe', 'day', 'Australia/Lord_Howe', '2026-10-03T13:30:00Z', 23.5 * HOUR],
      [
        'an hour before clocks go back on Lord Howe',
        'hour',
        'Australia/Lord_Howe',
        '2026-04-04T14:10:00Z',
        50 * MINUTE,
      ],
      ['what they add to it', 'hour', 'Australia/Lord_Howe', '2026-04-04T15:00:00Z', 30 * MINUTE],
      [
        'an hour when clocks go forward on Lord Howe',
        'hour',
        'Australia/Lord_Howe',
        '2026-10-03T15:35:00Z',
        25 * MINUTE,
      ],
      ['an hour when clocks go back on Chatham', 'hour', 'Pacific/Chatham', '2026-04-04T14:05:00Z', 10 * MINUTE],
      ['an hour when clocks go forward on Chatham', 'hour', 'Pacific/Chatham', '2026-09-26T14:05:00Z', 10 * MINUTE],
      ['a day with two midnights in Havana', 'day', 'America/Havana', '2026-11-01T04:00:00Z', 25 * HOUR],
      ['a day without midnight in Santiago', 'day', 'America/Santiago', '2026-09-06T04:00:00Z', 23 * HOUR],
      ['a week, which begins on Monday', 'week', 'UTC', '2026-09-20T12:00:00Z', 12 * HOUR],
      ['a week with a change of the clocks', 'week', 'Europe/Berlin', '2026-10-18T22:00:00Z', 7 * DAY + HOUR],
      ['a February', 'month', 'UTC', '2027-02-01T00:00:00Z', 28 * DAY],
      ['a leap February', 'month', 'UTC', '2028-02-01T00:00:00Z', 29 * DAY],
      ['a month of 31 days', 'month', 'UTC', '2026-10-31T00:00:00Z', DAY],
      [
        'a month that begins with two midnights',
        'month',
        'America/Havana',
        '2026-11-01T05:30:00Z',
        30 * DAY - HOUR / 2,
      ],
      ['a quarter', 'quarter', 'UTC', '2026-12-31T00:00:00Z', DAY],
      ['a year', 'year', 'UTC', '2027-01-01T00:00:00Z', 365 * DAY],
      ['a leap year', 'year', 'Europe/Berlin', '2027-12-31T23:00:00Z', 366 * DAY],
    ])('%s', async (_, period, timezone, from, ms) => {
      setTime(from);
      const limit = calendar(period, timezone);
      await expect(ask(stage.store, limit)).resolves.toMatchObject({ allowed: true, resetAfterMs: ms });
      for (const share of [0.3, 0.6]) {
        at(Math.floor(ms * share));
        const retryAfterMs = ms - Math.floor(ms * share);
        await expect(ask(stage.store, limit)).resolves.toMatchObject({ allowed: false, retryAfterMs });
      }
      at(ms - 0.001);
      await expect(ask(stage.store, limit)).resolves.toMatchObject({ allowed: false, retryAfterMs: 1 });
      at(ms);
      await expect(ask(stage.store, limit)).resolves.toMatchObject({ allowed: true });
    });

    it('can be read after their end for as long as they are retained', async () => {
      const limit = calendar('day', 'UTC', '7d');
      const counter = { limit, identity: 'user:42' };
      const midnight = Date.parse('2026-09-21T00:00:00Z');
      const window = (day: number) => ({ start: midnight + day * DAY, end: midnight + (day + 1) * DAY, count: 1 });
      const afterDays = (days: number) => at(midnight - stage.start + days * DAY);
      await expect(stage.store.history(counter)).resolves.toEqual([]);
      await ask(stage.store, limit, counter);
      await expect(stage.store.history(counter)).resolves.toEqual([window(0)]);
      afterDays(2.5);
      await expect(stage.store.history(counter)).resolves.toEqual([window(0)]);
      await ask(stage.store, limit, counter);
      afterDays(3);
      await ask(stage.store, limit, counter);
      await expect(stage.store.history(counter)).resolves.toEqual([window(3), window(2), window(0)]);
      afterDays(8 - 1 / DAY);
      await expect(stage.store.history(counter)).resolves.toEqual([window(3), window(2), window(0)]);
      afterDays(8);
      await expect(stage.store.history(counter)).resolves.toEqual([window(3), window(2)]);
      await ask(stage.store, limit, counter);
      await expect(stage.store.history(counter)).resolves.toEqual([window(8), window(3), window(2)]);
      afterDays(12);
      await expect(stage.store.history(counter)).resolves.toEqual([window(8)]);
      afterDays(16);
      await expect(stage.store.history(counter)).resolves.toEqual([]);
    });

    it('are forgotten at their end if they are not retained', async () => {
      const counter = { limit: calendar('day'), identity: 'user:42' };
      await ask(stage.store, counter.limit, counter);
      await expect(stage.store.history(counter)).resolves.toHaveLength(1);
      at(14 * HOUR);
      await expect(stage.store.history(counter)).resolves.toEqual([]);
    });

    it('go with a reset', async () => {
      const counter = { limit: calendar('day', 'UTC', '7d'), identity: 'user:42' };
      for (const day of [0, 1, 2]) {
        at(day * DAY);
        await ask(stage.store, counter.limit, counter);
      }
      await stage.store.reset([counter]);
      await expect(stage.store.history(counter)).resolves.toEqual([]);
    });

    it('are all that has a history', async () => {
      const counter = { limit: compile(five.gcra), identity: 'user:42' };
      await expect(stage.store.history(counter)).rejects.toThrow(RateLimitArgumentError);
    });
  });
}
