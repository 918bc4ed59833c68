import { createHash } from 'node:crypto';
import { USUAL_TIME } from '../../storage/stores/redis/fast-way/plain-checks.js';
import { GeneralProgram } from '../../storage/stores/redis/general-program.js';
import { decisionScript } from '../../storage/stores/redis/script.generated.js';
import { printableLines } from '../../engine/util/printable.js';
import { argumentsOf, type Command, type ReadArguments, UsageError } from '../command.js';
import { algorithms } from '../../engine/algorithms/index.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { isCost } from '../../engine/limits/arguments.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { MODULE_NAMESPACE } from '../../engine/limits/limit-settings.js';
import { compiled, readDefinition } from '../limit-spec.js';
import { units } from '../../engine/util/figures.js';

/** A single check of one limit. */
interface AskedOnce {
  readonly limit: CompiledLimit;
  /** The key of the counter. */
  readonly identity: string;
  readonly cost: number;
  readonly peek: boolean;
  readonly prefix: string;
}

/** Later than the end of any calendar window. */
const MUCH_LATER = 20 * 366 * 86_400 * 1e6;

export const callCommand: Command = {
  usage: ['<limit> <key> --limit <limit> [options]', '--script'],
  about: `Prints the redis-cli commands that load the script and evaluate a limit, and explains the
reply. It connects to neither Redis nor an app. With --script it prints the script itself,
for redis-cli or for a service in another language.

<limit> is the name of the limit in the app, from 'define' or the module's 'limits'.
<key> is what the limit counts by, such as tenant:acme or ip:203.0.113.7.`,
  options: {
    limit: {
      value: '<limit>',
      help:
        'The limit as the app defines it: algo:rate/interval[,option=value...], such as gcra:60/1s,burst=120. Neither concurrency nor ' +
        "limits with the scope 'world' work here",
    },
    everywhere: { help: "The limit is one of the module's 'limits'" },
    cost: { value: '<units>', help: 'The units to take (default: 1)' },
    peek: { help: 'Only looks, and takes nothing' },
    prefix: { value: '<prefix>', help: "The app's 'prefix' (default: sluice)" },
    script: { help: 'Prints the script' },
  },
  exits: {},
  run(read, { stdout }) {
    const asked = readSettings(read);
    stdout.write(asked === undefined ? decisionScript() : textOf(asked, Date.now() * 1000));
    return Promise.resolve(0);
  },
};

function textOf(asked: AskedOnce, now: number): string {
  const { limit, identity, cost, peek } = asked;
  const sha = createHash('sha1').update(decisionScript()).digest('hex');
  const does = peek ? `Asks whether ${units(cost)} would fit` : `Takes ${units(cost)}`;
  return printableLines([
    '# Loads the script into Redis, which replies with its hash.',
    'npx nestjs-sluice call --script | redis-cli -x SCRIPT LOAD',
    '',
    `# ${does}: limit '${limit.name}', key '${identity}'. The last number is the cost.`,
    lineOf(sha, asked, now),
    '',
    ...replyOf(asked, now),
  ]);
}

function lineOf(sha: string, { limit, identity, cost, peek, prefix }: AskedOnce, now: number): string {
  const program = new GeneralProgram(prefix, now);
  program.check({ entries: [{ limit, identity, cost }], peek });
  const { allKeys } = program;
  return ['redis-cli EVALSHA', sha, allKeys.length, ...allKeys.map(quoted), quoted(program.text(USUAL_TIME))].join(' ');
}

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
    lines.push('# If it begins with -1, another window has begun: print these lines again.');
  }
  return lines;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Reads the command line. Returns nothing if only the script is requested. Throws `UsageError` or `RateLimitConfigError`. */
function readSettings(read: ReadArguments): AskedOnce | undefined {
  const { values, switches } = read;
  if (switches.has('script')) {
    const beside = [...values.keys(), ...switches].find((option) => option !== 'script');
    if (beside !== undefined)
      throw new UsageError(cliMessages.optionWithout(beside, "a limit, not together with '--script'"));
    argumentsOf(read);
    return undefined;
  }
  const [name = '', identity = ''] = argumentsOf(read, 'the name of a limit', 'a key such as tenant:acme');
  const spec = values.get('limit');
  if (spec === undefined) throw new UsageError(cliMessages.missingOption('limit', 'a limit such as gcra:60/1s'));
  const limit = limitOf(name, spec, switches.has('everywhere'));
  const cost = values.get('cost') ?? '1';
  if (!/^\d+$/.test(cost) || !isCost(Number(cost))) {
    throw new UsageError(cliMessages.wrongOption('cost', cost, 'a whole number of units'));
  }
  const prefix = values.get('prefix') ?? 'sluice';
  if (!/^[^{}]+$/.test(prefix))
    throw new UsageError(cliMessages.wrongOption('prefix', prefix, 'a text without braces'));
  return { limit, identity, cost: Number(cost), peek: switches.has('peek'), prefix };
}

function limitOf(name: string, spec: string, everywhere: boolean): CompiledLimit {
  const definition = { ...readDefinition(spec), name };
  if (definition.scope === 'world') throw new UsageError(cliMessages.worldNotCalled(spec));
  if (algorithms.get(definition.algo)?.leases !== undefined) {
    throw new UsageError(cliMessages.notCalled(spec, definition.algo));
  }
  return everywhere ? compiled(definition, `limits.${name}`, MODULE_NAMESPACE) : compiled(definition, `define.${name}`);
}
