// How figures and times are written on the page.
import { nameOfZone } from './zone.js';

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

/** The forms in each time zone, made when they are needed. */
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

/** A day such as `2026-11-22`, in whichever time zone it was. */
export function dated(day: string): string {
  return DATE.format(Date.parse(day));
}

/** A stretch of time: days as dates, shorter ones by their times. */
export function stretch(from: number, to: number): string {
  if (to - from < DAY_MS - 3_600_000) return `${moment(from)} to ${clock(to)}`;
  // Its end belongs to the next day.
  const [first, last] = [timeAs('date', from), timeAs('date', to - 1)];
  return first === last ? first : `${first} to ${last}`;
}

/** A text whose times are written in the chosen time zone. */
export function withMoments(text: string): string {
  return text.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (time) => moment(Date.parse(time)));
}
