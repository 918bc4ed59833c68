import { cliMessages } from '../../engine/errors/messages/cli.js';
import { UsageError } from '../command.js';
import { jsonFormat } from './json.format.js';
import { type Field, filterOf, keyField, type LogFormat } from './logged-request.js';
import { lineReader } from './line-reader.js';
import { timeOfCommonLog } from './times.js';

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
      const keys = wanted.keys.map((key) =>
        keyField(
          key,
          (field) => fieldOf('key', field),
          () => part(IP),
        ),
      );
      const cost = wanted.cost === undefined ? undefined : fieldOf('cost', wanted.cost);
      const filter = filterOf(wanted.filters, (option) => fieldOf(option, option));
      const timeOf = rememberingTime();
      const bytes = wanted.bytes === true ? { name: 'bytes', of: sentBytes } : undefined;
      return lineReader(
        { format: name, record, time: (match) => timeOf(match[TIME]!), timeName: 'time', keys, cost, bytes, filter },
        wanted,
      );
    },
  };
}

function fieldOf(option: string, name: string): Field<RegExpExecArray> {
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

/** The bytes of a response; `-` means that it had no body. */
function sentBytes(match: RegExpExecArray): string {
  const text = match[BYTES]!;
  return text === '-' ? '0' : text;
}

/** A word of the request line. */
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

/** Every format; if two match equally many lines, the first one wins. */
const FORMATS: readonly LogFormat[] = [jsonFormat, ...commonLogFormats];
const NAMES = FORMATS.map(({ name }) => name);

/** The format with this name. */
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
