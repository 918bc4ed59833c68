import { milliseconds } from '../../options/values.js';
import { isRedisConnection, withoutSecrets } from '../../config/redis-option.js';
import { cliMessages } from '../../errors/messages/cli.js';
import type { LimitDefinition } from '../../config/limit-definition.js';
import { UsageError } from '../command.js';
import { readDefinition } from '../limit-spec.js';
import { type KnownOptions, type ReadArguments, readArguments } from '../options.js';

const OPTIONS: KnownOptions = {
  redis: { type: 'string' },
  prefix: { type: 'string' },
  timeout: { type: 'string' },
  limit: { type: 'string' },
  everywhere: { type: 'boolean' },
  module: { type: 'string' },
  name: { type: 'string' },
  controller: { type: 'string' },
  handler: { type: 'string' },
  key: { type: 'string', multiple: true },
  cost: { type: 'string' },
  share: { type: 'string' },
  ip: { type: 'string' },
  json: { type: 'boolean' },
};

const OF_REDIS = ['redis', 'prefix', 'timeout', 'limit', 'everywhere'];
const OF_ROUTES = ['controller', 'handler'];

/** The question for `LimiterService.explain`. */
export type CommandQuestion =
  | ({ readonly limit: string; readonly key: string; readonly ip?: string } & AskedUnits)
  | ({ readonly controller: string; readonly handler: string; readonly key?: readonly string[] } & AskedUnits);

interface AskedUnits {
  readonly cost?: number;
  readonly share?: string;
}

/** A limit on Redis, as an app would define it. */
export interface RedisPlace {
  readonly redis: string;
  readonly prefix: string | undefined;
  readonly timeout: number;
  readonly name: string;
  readonly definition: LimitDefinition;
  /** Whether it is one of the module's `limits`. */
  readonly everywhere: boolean;
}

/** The file of an app's module, and the name of the class, if given. */
export interface ModulePlace {
  readonly file: string;
  readonly className: string | undefined;
}

/** The settings of a command line. */
export interface ExplainSettings {
  readonly place: RedisPlace | ModulePlace;
  readonly question: CommandQuestion;
  readonly json: boolean;
}

/** Reads the command line. Throws `UsageError` or `RateLimitConfigError`. */
export function readSettings(args: readonly string[], environment: NodeJS.ProcessEnv): ExplainSettings {
  const read = readArguments(args, OPTIONS);
  if (read.positionals.length > 0) throw new UsageError(cliMessages.noArguments(withoutSecrets(read.positionals[0]!)));
  const module = read.values.get('module');
  const place = module === undefined ? redisPlace(read, environment) : modulePlace(read, module);
  const name = 'name' in place ? place.name : read.values.get('name');
  return { place, question: question(read, name), json: read.switches.has('json') };
}

function modulePlace(read: ReadArguments, module: string): ModulePlace {
  refuse(read, OF_REDIS, "explanations of Redis without the app, not beside '--module'");
  const hash = module.lastIndexOf('#');
  const file = hash < 0 ? module : module.slice(0, hash);
  const className = hash < 0 ? undefined : module.slice(hash + 1);
  if (file === '' || className === '') {
    throw new UsageError(cliMessages.wrongOption('module', module, 'a file such as ./dist/app.module.js#AppModule'));
  }
  return { file, className };
}

function redisPlace({ values, switches, ...read }: ReadArguments, environment: NodeJS.ProcessEnv): RedisPlace {
  refuse({ values, switches, ...read }, OF_ROUTES, "explanations of an app, with '--module'");
  const redis = values.get('redis') ?? environment['REDIS_URL'];
  const form = 'a URL such as redis://localhost:6379';
  if (redis === undefined) throw new UsageError(cliMessages.missingOption('redis', `${form}, or '--module' instead`));
  if (!isRedisConnection(redis)) throw new UsageError(cliMessages.wrongOption('redis', withoutSecrets(redis), form));
  const spec = values.get('limit');
  if (spec === undefined) throw new UsageError(cliMessages.missingOption('limit', 'a limit such as gcra:60/1s'));
  const { name: ofSpec, ...definition } = readDefinition(spec);
  const name = values.get('name') ?? ofSpec;
  if (name === undefined)
    throw new UsageError(cliMessages.missingOption('name', 'the name that the app has for the limit'));
  const time = values.get('timeout') ?? '2s';
  const timeout = milliseconds(time);
  if (timeout === undefined || timeout <= 0) {
    throw new UsageError(cliMessages.wrongOption('timeout', time, 'a duration such as 500ms or 2s'));
  }
  const everywhere = switches.has('everywhere');
  return { redis, prefix: values.get('prefix'), timeout, name, definition, everywhere };
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

function refuse({ values, switches }: ReadArguments, options: readonly string[], others: string): void {
  const wrong = options.find((option) => values.has(option) || switches.has(option));
  if (wrong !== undefined) throw new UsageError(cliMessages.optionWithout(wrong, others));
}
