// How figures and times are written on the page.
export * from '../../../util/figures.js';

const CLOCK = new Intl.DateTimeFormat('en', { timeStyle: 'medium', hourCycle: 'h23' });
const MOMENT = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' });

export function clock(at: number): string {
  return CLOCK.format(at);
}

/** Date and time in this browser's time zone. */
export function moment(at: number): string {
  return MOMENT.format(at);
}
