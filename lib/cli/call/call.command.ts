import { createHash } from 'node:crypto';
import { USUAL_TIME } from '../../storage/stores/redis/fast-way/plain-checks.js';
import { GeneralProgram } from '../../storage/stores/redis/general-program.js';
import { decisionScript } from '../../storage/stores/redis/script.generated.js';
import { printable } from '../../engine/util/printable.js';
import type { Command } from '../command.js';
import { type AskedOnce, readSettings } from './call.settings.js';
import { CALL_HELP } from './help.js';
import { units } from '../../engine/util/figures.js';

/** Longer than any calendar window. */
const MUCH_LATER = 20 * 366 * 86_400 * 1e6;

/** Prints the lines of a shell that ask one limit once, and what Redis replies. */
export const callCommand: Command = {
  help: CALL_HELP,
  run(args, { stdout }) {
    const asked = readSettings(args);
    stdout.write(asked === undefined ? decisionScript() : textOf(asked, Date.now() * 1000));
    return Promise.resolve(0);
  },
};

function textOf(asked: AskedOnce, now: number): string {
  const { limit, identity, cost, peek } = asked;
  const sha = createHash('sha1').update(decisionScript()).digest('hex');
  const does = peek ? `Asks whether ${units(cost)} would fit` : `Takes ${units(cost)}`;
  const lines = [
    '# Loads the script into Redis, which replies with its hash.',
    'npx nestjs-sluice call --script | redis-cli -x SCRIPT LOAD',
    '',
    `# ${does}: limit '${limit.name}', key '${identity}'. The last number is the cost.`,
    lineOf(sha, asked, now),
    '',
    ...replyOf(asked, now),
  ];
  return lines.map((line) => `${printable(line, Infinity)}\n`).join('');
}

/** The line of a shell that asks. */
function lineOf(sha: string, { limit, identity, cost, peek, prefix }: AskedOnce, now: number): string {
  const program = new GeneralProgram(prefix, now);
  program.check({ entries: [{ limit, identity, cost }], peek });
  const { allKeys } = program;
  return ['redis-cli EVALSHA', sha, allKeys.length, ...allKeys.map(quoted), quoted(program.text(USUAL_TIME))].join(' ');
}

/** What the numbers of the reply say. */
function replyOf({ limit }: AskedOnce, now: number): string[] {
  const { algorithm, parameters, escalation } = limit;
  const lines = [
    '# Redis replies with whole numbers; times are milliseconds. The first one is 4 times the time until all units are back, plus',
    '#   1  if it is allowed. The second number says how many units are left.',
  ];
  if (algorithm.queue !== undefined) {
    lines.push(
      '#   2  if it is allowed, too. The third number is how long to hold the request, the fourth its ticket.',
    );
  }
  lines.push('#   0  if it is refused. The third number is the wait until the same cost fits; -1 if it never does.');
  if (escalation !== undefined) lines.push('# The last number counts the offences, which make blocks longer.');
  const ofThen = algorithm.scriptParameters(parameters, now + MUCH_LATER);
  if (algorithm.scriptParameters(parameters, now).some((value, index) => value !== ofThen[index])) {
    lines.push('# If it begins with -1, another window has begun: print these lines anew.');
  }
  return lines;
}

/** A word of a shell that stands for itself. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
