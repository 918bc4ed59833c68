import type { RateLimitSettings } from '../../config/settings.js';
import { ConsoleRedis } from '../../console/telemetry/console-redis.js';
import { cliMessages } from '../../errors/messages/cli.js';
import type { Connection } from '../../redis/connection.js';
import { InputError } from '../command.js';
import type { StartedApp } from './started-app.js';

/** The Redis of an app, for commands of the program's own. */
export interface AppRedis {
  readonly redis: ConsoleRedis;
  readonly prefix: string;
}

/** Throws `InputError` if the app counts in process, where no change outlives the command. */
export function redisOf(app: StartedApp): AppRedis {
  return redisAt(app, app.provided<Connection>('RATE_LIMIT_REDIS'));
}

/** The Redis that keeps changes of rates, modes and lists: with regions, their home. */
export function changesRedisOf(app: StartedApp): AppRedis {
  return redisAt(app, app.provided<Connection>('RATE_LIMIT_HOME') ?? app.provided<Connection>('RATE_LIMIT_REDIS'));
}

function redisAt(app: StartedApp, connection: Connection | undefined): AppRedis {
  if (connection === undefined) throw new InputError(cliMessages.notOnRedis());
  const { prefix, timeoutMs } = app.provided<RateLimitSettings>('RATE_LIMIT_SETTINGS')!;
  return { redis: new ConsoleRedis(connection, prefix, timeoutMs), prefix };
}
