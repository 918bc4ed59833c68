import { cliMessages } from '../../engine/errors/messages/cli.js';
import { UsageError } from '../command.js';
import { commonLogFormats } from './common-log.format.js';
import { jsonFormat } from './json.format.js';
import type { LogFormat } from './logged-request.js';

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
