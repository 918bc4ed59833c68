import { cliMessages } from '../../engine/errors/messages/cli.js';
import { FilePolicySource } from '../../app/policy/file.source.js';
import { isPolicyPath } from '../../app/policy/read-text.js';
import { showProblem } from '../../app/policy/problems.js';
import type { PolicyReading } from '../../app/policy/read-policy.js';
import { type Command, UsageError } from '../command.js';
import { readArguments } from '../options.js';
import { printable, printableJson } from '../../engine/util/printable.js';

const HELP = `Usage: nestjs-sluice check [options] <file...>

Reads policy files as an app would, and reports what is wrong with them, one
problem a line, such as
  limits.yaml:12:11 limits.api.rate: expected a whole number >= 1, received -1

What only the app knows is checked when it starts: whether it has the limits that
a policy changes, and what their options make together.

Options:
  --json      writes JSON instead
  --help      this text

Exit codes: 0 if all files are right, 1 if not, 2 if the command line is wrong
`;

/** The report on one file. */
interface FileReport {
  readonly file: string;
  readonly limits: number;
  readonly overrides: number;
  /** The number of list entries. */
  readonly lists: number;
  readonly problems: readonly object[];
}

/** Reads policy files, and reports what is wrong with them. */
export const checkCommand: Command = {
  help: HELP,
  async run(args, { stdout }) {
    const { switches, positionals } = readArguments(args, { json: { type: 'boolean' } });
    if (positionals.length === 0) throw new UsageError(cliMessages.noPolicy());
    const wrong = positionals.find((path) => !isPolicyPath(path));
    if (wrong !== undefined) throw new UsageError(cliMessages.noPolicyFile(wrong));
    const readings: [path: string, reading: PolicyReading][] = [];
    for (const path of positionals) readings.push([path, await new FilePolicySource(path).read()]);
    const isJson = switches.has('json');
    stdout.write(isJson ? `${printableJson({ files: readings.map(reportOf) })}\n` : readings.map(textOf).join(''));
    return readings.some(([, reading]) => 'problems' in reading) ? 1 : 0;
  },
};

function reportOf([file, reading]: [path: string, reading: PolicyReading]): FileReport {
  if ('problems' in reading) return { file, limits: 0, overrides: 0, lists: 0, problems: reading.problems };
  const { limits, overrides, lists } = reading.policy;
  return { file, limits: limits.size, overrides: overrides.length, lists: lists.length, problems: [] };
}

function textOf([file, reading]: [path: string, reading: PolicyReading]): string {
  const { limits, overrides, lists } = reportOf([file, reading]);
  const lines =
    'problems' in reading
      ? reading.problems.map(showProblem)
      : [`${file}: ok (limits: ${limits}, overrides: ${overrides}, lists: ${lists})`];
  return lines.map((line) => `${printable(line, Infinity)}\n`).join('');
}
