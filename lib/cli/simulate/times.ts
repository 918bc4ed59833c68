/** The year 2100 in microseconds: no request is later, and a later time would stop the clock. */
const END = Date.UTC(2100, 0, 1) * 1000;

const ISO = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(?:Z|UTC|([+-])(\d\d):?(\d\d)?)?$/i;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const COMMON_LOG = /^(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)$/;

/** Reads a number, by its size, as seconds, milliseconds, microseconds or nanoseconds since the epoch. */
export function timeOfNumber(value: number): number | undefined {
  const micros = value < 1e11 ? value * 1e6 : value < 1e14 ? value * 1e3 : value < 1e17 ? value : value / 1e3;
  return inRange(Math.round(micros));
}

/** Reads an ISO 8601 time, which is in UTC unless it has an offset, or a number. */
export function timeOfText(text: string): number | undefined {
  if (text.startsWith(last.upToSecond)) {
    const milliseconds = endingMilliseconds(text);
    if (milliseconds >= 0) return last.micros + milliseconds * 1000;
  }
  const micros = parsed(text);
  if (micros !== undefined && endingMilliseconds(text) >= 0) {
    last = { upToSecond: text.slice(0, UP_TO_SECOND), micros: micros - (micros % 1e6) };
  }
  return micros;
}

/** Most lines are of the same second as the line before: `2026-10-10T13:55:36.123Z`. */
let last = { upToSecond: '\0', micros: 0 };
const UP_TO_SECOND = '2026-10-10T13:55:36.'.length;

/** The milliseconds at the end of a time in UTC; -1 if it has another form. */
function endingMilliseconds(text: string): number {
  if (text.length !== UP_TO_SECOND + 4 || text.charCodeAt(UP_TO_SECOND + 3) !== 0x5a) return -1;
  let milliseconds = 0;
  for (let at = UP_TO_SECOND; at < UP_TO_SECOND + 3; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return -1;
    milliseconds = 10 * milliseconds + digit;
  }
  return milliseconds;
}

function parsed(text: string): number | undefined {
  if (/^\d{1,19}(?:\.\d{1,9})?$/.test(text)) return timeOfNumber(Number(text));
  const match = ISO.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', sign, hours, minutes = '00'] = match;
  const micros = Number(fraction.padEnd(6, '0').slice(0, 6));
  return timeOf(Number(year), Number(month), Number(day), [hour, minute, second], [sign, hours, minutes], micros);
}

/** Reads `10/Oct/2026:13:55:36 -0700`. */
export function timeOfCommonLog(text: string): number | undefined {
  const match = COMMON_LOG.exec(text);
  if (match === null) return undefined;
  const [, day, month, year, hour, minute, second, sign, hours, minutes] = match;
  return timeOf(Number(year), MONTHS.indexOf(month!) + 1, Number(day), [hour, minute, second], [sign, hours, minutes]);
}

type Part = string | undefined;

function timeOf(
  year: number,
  month: number,
  day: number,
  time: Part[],
  offset: Part[],
  micros = 0,
): number | undefined {
  const [hour, minute, second] = time.map(Number) as [number, number, number];
  const date = new Date(Date.UTC(year, month - 1, day));
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  // A leap second counts as the first second of the next minute.
  if (hour > 23 || minute > 59 || second > 60) return undefined;
  const [sign, hours, minutes] = offset;
  const east = sign === undefined ? 0 : Number(hours) * 60 + Number(minutes);
  if (east >= 24 * 60) return undefined;
  const seconds = date.getTime() / 1000 + hour * 3600 + minute * 60 + second - (sign === '-' ? -east : east) * 60;
  return inRange(seconds * 1e6 + micros);
}

function inRange(micros: number): number | undefined {
  return micros >= 0 && micros < END ? micros : undefined;
}
