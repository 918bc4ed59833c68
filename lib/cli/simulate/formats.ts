import { cliMessages } from '../../engine/errors/messages/cli.js';
import { UsageError } from '../command.js';
import { type LineParts, lineReader } from './line-reader.js';
import { type Field, filterOf, keyField, type LogFormat, readCost } from './logged-request.js';

// None of these backtracks, so matching takes time linear in the length of the line.
const QUOTED = String.raw`"([^"\\]*(?:\\[^][^"\\]*)*)"`;
const COMMON = String.raw`^(\S+) \S+ ([^"]*?) \[(\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] ${QUOTED} (\d{3}|-) (\d+|-)`;
const COMBINED = `${COMMON} ${QUOTED} ${QUOTED}`;

/** The indexes of the parts of a line in a match. */
const IP = 1;
const TIME = 3;
const REQUEST = 4;
const BYTES = 6;

/** The fields of a line. A `-` means none. */
const FIELDS = new Map<string, Field<RegExpExecArray>>([
  ['ip', part(IP)],
  ['user', part(2)],
  ['method', (match) => word(match, 0)],
  ['path', (match) => word(match, 1)?.split('?', 1)[0]],
  ['url', (match) => word(match, 1)],
  ['protocol', (match) => word(match, 2)],
  ['status', part(5)],
  ['bytes', part(BYTES)],
  ['referer', part(7)],
  ['agent', part(8)],
]);

/** The formats of nginx and Apache. `nginx` and `apache` are `combined` followed by more fields; Apache's may be `common`. */
const commonLogFormats: readonly LogFormat[] = [
  commonLogFormat('combined', new RegExp(`${COMBINED}$`)),
  commonLogFormat('common', new RegExp(`${COMMON}$`)),
  commonLogFormat('nginx', new RegExp(`${COMBINED}(?: [^]*)?$`)),
  commonLogFormat('apache', new RegExp(`${COMMON}(?: ${QUOTED} ${QUOTED}(?: [^]*)?)?$`)),
];

function commonLogFormat(name: string, pattern: RegExp): LogFormat {
  const record = (line: string) => pattern.exec(line) ?? undefined;
  return {
    name,
    matches: (line) => pattern.test(line),
    reader(wanted) {
      if (wanted.time !== undefined) throw new UsageError(cliMessages.optionWithout('time', "format 'ndjson'"));
      const ofKey = (field: string) => namedField('key', field);
      const keys = wanted.keys.map((key) => keyField(key, ofKey, addressField));
      const cost = wanted.cost === undefined ? undefined : namedField('cost', wanted.cost);
      const filter = filterOf(wanted.filters, (option) => namedField(option, option));
      const bytes = wanted.bytes === true ? { name: 'bytes', of: sentBytes } : undefined;
      const timeOf = rememberingTime();
      const time = (match: RegExpExecArray) => timeOf(match[TIME]!);
      return lineReader({ format: name, record, time, timeName: 'time', keys, cost, bytes, filter }, wanted);
    },
  };
}

function namedField(option: string, name: string): Field<RegExpExecArray> {
  const field = FIELDS.get(name);
  if (field === undefined) throw new UsageError(cliMessages.unknownField(option, name, [...FIELDS.keys()]));
  return field;
}

function part(index: number): Field<RegExpExecArray> {
  return (match) => {
    const text = match[index];
    return text === undefined || text === '-' || text === '' ? undefined : text;
  };
}

const addressField = () => part(IP);

/** The bytes of a response; `-` means that it had no body. */
function sentBytes(match: RegExpExecArray): string {
  const text = match[BYTES]!;
  return text === '-' ? '0' : text;
}

function word(match: RegExpExecArray, index: number): string | undefined {
  const text = match[REQUEST]!.split(' ', 3)[index];
  return text === '-' || text === '' ? undefined : text;
}

/** Most lines have the same time as the line before. */
function rememberingTime(): (text: string) => number | undefined {
  let last = '';
  let time: number | undefined;
  return (text) => {
    if (text === last) return time;
    time = timeOfCommonLog(text);
    // A substring would keep the whole line alive.
    last = Buffer.from(text).toString();
    return time;
  };
}

type JsonRecord = Readonly<Record<string, unknown>>;

/** The names that loggers use for the time, and for the client's address. */
const TIME_FIELDS = ['time', 'timestamp', '@timestamp', 'ts', 'datetime', 'date', 'time_iso8601', 'msec'];
const ADDRESS_FIELDS = [
  'ip',
  'remote_addr',
  'remoteAddress',
  'remote_ip',
  'client_ip',
  'clientIp',
  'clientip',
  'req.remoteAddress',
  'req.ip',
  'request.client_ip',
  'request.remote_ip',
];
const BYTES_FIELDS = [
  'bytes',
  'body_bytes_sent',
  'bytes_sent',
  'bytesSent',
  'size',
  'response_size',
  'responseSize',
  'contentLength',
  'content_length',
  'res.contentLength',
  'res.headers.content-length',
  'response.body_bytes',
];
/** The names that loggers use for the path and the status, which filters read. */
const FILTERED = {
  path: ['path', 'url', 'uri', 'request_uri', 'req.url', 'request.uri', 'request.url'],
  status: ['status', 'statusCode', 'status_code', 'res.statusCode', 'response.status'],
};
const SHOWN_FIELDS = 10;

const NAME = 'ndjson';

