import { cliMessages } from '../../engine/errors/messages/cli.js';
import { UsageError } from '../command.js';
import { type Field, filterOf, keyField, type LogFormat, readCost } from './logged-request.js';
import { lineReader } from './line-reader.js';
import { timeOfNumber, timeOfText } from './times.js';

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
/** The names that loggers use for the bytes of a response. */
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
/** Maximum number of field names to display. */
const SHOWN_FIELDS = 10;

const NAME = 'ndjson';

/** One JSON object per line. */
export const jsonFormat: LogFormat = {
  name: NAME,
  matches: (line) => recordOf(line) !== undefined,
  reader(wanted, samples) {
    const records = samples.map(recordOf).filter((record) => record !== undefined);
    const timeName = wanted.time ?? chosen('time', TIME_FIELDS, records, (name, each) => timeAt(name)(each));
    const address = () => fieldOf(chosen('key', ADDRESS_FIELDS, records, (name, each) => fieldOf(name)(each)));
    const keys = wanted.keys.map((key) => keyField(key, fieldOf, address));
    const cost = wanted.cost === undefined ? undefined : fieldOf(wanted.cost);
    const filter = filterOf(wanted.filters, (option) =>
      fieldOf(chosen(option, FILTERED[option], records, (name, each) => fieldOf(name)(each))),
    );
    const bytesName =
      wanted.bytes === true
        ? chosen(
            'bytes',
            BYTES_FIELDS,
            records,
            (name, each) => readCost(fieldOf(name)(each)),
            cliMessages.noFieldOfLimits,
          )
        : undefined;
    const bytes = bytesName === undefined ? undefined : { name: bytesName, of: fieldOf(bytesName) };
    return lineReader(
      { format: NAME, record: recordOf, time: timeAt(timeName), timeName, keys, cost, bytes, filter },
      wanted,
    );
  },
};

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
  read: (name: string, record: JsonRecord) => unknown,
  message = cliMessages.noField,
): string {
  const name = names.find((each) => records.some((record) => read(each, record) !== undefined));
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
