import type { ExactLimit } from '../../app/config/limit-definition.js';
import { isRedisConnection, urlFormOf } from '../../app/config/redis-option.js';
import { withoutSecrets } from '../../engine/errors/reasons.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { redisMessages } from '../../engine/errors/messages/redis.js';
import { DURATION_UNITS, milliseconds } from '../../engine/options/values.js';
import { type CommandOptions, type ReadArguments, refuseOptions, UsageError } from '../command.js';
import { readDefinition } from '../limit-spec.js';

/** A limit on Redis, as an app would define it. */
export interface PlacedLimit {
  readonly name: string;
  readonly definition: ExactLimit;
  /** True for one of the module's `limits`. */
  readonly everywhere: boolean;
}

/** The Redis server that apps count on, without an app. */
export interface RedisPlace {
  readonly redis: string;
  /** The URL of the regions' home, if the app is in a region. */
  readonly home: string | undefined;
  readonly prefix: string | undefined;
  readonly timeout: number;
  readonly limit: PlacedLimit | undefined;
  /** The name of a limit that instances with a console may have published: see `asPublished`. */
  readonly published?: string;
}

export interface ModulePlace {
  readonly file: string;
  readonly className: string | undefined;
}

export type Place = RedisPlace | ModulePlace;

export const REDIS_OPTIONS = {
  redis: { value: '<url>', help: "The app's Redis (default: the environment variable REDIS_URL)" },
  home: {
    value: '<url>',
    help:
      "The home of the app's 'regions', if it has several: the Redis that keeps rates, modes, lists and limits of scope 'world' " +
      '(default: the environment variable HOME_REDIS_URL)',
  },
  prefix: { value: '<prefix>', help: "The app's 'prefix' (default: sluice)" },
  timeout: { value: '<time>', help: 'How long to wait for Redis (default: 2s)' },
} as const satisfies CommandOptions;

export const LIMIT_HELP =
  'The limit as the app defines it: algo:rate/interval[,option=value...], such as gcra:60/1s,burst=120 or concurrency:5/1m; add ' +
  'scope=world if it counts over several regions';

export const PLACE_OPTIONS = {
  ...REDIS_OPTIONS,
  limit: {
    value: '<limit>',
    help: `${LIMIT_HELP}. You can omit it if instances with a console have published the limit`,
  },
  everywhere: { help: "The limit is one of the module's 'limits'" },
  module: {
    value: '<file>',
    help:
      "Takes limits, Redis and prefix from the app's compiled module instead: ./dist/app.module.js or, with the name of its class, " +
      './dist/app.module.js#AppModule. The app is started without listening, and closed again',
  },
} as const satisfies CommandOptions;

const OF_REDIS = ['redis', 'home', 'prefix', 'timeout', 'limit', 'everywhere'];
const REDIS_FORM = 'a URL such as redis://localhost:6379';

/** The limit that a command requires. */
interface Wanted {
  /** The name of the limit, unless it is in `--limit`. */
  readonly name: string | undefined;
  /** True if the command works without a limit. */
  readonly optional?: boolean;
  /** True if the command reads the limit that instances publish. */
  readonly published?: boolean;
}

export function readPlace(read: ReadArguments, wanted: Wanted): Place {
  const module = read.values.get('module');
  if (module === undefined) return redisPlace(read, wanted);
  refuseOptions(read, OF_REDIS, "Redis without the app, not together with '--module'");
  const hash = module.lastIndexOf('#');
  const file = hash < 0 ? module : module.slice(0, hash);
  const className = hash < 0 ? undefined : module.slice(hash + 1);
  if (file === '' || className === '') {
    throw new UsageError(cliMessages.wrongOption('module', module, 'a file such as ./dist/app.module.js#AppModule'));
  }
  return { file, className };
}

function redisPlace(
  { values, switches }: ReadArguments,
  { name: wantedName, optional = false, published = false }: Wanted,
): RedisPlace {
  const redis = values.get('redis') ?? process.env['REDIS_URL'];
  if (redis === undefined) {
    throw new UsageError(cliMessages.missingOption('redis', `${REDIS_FORM}, or '--module' instead`));
  }
  assertRedis('redis', redis);
  const home = values.get('home') ?? (process.env['HOME_REDIS_URL'] || undefined);
  if (home !== undefined) assertRedis('home', home);
  const time = values.get('timeout') ?? '2s';
  const timeout = milliseconds(time);
  const place = { redis, home, prefix: values.get('prefix'), timeout: timeout ?? 0 };
  const spec = values.get('limit');
  const isAsked = published && wantedName !== undefined;
  if (spec === undefined && !optional && !isAsked)
    throw new UsageError(cliMessages.missingOption('limit', 'a limit such as gcra:60/1s'));
  const { name: ofSpec, ...definition } = spec === undefined ? UNKNOWN : readDefinition(spec);
  const name = wantedName ?? ofSpec;
  if (name === undefined && !optional) {
    throw new UsageError(cliMessages.missingOption('name', 'the name that the app has for the limit'));
  }
  if (timeout === undefined || timeout <= 0) {
    throw new UsageError(cliMessages.wrongOption('timeout', time, `a duration such as 500ms or 2s ${DURATION_UNITS}`));
  }
  const everywhere = switches.has('everywhere');
  const isOnlyPublished = isAsked && spec === undefined;
  return {
    ...place,
    limit: name === undefined || isOnlyPublished ? undefined : { name, definition, everywhere },
    ...(isAsked && { published: wantedName }),
  };
}

function assertRedis(option: 'redis' | 'home', text: string): void {
  if (isRedisConnection(text)) return;
  const url = urlFormOf(text);
  const expected = url === undefined ? REDIS_FORM : redisMessages.urlExpected(url);
  throw new UsageError(cliMessages.wrongOption(option, withoutSecrets(text), expected));
}

/** A placeholder for a limit of which a command only needs the name. */
const UNKNOWN: ExactLimit = { algo: 'gcra', rate: 1, interval: '1s' };