const jsonFormat: LogFormat = {
  name: NAME,
  matches: (line) => recordOf(line) !== undefined,
  reader(wanted, samples) {
    const records = samples.map(recordOf).filter((record) => record !== undefined);
    const timeName = wanted.time ?? chosen('time', TIME_FIELDS, records, timeAt);
    const address = () => fieldOf(chosen('key', ADDRESS_FIELDS, records, fieldOf));
    const keys = wanted.keys.map((key) => keyField(key, fieldOf, address));
    const cost = wanted.cost === undefined ? undefined : fieldOf(wanted.cost);
    const filter = filterOf(wanted.filters, (option) => fieldOf(chosen(option, FILTERED[option], records, fieldOf)));
    const bytes = wanted.bytes === true ? bytesIn(records) : undefined;
    const time = timeAt(timeName);
    return lineReader({ format: NAME, record: recordOf, time, timeName, keys, cost, bytes, filter }, wanted);
  },
};

function bytesIn(records: readonly JsonRecord[]): LineParts<JsonRecord>['bytes'] {
  const costAt = (field: string) => (record: JsonRecord) => readCost(fieldOf(field)(record));
  const name = chosen('bytes', BYTES_FIELDS, records, costAt, cliMessages.noFieldOfLimits);
  return { name, of: fieldOf(name) };
}

function recordOf(line: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonRecord) : undefined;
  } catch {
    return undefined;
  }
}

/** The first of the fields that occurs in the first lines. */
function chosen(
  option: string,
  names: readonly string[],
  records: readonly JsonRecord[],
  read: (name: string) => (record: JsonRecord) => unknown,
  message = cliMessages.noField,
): string {
  const name = names.find((each) => records.map(read(each)).some((value) => value !== undefined));
  if (name !== undefined) return name;
  const found = [...new Set(records.flatMap((record) => Object.keys(record)))].slice(0, SHOWN_FIELDS);
  throw new UsageError(message(option, names, found));
}

function timeAt(name: string): (record: JsonRecord) => number | undefined {
  const read = valueAt(name);
  return (record) => {
    const value = read(record);
    if (typeof value === 'number') return timeOfNumber(value);
    return typeof value === 'string' ? timeOfText(value) : undefined;
  };
}

function fieldOf(name: string): Field<JsonRecord> {
  const read = valueAt(name);
  return (record) => {
    const value = read(record);
    if (typeof value === 'string') return value === '' ? undefined : value;
    return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
  };
}

/** A field of a record: one with this whole name, or nested by the parts between the dots. */
function valueAt(name: string): (record: JsonRecord) => unknown {
  const path = name.split('.');
  if (path.length === 1) return (record) => ownValue(record, name);
  return (record) => {
    const whole = ownValue(record, name);
    if (whole !== undefined) return whole;
    let value: unknown = record;
    for (const part of path) value = ownValue(value, part);
    return value;
  };
}

function ownValue(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as JsonRecord)[name];
}

/** Every format; if two match equally many lines, the first one wins. */
const FORMATS: readonly LogFormat[] = [jsonFormat, ...commonLogFormats];
const NAMES = FORMATS.map(({ name }) => name);

export function formatNamed(name: string): LogFormat {
  const format = FORMATS.find((each) => each.name === name);
  if (format === undefined) throw new UsageError(cliMessages.unknownValue('format', name, NAMES));
  return format;
}

/** The format that most of the first lines match. */
export function detectFormat(lines: readonly string[]): LogFormat {
  let found: LogFormat | undefined;
  let most = 0;
  for (const format of FORMATS) {
    const count = lines.filter((line) => format.matches(line)).length;
    if (count > most) [found, most] = [format, count];
  }
  if (found === undefined) throw new UsageError(cliMessages.unknownFormat(lines[0] ?? '', NAMES));
  return found;
}

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
  return timeOf({ year, month, day, hour, minute, second, sign, hours, minutes }, micros);
}

/** Reads `10/Oct/2026:13:55:36 -0700`. */
export function timeOfCommonLog(text: string): number | undefined {
  const match = COMMON_LOG.exec(text);
  if (match === null) return undefined;
  const [, day, name, year, hour, minute, second, sign, hours, minutes] = match;
  const month = MONTHS.indexOf(name!) + 1;
  return timeOf({ year, month, day, hour, minute, second, sign, hours, minutes });
}

type Part = 'year' | 'month' | 'day' | 'hour' | 'minute' | 'second' | 'sign' | 'hours' | 'minutes';

/** Without a sign, the time is in UTC. */
function timeOf(parts: Readonly<Record<Part, string | number | undefined>>, micros = 0): number | undefined {
  const { sign } = parts;
  const month = Number(parts.month);
  const day = Number(parts.day);
  const hour = Number(parts.hour);
  const minute = Number(parts.minute);
  const second = Number(parts.second);
  const start = new Date(Date.UTC(Number(parts.year), month - 1, day));
  if (start.getUTCMonth() !== month - 1 || start.getUTCDate() !== day) return undefined;
  // A leap second counts as the first second of the next minute.
  if (hour > 23 || minute > 59 || second > 60) return undefined;
  const east = sign === undefined ? 0 : Number(parts.hours) * 60 + Number(parts.minutes);
  if (east >= 24 * 60) return undefined;
  const seconds = start.getTime() / 1000 + hour * 3600 + minute * 60 + second - (sign === '-' ? -east : east) * 60;
  return inRange(seconds * 1e6 + micros);
}

function inRange(micros: number): number | undefined {
  return micros >= 0 && micros < END ? micros : undefined;
}
