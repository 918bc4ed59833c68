import { cliMessages } from '../../engine/errors/messages/cli.js';
import { FilePolicySource } from '../../app/policy/sources.js';
import { isPolicyPath } from '../../app/policy/read-text.js';
import { showProblem } from '../../app/policy/problems.js';
import type { PolicyReading } from '../../app/policy/read-policy.js';
import { type Command, UsageError } from '../command.js';
import { printableJson, printableLines } from '../../engine/util/printable.js';

export const checkCommand: Command = {
  usage: ['[options] <file...>'],
  about: `Checks policy files as an app would when it loads them, and prints one mistake per line:
its file, line, column, option and what was expected.

Two things are only checked when the app starts: that the app has the limits that a policy
changes, and that the policy fits their other options.`,
  options: { json: { help: 'Prints JSON' } },
  exits: { 0: 'all files are valid', 1: 'a file has mistakes or cannot be read' },
  async run({ switches, positionals }, { stdout }) {
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

function reportOf([file, reading]: [path: string, reading: PolicyReading]) {
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
  return printableLines(lines);
}
