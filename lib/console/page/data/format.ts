// The format of figures and times on the page.

import { choiceOf } from './store.js';

/** The time zones of the page: that of the browser, or UTC. */
type Zone = 'local' | 'utc';

const LOCAL = new Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The zones to choose from, which differ. */
export const OFFERED: readonly Zone[] = LOCAL === 'UTC' ? ['utc'] : ['local', 'utc'];

/** The chosen time zone, which applies to all times on the page. */
export const zone = choiceOf('rate-limit-console-zone', OFFERED);

/** The IANA name of a time zone, for display. */
export function nameOfZone(of: Zone = zone.value): string {
  return of === 'utc' ? 'UTC' : LOCAL;
}

export * from '../../../engine/util/figures.js';

const HOURS = { hourCycle: 'h23' } as const;
const FORMS = {
  clock: { ...HOURS, timeStyle: 'medium' },
  moment: { ...HOURS, dateStyle: 'medium', timeStyle: 'medium' },
  date: { dateStyle: 'medium' },
  minutes: { ...HOURS, hour: '2-digit', minute: '2-digit' },
  day: { day: 'numeric', month: 'short' },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;
const DAY_MS = 86_400_000;

/** The formatters of each time zone, created when needed. */
const made = new Map<string, Intl.DateTimeFormat>();

/** A time in the chosen time zone. */
export function timeAs(form: keyof typeof FORMS, at: number): string {
  const timeZone = nameOfZone();
  const name = `${form} ${timeZone}`;
  let format = made.get(name);
  if (format === undefined) made.set(name, (format = new Intl.DateTimeFormat('en', { ...FORMS[form], timeZone })));
  return format.format(at);
}

export function clock(at: number): string {
  return timeAs('clock', at);
}

/** Date and time. */
export function moment(at: number): string {
  return timeAs('moment', at);
}

const DATE = new Intl.DateTimeFormat('en', { ...FORMS.date, timeZone: 'UTC' });

/** A day such as `2026-11-22`, regardless of its time zone. */
export function dated(day: string): string {
  return DATE.format(Date.parse(day));
}

/** A period of time: days as dates, shorter ones as times. */
export function stretch(from: number, to: number): string {
  if (to - from < DAY_MS - 3_600_000) return `${moment(from)} to ${clock(to)}`;
  // Its end already belongs to the next day.
  const [first, last] = [timeAs('date', from), timeAs('date', to - 1)];
  return first === last ? first : `${first} to ${last}`;
}

/** A text with its times converted to the chosen time zone. */
export function withMoments(text: string): string {
  return text.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (time) => moment(Date.parse(time)));
}
