import { withoutSecrets } from '../../engine/util/without-secrets.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { PLACE_OPTIONS, type Place, readPlace, refuseOptions } from '../app/place.js';
import { UsageError } from '../command.js';
import { type KnownOptions, type ReadArguments, readArguments } from '../options.js';

const OPTIONS: KnownOptions = {
  ...PLACE_OPTIONS,
  name: { type: 'string' },
  controller: { type: 'string' },
  handler: { type: 'string' },
  key: { type: 'string', multiple: true },
  cost: { type: 'string' },
  share: { type: 'string' },
  ip: { type: 'string' },
  json: { type: 'boolean' },
};

const OF_ROUTES = ['controller', 'handler'];

/** The question for `LimiterService.explain`. */
export type CommandQuestion =
  | ({ readonly limit: string; readonly key: string; readonly ip?: string } & AskedUnits)
  | ({ readonly controller: string; readonly handler: string; readonly key?: readonly string[] } & AskedUnits);

interface AskedUnits {
  readonly cost?: number;
  readonly share?: string;
}

/** The settings of a command line. */
export interface ExplainSettings {
  readonly place: Place;
  readonly question: CommandQuestion;
  readonly json: boolean;
}

/** Reads the command line. Throws `UsageError` or `RateLimitConfigError`. */
export function readSettings(args: readonly string[], environment: NodeJS.ProcessEnv): ExplainSettings {
  const read = readArguments(args, OPTIONS);
  if (read.positionals.length > 0) throw new UsageError(cliMessages.noArguments(withoutSecrets(read.positionals[0]!)));
  if (!read.values.has('module')) refuseOptions(read, OF_ROUTES, "explanations of an app, with '--module'");
  const place = readPlace(read, environment, { name: read.values.get('name') });
  const name = 'file' in place ? read.values.get('name') : place.limit?.name;
  return { place, question: question(read, name), json: read.switches.has('json') };
}

function question({ values, lists }: ReadArguments, name: string | undefined): CommandQuestion {
  const keys = lists.get('key') ?? [];
  const share = values.get('share');
  if (share === '') throw new UsageError(cliMessages.wrongOption('share', share, 'a tenant'));
  const asked = {
    ...(values.has('cost') ? { cost: units(values.get('cost')!) } : {}),
    ...(share === undefined ? {} : { share }),
  };
  const [controller, handler] = OF_ROUTES.map((option) => values.get(option));
  if (controller !== undefined || handler !== undefined) {
    if (values.has('name')) throw new UsageError(cliMessages.optionWithout('name', 'limits, not for routes'));
    if (values.has('ip')) throw new UsageError(cliMessages.optionWithout('ip', 'limits, not for routes'));
    if (controller === undefined) throw new UsageError(cliMessages.missingOption('controller', 'the name of a class'));
    if (handler === undefined) throw new UsageError(cliMessages.missingOption('handler', 'the name of a method'));
    return { controller, handler, ...(keys.length > 0 ? { key: keys } : {}), ...asked };
  }
  if (name === undefined) {
    throw new UsageError(cliMessages.missingOption('name', "the name of a limit, or '--controller' and '--handler'"));
  }
  const [key, ...others] = keys;
  if (key === undefined) throw new UsageError(cliMessages.missingOption('key', 'an identity such as tenant:acme'));
  if (others.length > 0) throw new UsageError(cliMessages.optionTwice('key'));
  const ip = values.get('ip');
  return { limit: name, key, ...asked, ...(ip === undefined ? {} : { ip }) };
}

function units(text: string): number {
  const cost = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(cost)) {
    throw new UsageError(cliMessages.wrongOption('cost', text, 'a whole number >= 0'));
  }
  return cost;
}
